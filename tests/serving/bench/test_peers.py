"""Other programs beside an agent: who has which, and that the plain loop does the agent's work."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import tiny_language
import tiny_vision

from agents import catalogue
from agents.tasks import Task
from serving.bench import peers, stimuli
from serving.bench.bare import Setup
from serving.bench.results import Measured, Size


@pytest.mark.parametrize(
    ("name", "settings", "kinds"),
    [
        ("mmcq", {}, {"ray-data"}),
        ("blip-large", {}, {"transformers", "ray-data"}),
        ("openai-chat", {}, set()),
        ("gpt2-completion", {}, {"transformers", "ray-data"}),
        ("llama-3.1-8b", {"engine": "vllm"}, {"vllm"}),
    ],
)
def test_each_agent_has_its_peers(name: str, settings: dict[str, Any], kinds: set[str]) -> None:
    assert set(peers.programs(catalogue.get(name).make(settings))) == kinds


def measured(task: Task, tokens_s: float | None) -> Measured:
    size = Size(2, 1.0, 2.0, 2.0, 1, 1.0, 1, tokens_s=tokens_s)
    return Measured("one", task, None, "0" * 64, {}, "cpu", False, sizes=[size], best=size)


def plain(name: str, task: Task, settings: dict[str, Any], folder: Path, tokens_s: float | None = 6.0) -> list[float]:
    source = stimuli.write(folder / "set.jsonl", {(task, None): 4})
    setup = Setup(catalogue.get(name), settings, "cpu", task, None, source, 0.01)
    sent: list[float] = []
    peers.transformers(sent.append, setup, measured(task, tokens_s), 2)
    return sent


@pytest.mark.parametrize("name", ["git-large-coco", "llava-v1.6-mistral-7b"])
def test_the_plain_loop_captions(name: str, tmp_path: Path) -> None:
    [rate] = plain(name, "image_captioning", tiny_vision.make(tmp_path / "made", catalogue.get(name)), tmp_path)
    assert rate > 0


def test_the_plain_loop_detects_and_writes(tmp_path: Path) -> None:
    settings = tiny_vision.make(tmp_path / "detr", catalogue.get("detr-resnet-50"))
    assert plain("detr-resnet-50", "object_detection", settings, tmp_path, None)[0] > 0
    for name, make in (("gpt2-completion", tiny_language.gpt2), ("blenderbot-400m", tiny_language.blenderbot)):
        assert plain(name, "conversation", {"checkpoint": str(make(tmp_path / name))}, tmp_path)[0] > 0


def test_a_family_that_transformers_does_not_know_has_no_plain_loop(tmp_path: Path) -> None:
    settings = tiny_vision.make(tmp_path / "made", catalogue.get("ofa-base-pretrained"))
    assert plain("ofa-base-pretrained", "image_captioning", settings, tmp_path) == []


def test_ray_datas_actor_gives_an_answer_for_each_row(tmp_path: Path) -> None:
    source = stimuli.write(tmp_path / "set.jsonl", {("word_association", None): 3})
    actor = peers.Answerer(Setup(catalogue.get("null"), {}, "cpu", "word_association", None, source, 1.0))
    found = actor({"row": source.read_text().splitlines()})
    assert found["id"] == [one.id for one in stimuli.read(source)]
    assert len({*found["answer"]}) == 3
    assert len(found["at"]) == 3


@pytest.mark.parametrize("size", [1, 7, 9000])
@pytest.mark.parametrize("rate", [0.01, 90_000.0])
@pytest.mark.parametrize("seconds", [0.1, 5.0])
def test_ray_data_is_given_whole_batches(size: int, rate: float, seconds: float) -> None:
    blocks, count = peers.plan(size, seconds, rate)
    assert count % (blocks * size) == 0
    assert 1 <= blocks <= peers.MOST_BLOCKS
    assert count // size >= 6
    assert count <= max(12 * size, peers.MOST_ROWS + peers.MOST_BLOCKS * size)
