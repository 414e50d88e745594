"""Run folders written by hand, for testing what reads them."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson

from serving.runs.records import problems
from serving.runs.run import Run

RUN = "0123456789ab"
DIGEST = "d" * 64

NOT_MODELLED = dict.fromkeys(["raw", "at", "finish", "delay_s"])
ANSWERS: dict[str, dict[str, Any]] = {
    "color_estimation": {
        "color": "red",
        "css_name": "crimson",
        "rgb": [220, 20, 60],
        "palette": [{"rgb": [220, 20, 60], "population": 12}],
    },
    "object_detection": {
        "labels": ["Cat", "Sofa", "potted plant", "dog"],
        "scores": [0.9, 0.8, 0.7, 0.1],
        "boxes": None,
    },
    "attention_prediction": {
        "fixations": [[320, 240], [0, 0], [639, 479]],
        "frame": [640, 480],
        "window": 100,
        "stop": "maximum",
        "found": None,
        "found_at": None,
        "forced_first": True,
        "selection": "argmax",
        "durations_ms": None,
    },
    "image_captioning": {"text": "a cat, on a sofa", "tokens": 6, "score": -1.5, "finish": "stop", "flags": []},
    "word_association": {"word": "together", "candidates": ["together", "here"], "skipped": []},
    "conversation": {
        "messages": [{"turn": 0, "speaker": "Ann", "agent": "a", "text": "Hi!", **NOT_MODELLED}],
        "ended_early": False,
    },
    "judgement": {"verdict": "machine", "confidence": None, "reason": "it repeats itself"},
}


def record(stimulus: str = "s1", task: str = "color_estimation", agent: str = "mmcq", **changes: Any) -> dict[str, Any]:
    """A record that is in order, with ``changes``."""
    row = {
        "schema": "turinglike.record/1",
        "run": RUN,
        "task": task,
        "stimulus": stimulus,
        "stimulus_sha256": "a" * 64,
        "agent": agent,
        "kind": "machine",
        "sample": 0,
        "seed": 7,
        "status": "ok",
        "answer": ANSWERS[task],
        "raw": "said",
        "attempts": [],
        "error": None,
        "provenance": {"digest": DIGEST, "checkpoint": None, "revision": None},
        "timing": {"waiting": 0.5, "preparing": 0.25, "responding": 1.0},
        "worker": {"host": "h", "device": "cpu", "batch_size": 4},
        "created": "2025-01-01T00:00:00.000Z",
    }
    assert changes.keys() <= row.keys()
    return {**row, **changes}


def failed(stimulus: str, code: str = "bad_image", message: str = "it is broken", **changes: Any) -> dict[str, Any]:
    return record(stimulus, status="failed", answer=None, error={"code": code, "message": message}, **changes)


def attempt(text: str, name: str = "min_words", rejected: bool = True, **changes: Any) -> dict[str, Any]:
    """An attempt at a caption that a filter rejected, or only noted something about."""
    answer = {**ANSWERS["image_captioning"], "text": text}
    verdicts = [{"filter": name, "rejected": rejected, "found": "2 words"}]
    return {"attempt": 0, "turn": None, "seed": 1, "answer": answer, "raw": text, "verdicts": verdicts, **changes}


def line(row: Any) -> bytes:
    return orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE)


def read_back(folder: Path, name: str) -> list[dict[str, Any]]:
    """A file's records, which are in order."""
    rows = list(Run(folder).records(name))
    assert [problem for row in rows for problem in problems(row)] == []
    return rows


def agent_entry(*tasks: str, kind: str = "machine", samples: int = 1) -> dict[str, Any]:
    return {
        "task": list(tasks),
        "kind": kind,
        "digest": DIGEST,
        "settings": {"quality": 1},
        "checkpoint": None,
        "revision": None,
        "samples": samples,
        "versions": {"torch": "2.13.0"},
        "provenance": {},
    }


def stimulus(name: str, task: str = "color_estimation", **fields: Any) -> dict[str, Any]:
    if task in ("word_association", "conversation"):
        return {"id": name, "task": task, **({"cue": name} if task == "word_association" else {}), **fields}
    return {"id": name, "image": f"images/{name}", "task": task, **fields}


def write_run(
    folder: Path,
    stimuli: Sequence[Mapping[str, Any]],
    records: Mapping[str, Iterable[Mapping[str, Any] | bytes]],
    agents: Mapping[str, Mapping[str, Any]] | None = None,
    **meta: Any,
) -> Path:
    """A run folder. ``records`` gives each file's records, or lines as they are to stand there; ``agents`` is one
    colour agent for each file if it is not given."""
    (folder / "records").mkdir(parents=True, exist_ok=True)
    if agents is None:
        agents = {name: agent_entry("color_estimation") for name in records if name not in ("humans", "published")}
    about = {
        "schema": "turinglike.run/1",
        "run": RUN,
        "created": "2025-01-01T00:00:00.000Z",
        "turinglike": "0.1.0",
        "seed": 3,
        "samples": 1,
        "set": {"source": "set.jsonl", "root": str(folder.parent), "count": len(stimuli), "sha256": "b" * 64},
        "agents": agents,
        **meta,
    }
    (folder / "run.json").write_bytes(orjson.dumps(about))
    (folder / "stimuli.jsonl").write_bytes(b"".join(line(row) for row in stimuli))
    for name, rows in records.items():
        data = b"".join(row if isinstance(row, bytes) else line(row) for row in rows)
        (folder / "records" / f"{name}.jsonl").write_bytes(data)
    return folder
