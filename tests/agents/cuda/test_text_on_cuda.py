"""What generates text, on a pretended GPU: mixed batches in one piece, and no wait of the project's for a token."""

from __future__ import annotations

from pathlib import Path

import device_cases
import device_counts
import pytest
import tiny_language
import torch
from device_counts import LONG, total
from pretended_cuda import pretended_cuda

from agents.language.engines.text_request import Sampling, TextRequest
from agents.language.engines.transformers import TransformersEngine
from agents.sampling import Sampler, Warp

pytestmark = pytest.mark.usefixtures("one_thread")
ENTRIES = device_cases.entries()
# The last of each class, and ways that differ in what is asked of the device.
EACH = {entry.agent: name for name, entry in ENTRIES.items() if device_cases.says(entry)}
WAYS = {name: (name, {}) for name in EACH.values()} | {
    "drawn": ("git-base-coco", {"decoding": "sample", "top_k": 30, "top_p": 0.9}),
    "transformers' search": ("clipcap-transformer", {"search": "transformers"}),
    "a mass of tokens": ("dialogpt", {"top_p": 0.9}),
}
MIXED = [  # whose prompts differ in length
    name for name in EACH.values() if name.startswith("llava") or ENTRIES[name].tasks == ("conversation",)
]
OWN = "transformers/generation/utils.py:"  # where it asks whether all rows are at their end
UPLOADS = 4  # at most: of prompts, limits, least lengths and seeds; of pictures, prompts and seeds


@pytest.mark.parametrize("way", WAYS)
def test_no_wait_for_a_token_is_ours(tiny, way):
    name, chosen = WAYS[way]
    settings, folder = tiny(name)
    counts = device_counts.count(ENTRIES[name], {**settings, **chosen}, folder, 3, alike=way not in MIXED)
    assert counts.steps <= LONG + 1  # of one call of generate
    each = {asked: number for asked, number in counts.per_step.items() if asked.kind == "wait" and number > 0.01}
    assert [(asked.where.startswith(OWN), number) for asked, number in each.items()] == [(True, 1)]
    assert total(counts.per_batch, "wait", ours=True) == 1  # for what was said
    there, back, copies = (
        total(counts.per_batch, "copy", what, ours=True)
        for what in ("to cuda, asynchronous", "to cpu, asynchronous", "")
    )
    assert back == 1
    assert 0 < there <= UPLOADS
    assert copies == there + back


@pytest.mark.parametrize("way", MIXED)
def test_a_mixed_batch_says_what_each_says_alone(tiny, way):
    name, _ = WAYS[way]
    settings, folder = tiny(name)
    asked = device_cases.stimuli(ENTRIES[name], folder, 4)
    draws = device_cases.draws(asked)
    with pretended_cuda():
        agent = device_cases.loaded(ENTRIES[name], {**settings, "precision": "fp32"}, "cuda:0")
        prepared = [agent.prepare(one) for one in asked]
        alone = [agent.respond([one], [draw])[0] for one, draw in zip(prepared, draws, strict=True)]
        assert list(map(repr, agent.respond(prepared, draws))) == list(map(repr, alone))


@pytest.mark.parametrize("family", ["gpt2", "llama"])
def test_a_text_ends_at_its_stop_as_on_the_cpu(tmp_path: Path, family: str):
    """There the host has read all that is said, here all but the newest token."""
    folder = tiny_language.MAKERS[family](tmp_path)
    prompts = ["Hi!", "I like long books about science.", "Why do you say that? Tell me more, please."]

    def say(device, *stops):
        engine = TransformersEngine(folder, precision="fp32")
        engine.open()
        engine.load(device)
        # Without stops beside them, and with limits that the stops of some come before.
        rows = [Sampling(temperature=1.0, max_tokens=most, stops=stop) for most in (9, 20) for stop in (*stops, ())]
        asked = [(TextRequest(prompt, sampling=row), seed) for seed, prompt in enumerate(prompts) for row in rows]
        return engine.generate_batch(*zip(*asked, strict=True))

    free = say("cpu")
    stops = [(one.text[at : at + 2], one.text[at + 5 : at + 7]) for one in free for at in (1, 4) if len(one.text) > 7]
    on_cpu = say("cpu", *stops[:6])
    with pretended_cuda():
        assert say("cuda:0", *stops[:6]) == on_cpu
    assert sum(one.finish == "stop" for one in on_cpu) > 10
    assert sum(one.finish == "length" for one in on_cpu) > 3


@pytest.mark.parametrize(
    "warp", [Warp(), Warp(0.7, 3), Warp(1.3, 0, 0.6), Warp(0.8, 5, 0.7, 0.5, 0.2), Warp(0), Warp(1.0, 2, 0.05)]
)
def test_draws_are_those_of_the_cpu(warp):
    """There noise is made for the tokens that are left alone, here for all. Ties at the edges are among them."""
    logits = torch.randn(6, 40, generator=torch.Generator().manual_seed(1)).round(decimals=1)
    ids = torch.randint(0, 40, (6, 5), generator=torch.Generator().manual_seed(2))
    logits[2, 3:] = -torch.inf
    warps = [warp, Warp(0.9), Warp(1.1, 4), Warp(1, 0, 0.5), warp, Warp()]

    def draw(device):
        sampler = Sampler(range(6), warps)
        return [sampler(ids[:, :length].to(device), logits.to(device)).cpu() for length in (2, 5)]

    with pretended_cuda() as cuda:
        found = draw("cuda")
        assert not [where for (why, where) in cuda.waits if "sampling.py" in where]
    for one, other in zip(found, draw("cpu"), strict=True):
        assert torch.equal(one, other)
