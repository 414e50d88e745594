"""Open WebUI in Chromium, as it comes: it is told where the agents are and that nobody signs in; a person types."""

import os
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

from calls import FIRST, FOLDER, KEY, NEXT_REPLY, REPLY, SECOND, URL, attempt
from playwright.sync_api import Page, sync_playwright

CHROMIUM = os.environ.get("TURINGLIKE_CHROMIUM") or next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
START_S, ANSWER_S = 300, 90
SENTENCE = re.compile(r"\S")


def serve(port, **more):
    """Open WebUI with a new data folder."""
    data = Path(FOLDER, "data")
    shutil.rmtree(data, ignore_errors=True)
    data.mkdir()
    told = {"OPENAI_API_BASE_URL": URL, "OPENAI_API_KEY": KEY, "WEBUI_AUTH": "False", "DATA_DIR": str(data), **more}
    command = str(Path(sys.executable).with_name("open-webui"))
    call = [command, "serve", "--host", "127.0.0.1", "--port", str(port)]
    return subprocess.Popen(call, env=os.environ | told, cwd=FOLDER, stdout=sys.stderr)


def wait_for(port, server):
    end = time.monotonic() + START_S
    while time.monotonic() < end and server.poll() is None:
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5).close()
            return
        except OSError:
            time.sleep(1)
    raise TimeoutError("Open WebUI does not start")


def say(page: Page, text: str, number: int) -> str:
    """Types ``text``; returns the answer number ``number``, once it stays as it is."""
    page.click("#chat-input")
    page.keyboard.type(text, delay=20)
    page.keyboard.press("Enter")
    answer = page.locator(".chat-assistant").nth(number)
    answer.wait_for(timeout=ANSWER_S * 1000)
    end, shown = time.monotonic() + ANSWER_S, ""
    while time.monotonic() < end:
        page.wait_for_timeout(3000)
        before, shown = shown, answer.inner_text().strip()
        if shown and shown == before:
            return " ".join(shown.split())
    raise TimeoutError(f"no answer is shown: {shown!r}")
