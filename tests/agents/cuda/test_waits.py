"""Agents that say no text let the host wait for a GPU once for a batch, to hear what was found: not for every fixation,
image or word. (For those that do, see ``test_text_on_cuda``.)"""

from __future__ import annotations

from collections import Counter
from contextlib import ExitStack

import device_cases
import device_counts
import pytest
import torch
from pretended_cuda import is_ours, pretended_cuda

from agents.attention.models import graph_saliency, return_fixations, similarity
from agents.attention.models.fixations import Plan
from agents.attention.models.inhibition import InhibitedPaths
from agents.transfer import uploaded

pytestmark = pytest.mark.usefixtures("one_thread")
NAMES = {  # one of each class
    entry.agent: name for name, entry in device_cases.entries().items() if not device_cases.says(entry)
}.values()
# Its cues are embedded, looked at by the host whether they are numbers, and compared.
TWICE = ("minilm",)


@pytest.mark.parametrize("name", NAMES)
def test_a_batch_is_waited_for_once(name, tmp_path, monkeypatch):
    """However long paths are; nothing can end these searches, for which no target is there."""
    entry = device_cases.entries()[name]
    if (why := device_cases.lacks(entry)) is not None:
        pytest.skip(why)
    monkeypatch.setattr(device_counts, "SHORT", 2)
    monkeypatch.setattr(device_counts, "LONG", 4)
    with ExitStack() as stack:
        settings = device_cases.settings(entry, tmp_path / "checkpoint", stack)
        counts = device_counts.count(entry, settings, tmp_path, 2)
    each, whole = (_ours(found) for found in (counts.per_step, counts.per_batch))
    assert not each
    once = 2 if name in TWICE else 1
    assert whole == {
        "wait event": once,
        "copy to cpu, asynchronous": once,
        "copy to cuda, asynchronous": whole["copy to cuda, asynchronous"],
    }


def test_a_size_of_pictures_that_is_new_is_not_waited_for():
    """The tables by which maps are resized are made on the CPU, once for each size."""
    pictures, parts = torch.zeros(1, 71, 93, 3, dtype=torch.uint8), torch.zeros(1, 14, 14)
    with pretended_cuda() as cuda:
        shown, found = uploaded([pictures, parts], torch.device("cuda"))
        for program in ("ours", "harel"):
            graph_saliency.saliency(shown, program=program)
        return_fixations.at_cells(similarity.paste([found], (93, 71), similarity.Method())[0])
        assert not cuda.waits
    assert {what for what, _ in cuda.copies} == {"to cuda, asynchronous"}


def test_pictures_of_one_size_are_seen_together(tiny):
    """By SCST, which takes them as they are; four, of which two are alike."""
    settings, folder = tiny("scst")
    entry = device_cases.entries()["scst"]
    with pretended_cuda():
        agent = device_cases.loaded(entry, settings, "cuda:0")
        seen = []
        agent._model.resnet.register_forward_pre_hook(lambda _, given: seen.append(tuple(given[0].shape)))
        device_cases.answers(agent, device_cases.stimuli(entry, folder, 4))
    assert sorted(seen) == [(1, 3, 80, 120), (1, 3, 90, 64), (2, 3, 72, 96)]


def _ours(counts):
    """The waits and copies that the project itself asks for, by kind."""
    found = Counter()
    for one, times in counts.items():
        if one.kind != "launch" and is_ours(one.where):
            found[f"{one.kind} {one.what}"] += times
    return +found


@pytest.mark.parametrize(("target", "waits"), [((0.0, 0.0, 5.0, 5.0), 3), (None, 1)])
def test_only_where_a_network_may_look_in_vain_each_fixation_is_waited_for(target, waits):
    """Maps that change at each of three fixations after the first: the last may find the target, or nothing can."""
    maps = torch.rand((4, 20, 20), generator=torch.Generator().manual_seed(0))
    with pretended_cuda() as cuda:
        shown = maps.to("cuda")
        cuda.clear()
        paths = InhibitedPaths([Plan((100, 100), 9, 4, target, True)], (20, 20), "square", shown.device, changing=True)
        for saliency in shown:
            if paths.going():
                paths.show(saliency[None])
                paths.choose()
        [found] = paths.results()
        assert sum(cuda.waits.values()) == waits
    assert len(found.fixations) == 4
