"""The page of a server of agents in a headless Chromium."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tests.helpers.watched_page import WatchedPage

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Locator, Page

KEY = "a-key-for-the-tests-0123"  # of the servers that want one


class ServerPage(WatchedPage):
    """A page of the server at ``url``."""

    def __init__(self, browser: Browser, url: str) -> None:
        super().__init__(browser, viewport={"width": 1280, "height": 900})
        self.url = url

    def load(self) -> Page:
        self.page.goto(f"{self.url}/")
        return self.page

    def place(self, number: int = 0) -> Locator:
        """Where an answer is shown, from 0."""
        return self.page.locator(".place").nth(number)

    def unfolded(self, summary: str, number: int = 0) -> Locator:
        """The part with that summary in a place, unfolded."""
        part = self.place(number).locator(f"details:has(> summary:has-text('{summary}'))")
        if part.get_attribute("open") is None:
            part.locator("> summary").click()
        return part

    def answered(self, number: int = 0) -> Any:
        """The record of a place, as it is copied."""
        return json.loads(self.unfolded("as JSON", number).locator("section.record pre").inner_text())
