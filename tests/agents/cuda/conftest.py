"""What the tests on a pretended GPU share: agents' tiny checkpoints, made once."""

from __future__ import annotations

import functools
from contextlib import ExitStack

import device_cases
import pytest

ENTRIES = device_cases.entries()


@pytest.fixture(scope="session")
def tiny(tmp_path_factory):
    """Settings of an agent's tiny checkpoint, and a folder for its stimuli; skips where a package is not to be had."""
    with ExitStack() as stack, pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))

        @functools.cache
        def made(name):
            folder = tmp_path_factory.mktemp("device")
            return device_cases.settings(ENTRIES[name], folder / "checkpoint", stack), folder

        def tiny(name):
            if (why := device_cases.lacks(ENTRIES[name])) is not None:
                pytest.skip(why)
            return made(name)

        yield tiny
