"""Makes the tables of jsPsych and lab.js in Chromium: python browser_words.py PACKAGES FOLDER.

PACKAGES is a folder with jspsych 8.3.0, @jspsych/plugin-instructions 2.1.0, @jspsych/plugin-survey-text 2.1.1
and lab.js 20.2.4 from npm."""

import shutil
import sys
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

HERE = Path(__file__).parent


def answer_jspsych(page: Page) -> None:
    page.click("#jspsych-instructions-next")
    for word in ("ok", "chair", 'fish, "blue"', ""):
        page.fill("#input-0", word)
        page.click("#jspsych-survey-text-next")
        page.wait_for_timeout(300)


def answer_lab_js(page: Page) -> None:
    page.click("button")
    for word in ("chair", 'fish, "blue"'):
        page.fill("input[name=word]", word)
        page.click("button")
        page.wait_for_timeout(100)


packages = Path(sys.argv[1]).resolve()
with sync_playwright() as playwright:
    browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
    for name, answer in (("jspsych_words.html", answer_jspsych), ("lab_js_words.html", answer_lab_js)):
        shutil.copy(HERE / name, packages / name)
        page = browser.new_page()
        page.goto((packages / name).as_uri())
        answer(page)
        page.wait_for_function("window.files")
        for file, text in page.evaluate("window.files").items():
            (Path(sys.argv[2]) / file).write_text(text, encoding="utf-8", newline="")
    browser.close()
