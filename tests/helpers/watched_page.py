"""A page of a headless Chromium, and what went on while it was open."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page


class WatchedPage:
    """``asked`` are the addresses that it asked, ``complaints`` its errors and dialogs."""

    def __init__(self, browser: Browser, **options: Any) -> None:
        self.context = browser.new_context(**options)
        self.context.set_default_timeout(300_000)
        self.page: Page = self.context.new_page()
        self.asked: list[str] = []
        self.complaints: list[str] = []
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("console", lambda line: self.complaints.append(line.text) if line.type == "error" else None)
        self.page.on("dialog", lambda dialog: self.complaints.append(f"a dialog: {dialog.message}"))


SMALL = """least => [...document.querySelectorAll("a, button, summary, input, select, textarea")]
    .filter((node) => node.checkVisibility() && !node.closest("label, .skip, .away"))
    .map((node) => [node, node.getBoundingClientRect()])
    .filter(([, { width, height }]) => width < least || height < least)
    .map(([node, { width, height }]) => `${node.tagName} ${node.textContent} ${width} x ${height}`)"""


def small_targets(page: Page, least: float = 24) -> list[str]:
    """What is pressed on a page and is lower or narrower than ``least`` pixels (WCAG 2.2, 2.5.8)."""
    found: list[str] = page.evaluate(SMALL, least)
    return found
