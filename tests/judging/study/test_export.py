"""What a study is made into: exclusions by rule, the run folder of verdicts, the table, how sure the scores are."""

from __future__ import annotations

import asyncio
import csv
import json
import re
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import study_folders

from agents.errors import InputError
from judging.study.events import read_personal, read_state
from judging.study.exclusions import verdict_rows
from judging.study.pool import TrialPool
from judging.study.settings import read_settings, source_of
from judging.study.study import Study, material_of
from serving.cli import main

Given = Sequence[dict[str, Any]]


def judged(folder: Path, judges: Sequence[dict[str, Any]], task: str, rows: list[Any], **changes: Any) -> Path:
    """A study in which each of ``judges`` has answered as told: ``say`` makes (right verdicts, key) into an answer,
    ``steps`` is how many trials, ``age`` and the rest what is said before."""
    trials = study_folders.write_trials(folder / "T", rows)
    study = study_folders.write_study(folder / "study", trials, task, **changes)

    async def work() -> None:
        served = Study(study, material_of(study), lambda: None)
        served.start()
        for about in judges:
            judge, _ = await served.join(None, about.get("worker"))
            left, at = about.get("steps", 1000), datetime.now(UTC)
            while judge.current is not None and left:
                step = judge.current
                said: dict[str, Any] = about.get("before", {}) if step["kind"] == "questions" else {}
                if step["kind"] == "trial":
                    left -= 1
                    keys = [served.material.pool.key[name] for name in step["trials"]]
                    said = {"rt": 2000.0, **about["say"](keys)}
                    if (control := served.material.control(step)) is not None:
                        wrong = next(one for one in control.options if one != control.right)
                        said["control"] = control.right if about.get("looks", True) else wrong
                at += timedelta(seconds=5)
                await served.answer(judge, judge.step, said, at=at.isoformat())
        await served.close()

    asyncio.run(work())
    return study


def rows_of(study: Path) -> list[dict[str, Any]]:
    settings = read_settings(study)
    pool = TrialPool(source_of(study, settings), settings)
    return list(verdict_rows(read_state(study), settings, pool, read_personal(study)))


def right(keys: Given) -> dict[str, Any]:
    return {"verdicts": [key["truth"] for key in keys]}


def always_human(keys: Given) -> dict[str, Any]:
    return {"verdicts": ["human" for _ in keys]}


def hurried(keys: Given) -> dict[str, Any]:
    return right(keys) | {"rt": 100.0}


def test_every_rule_names_what_it_excludes(tmp_path: Path) -> None:
    judges = [
        {"say": right, "before": {"native_language": "yes"}},
        {"say": always_human, "before": {"native_language": "yes"}},
        {"say": hurried, "before": {"native_language": "yes"}},
        {"say": right, "before": {"native_language": "no"}},
        {"say": right, "before": {"native_language": "yes"}, "steps": 4},  # too few to be one-sided
    ]
    changes = {"number": 8, "catch": 0.25, "practice": 1, "before": ["native_language"]}
    study = judged(tmp_path, judges, "word_association", study_folders.word_trials(40, catch=8), **changes)
    text = (study / "study.toml").read_text()
    begin = text.index("[exclude]")
    exclude = "catch = 0.5\nright = 0.0\none_sided = true\nnative = true\nfastest = 1.0\n"  # as older files have it
    (study / "study.toml").write_text(f"{text[:begin]}[exclude]\n{exclude}")
    found: dict[str, set[tuple[str, ...]]] = {}
    for row in rows_of(study):
        if row["phase"] != "practice":
            found.setdefault(row["judge"], set()).add(tuple(row["rules"]))
    assert list(found.values()) == [
        {()},
        {("catch", "one_sided")},
        {("fastest",)},
        {("native",)},
        {("finished",)},
    ]


