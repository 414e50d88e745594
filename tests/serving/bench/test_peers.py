"""The plain loops of peers: they do the work of the agent that they stand beside, and are counted rightly."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import tiny_language
import tiny_vision
import torch
from PIL import Image

from agents import catalogue
from agents.contract import Draw, Reply
from agents.errors import AgentStoppedError
from serving.bench import meter, peer_job, peers, peers_ray, peers_transformers, stimuli
from serving.bench.results import Best, EndToEnd, Failed, Measured, Peer, Size

GREEDY = {"decoding": "sample", "temperature": 0}  # the likeliest token each time
ONE = {"reject": [], "attempts": 1, "max_tokens": 12}


def pictures(shown: list[Any]) -> list[Any]:
    return [Image.open(one.image.path).convert("RGB") for one in shown]


def said(name: str, settings: dict[str, Any], shown: list[Any]) -> tuple[list[Any], Any]:
    agent = catalogue.get(name).make(settings)
    agent.open()
    agent.load("cpu")
    replies = agent.respond([agent.prepare(one) for one in shown], [Draw(0)] * len(shown))
    assert all(isinstance(reply, Reply) for reply in replies), replies
    return list(replies), agent


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("git-large-coco", {"positions": "transformers", "max_tokens": 14}),
        ("blip-large", {}),
        ("blip2-opt-2.7b", {"max_tokens": 12}),
        ("llava-v1.6-mistral-7b", {**GREEDY, **ONE}),
    ],
)
def test_the_plain_loop_says_what_the_captioner_says(name: str, settings: dict[str, Any], tmp_path: Path) -> None:
    chosen = {**tiny_vision.make(tmp_path / "checkpoint", catalogue.get(name)), **settings}
    shown = stimuli.read(stimuli.write(tmp_path, "image_captioning", None, 3))
    replies, agent = said(name, chosen, shown)
    answer = peers_transformers._captioner(agent, torch.device("cpu"), False)
    with torch.inference_mode():
        plain = answer(pictures(shown))
    for text, reply in zip(plain, replies, strict=True):  # type: ignore[call-overload]
        raw = reply.raw if isinstance(reply.raw, str) else reply.raw["text"]
        said_alone = bare(raw, agent._tokenizer.all_special_tokens)
        assert said_alone
        assert bare(text, []).endswith(said_alone)  # after the prompt
    agent._tokenizer.cls_token = agent._tokenizer.sep_token = None  # as where there are no weights yet
    with torch.inference_mode():
        again: Any = peers_transformers._captioner(agent, torch.device("cpu"), False)(pictures(shown))
    assert len(again) == len(shown)


PLAIN = {"temperature": 0, "frequency_penalty": 0, "presence_penalty": 0, "max_tokens": 12}


@pytest.mark.parametrize(
    ("name", "make", "settings"),
    [
        ("gpt2-completion", tiny_language.gpt2, {**PLAIN, "retry_temperature": 0}),
        ("dialogpt", tiny_language.gpt2, PLAIN),
        ("llama-3.1-8b", tiny_language.llama, {**PLAIN, "hottest": 0, "truncation": None}),
        ("blenderbot-400m", tiny_language.blenderbot, {"beams": 3, "min_tokens": 5, "max_tokens": 12}),
    ],
)
def test_the_plain_loop_writes_what_the_agent_writes(
    name: str, make: Any, settings: dict[str, Any], tmp_path: Path
) -> None:
    shown = stimuli.read(stimuli.write(tmp_path, "conversation", None, 5))
    replies, agent = said(name, {"checkpoint": str(make(tmp_path / "checkpoint")), **settings}, shown)
    answer = peers_transformers._texts(agent, torch.device("cpu"))
    with torch.inference_mode():
        plain = answer(shown)
    for text, reply in zip(plain, replies, strict=True):  # type: ignore[call-overload]
        assert reply.raw["text"].strip()
        assert text.strip().startswith(reply.raw["text"].strip())  # a stop string is still in the plain text


def bare(text: str, special: list[str]) -> str:
    """A text without special tokens, spaces, and the marks of a word's further pieces: a piece that stands first is
    decoded in another way."""
    for token in (*special, "##"):
        text = text.replace(token, "")
    return "".join(text.split())


def test_random_texts_have_the_length_of_the_agents() -> None:
    settings = catalogue.get("blip-large").make({"max_tokens": 9, "min_tokens": 2, "count_prompt": False}).settings
    assert peers_transformers._options(settings, True)["min_new_tokens"] == 9
    assert peers_transformers._options(settings, False)["min_new_tokens"] == 2


@pytest.mark.parametrize("name", ["detr-resnet-50", "torchvision-maskrcnn"])
def test_the_plain_loop_finds_what_the_detector_finds(name: str, tmp_path: Path) -> None:
    chosen = tiny_vision.make(tmp_path / "checkpoint", catalogue.get(name))
    shown = stimuli.read(stimuli.write(tmp_path, "object_detection", None, 1))
    [reply], agent = said(name, chosen, shown)
    make = peers_transformers._detr if name.startswith("detr") else peers_transformers._torchvision
    answer = make(agent, torch.device("cpu"), True)
    with torch.inference_mode():
        [found] = answer(pictures(shown))  # type: ignore[misc]
    scores = found["scores"] if isinstance(found, dict) else found[1]
    assert reply.answer.scores
    assert max(scores) == pytest.approx(reply.answer.scores[0], abs=2e-4)


@pytest.mark.parametrize(("seconds", "batches"), [(1.2, 3 + 3), (0.8, 1 + 2)])
def test_a_loop_is_counted_after_its_first_batches(
    seconds: float, batches: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, asked = [0.0], []
    monkeypatch.setattr(peer_job.time, "perf_counter", lambda: now[0])

    def answer(batch: Any) -> None:
        asked.append(list(batch))
        now[0] += 9.0 if len(asked) == 1 else 0.5

    assert peer_job.loop(answer, ["a", "b", "c"], 2, seconds) == 2 / 0.5  # type: ignore[list-item]
    # three to warm up, or one that takes more than ten times as long as is measured; then so many seconds
    assert asked == [["a", "b"], ["c", "a"], ["b", "c"], ["a", "b"], ["c", "a"], ["b", "c"]][:batches]


def test_ray_datas_actor_gives_an_answer_for_each_row(tmp_path: Path) -> None:
    source = stimuli.write(tmp_path, "word_association", None, 3)
    actor = peers_ray.Answerer(catalogue.get("null"), {}, "cpu", str(tmp_path))
    rows = source.read_text().splitlines()
    found = actor({"row": rows})
    assert found["id"] == [one.id for one in stimuli.read(source)]
    assert len({*found["answer"]}) == 3
    assert len(found["at"]) == 3


@pytest.mark.parametrize("size", [1, 7, 64, 1024, 9000])
@pytest.mark.parametrize("rate", [0.01, 3.0, 500.0, 90_000.0])
@pytest.mark.parametrize("seconds", [0.1, 5.0])
def test_ray_data_is_given_whole_batches(size: int, rate: float, seconds: float) -> None:
    blocks, count = peers_ray.plan(size, seconds, rate)
    batches = count // size
    assert count % (blocks * size) == 0
    assert 1 <= blocks <= peers_ray.BLOCKS
    assert batches >= 6
    enough = 3 * size + 1.2 * seconds * rate
    assert count >= min(enough, peers_ray.MOST - size)
    assert count <= max(12 * size, peers_ray.MOST + peers_ray.BLOCKS * size, enough + 2 * peers_ray.BLOCKS * size)


def test_ray_datas_rate_is_that_after_its_warm_up() -> None:
    times = [10.0, 10.0, 13.0, 13.0, 14.0, 14.0, 15.0, 15.0, 16.0, 16.0]
    assert peers_ray.steady_rate(times, 2, 1.0) == 2.0  # three batches
    assert peers_ray.steady_rate(times, 2, 22.5) == 2.0  # four and a half seconds: from the next batch on
    for short in (times[:6], times[:2]):
        with pytest.raises(AgentStoppedError, match="during its warm-up"):
            peers_ray.steady_rate(short, 2, 1.0)


@pytest.mark.parametrize(
    ("name", "settings", "kinds"),
    [
        ("mmcq", {}, {"ray-data"}),
        ("blip-large", {}, {"transformers", "ray-data"}),
        ("ofa-base-pretrained", {}, {"ray-data"}),
        ("torchvision-maskrcnn", {}, {"torchvision", "ray-data"}),
        ("openai-chat", {}, set()),
        ("gpt2-completion", {}, {"transformers", "ray-data"}),
        ("dialogpt", {}, {"transformers", "ray-data"}),
        ("blenderbot-400m", {}, {"transformers", "ray-data"}),
        ("llama-3.1-8b", {}, {"transformers", "ray-data"}),
        ("llama-3.1-8b", {"engine": "vllm"}, {"vllm"}),
    ],
)
def test_each_agent_has_its_peers(name: str, settings: dict[str, Any], kinds: set[str]) -> None:
    assert set(peers.programs(catalogue.get(name).make(settings))) == kinds


def test_peers_run_at_the_best_size_and_plain_loops_one_by_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def size(batch_size: int, rate: float) -> Size:
        return Size(batch_size, rate, *[None] * 2, 1.0, 1.0, 1, None, 1.0, 0.0, *[None] * 5, 1.0, 1)  # type: ignore[arg-type]

    measured = Measured(
        "null", "word_association", None, "0" * 64, {}, "cpu", False, False, 1.0, 1.0,
        (size(1, 10.0), size(8, 60.0)), None, Best(8, 60.0), None,
        (EndToEnd(2, 8, 90.0, 60.0, 1.5), EndToEnd(1, 8, 50.0, 60.0, 5 / 6)),
    )  # fmt: skip
    asked = []

    def figure(program: Any, job: Any) -> float:
        if program is meter.measure_again:
            assert (job.device, job.task, job.limits.copy_bytes_s) == ("cpu", "word_association", None)
            return {1: 20.0, 8: 70.0}[job.sizes[0]]
        asked.append((program, job.batch_size))
        if program == "broken":
            raise AgentStoppedError("it broke")
        return 5.0 * float(job.batch_size)

    monkeypatch.setattr(peers.apart, "figure", figure)
    those = {"vllm": "broken", "transformers": "plain", "ray-data": "whole"}
    monkeypatch.setattr(peers, "programs", lambda agent: those)
    said: list[str] = []
    found = list(peers.measure(measured, catalogue.get("null"), {}, tmp_path, seconds=1.0, say=said.append))
    assert asked == [("broken", 8), ("plain", 1), ("plain", 8), ("whole", 8)]
    assert found == [
        Failed("null", "peers", "vllm: it broke"),
        Peer("transformers", 1, 5.0, 20.0, 4.0),  # as we are right before, not as we were in the sweep
        Peer("transformers", 8, 40.0, 70.0, 1.75),
        Peer("ray-data", 8, 40.0, 50.0, 1.25),  # beside the scheduler with one worker
    ]
    assert said[0] == "null: vllm: it broke"
    bare = list(
        peers.measure(replace(measured, end_to_end=()), catalogue.get("null"), {}, tmp_path, seconds=1, say=print)
    )
    assert "ray-data" not in [one.name for one in bare if isinstance(one, Peer)]
