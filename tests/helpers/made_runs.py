"""Run folders with any stimuli and records, for the tests of the report and the viewer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from PIL import Image as PILImage

RUN = "0123456789ab"
COLOR = {
    "color": "red",
    "css_name": "crimson",
    "rgb": [220, 20, 60],
    "palette": [{"rgb": [220, 20, 60], "population": 9}],
}
PATH = {
    "fixations": [[20, 15], [30, 5], [3, 28]],
    "frame": [40, 30],
    "window": 6,
    "stop": "maximum",
    "found": None,
    "found_at": None,
    "forced_first": True,
    "selection": "maximum",
    "durations_ms": None,
}
ANSWERS: dict[str, dict[str, Any]] = {
    "color_estimation": COLOR,
    "object_detection": {
        "labels": ["zebra", "dining table"], "scores": [0.9, 0.25], "boxes": [[1, 2, 10, 12], [5, 5, 3, 3]],
    },
    "attention_prediction": PATH,
    "image_captioning": {"text": "a quiet harbour", "tokens": 4, "score": -0.5, "finish": "stop", "flags": ["cut"]},
    "word_association": {
        "word": "clock", "candidates": ["timely", "clock"], "skipped": [{"word": "timely", "rule": "overlap"}],
    },
    "conversation": {
        "messages": [
            {
                "turn": i, "speaker": "AB"[i % 2], "agent": "talker", "text": text, "raw": None, "at": None,
                "finish": None, "delay_s": None,
            }
            for i, text in enumerate(["good morning", "is it?"])
        ],
        "ended_early": True,
    },
    "judgement": {"verdict": "machine", "confidence": None, "reason": "nobody says this"},
}  # fmt: skip


class Folder:
    """A run folder made by hand."""

    def __init__(self, path: Path) -> None:
        self.path = path / "run"
        self.set = path / "set"
        (self.path / "records").mkdir(parents=True)
        self.set.mkdir()
        self.stimuli: list[dict[str, Any]] = []
        self.agents: dict[str, Any] = {}
        self.records: dict[str, list[dict[str, Any]]] = {}

    def picture(self, name: str, color: tuple[int, int, int] = (200, 30, 60)) -> str:
        PILImage.new("RGB", (40, 30), color).save(self.set / name)
        return name

    def ask(self, task: str, name: str, **fields: Any) -> dict[str, Any]:
        row = {"id": name, "task": task, **fields}
        self.stimuli.append(row)
        return row

    def agent(self, name: str, task: str, **fields: Any) -> None:
        self.agents[name] = {
            "task": [task], "kind": "machine", "digest": "d" * 64, "settings": {}, "checkpoint": None,
            "revision": None, "samples": 1, "versions": {}, "provenance": {}, **fields,
        }  # fmt: skip

    def record(self, agent: str, row: dict[str, Any], answer: dict[str, Any] | None = None, **fields: Any) -> None:
        imported = fields.get("kind") in ("human", "published")
        record = {
            "schema": "turinglike.record/1", "run": RUN, "task": row["task"], "stimulus": row["id"],
            "stimulus_sha256": None, "agent": agent, "kind": "machine", "sample": 0, "seed": None if imported else 7,
            "status": "ok", "answer": answer, "raw": None, "attempts": [], "error": None,
            "provenance": {"digest": None, "checkpoint": None, "revision": None}, "timing": None, "worker": None,
            "created": None if imported else "2026-01-02T03:04:05.678Z", **fields,
        }  # fmt: skip
        kind = {"human": "humans", "published": "published"}.get(record["kind"], agent)
        self.records.setdefault(kind, []).append(record)

    def write(self) -> Path:
        meta: dict[str, Any] = {
            "schema": "turinglike.run/1", "run": RUN, "created": "2026-01-02T03:04:05.678Z", "turinglike": "0.1.0",
            "seed": 3, "samples": 1, "set": {}, "agents": self.agents,
        }  # fmt: skip
        if self.stimuli:
            count = len(self.stimuli)
            meta["set"] = {"source": "set.jsonl", "root": str(self.set), "count": count, "sha256": "e" * 64}
            (self.path / "stimuli.jsonl").write_text("".join(json.dumps(row) + "\n" for row in self.stimuli))
        for name, records in self.records.items():
            lines = "".join(json.dumps(record) + "\n" for record in records)
            (self.path / "records" / f"{name}.jsonl").write_text(lines)
        (self.path / "run.json").write_text(json.dumps(meta))
        return self.path
