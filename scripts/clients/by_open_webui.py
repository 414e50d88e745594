"""Open WebUI in Chromium, as it comes: it is told where the agents are and that nobody signs in; a person types."""

import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from contextlib import contextmanager
from pathlib import Path

from calls import FIRST, FOLDER, KEY, NEXT_REPLY, REPLY, SECOND, URL, attempt
from playwright.sync_api import sync_playwright

CHROMIUM = os.environ.get("TURINGLIKE_CHROMIUM") or next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
START_S = 600
ANSWER_S = 180
QUIET_S = 15  # so long after an answer further requests are waited for
NO_HOUSEKEEPING = {
    "ENABLE_TITLE_GENERATION": "False",
    "ENABLE_FOLLOW_UP_GENERATION": "False",
    "ENABLE_TAGS_GENERATION": "False",
}


@contextmanager
def open_webui(model, **more):
    """A page of a new chat with ``model``, of an Open WebUI with a new data folder."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    data = Path(FOLDER, "data")
    shutil.rmtree(data, ignore_errors=True)
    data.mkdir()
    told = {"OPENAI_API_BASE_URL": URL, "OPENAI_API_KEY": KEY, "WEBUI_AUTH": "False", "DATA_DIR": str(data), **more}
    call = [Path(sys.executable).with_name("open-webui"), "serve", "--host", "127.0.0.1", "--port", str(port)]
    with subprocess.Popen(call, env=os.environ | told, cwd=FOLDER) as server, sync_playwright() as playwright:
        try:
            wait_for(f"http://127.0.0.1:{port}/health", server)
            browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
            page = browser.new_page(viewport={"width": 1280, "height": 900})
            page.goto(f"http://127.0.0.1:{port}/?models={model}", timeout=START_S * 1000)
            page.wait_for_selector("#chat-input", timeout=START_S * 1000)
            page.keyboard.press("Escape")  # what is new
            yield page
            browser.close()
        finally:
            server.terminate()


def wait_for(address, server):
    end = time.monotonic() + START_S
    while time.monotonic() < end and server.poll() is None:
        try:
            urllib.request.urlopen(address, timeout=5).close()
            return
        except OSError:
            time.sleep(1)
    raise TimeoutError("Open WebUI does not start")


def say(page, text, number):
    """Types ``text``; returns answer number ``number`` as it is shown, once it stays as it is."""
    page.click("#chat-input")
    page.keyboard.type(text, delay=20)
    page.keyboard.press("Enter")
    answer = page.locator("#response-content-container").nth(number)
    end = time.monotonic() + ANSWER_S
    shown = ""
    while time.monotonic() < end:
        page.wait_for_timeout(2000)
        before = shown
        shown = answer.inner_text(timeout=ANSWER_S * 1000).strip()
        if shown and shown == before:
            return " ".join(shown.split())
    raise TimeoutError(f"no answer is shown: {shown!r}")


def talk(page, name):
    """A talk of two turns; the second answer, with a picture of the page in the client's folder."""
    try:
        if (first := say(page, FIRST, 0)) != REPLY.strip():
            raise ValueError(first)
        second = say(page, SECOND, 1)
        page.wait_for_timeout(QUIET_S * 1000)
        return second
    finally:
        page.screenshot(path=Path(FOLDER, f"{name}.png"))


with open_webui("eliza") as page:
    attempt("two turns, streamed", lambda: talk(page, "as-it-comes"), NEXT_REPLY.strip())
with open_webui("eliza", **NO_HOUSEKEEPING) as page:
    attempt("without housekeeping", lambda: talk(page, "without-housekeeping"), NEXT_REPLY.strip(), requests=2)
