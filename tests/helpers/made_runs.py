"""Run folders with any stimuli and records, for the tests of the report and the viewer."""

from pathlib import Path
from typing import Any

from PIL import Image as PILImage

from tests.helpers.run_folders import ANSWERS as OTHERS
from tests.helpers.run_folders import NOT_MODELLED, RUN, agent_entry, record, write_run

__all__ = ["ANSWERS", "COLOR", "PATH", "RUN", "Folder"]

COLOR = OTHERS["color_estimation"]
PATH = {**OTHERS["attention_prediction"], "fixations": [[20, 15], [30, 5], [3, 28]], "frame": [40, 30], "window": 6}
LINES = [
    {"turn": turn, "speaker": "AB"[turn % 2], "agent": "talker", "text": text, **NOT_MODELLED}
    for turn, text in enumerate(["good morning", "is it?"])
]
ANSWERS: dict[str, dict[str, Any]] = OTHERS | {
    "object_detection": {
        "labels": ["zebra", "dining table"],
        "scores": [0.9, 0.25],
        "boxes": [[1, 2, 10, 12], [5, 5, 3, 3]],
    },
    "attention_prediction": PATH,
    "image_captioning": {**OTHERS["image_captioning"], "text": "a quiet harbour", "flags": ["cut"]},
    "conversation": {"messages": LINES, "ended_early": True},
    "judgement": {"verdict": "machine", "confidence": None, "reason": "nobody says this"},
}


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
        self.agents[name] = {**agent_entry(task), "settings": {}, "versions": {}, **fields}

    def record(self, agent: str, row: dict[str, Any], answer: dict[str, Any] | None = None, **fields: Any) -> None:
        imported = fields.get("kind") in ("human", "published")
        changes = {
            "stimulus_sha256": None,
            "seed": None if imported else 7,
            "answer": answer,
            "raw": None,
            "timing": None,
            "provenance": {"digest": None, "checkpoint": None, "revision": None},
            "worker": None,
            "created": None if imported else "2026-01-02T03:04:05.678Z",
            **fields,
        }
        kind = {"human": "humans", "published": "published"}.get(fields.get("kind", ""), agent)
        self.records.setdefault(kind, []).append(record(row["id"], row["task"], agent, **changes))

    def write(self) -> Path:
        count = len(self.stimuli)
        about = {"source": "set.jsonl", "root": str(self.set), "count": count, "sha256": "e" * 64} if count else {}
        write_run(self.path, self.stimuli, self.records, self.agents, set=about, created="2026-01-02T03:04:05.678Z")
        if not count:
            (self.path / "stimuli.jsonl").unlink()
        return self.path
