"""A real, headless Firefox, driven over WebDriver BiDi (W3C): a page is opened, scripts run, keys are pressed."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

FIREFOX = os.environ.get("TURINGLIKE_FIREFOX") or next(
    filter(None, map(shutil.which, ("firefox-esr", "firefox"))), None
)
PATIENCE = 120.0
"""Seconds that a busy machine may take for anything."""
CONTROL = "\ue009"
"""The key Control, by its code of WebDriver."""
PREFERENCES = {
    "browser.shell.checkDefaultBrowser": False,
    "browser.startup.page": 0,
    "datareporting.policy.dataSubmissionEnabled": False,
    "network.captive-portal-service.enabled": False,
    "network.connectivity-service.enabled": False,
    "remote.active-protocols": 1,  # BiDi alone
    "toolkit.telemetry.reportingpolicy.firstRun": False,
}


class FirefoxPage:
    """A tab of Firefox. ``session`` is the connection to the browser."""

    def __init__(self, session: Any) -> None:
        self._session = session
        self._last = 0
        self._ask("session.new", capabilities={})
        self._tab = self._ask("browsingContext.getTree")["contexts"][0]["context"]

    def _ask(self, method: str, **parameters: Any) -> Any:
        self._last += 1
        self._session.send(json.dumps({"id": self._last, "method": method, "params": parameters}))
        while True:
            reply = json.loads(self._session.recv(timeout=PATIENCE))
            if reply.get("id") == self._last:
                assert reply["type"] == "success", reply
                return reply["result"]

    def goto(self, address: str) -> None:
        """Open an address, and wait until the page is loaded."""
        self._ask("browsingContext.navigate", context=self._tab, url=address, wait="complete")

    def evaluate(self, script: str) -> Any:
        """The value of a script, as JSON has it."""
        text = f"(async () => JSON.stringify(await ({script})) ?? 'null')()"
        target = {"context": self._tab}
        found = self._ask("script.evaluate", expression=text, target=target, awaitPromise=True, userActivation=True)
        assert found["type"] == "success", found
        return json.loads(found["result"]["value"])

    def wait_for(self, script: str) -> Any:
        """Wait until a script has a value that is true; returns it."""
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until:
            if value := self.evaluate(script):
                return value
            time.sleep(0.05)
        raise AssertionError(f"never true: {script}; the page says: {self.evaluate('document.body.innerText')}")

    def press(self, *keys: str) -> None:
        """Press keys one after the other. A text of several letters is several keys; a pair with CONTROL first is held
        together."""
        actions: list[dict[str, str]] = []
        for key in keys:
            if key.startswith(CONTROL) and len(key) > 1:
                held = [{"type": "keyDown", "value": each} for each in key]
                actions += [*held, *({"type": "keyUp", "value": each} for each in reversed(key))]
            else:
                actions += [{"type": kind, "value": each} for each in key for kind in ("keyDown", "keyUp")]
        source = {"type": "key", "id": "keyboard", "actions": actions}
        self._ask("input.performActions", context=self._tab, actions=[source])


@contextmanager
def firefox(folder: Path) -> Iterator[FirefoxPage]:
    """A Firefox with a new profile in ``folder``, which ends with the block."""
    from websockets.sync.client import connect

    assert FIREFOX is not None
    profile = folder / "profile"
    profile.mkdir()
    lines = (f"user_pref({json.dumps(name)}, {json.dumps(value)});\n" for name, value in PREFERENCES.items())
    (profile / "user.js").write_text("".join(lines))
    log = folder / "firefox.log"
    command = [FIREFOX, "--headless", "--no-remote", "--remote-debugging-port", "0", "--profile", str(profile)]
    with log.open("wb") as file:
        process = subprocess.Popen([*command, "about:blank"], stdout=file, stderr=file)
    try:
        until = time.monotonic() + PATIENCE
        while (found := re.search(r"WebDriver BiDi listening on (ws://\S+)", log.read_text())) is None:
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < until, log.read_text()
            time.sleep(0.1)
        with connect(f"{found.group(1)}/session", max_size=None) as session:
            yield FirefoxPage(session)
    finally:
        process.terminate()
        process.wait(PATIENCE)
