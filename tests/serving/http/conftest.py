"""One server process that the tests of this folder share: the command itself, with Ray, on a free port; and pages of
such servers in a browser."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.helpers import server_process
from tests.helpers.server_page import KEY, ServerPage

if TYPE_CHECKING:
    from playwright.sync_api import Browser

TOLD = "null,eliza,mmcq,git-base-coco"


@pytest.fixture(autouse=True)
def loggers_as_they_were() -> Iterator[None]:
    """The command sends its logs to stderr, which in a test is one that is closed after it."""
    loggers = [logging.getLogger(name) for name in ("turinglike", "turinglike.scheduling", "uvicorn")]
    before = [(one.handlers, one.propagate, one.level) for one in loggers]
    yield
    for one, (handlers, propagate, level) in zip(loggers, before, strict=True):
        one.handlers = handlers
        one.propagate = propagate
        one.setLevel(level)


@pytest.fixture(scope="session")
def tiny_captioner(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The checkpoint of the captioner that ``served`` has under the name git-base-coco."""
    from tests.helpers import tiny_captioners

    return tiny_captioners.git(tmp_path_factory.mktemp("captioner") / "git")


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory, tiny_captioner: Path) -> Iterator[str]:
    """The address of ``turinglike serve`` with null, eliza, mmcq and a tiny captioner, without a key; its seed is 0."""
    setting = ["--set", f"git-base-coco.checkpoint={tiny_captioner}"]
    with server_process.started(tmp_path_factory.mktemp("served"), TOLD, *setting) as server:
        server.wait_for("/ready")
        yield server.url


@pytest.fixture(scope="module")
def keyed(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server that wants KEY, of agents that need no weights, loaded when they are first asked."""
    folder = tmp_path_factory.mktemp("keyed")
    with server_process.started(folder, "null,gbvs,catch,minilm", "--lazy", key=KEY) as server:
        server.wait_for("/health", 120)
        yield server.url


@pytest.fixture
def opened(browser: Browser) -> Iterator[Callable[..., ServerPage]]:
    """Opens pages of a server; afterwards nobody else may have been asked and nothing have gone wrong in them."""
    pages: list[ServerPage] = []

    def opened(url: str, key: str | None = None) -> ServerPage:
        pages.append(ServerPage(browser, url))
        if key is not None:
            pages[-1].context.add_init_script(f"sessionStorage.setItem('turinglike.key', {json.dumps(key)})")
        return pages[-1]

    yield opened
    for seen in pages:
        seen.context.close()
    for seen in pages:
        assert [url for url in seen.asked if not url.startswith((seen.url, f"blob:{seen.url}", "data:"))] == []
        assert seen.complaints == []
