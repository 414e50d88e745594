"""Every captioner and detector over the example photographs, through the command."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import in_process
import numpy as np
import orjson
import pytest
import tiny_vision

from agents.answers import plain
from agents.contract import Draw, Reply
from agents.stimuli import parse_row
from serving.cli import main

pytestmark = pytest.mark.slow

SCORE = 1e-3  # as docs/vision.md promises: products of another size round otherwise
EXAMPLES = Path(__file__).parents[1] / "examples"
SHORT = {"llava-v1.6-mistral-7b": {"reject": [], "attempts": 1, "max_tokens": 12}}


@pytest.mark.filterwarnings(
    "ignore::DeprecationWarning:torch.jit", "ignore::UserWarning:torch.functional"
)  # detectron2
def test_a_run_of_all_has_the_answers_that_each_gives_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entries = tiny_vision.entries()
    one_of_each = list({entry.agent: entry for entry in entries}.values())
    settings = {
        entry.name: {**tiny_vision.make(tmp_path / entry.name, entry), **SHORT.get(entry.name, {})}
        for entry in one_of_each
    }
    out = tmp_path / "run"

    command = ["generate", str(EXAMPLES / "vision.jsonl"), "--out", str(out), "--agents", ",".join(settings)]
    for name, chosen in settings.items():
        for field, value in chosen.items():
            command += ["--set", f"{name}.{field}={json.dumps(value)}"]
    tasks = {"image_captioning", "object_detection"}  # each with ten stimuli
    wanted = sum(10 * len(tasks.intersection(entry.tasks)) for entry in one_of_each)

    in_process.without_ray(monkeypatch)
    assert main([*command, "--batch-size", "4", "--replicas", "1"]) == 1  # the broken photograph
    records = [json.loads(line) for path in (out / "records").iterdir() for line in path.read_bytes().splitlines()]
    keys = Counter((record["agent"], record["stimulus"], record["sample"]) for record in records)
    assert len(keys) == wanted
    assert set(keys.values()) == {1}
    failed = {(record["stimulus"], record["error"]["code"]) for record in records if record["status"] == "failed"}
    assert failed == {("caption/broken", "bad_image"), ("objects/broken", "bad_image")}

    rows = {json.loads(row)["id"]: row for row in (EXAMPLES / "vision.jsonl").read_bytes().splitlines()}
    few = list(rows)[::3]  # others are compared in the tests of each agent
    for entry in one_of_each:
        agent = entry.make(settings[entry.name])
        agent.open()
        agent.load("cpu")
        for record in records:
            if record["agent"] == entry.name and record["status"] == "ok" and record["stimulus"] in few:
                stimulus = parse_row(rows[record["stimulus"]], root=EXAMPLES)
                [reply] = agent.respond([agent.prepare(stimulus)], [Draw(seed=record["seed"])])
                assert isinstance(reply, Reply)
                alone, there = orjson.loads(orjson.dumps(plain(reply.answer))), record["answer"]
                for field, tolerance in (("score", SCORE), ("scores", SCORE), ("boxes", 1)):
                    numbers = [np.array(answer.pop(field, None) or (), dtype=float) for answer in (alone, there)]
                    np.testing.assert_allclose(*numbers, rtol=0, atol=tolerance)
                assert alone == there, (entry.name, record["stimulus"])

    assert main(["report", str(out)]) == 0
    page = (out / "report" / "data" / "index.js").read_text(encoding="utf-8")
    assert page.count("RANDOM WEIGHTS") >= len(settings)
    meta = json.loads((out / "run.json").read_bytes())
    assert [about["provenance"].get("random_weights") for about in meta["agents"].values()] == [True] * len(settings)


def test_there_is_a_tiny_checkpoint_for_every_captioner_and_detector() -> None:
    assert {entry.agent for entry in tiny_vision.entries()} <= set(tiny_vision.MAKERS)
