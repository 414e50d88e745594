"""What the agents' tests share: pictures, and a tiny checkpoint of every agent, made once a session."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.helpers.misbehaving_server import Misbehaving


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Misbehaving]:
    """A server on this machine that takes any key; nothing else is ever reached."""
    from tests.helpers.misbehaving_server import KEY, running

    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.setenv(name, KEY)
    for name in ("HTTP_PROXY", "HTTPS_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.delenv("NO_PROXY", raising=False)
    with running() as server:
        yield server


@pytest.fixture(scope="session")
def images(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Eight pictures of every sort. Not to be changed by a test."""
    from tests.helpers import mixed_images

    return mixed_images.make(tmp_path_factory.mktemp("images"))


@pytest.fixture(scope="session")
def narrow_vgg() -> Iterator[None]:
    """VGG16 has an eighth of its channels from here on."""
    from torchvision.models import vgg

    from tests.helpers import tiny_vgg

    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(vgg.cfgs, "D", tiny_vgg.NARROW)
        yield


@pytest.fixture(scope="session")
def tiny(
    tmp_path_factory: pytest.TempPathFactory, narrow_vgg: None
) -> Iterator[Callable[[str], tuple[dict[str, Any], Path]]]:
    """Settings of an agent's tiny checkpoint, and a folder for its stimuli; skips where a package is not to be had."""
    from tests.helpers import device_cases

    known = device_cases.here()
    with ExitStack() as stack, pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))

        @functools.cache
        def make(name: str) -> tuple[dict[str, Any], Path]:
            folder = tmp_path_factory.mktemp("device")
            return device_cases.settings(known[name], folder / "checkpoint", stack), folder

        def tiny(name: str) -> tuple[dict[str, Any], Path]:
            if (why := device_cases.lacks(known[name])) is not None:
                pytest.skip(why)
            return make(name)

        yield tiny
