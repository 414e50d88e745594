"""The published test's cues and the known machine answers, as files of examples/."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

from agents.stimuli import WordStimulus, parse_row

ROOT = Path(__file__).parent.parent
LINES = (ROOT / "examples" / "words.jsonl").read_text(encoding="utf-8").splitlines()
PUBLISHED = json.loads((ROOT / "examples" / "words_published.json").read_text(encoding="utf-8"))


def test_every_cue_is_asked_in_both_versions_as_it_was_printed() -> None:
    cues: dict[str, list[str]] = {"free": [], "prompted": []}
    examples = []
    for stimulus in map(parse_row, LINES):
        assert isinstance(stimulus, WordStimulus)
        cues[stimulus.version].append(stimulus.cue)
        assert stimulus.id == f"{stimulus.version}/{stimulus.cue}"
        assert stimulus.benchmark_id == stimulus.cue
        assert len(stimulus.examples) == (3 if stimulus.version == "prompted" else 0)
        examples += stimulus.examples
    assert cues["free"] == cues["prompted"] == list(PUBLISHED["answers"])
    assert (len(set(cues["free"])), cues["free"][0], cues["free"][-1]) == (150, "memorable", "come")
    assert examples[:3] == [("easy", "form"), ("business", "money"), ("future", "base")]
    odd = Counter(word for pair in examples for word in pair if not (word.islower() and word.isalpha()))
    assert odd == {"Happy": 1, "a bit": 1, "unluckily;": 2, "facilitate;": 3, "unknown;": 2}


def test_the_known_answers_are_four_columns() -> None:
    columns = ["word2vec", "gpt2", "gpt3-embedding", "gpt3-curie"]
    assert all(list(answers) == columns for answers in PUBLISHED["answers"].values())
    assert list(PUBLISHED["answers"]["puppy"].values()) == ["kitten", "dog", "kitten", "dog"]
