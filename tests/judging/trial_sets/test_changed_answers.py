"""Answers that change after trials were drawn from them, and stimuli that one agent takes away."""

import csv
import json
from collections.abc import Collection
from pathlib import Path

import pytest

from serving.cli import main
from tests.helpers.plain_words import PLAIN_WORDS

CUES = [f"cue{at}" for at in range(12)]
OLDER = "trials, verdicts and scores are of the older answers"


def _people(path: Path, begin: int = 0) -> Path:
    """A table of the words of three people, from the word at ``begin`` on."""
    with path.open("w", newline="") as file:
        words = [*PLAIN_WORDS[begin:], *PLAIN_WORDS[:begin]]
        rows = [(f"p{who}", cue, words[(7 * who + at) % 24]) for who in range(3) for at, cue in enumerate(CUES)]
        csv.writer(file).writerows([("subject", "stimulus", "response"), *rows])
    return path


def _machines(path: Path, answered: dict[str, Collection[str]]) -> Path:
    """Published words by machine, each to the cues that it has answered."""
    rows = {
        cue: [
            {"response": PLAIN_WORDS[24 - at], "groundtruth": "machine", "machine_groundtruth": name}
            for name, cues in answered.items()
            if cue in cues
        ]
        for at, cue in enumerate(CUES)
    }
    path.write_text(json.dumps(rows))
    return path


def _import(path: Path, run: Path, *options: str) -> None:
    assert main(["import", str(path), "--task", "word", "--out", str(run), *options]) == 0


def _trials(run: Path, out: Path, *options: str) -> int:
    return main(["trials", str(run), "--task", "word", "--out", str(out), "--seed", "1", *options])


def test_judge_and_score_say_that_a_corrected_table_came_later(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run"
    _import(_people(tmp_path / "words.csv"), run)
    _import(_machines(tmp_path / "machine.json", {"alpha": CUES}), run)
    assert _trials(run, tmp_path / "T") == 0
    judge = ["judge", str(tmp_path / "T"), "--judges", "cue-length", "--out"]
    score = ["score", str(tmp_path / "V"), "--out"]
    capsys.readouterr()
    assert main([*judge, str(tmp_path / "V")]) == 0
    assert main([*score, str(tmp_path / "S")]) == 0
    assert OLDER not in capsys.readouterr().out
    _import(_people(tmp_path / "corrected.csv", begin=3), run, "--replace")
    capsys.readouterr()
    for command in ([*judge, str(tmp_path / "later")], [*score, str(tmp_path / "later scores")]):
        assert main(command) == 0
        said = " ".join(capsys.readouterr().out.split())
        assert f"the answers in {run.resolve()} have changed since T was drawn from them (people)" in said
        assert OLDER in said
    # A study of the old trials is told so, before anybody is asked.
    main(["study", "new", str(tmp_path / "T"), "-o", str(tmp_path / "study")])
    main(["study", "check", str(tmp_path / "study")])
    assert "have changed since T was drawn from them (people)" in " ".join(capsys.readouterr().err.split())
    assert _trials(run, tmp_path / "new") == 0
    capsys.readouterr()
    again = ["judge", str(tmp_path / "new"), "--judges", "cue-length"]
    assert main([*again, "--out", str(tmp_path / "new verdicts")]) == 0
    assert OLDER not in capsys.readouterr().out


def test_common_says_which_agent_takes_stimuli_away(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of twelve cues one machine answered four: without it all are common."""
    run = tmp_path / "run"
    _import(_people(tmp_path / "words.csv"), run)
    _import(_machines(tmp_path / "machine.json", {"alpha": CUES, "beta": CUES[:11], "tiny": CUES[:4]}), run)
    capsys.readouterr()
    assert _trials(run, tmp_path / "T", "--common") == 0
    said = capsys.readouterr().out
    assert "  4 of 12 stimuli are common (--common)" in said
    assert "  without published:tiny, 11 would be common: leave it out with --agents\n" in said
    assert "without published:beta" not in said  # which alone would change nothing
    numbers = json.loads((tmp_path / "T.trials.json").read_text())["tasks"]["word_association"]
    assert numbers["common_without"] == {"published:tiny": 11}
    assert _trials(run, tmp_path / "A", "--common", "--agents", "published:alpha,published:beta") == 0
    assert "  11 of 12 stimuli are common (--common)" in capsys.readouterr().out


def test_failures_of_an_agent_that_is_not_asked_for_are_not_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run"
    _import(_people(tmp_path / "words.csv"), run)
    _import(_machines(tmp_path / "machine.json", {"alpha": CUES, "tiny": CUES}), run)
    path = run / "records" / "published.jsonl"
    records = [json.loads(line) for line in path.read_text().splitlines()]
    for record in records:
        if record["agent"] == "published:tiny" and record["stimulus"] not in CUES[:4]:
            record |= {"status": "failed", "answer": None, "error": {"code": "bad_reply", "message": "no word"}}
    path.write_text("".join(f"{json.dumps(record)}\n" for record in records))
    capsys.readouterr()
    assert _trials(run, tmp_path / "T") == 0
    assert "left out (failed): 8" in capsys.readouterr().out
    assert _trials(run, tmp_path / "A", "--agents", "published:alpha") == 0
    said = capsys.readouterr().out
    assert "left out (failed)" not in said
    assert "24 trials: 12 from people, 12 from 1 agent" in said
    assert _trials(run, tmp_path / "B", "--agents", "published:gamma") == 2
    assert "published:alpha, published:tiny" in " ".join(capsys.readouterr().err.split())
