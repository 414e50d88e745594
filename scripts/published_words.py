"""The published test's words: a run compared with them, or all of them as one file for ``turinglike import``.

    python scripts/published_words.py compare RUN [--people PEOPLE.json]
    python scripts/published_words.py truth PEOPLE.json word.json [--as-printed]

``compare`` takes a run of the cues in examples/words.jsonl. For every agent and every published column (the machines of
the 2022 paper, examples/words_published.json) it prints as JSON the number of cues with the same answer, and of answers
among people's words: as they are, and with the rules for answers on both sides. A stimulus counts by its cue, and by
its first sample.

``truth`` writes all words in the published ground truth's form; with ``--as-printed`` the paper's column of GPT-3
davinci too, which repeats GPT-2's.

People's words are JSON, {"associations": {cue: [word, ...]}}, from benchmarking/groundtruth_dictionaries/word.json of
kreimanlab/TuringTest. The exit code is 2 for wrong usage or input.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson
from pydantic import TypeAdapter, ValidationError

from agents.errors import InputError, TuringlikeError
from agents.language.words.rules import RuleSettings, judge
from serving.runs.run import Run

PUBLISHED = Path(__file__).resolve().parents[1] / "examples" / "words_published.json"
RULES = RuleSettings()
COLUMNS = TypeAdapter(dict[str, dict[str, str]])
PEOPLES = TypeAdapter(dict[str, list[str]])


def read(path: Path, field: str, form: TypeAdapter[Any]) -> Any:
    """One field of a JSON file. Raises InputError."""
    try:
        return form.validate_python(orjson.loads(path.read_bytes())[field])
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from None
    except (orjson.JSONDecodeError, LookupError, TypeError, ValidationError):
        raise InputError(f'{path} must be JSON with the words by cue in "{field}"') from None


def ruled(word: str, cue: str) -> str | None:
    """The word after the rules, or None if one drops it."""
    judged = judge(word, cue, RULES)
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
        judged = judge(word, cue, RULES)
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


def compare(run: Path, published: Path, people: Path | None) -> dict[str, Any]:
    """All counts, by agent (and version) and by published column."""
    columns: dict[str, dict[str, str]] = {}
    for cue, answers in read(published, "answers", COLUMNS).items():
        for name, word in answers.items():
            columns.setdefault(name, {})[cue] = word
    words = read(people, "associations", PEOPLES) if people else {}
    return {
        name: {
            "published": {
                column: among(answers, {cue: [word] for cue, word in known.items()})
                for column, known in columns.items()
                if column != name
            },
            "people": among(answers, words) if people else None,
            "broken": broken(answers),
        }
        for name, answers in {**run_answers(run), **columns}.items()
    }


def write_truth(people: Path, out: Path, as_printed: bool) -> None:
    """The ground truth's file. Raises InputError."""
    words, machines = read(people, "associations", PEOPLES), read(PUBLISHED, "answers", COLUMNS)
    if unknown := sorted(words.keys() - machines.keys()):
        raise InputError(f"{people}: no machine answered {', '.join(unknown[:20])}")
    truth = {}
    for cue, associations in words.items():
        columns = machines[cue] | ({"gpt3-davinci": machines[cue]["gpt2"]} if as_printed else {})
        rows = [("human", "", word) for word in associations]
        rows += [("machine", name, word) for name, word in columns.items()]
        truth[cue] = [
            {
                "cueWord": cue,
                "response": word,
                "groundtruth": kind,
                "human_groundtruth": "",
                "machine_groundtruth": name,
            }
            for kind, name, word in rows
        ]
    out.write_bytes(orjson.dumps(truth, option=orjson.OPT_INDENT_2))
    print(f"{out}: {len(truth)} cues, {sum(map(len, truth.values())):,} words")


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    comparing = commands.add_parser("compare", help="a run with the published words")
    comparing.add_argument("run", type=Path, metavar="RUN", help="a run folder")
    comparing.add_argument("--people", type=Path, metavar="FILE", help="people's words")
    comparing.add_argument("--published", type=Path, metavar="FILE", default=PUBLISHED, help="known machine answers")
    writing = commands.add_parser("truth", help="people's and machines' words as one file")
    writing.add_argument("people", type=Path, metavar="PEOPLE.json")
    writing.add_argument("out", type=Path, metavar="word.json")
    writing.add_argument("--as-printed", action="store_true", help="with davinci's column, which is GPT-2's")
    options = parser.parse_args(argv)
    try:
        if options.command == "truth":
            write_truth(options.people, options.out, options.as_printed)
        else:
            result = compare(options.run, options.published, options.people)
            print(orjson.dumps(result, option=orjson.OPT_INDENT_2).decode())
    except TuringlikeError as error:
        print(f"published_words: {error}", file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