def test_control_questions_exclude_trials_and_judges(tmp_path: Path) -> None:
    """Both speakers of an excerpt share its control question, which counts once."""
    judges = [{"say": right}, {"say": right, "looks": False}]
    study = judged(
        tmp_path, judges, "conversation", study_folders.conversation_trials(6), number=8, choices="four",
        control="topic", controls=0.75, wrong_control=True,
    )  # fmt: skip
    rows = rows_of(study)
    assert len(rows) == 2 * 8 * 2
    assert [tuple(row["rules"]) for row in rows] == [()] * 16 + [("controls", "wrong_control")] * 16


def test_the_run_folder_is_scored_and_excluded_verdicts_are_not(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = {"say": always_human, "before": {"country": "Iceland"}}
    judges = [one for at in range(3) for one in ({"say": right, "worker": f"A1B2{at}"}, other)]
    study = judged(
        tmp_path, [*judges, {"say": right, "steps": 4, "worker": "Z9"}], "word_association",
        study_folders.word_trials(40), number=20, repeats=0.1, before=["country"], worker="PROLIFIC_PID",
    )  # fmt: skip
    out = tmp_path / "V"
    assert main(["study", "export", str(study), "-o", str(out), "--personal"]) == 0
    assert main(["study", "export", str(study), "-o", str(out)]) == 2  # is there
    capsys.readouterr()
    assert main(["status", str(out)]) == 0
    assert "imported humans: 136 answers of 7 participants" in capsys.readouterr().out
    assert main(["score", str(out), "-o", str(tmp_path / "S")]) == 0
    assert "132 of 136 verdicts count; excluded by the study's rules: finished 4" in capsys.readouterr().out
    scores = json.loads((tmp_path / "S" / "scores.json").read_text())
    [row] = [one for one in scores["scores"] if one["agent"] == "all"]
    assert (row["human_human"], row["human_machine"], row["machine_human"], row["machine_machine"]) == (60, 0, 30, 30)
    assert "Not scored, by rules that the study had stated (finished): 4 verdicts." in scores["methods"]
    assert [(one["verdicts"], one["alike"]) for one in scores["samples"]] == [(2, 1.0)] * 6
    table = out / "verdicts.csv"
    with table.open(newline="") as file:
        listed = list(csv.DictReader(file))
    assert len(listed) == 136
    assert Counter(one["rules"] for one in listed) == {"": 132, "finished": 4}
    assert "Iceland" in table.read_text()
    with (out / "participants.csv").open(newline="") as file:
        people = list(csv.DictReader(file))
    judges_there = read_state(study).judges
    assert [row["participant"] for row in people] == [f"human:{code}" for code in judges_there]
    assert [row["worker"] for row in people] == ["A1B20", "", "A1B21", "", "A1B22", "", "Z9"]
    assert [row["code"] for row in people] == [judge.end_code for judge in judges_there.values()]
    assert [(row["ended"], row["answers"], row["excluded"], row["rules"]) for row in people] == [
        *[("finished", "22", "0", "")] * 6,
        ("", "4", "4", "finished"),
    ]
    others = [path for path in out.rglob("*") if path.is_file() and path.name != "participants.csv"]
    assert not any(b"A1B2" in path.read_bytes() for path in others)
    assert main(["study", "export", str(study), "-o", str(tmp_path / "W")]) == 0
    assert not (tmp_path / "W" / "participants.csv").exists()


def test_what_is_personal_stays_unless_it_is_asked_for(tmp_path: Path) -> None:
    judge = {"say": right, "before": {"country": "Iceland"}}
    study = judged(tmp_path, [judge], "word_association", study_folders.word_trials(20), number=6, before=["country"])
    assert main(["study", "export", str(study), "-o", str(tmp_path / "V")]) == 0
    assert not any(b"Iceland" in path.read_bytes() for path in (tmp_path / "V").rglob("*") if path.is_file())


def test_status_counts_what_was_said_and_how_sure_it_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    judges = [{"say": right}, {"say": always_human}] * 5
    trials = study_folders.word_trials(15, ("a",))
    study = judged(tmp_path, judges, "word_association", trials, number=10, repeats=0.2)
    assert main(["study", "status", str(study), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["judges"] == {"wanted": 50, "joined": 10, "finished": 10}
    assert found["verdicts"] == {
        "all": 120,
        "counted": 120,
    }  # as `score` counts
    assert found["agents"] == {
        "a": {"verdicts": 50, "said_human": 0.5},
        "people": {"verdicts": 50, "said_human": 1.0},
    }
    assert main(["study", "status", str(study)]) == 0
    assert "judges: 10 of 50 finished (10 joined)" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ("number = 0", r"study\.toml:\d+: trials\.number: must be at least 1"),
        ('reload = "never"', r"study\.toml:\d+: judges\.reload: "),
        ("catch = 2.0", r"study\.toml:\d+: trials\.catch: "),
        ("right = 0.6", r"study\.toml:\d+: exclude\.right: "),
        ('control = "topic"', "trials.control: topic is not for word_association"),
        ("speed = 3", r"study\.toml:\d+: trials\.speed: "),
        ('keys = ["f", "f"]', "keys: must be two different ones"),
        ('choices = "four"', "trials.choices: four is for conversations"),
        ("play_once = true", "only scanpaths are played"),
        ("number = ", r"study\.toml: "),
    ],
)
def test_what_is_wrong_with_the_settings_is_named(tmp_path: Path, change: str, told: str) -> None:
    trials = study_folders.write_trials(tmp_path / "T", study_folders.word_trials(20))
    study = study_folders.write_study(tmp_path / "study", trials, "word_association", number=5)
    name = change.partition(" =")[0]
    lines = [line for line in (study / "study.toml").read_text().splitlines() if not line.startswith(f"{name} =")]
    lines.insert(lines.index("[trials]                  # of each judge") + 1, change)
    table = {"reload": "[judges]", "right": "[exclude]"}.get(name)
    if table is not None:
        lines.remove(change)
        lines.insert(next(at for at, line in enumerate(lines) if line.startswith(table)) + 1, change)
    (study / "study.toml").write_text("\n".join(lines))
    with pytest.raises(InputError) as error:
        read_settings(study)
    said = "\n".join([*map(str, error.value.problems), str(error.value)])
    assert re.search(told, said), said


def test_catch_trials_are_told_over_all_judges_before_anybody_is_excluded(tmp_path: Path) -> None:
    """As in the 2025 paper's Table S3: judges, catch trials, and the share that was told; swapped scanpaths apart."""
    rows = study_folders.word_trials(40, catch=40)
    for _, key in rows:
        if key["catch"] and int(key["stimulus"].split()[1]) >= 20:  # as if it were the swapped path of a person
            key |= {"catch": "swapped", "truth": "human"}
    judges = [{"say": right}, {"say": always_human}, {"say": always_human}]
    study = judged(tmp_path, judges, "word_association", rows, number=10, catch=0.4)
    path = study / "study.toml"
    path.write_text(path.read_text().replace("one_sided = false", "one_sided = true"))
    assert main(["study", "export", str(study), "-o", str(tmp_path / "V")]) == 0
    assert main(["score", str(tmp_path / "V"), "-o", str(tmp_path / "S")]) == 0
    with (tmp_path / "S" / "catch.csv").open(newline="") as file:
        found = list(csv.DictReader(file))
    said = [row for row in rows_of(study) if row["catch"]]
    caught = [row["verdict"] == "machine" for row in said if row["phase"] == "catch"]
    about = {"asked": "word_association", "judge": "people", "judges": "3"}
    assert 0 < sum(caught) < len(caught)
    assert [{**row, "right": float(row["right"])} for row in found] == [
        {**about, "kind": "catch", "truth": "machine", "trials": str(len(caught)),
         "right": pytest.approx(sum(caught) / len(caught))},
        {**about, "kind": "swapped", "truth": "human", "trials": str(len(said) - len(caught)), "right": 1.0},
    ]  # fmt: skip
