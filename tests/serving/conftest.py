"""A real, headless Chromium for the tests of pages.

It needs the ``playwright`` package and a Chromium, which TURINGLIKE_CHROMIUM or the path names.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser

CHROMIUM = os.environ.get("TURINGLIKE_CHROMIUM") or next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    playwright = pytest.importorskip("playwright.sync_api", reason="the page's browser tests need playwright")
    if CHROMIUM is None:
        pytest.skip("no Chromium: install Debian's chromium or name one in TURINGLIKE_CHROMIUM")
    with playwright.sync_playwright() as started:
        arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
        browser = started.chromium.launch(executable_path=CHROMIUM, args=arguments)
        yield browser
        browser.close()
