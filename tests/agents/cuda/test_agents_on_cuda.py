"""Every agent that computes with torch, loaded by its own path onto a pretended GPU, answers as on the CPU."""

from __future__ import annotations

import functools
from contextlib import ExitStack

import device_cases
import pytest
from pretended_cuda import pretended_cuda

pytestmark = pytest.mark.usefixtures("one_thread")
ENTRIES = device_cases.entries()
WITH_PRECISION = [name for name, entry in ENTRIES.items() if device_cases.takes_precision(entry)]
HEAVY = ("agents.attention", "agents.vision.torchvision_maskrcnn", "agents.vision.detectron2")  # of their real size
SIZES = ("checkpoint", "dictionary", "image_size")  # a tiny checkpoint has its own


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    """What an agent answers on a device. Agents of one class that differ in their checkpoint alone are one agent."""
    with ExitStack() as stack, pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))

        @functools.cache
        def made(name):
            folder = tmp_path_factory.mktemp("device")
            count = 2 if ENTRIES[name].agent.startswith(HEAVY) else 8
            asked = device_cases.stimuli(ENTRIES[name], folder, count)
            return device_cases.settings(ENTRIES[name], folder / "checkpoint", stack), asked

        @functools.cache
        def answered(name, device, precision):
            chosen, asked = made(name)
            if precision is not None:
                chosen = {**chosen, "precision": precision}
            asked = asked if precision in (None, "fp32") else asked[:2]  # halves are slow on a CPU
            with pretended_cuda() as cuda:
                found = device_cases.answers(device_cases.loaded(ENTRIES[name], chosen, device), asked)
                assert bool(cuda.launches) == (device != "cpu")
            return found

        def answers(name, device, precision=None):
            if (why := device_cases.lacks(ENTRIES[name])) is not None:
                pytest.skip(why)
            first = next(other for other in ENTRIES if _set_up(other) == _set_up(name))
            return answered(first, device, precision)

        yield answers


def _set_up(name):
    entry = ENTRIES[name]
    return entry.agent, {key: value for key, value in entry.settings.items() if key not in SIZES}


@pytest.mark.parametrize("name", ENTRIES)
def test_answers_are_those_of_the_cpu(answers, name):
    precision = "fp32" if name in WITH_PRECISION else None
    assert answers(name, "cuda:0", precision) == answers(name, "cpu", precision)


@pytest.mark.parametrize("precision", ["bf16", "fp16"])
@pytest.mark.parametrize("name", WITH_PRECISION)
def test_reduced_precision_runs(answers, name, precision):
    assert answers(name, "cuda:0", precision)
