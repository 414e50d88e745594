"""The published test's cues, as a file of examples/."""

from __future__ import annotations

import json
from pathlib import Path

from agents.stimuli import WordStimulus, parse_row

ROOT = Path(__file__).parent.parent
LINES = (ROOT / "examples" / "words.jsonl").read_text(encoding="utf-8").splitlines()
PUBLISHED = json.loads((ROOT / "examples" / "words_published.json").read_text(encoding="utf-8"))["answers"]


def test_every_cue_is_asked_in_both_versions_as_it_was_printed() -> None:
    cues: dict[str, list[str]] = {"free": [], "prompted": []}
    for stimulus in map(parse_row, LINES):
        assert isinstance(stimulus, WordStimulus)
        cues[stimulus.version].append(stimulus.cue)
        assert stimulus.id == f"{stimulus.version}/{stimulus.cue}"
        assert stimulus.benchmark_id == stimulus.cue
        assert len(stimulus.examples) == (3 if stimulus.version == "prompted" else 0)
    assert cues["free"] == cues["prompted"] == list(PUBLISHED)
    assert (len(set(cues["free"])), cues["free"][0], cues["free"][-1]) == (150, "memorable", "come")
    assert list(PUBLISHED["puppy"].values()) == ["kitten", "dog", "kitten", "dog"]
