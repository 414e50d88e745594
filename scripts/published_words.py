"""How a run's words agree with the published ones: the figures of the section "Comparison" of docs/words.md.

    python scripts/published_words.py [RUN] [--people PEOPLE.json]

RUN is a run of the cues in examples/words.jsonl. For every agent of it, and for every published column (the machines of
the 2022 paper, examples/words_published.json), it prints as JSON the number of cues with the same answer, and of
answers among people's words: as they are, and with the rules for answers on both sides. A stimulus counts by its cue,
and by its first sample. ``broken`` has the answers that the rules drop or change.

PEOPLE.json has the form of the benchmark's ground truth, as examples/people_words.json: {cue: [{"response": word,
"groundtruth": "human"}, ...]}. The table's last column comes from the words of the 2022 paper's people
(benchmarking/groundtruth_dictionaries/word.json of kreimanlab/TuringTest), which are not in this repository. The exit
code is 2 for wrong usage or input.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson
from pydantic import BaseModel, TypeAdapter, ValidationError

from agents.errors import InputError, TuringlikeError
from agents.language.words.rules import RuleSettings, apply_rules
from serving.runs.run import Run

PUBLISHED = Path(__file__).resolve().parents[1] / "examples" / "words_published.json"
RULES = RuleSettings()


class Row(BaseModel):
    """A word of the ground truth."""

    response: str
    groundtruth: str
    machine_groundtruth: str = ""


FORM = TypeAdapter(dict[str, list[Row]])


def read(path: Path) -> dict[str, list[Row]]:
    """The rows of a ground truth by cue. Raises InputError."""
    try:
        return FORM.validate_json(path.read_bytes())
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from None
    except ValidationError:
        raise InputError(f'{path} must be JSON with a list of {{"response", "groundtruth"}} for each cue') from None


def ruled(word: str, cue: str) -> str | None:
    """The word after the rules, or None if one drops it."""
    judged = apply_rules(word, cue, RULES)
    return None if judged.rule else judged.word


def among(answers: Mapping[str, str], words: Mapping[str, Sequence[str]]) -> dict[str, int]:
    """``cues`` that both sides have, and for how many of them the answer is among the ``words``."""
    cues = [cue for cue in words if cue in answers]
    return {
        "cues": len(cues),
        "as_said": sum(answers[cue] in words[cue] for cue in cues),
        "rules": sum(ruled(answers[cue], cue) in {ruled(word, cue) for word in words[cue]} - {None} for cue in cues),
    }


def broken(answers: Mapping[str, str]) -> list[dict[str, str]]:
    """The answers that the rules drop or change."""
    rows = []
    for cue, word in answers.items():
        judged = apply_rules(word, cue, RULES)
        if judged.rule or judged.word != word:
            rows.append({"cue": cue, "word": word, "rule": judged.rule or f"becomes {judged.word}"})
    return rows


def run_answers(path: Path) -> dict[str, dict[str, str]]:
    """The answers of a run by agent and version ("minilm, free") and cue. Raises InputError if there are none."""
    folder = Run(path)
    stimuli = {row["id"]: row for row in folder.stimuli() if row.get("task") == "word_association"}
    answers: dict[str, dict[str, str]] = {}
    for name in folder.agents():
        for record in folder.latest(name):
            if record["task"] == "word_association" and record["sample"] == 0 and record["status"] == "ok":
                row = stimuli[record["stimulus"]]
                version = row.get("version", "free")
                answers.setdefault(f"{name}, {version}", {})[row["cue"].casefold()] = record["answer"]["word"]
    if not answers:
        raise InputError(f"{path} has no answers of word association")
    return answers


def compare(run: Path | None, published: Path = PUBLISHED, people: Path | None = None) -> dict[str, Any]:
    """All counts, by agent (and version) and by published column. Raises InputError."""
    columns: dict[str, dict[str, str]] = {}
    for cue, rows in read(published).items():
        for row in rows:
            columns.setdefault(row.machine_groundtruth, {})[cue] = row.response
    words: dict[str, list[str]] = {}
    for cue, rows in read(people).items() if people else ():
        words[cue] = [row.response for row in rows if row.groundtruth == "human"]
    asked = run_answers(run) if run else {}
    return {
        name: {
            "published": {
                column: among(answers, {cue: [word] for cue, word in column_words.items()})
                for column, column_words in columns.items()
                if column != name
            },
            "people": among(answers, words) if people else None,
            "broken": broken(answers),
        }
        for name, answers in {**asked, **columns}.items()
    }


def main(argv: Sequence[str] | None = None) -> int:
    """The command. Returns its exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", nargs="?", type=Path, metavar="RUN", help="a run folder; without it the columns alone")
    parser.add_argument("--people", type=Path, metavar="FILE", help="people's words")
    parser.add_argument("--published", type=Path, metavar="FILE", default=PUBLISHED, help="published machine answers")
    options = parser.parse_args(argv)
    try:
        result = compare(options.run, options.published, options.people)
    except TuringlikeError as error:
        print(f"published_words: {error}", file=sys.stderr)
        return error.exit_code
    print(orjson.dumps(result, option=orjson.OPT_INDENT_2).decode())
    return 0


if __name__ == "__main__":
    sys.exit(main())
