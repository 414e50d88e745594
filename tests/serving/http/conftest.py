"""One server process that the tests of this folder share: the command itself, with Ray, on a free port."""

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.helpers import server_process

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
