"""Every agent that computes with torch, loaded by its own path onto a pretended GPU, answers as on the CPU."""

from __future__ import annotations

import functools

import device_cases
import pytest
import torch
from pretended_cuda import pretended_cuda

pytestmark = pytest.mark.usefixtures("one_thread")
ENTRIES = device_cases.entries()
WITH_PRECISION = [name for name, entry in ENTRIES.items() if device_cases.takes_precision(entry)]
HEAVY = ("agents.attention", "agents.vision.torchvision_maskrcnn", "agents.vision.detectron2")  # of their real size
SIZES = ("checkpoint", "dictionary", "image_size")  # a tiny checkpoint has its own


@pytest.fixture(scope="module")
def answers(tiny):
    """What an agent answers on a device. Agents of one class that differ in their checkpoint alone are one agent."""

    @functools.cache
    def answered(name, device, precision):
        entry, (chosen, folder) = ENTRIES[name], tiny(name)
        count = 2 if entry.agent.startswith(HEAVY) or precision in ("bf16", "fp16") else 4  # halves are slow on a CPU
        if precision is not None:
            chosen = {**chosen, "precision": precision}
        with pretended_cuda() as cuda:
            agent = device_cases.loaded(entry, chosen, device)
            found = device_cases.answers(agent, device_cases.stimuli(entry, folder, count))
            assert bool(cuda.launches) == (device != "cpu")
        return found

    def answers(name, device, precision=None):
        first = next(other for other in ENTRIES if _set_up(other) == _set_up(name))
        return answered(first, device, precision)

    return answers


def _set_up(name):
    entry = ENTRIES[name]
    return entry.agent, {key: value for key, value in entry.settings.items() if key not in SIZES}


@pytest.mark.parametrize("name", ENTRIES)
def test_answers_are_those_of_the_cpu(answers, name):
    precision = "fp32" if name in WITH_PRECISION else None
    assert answers(name, "cuda:0", precision) == answers(name, "cpu", precision)


ONE_EACH = {ENTRIES[name].agent: name for name in WITH_PRECISION}.values()  # of one class


@pytest.mark.parametrize("precision", ["bf16", "fp16"])
@pytest.mark.parametrize("name", ONE_EACH)
def test_reduced_precision_runs(answers, name, precision):
    assert answers(name, "cuda:0", precision)


@pytest.mark.parametrize("name", ["scst", "detr-resnet-50"])
def test_convolutions_of_reduced_precision_have_channels_last(tiny, name):
    chosen, _ = tiny(name)
    for precision, expected in (("bf16", True), ("fp32", False)):
        with pretended_cuda():
            agent = device_cases.loaded(ENTRIES[name], {**chosen, "precision": precision}, "cuda:0")
            model = agent._model if name == "scst" else agent.model
            weight = next(one.weight for one in model.modules() if isinstance(one, torch.nn.Conv2d))
            assert weight.is_contiguous(memory_format=torch.channels_last) == expected
