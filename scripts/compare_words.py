"""Compare the answers of word association with the known machines' and with people's.

    python scripts/compare_words.py RUN [--people FILE] [--published FILE]

RUN is a run folder of the cues in examples/words.jsonl. For every agent, and for every published column, the table says
how many cues have the same answer, and how many answers are among people's words for the cue: as they were said, and
with the rules for answers applied to both sides (agents.language.words.rules with its settings' defaults). A stimulus
counts by its cue; of several samples the first. People's words are JSON, {"associations": {cue: [word, ...]}}; the form
of published answers is that of examples/words_published.json.

A table goes to stdout, and one JSON line last. The exit code is 2 for wrong usage or input.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import orjson
from pydantic import BaseModel, ValidationError
from rich.console import Console
from rich.table import Table

from agents.errors import InputError, TuringlikeError
from agents.language.words.rules import RuleSettings, judge
from serving.runs.run import Run

PUBLISHED = Path(__file__).resolve().parents[1] / "examples" / "words_published.json"
RULES = RuleSettings()
SHOWN = 10  # answers that break a rule, on a terminal

Answers = Mapping[str, str]  # by cue
People = Mapping[str, Sequence[str]]


def ruled(word: str, cue: str) -> str | None:
    """The word after the rules, or None if one drops it."""
    judged = judge(word, cue, RULES)
    return None if judged.rule else judged.word


def same(ours: Answers, theirs: Answers) -> dict[str, int]:
    """``cues`` that both answer, and for how many of them the answers are ``as_said`` or by the ``rules`` the same."""
    cues = [cue for cue in theirs if cue in ours]
    return {
        "cues": len(cues),
        "as_said": sum(ours[cue] == theirs[cue] for cue in cues),
        "rules": sum(
            ruled(ours[cue], cue) is not None and ruled(ours[cue], cue) == ruled(theirs[cue], cue) for cue in cues
        ),
    }


def among(ours: Answers, people: People) -> dict[str, int]:
    """As :func:`same`, for answers that are one of people's words."""
    cues = [cue for cue in people if cue in ours]
    return {
        "cues": len(cues),
        "as_said": sum(ours[cue] in people[cue] for cue in cues),
        "rules": sum(ruled(ours[cue], cue) in {ruled(word, cue) for word in people[cue]} - {None} for cue in cues),
    }


def broken(ours: Answers) -> list[dict[str, str]]:
    """The answers that the rules drop or change."""
    found = []
    for cue, word in ours.items():
        judged = judge(word, cue, RULES)
        if judged.rule or judged.word != word:
            found.append({"cue": cue, "word": word, "rule": judged.rule or f"becomes {judged.word}"})
    return found


def run_answers(path: Path) -> dict[str, dict[str, str]]:
    """The answers of each agent of a run by version ("minilm, free") and cue. Raises InputError if there are none."""
    folder = Run(path)
    stimuli = {row["id"]: row for row in folder.stimuli() if row.get("task") == "word_association"}
    found: dict[str, dict[str, str]] = {}
    for name in folder.agents():
        for record in folder.latest(name):
            if record["task"] == "word_association" and record["sample"] == 0 and record["status"] == "ok":
                row = stimuli[record["stimulus"]]
                version = row.get("version", "free")
                found.setdefault(f"{name}, {version}", {})[row["cue"].casefold()] = record["answer"]["word"]
    if not found:
        raise InputError(f"{path} has no answers of word association")
    return found


class Published(BaseModel):
    """Known machine answers: by cue, the word of each machine."""

    answers: dict[str, dict[str, str]]


class PeoplesWords(BaseModel):
    """What people said, by cue."""

    associations: dict[str, list[str]]


F = TypeVar("F", bound=BaseModel)


def read(path: Path, form: type[F]) -> F:
    """A JSON file of the ``form``. Raises InputError."""
    try:
        return form.model_validate_json(path.read_bytes(), strict=True)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from None
    except ValidationError as error:
        raise InputError(f"{path} has another form: {error.errors()[0]['msg']}") from None


def compare(run: Path, published: Path, people: Path | None) -> dict[str, Any]:
    """All counts: by agent (and version) and by published column."""
    columns: dict[str, dict[str, str]] = {}
    for cue, said in read(published, Published).answers.items():
        for name, word in said.items():
            columns.setdefault(name, {})[cue] = word
    theirs = read(people, PeoplesWords).associations if people else {}
    result: dict[str, Any] = {}
    for name, said in {**run_answers(run), **columns}.items():
        result[name] = {
            "published": {column: same(said, known) for column, known in columns.items() if column != name},
            "people": among(said, theirs) if people else None,
            "broken": broken(said),
        }
    return result


def show(result: Mapping[str, Any]) -> None:
    """Columns of "as said / by the rules", then which answers break a rule."""
    columns = list(dict.fromkeys(column for about in result.values() for column in about["published"]))
    table = Table("same answers: as said / by the rules", *columns, "people", box=None, pad_edge=False)
    for name, about in result.items():
        counts = [*(about["published"].get(column) for column in columns), about["people"]]
        cells = [f"{one['as_said']} / {one['rules']} of {one['cues']}" if one else "-" for one in counts]
        table.add_row(name, *cells)
    console = Console(width=200, highlight=False, markup=False)
    console.print(table)
    for name, about in result.items():
        told = [f"{one['word']} for {one['cue']} ({one['rule']})" for one in about["broken"][:SHOWN]]
        more = ["…"] if len(about["broken"]) > SHOWN else []
        console.print(f"{name}: answers that break a rule: {', '.join([*told, *more]) or 'none'}", soft_wrap=True)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, metavar="RUN", help="a run folder")
    parser.add_argument("--people", type=Path, metavar="FILE", help="people's words")
    parser.add_argument("--published", type=Path, metavar="FILE", default=PUBLISHED, help="known machine answers")
    options = parser.parse_args(argv)
    try:
        result = compare(options.run, options.published, options.people)
    except TuringlikeError as error:
        print(f"compare_words: {error}", file=sys.stderr)
        return error.exit_code
    show(result)
    print(orjson.dumps(result).decode())
    return 0


if __name__ == "__main__":
    sys.exit(main())
