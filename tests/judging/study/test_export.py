"""What a study is made into: exclusions by rule, the run folder of verdicts, the table, how far it is."""

import csv
import hashlib
import itertools
import json
import re
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from agents.errors import InputError
from judging.scores.verdicts import open_verdicts, read_verdicts
from judging.study.design.settings import read_settings
from judging.study.kinds import material_of
from judging.study.log.files import read_personal
from judging.study.log.participant_events import Consent
from judging.study.log.state import read_state
from judging.study.pages.page_answers import BadAnswer
from judging.study.pages.trial_material import TrialMaterial
from judging.study.results import verdict_rows
from judging.study.results.stopping import decide
from judging.study.serving_study import ServedStudy
from judging.study.step_pages import view
from serving.cli import main
from tests.helpers import study_folders

Keys = Sequence[dict[str, Any]]
ROOT = Path(__file__).parents[3]


def judged(folder: Path, judges: Sequence[dict[str, Any]], task: str, rows: list[Any], **changes: Any) -> Path:
    """A study that ``judges`` answered: ``say`` makes keys into an answer, ``steps`` is how many trials."""
    trials = study_folders.write_trials(folder / "T", rows)
    study = study_folders.write_study(folder / "study", trials, task, **changes)

    async def work(served: ServedStudy) -> None:
        assert isinstance(served.material, TrialMaterial)
        for about in judges:
            if "kit" in about:
                await served.enlist("a token", kit=about["kit"])
                continue
            judge, _ = await served.join(None, about.get("worker"))
            left = about.get("steps", 1000)
            at = datetime.now(UTC) - timedelta(hours=about.get("hours_ago", 0))
            while judge.current is not None and left:
                step = judge.current
                answer: dict[str, Any] = about.get("before", {}) if step.kind == "questions" else {}
                if step.kind == "trial":
                    left -= 1
                    answer = {"rt": 2000.0, **about["say"]([served.material.pool.key[name] for name in step.trials])}
                    if (control := served.material.control(step)) is not None:
                        wrong = next(option for option in control.options if option != control.correct)
                        answer["control"] = control.correct if about.get("looks", True) else wrong
                at += timedelta(seconds=5)
                await served.answer(judge, judge.step, answer, at=at.isoformat())

    study_folders.run(study, work)
    return study


def rows_of(study: Path) -> list[dict[str, Any]]:
    return verdict_rows.rows_of(material_of(study), read_state(study), read_personal(study))


def right(keys: Keys) -> dict[str, Any]:
    return {"verdicts": [key["truth"] for key in keys]}


def always_human(keys: Keys) -> dict[str, Any]:
    return {"verdicts": ["human" for _ in keys]}


def always_machine(keys: Keys) -> dict[str, Any]:
    return {"verdicts": ["machine" for _ in keys]}


def hurried(keys: Keys) -> dict[str, Any]:
    return right(keys) | {"rt": 100.0}


def test_every_rule_names_what_it_excludes(tmp_path: Path) -> None:
    native = {"native_language": "yes"}
    judges = [
        {"say": right, "before": native},
        {"say": always_human, "before": native},
        {"say": hurried, "before": native},
        {"say": right, "before": {"native_language": "no"}},
        {"say": right, "before": native, "steps": 4},  # too few to be one-sided
    ]
    changes = {"number": 8, "catch": 0.25, "practice": 1, "before": ["native_language"]}
    study = judged(tmp_path, judges, "word_association", study_folders.word_trials(40, catch=8), **changes)
    text = (study / "study.toml").read_text()
    exclude = "catch = 0.5\nright = 0.0\none_sided = true\nnative = true\nfastest = 1.0\n"  # as older files have it
    (study / "study.toml").write_text(f"{text[: text.index('[exclude]')]}[exclude]\n{exclude}")
    found: dict[str, set[tuple[str, ...]]] = {}
    for row in rows_of(study):
        if row["phase"] != "practice":
            found.setdefault(row["judge"], set()).add(tuple(row["rules"]))
    assert list(found.values()) == [{()}, {("catch", "one_sided")}, {("fastest",)}, {("native",)}, {("finished",)}]


def test_control_questions_exclude_trials_and_judges(tmp_path: Path) -> None:
    """Both speakers of an excerpt share its control question, which counts once."""
    judges: list[dict[str, Any]] = [{"say": right}, {"say": right, "looks": False}]
    study = judged(
        tmp_path,
        judges,
        "conversation",
        study_folders.conversation_trials(6),
        number=8,
        choices="four",
        control="topic",
        controls=0.75,
        wrong_control=True,
    )
    assert [tuple(row["rules"]) for row in rows_of(study)] == [()] * 16 + [("controls", "wrong_control")] * 16


@pytest.mark.parametrize("before", [0, 5])
@pytest.mark.parametrize("hours", [1, 3])
def test_status_decides_on_agents_up_to_the_first_judge_who_is_still_at_it(
    before: int, hours: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Who always says human is right of half; of two who are always right and have not finished the one is waited for,
    for two hours, the other has a kit."""
    late: list[dict[str, Any]] = [{"kit": "k"}, {"say": right, "steps": 4, "hours_ago": hours}]
    judges = [*[{"say": always_human}] * before, *late, *[{"say": always_human}] * 12]
    study = judged(tmp_path, judges, "word_association", study_folders.word_trials(40), number=8, analysis_bounds=0.3)
    wanted, number = decide([0.5] * 12, 0.3, agents=2)
    assert wanted == "passes"
    assert number > decide([0.5] * 12, 0.3)[1]
    capsys.readouterr()
    assert main(["study", "status", str(study), "--json"]) == 0
    status = json.loads(capsys.readouterr().out)
    agents = status["agents"]
    assert "decision" not in agents["people"]
    assert main(["study", "status", str(study)]) == 0
    assert capsys.readouterr().out.replace("\n", " ").count(status["decided_for"]) == 1
    assert status["decided_for"].startswith("These decisions are for these stimuli only.")
    for agent in ("alpha", "beta"):
        decided = (agents[agent]["decision"], agents[agent]["judges"])
        assert decided == (("open", before) if hours < 2 else (wanted, number))


@pytest.mark.parametrize("is_closed", [False, True])
def test_status_says_why_judges_who_finished_do_not_count_yet(
    is_closed: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One finishes, two begin and do no more, three finish after them."""
    judges = [{"say": right, "hours_ago": hours, "steps": steps} for hours, steps in ((5, 8), (1.5, 4), (1, 2))]
    judges += [{"say": right}] * 3
    study = judged(tmp_path, judges, "word_association", study_folders.word_trials(40), number=8, analysis_bounds=0.3)
    waited_for = list(read_state(study).judges.values())[1]
    if is_closed:
        assert main(["study", "close", str(study)]) == 0
    capsys.readouterr()
    assert main(["study", "status", str(study), "--json"]) == 0
    status = json.loads(capsys.readouterr().out)
    assert {name: status["agents"][name]["judges"] for name in ("alpha", "beta")} == {"alpha": 1, "beta": 1}
    until = datetime.fromisoformat(waited_for.last_seen) + timedelta(hours=2)
    joined = f"Judge 2 ({waited_for.code}) joined earlier and"
    who = {"number": 2, "judge": waited_for.code}
    if is_closed:
        assert status["waits_for"] == {**who, "until": None}
        assert status["not_counted"] == (
            f"Not counted: 3 judges who have finished. {joined} had not finished when the study was closed."
        )
    else:
        assert status["waits_for"] == {**who, "until": until.isoformat(timespec="seconds")}
        assert status["not_counted"] == (
            f"Not counted yet: 3 judges who have finished. {joined} has not finished. The decisions wait for judge 2 "
            f"until {until:%Y-%m-%d %H:%M} UTC, or longer if this judge goes on."
        )
    assert main(["study", "status", str(study)]) == 0
    assert status["not_counted"] in capsys.readouterr().out.replace("\n", " ")


def test_status_says_that_kits_are_part_of_no_decision(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """And nothing where all who finished count."""
    study = judged(tmp_path, [{"say": right}], "word_association", study_folders.word_trials(40), number=8)

    def status() -> dict[str, Any]:
        capsys.readouterr()
        assert main(["study", "status", str(study), "--json"]) == 0
        found: dict[str, Any] = json.loads(capsys.readouterr().out)
        return found

    async def of_kit(served: ServedStudy) -> None:
        judge = await served.enlist("a token", kit="k")
        while judge.current is not None:
            await served.answer(judge, judge.step, {"verdicts": ["human"]} if judge.step else {})

    assert not {"not_counted", "waits_for"} & status().keys()
    study_folders.run(study, of_kit)
    assert status()["judges"]["finished"] == 2
    assert status()["agents"]["alpha"]["judges"] == 1
    assert "waits_for" not in status()
    assert status()["not_counted"] == (
        "1 judge finished in kits. Judges of kits do not count for these decisions, because kits do not come back in "
        "the order of joining."
    )


def test_excluded_verdicts_are_not_scored(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = {"say": always_human, "before": {"country": "Iceland"}}
    judges = [judge for at in range(3) for judge in ({"say": right, "worker": f"A1B2{at}"}, other)]
    study = judged(
        tmp_path,
        [*judges, {"say": right, "steps": 4, "worker": "Z9"}],
        "word_association",
        study_folders.word_trials(40),
        number=20,
        repeats=0.1,
        before=["country"],
        worker="PROLIFIC_PID",
    )
    out = tmp_path / "V"
    assert main(["study", "export", str(study), "-o", str(out), "--personal"]) == 0
    assert main(["study", "export", str(study), "-o", str(out)]) == 2  # is there
    assert main(["study", "status", str(study), "--json"]) == 0
    out_text = capsys.readouterr().out
    status = json.loads(out_text[out_text.index("{\n") :])
    assert status["judges"] == {"wanted": 50, "joined": 7, "finished": 6, "at it": 1}
    assert status["verdicts"] == {"all": 136, "counted": 132}
    assert status["excluded"] == {"finished": {"verdicts": 4, "judges": 1}}
    assert status["agents"]["people"] == {"verdicts": 60, "said_human": 1.0}
    assert main(["study", "status", str(study)]) == 0
    assert "judges: 6 of 50 finished (7 joined, 1 not finished)" in capsys.readouterr().out
    assert main(["score", str(out), "-o", str(tmp_path / "S")]) == 0
    assert "132 of 136 verdicts count; excluded by the study's rules: finished 4" in capsys.readouterr().out
    scores = json.loads((tmp_path / "S" / "scores.json").read_text())
    [row] = [row for row in scores["scores"] if row["agent"] == "all"]
    assert (row["human_human"], row["human_machine"], row["machine_human"], row["machine_machine"]) == (60, 0, 30, 30)
    assert [(sample["verdicts"], sample["alike"]) for sample in scores["samples"]] == [(2, 1.0)] * 6
    places = [
        sorted(row[name] for row in csv.DictReader(path.read_text().splitlines()) if row[who].startswith(start))
        for path, name, who, start in (
            (out / "verdicts.csv", "trial_index", "judge", ""),
            (tmp_path / "S" / "verdicts.csv", "place", "judge", "human"),
        )
    ]
    assert places[0] == places[1]
    with (out / "verdicts.csv").open(newline="") as file:
        assert Counter(verdict["rules"] for verdict in csv.DictReader(file)) == {"": 132, "finished": 4}
    assert "Iceland" in (out / "verdicts.csv").read_text()
    with (out / "participants.csv").open(newline="") as file:
        people = list(csv.DictReader(file))
    joined = read_state(study).judges
    assert [row["participant"] for row in people] == [f"human:{code}" for code in joined]
    assert [row["worker"] for row in people] == ["A1B20", "", "A1B21", "", "A1B22", "", "Z9"]
    assert [row["code"] for row in people] == [*(judge.end_code for judge in list(joined.values())[:6]), ""]
    assert [(row["outcome"], row["answers"], row["excluded"], row["rules"], row["paid"]) for row in people] == [
        *[("finished", "22", "0", "", "1")] * 6,
        ("", "4", "4", "finished", "0"),
    ]
    others = [path for path in out.rglob("*") if path.is_file() and path.name != "participants.csv"]
    assert not any(b"A1B2" in path.read_bytes() for path in others)
    assert main(["study", "export", str(study), "-o", str(tmp_path / "W")]) == 0
    assert not (tmp_path / "W" / "participants.csv").exists()
    assert not any(b"Iceland" in path.read_bytes() for path in (tmp_path / "W").rglob("*") if path.is_file())


def test_each_outcome_has_its_code_and_the_panels_parameters(tmp_path: Path) -> None:
    """From the address of the panel to the table for payment: who is paid, who is not, and why."""
    trials = study_folders.write_trials(tmp_path / "T", study_folders.conversation_trials(6))
    study = study_folders.write_study(
        tmp_path / "study",
        trials,
        "conversation",
        number=2,
        control="topic",
        controls=0.75,
        consent="Will you?",
        before=["age"],
        required=["age"],
        worker="PROLIFIC_PID",
        parameters=["STUDY_ID", "SESSION_ID"],
        code="C-DONE",
        failed_checks="C-FAIL",
        screened_out="C-OUT",
        no_consent="C-NO",
        redirect="https://panel.example/?cc={code}&id={worker}&s={SESSION_ID}",
    )
    text = (study / "study.toml").read_text()
    (study / "study.toml").write_text(text.replace("out = {}", 'out = { age = ["<18"] }'))
    people = {
        "C-DONE": (True, ">50", True),
        "C-FAIL": (True, "21-25", False),
        "C-OUT": (True, "<18", True),
        "C-NO": (False, "", True),
    }

    async def work(served: ServedStudy) -> None:
        assert isinstance(served.material, TrialMaterial)
        for pid, (agree, age, looks) in people.items():
            judge, _ = await served.join(None, pid, {"STUDY_ID": "S&1", "SESSION_ID": "{{%SESSION_ID%}}", "more": "x"})
            await served.answer(judge, 0, {"agree": agree})
            if agree:
                with pytest.raises(BadAnswer, match="age: must be answered"):
                    await served.answer(judge, 1, {})
                await served.answer(judge, 1, {"age": age})
            while (step := judge.current) is not None:
                control = served.material.control(step) if step.kind == "trial" else None
                answer: dict[str, Any] = {"device": {"touch": True, "screen": [390, 844]}}
                if control is not None:
                    wrong = next(option for option in control.options if option != control.correct)
                    answer = {"verdicts": ["human"] * 2, "control": control.correct if looks else wrong}
                await served.answer(judge, judge.step, answer)
            assert view(served, judge)["redirect"] == f"https://panel.example/?cc={pid}&id={pid}&s="
            assert view(served, judge)["code"] == pid

    study_folders.run(study, work)
    known = read_personal(study)
    assert [person.get("age") for person in known.values()] == [">50", "21-25", None, None]  # not of who is out
    assert main(["study", "export", str(study), "-o", str(tmp_path / "V"), "--personal"]) == 0
    with (tmp_path / "V" / "participants.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    about = [(row["worker"], row["code"], row["outcome"], row["paid"], row["rules"]) for row in rows]
    assert about == [
        ("C-DONE", "C-DONE", "finished", "1", ""),
        ("C-FAIL", "C-FAIL", "failed_checks", "0", "controls"),
        ("C-OUT", "C-OUT", "screened_out", "0", ""),
        ("C-NO", "C-NO", "no_consent", "0", ""),
    ]
    assert {(row["STUDY_ID"], row["SESSION_ID"]) for row in rows} == {("S&1", "")}
    assert {row["consent"] for row in rows} == {hashlib.sha256(b"Will you?").hexdigest()}
    assert read_state(study).consent == Consent(sha256=rows[0]["consent"], text="Will you?")
    assert {(row["touch"], row["screen"]) for row in rows_of(study)} == {(True, "390x844")}


def test_scores_by_the_judges_answers_and_by_phase(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Women tell every machine, men while the truth follows each trial alone: those trials are part of no other score.
    One of three women takes every person for a machine, so that judges differ within the cells of two factors."""

    def learning() -> Any:
        said = itertools.count(1)
        return lambda keys: right(keys) if next(said) <= 8 else always_human(keys)

    judges = []
    for education in ("high school", "bachelor"):
        for judge in range(3):
            woman = {"gender": "female", "education": education}
            man = {"gender": "male", "education": education}
            judges.append({"say": always_machine if judge == 2 else right, "before": woman})
            judges.append({"say": learning(), "before": man})
    study = judged(
        tmp_path,
        judges,
        "word_association",
        study_folders.word_trials(40),
        number=20,
        feedback=8,
        before=["gender", "education"],
    )
    assert main(["study", "export", str(study), "-o", str(tmp_path / "without")]) == 0
    by = "gender,education,gender*education,gender*agent"
    assert main(["score", str(tmp_path / "without"), "-o", str(tmp_path / "S"), "--by", by]) == 2
    assert "by: the verdicts have no gender, education" in capsys.readouterr().err
    study_folders.changed(study, public=True)
    assert main(["study", "export", str(study), "-o", str(tmp_path / "V")]) == 0
    assert main(["score", str(tmp_path / "V"), "-o", str(tmp_path / "S"), "--by", by]) == 0
    scores = json.loads((tmp_path / "S" / "scores.json").read_text())
    [row] = [row for row in scores["scores"] if row["agent"] == "all"]
    assert sum(row[f"{truth}_{said}"] for truth in ("human", "machine") for said in ("human", "machine")) == 12 * 12
    p_machine = {(row["column"], row["value"]): row["p_machine"] for row in scores["by"] if row["agent"] == "all"}
    assert [p_machine["gender", value] for value in ("female", "male")] == [1, 0]
    assert [p_machine["gender*education", f"male, {value}"] for value in ("high school", "bachelor")] == [0, 0]
    assert p_machine["phase", "feedback"] == 1
    assert 0 < p_machine["phase", "test"] < 1
    tests = scores["tests"]["word_association"]
    [of_phase] = [test for test in tests["by_columns"] if test["column"] == "phase"]
    assert of_phase["difference"] > 0  # better with the truth after each trial
    drawn = (tmp_path / "S" / "figures" / "who.svg").read_text()
    texts = re.findall(r">([^<>]+)</text>", drawn)
    for text, number in {"Word association:": 2, "gender": 1, "female": 1, "bachelor": 1, "6": 4}.items():
        assert texts.count(text) == number
    assert "not said" not in texts
    between = [(test["column"], test["test"]) for test in tests["papers_between_values"]]
    assert ("gender", "Mann-Whitney") in between
    factors = {column for column, test in between if "two factors" in test}
    assert {"gender", "education", "gender*education"} <= factors


def columns_on_the_page() -> list[str]:
    """The columns of verdicts.csv that docs/studies.md describes: the first cells of the table with `trial_index`."""
    tables = re.findall(r"(?:^\|.*\n)+", (ROOT / "docs" / "studies.md").read_text("utf-8"), re.MULTILINE)
    [table] = [lines for lines in tables if "\n| `trial_index`" in lines]
    return [name for line in table.splitlines() for name in re.findall(r"`(\w+)`", line.split("|")[1])]


def test_the_table_of_verdicts_has_the_public_answers_and_places_that_count_practice(tmp_path: Path) -> None:
    judges = [
        {"say": right, "before": {"gender": gender, "country": "Iceland, north"}} for gender in ("female", "male")
    ]
    study = judged(
        tmp_path,
        judges,
        "word_association",
        study_folders.word_trials(40),
        number=4,
        practice=2,
        before=["gender", "country"],
    )
    code_of = {about["gender"]: code for code, about in read_personal(study).items()}

    def table(name: str, *options: str) -> list[dict[str, str]]:
        assert main(["study", "export", str(study), "-o", str(tmp_path / name), *options]) == 0
        with (tmp_path / name / "verdicts.csv").open(encoding="utf-8", newline="") as file:
            return list(csv.DictReader(file))

    plain = list(table("without")[0])
    assert not {"gender", "country", "age"} & {*plain}
    assert set(columns_on_the_page()) == {*plain}
    study_folders.changed(study, public=True)
    rows = table("public")
    assert list(rows[0])[-2:] == ["gender", "country"]
    assert {row["judge"]: (row["gender"], row["country"]) for row in rows} == {
        code_of[gender]: (gender, "Iceland, north") for gender in ("female", "male")
    }
    places = [(row["phase"], int(row["trial_index"])) for row in rows if row["judge"] == code_of["male"]]
    assert places == [("practice", 0), ("practice", 1), ("test", 2), ("test", 3), ("test", 4), ("test", 5)]
    verdicts = read_verdicts(open_verdicts([tmp_path / "public"]))
    assert set(verdicts["place"]) == {2, 3, 4, 5}
    assert [row["gender"] for row in table("personal", "--personal")] == [row["gender"] for row in rows]


def test_the_perceived_sex_is_asked_of_each_speaker(tmp_path: Path) -> None:
    def with_sexes(keys: Keys) -> dict[str, Any]:
        return right(keys) | {"sexes": ["male" if key["truth"] == "human" else "female" for key in keys]}

    asked = {"number": 8, "choices": "both", "sex": True}
    trials = study_folders.conversation_trials(6)
    study = judged(tmp_path / "a", [{"say": with_sexes}], "conversation", trials, **asked)
    assert {(row["truth"], row["sex"]) for row in rows_of(study)} == {("human", "male"), ("machine", "female")}
    assert main(["study", "export", str(study), "-o", str(tmp_path / "V")]) == 0
    assert main(["score", str(tmp_path / "V"), "-o", str(tmp_path / "S")]) == 0
    with (tmp_path / "S" / "sexes.csv").open(newline="") as file:
        male = {row["of"]: float(row["male"]) for row in csv.DictReader(file)}
    assert (male["human"], male["machine"], male["judged human"]) == (1, 0, 1)
    with pytest.raises(BadAnswer, match="as many as the verdicts"):
        judged(tmp_path / "b", [{"say": right}], "conversation", trials, **asked)


def test_the_feedback_preset_has_the_papers_numbers(tmp_path: Path) -> None:
    """2025 paper, Table S2: 90 trials on words, the truth after the first 40, and 10 catch trials."""
    trials = study_folders.write_trials(tmp_path / "T", study_folders.word_trials(120, catch=20))
    few = study_folders.write_trials(tmp_path / "few", study_folders.word_trials(30, catch=8))
    assert main(["study", "new", str(few), "--preset", "feedback", "-o", str(tmp_path / "small")]) == 0
    assert main(["study", "check", str(tmp_path / "small")]) == 0  # with less feedback
    command = ["study", "new", str(trials), "--preset", "feedback", "-o", str(tmp_path / "study")]
    assert main(command) == 0
    assert main(["study", "check", str(tmp_path / "study")]) == 0

    async def work(served: ServedStudy) -> None:
        judge, _ = await served.join(None, None)
        phases = Counter(step.phase for step in judge.steps if step.kind == "trial")
        assert phases == {"feedback": 40, "test": 50}

    study_folders.run(tmp_path / "study", work)


def test_a_rule_that_selects_judges_by_bias_is_warned_of(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trials = study_folders.write_trials(tmp_path / "T", study_folders.word_trials(40, catch=8))
    study = study_folders.write_study(tmp_path / "study", trials, "word_association", number=20, catch=0.1)
    assert main(["study", "check", str(study)]) == 0
    assert "warning" not in capsys.readouterr().err  # of new studies none
    text = (study / "study.toml").read_text().partition("[exclude]")
    (study / "study.toml").write_text(f"{text[0]}[exclude]\ncatch = 0.5\n")
    assert main(["study", "check", str(study)]) == 0
    assert "With 2 catch trials for each judge it excludes 25% of the judges" in capsys.readouterr().err


def test_a_study_has_a_plan_to_preregister(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trials = study_folders.write_trials(tmp_path / "T", study_folders.word_trials(40))
    study = study_folders.write_study(tmp_path / "study", trials, "word_association", number=20, wanted=12, bounds=0.2)
    capsys.readouterr()
    assert main(["study", "plan", str(study)]) == 0
    text = capsys.readouterr().out
    assert "12 judges, 20 trials for each judge, 2 agents, 40 stimuli." in text
    assert "within 0.5 ± 0.2." in text
    assert (
        "With early stopping by the decisions of `turinglike study status`; the decision is for the stimuli of" in text
    )
    assert "  an agent with detectability 0.5 passes after " in text
    assert "After 12 judges, " in text
    assert "which apply before any verdict is compared with the truth: finished = True." in text
    source = (study / "study.toml").read_text()
    assert f"SHA-256 of study.toml: {hashlib.sha256(source.encode()).hexdigest()}" in text
    assert text.strip().endswith(source.strip())
    assert main(["study", "plan", "--agents", "2"]) == 2


def test_what_does_nothing_for_pairs_is_told_and_a_new_study_has_none_of_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trials = study_folders.write_trials(tmp_path / "T", study_folders.pair_trials(13))
    study = tmp_path / "study"
    assert main(["study", "new", str(trials), "-o", str(study)]) == 0
    capsys.readouterr()
    assert main(["study", "check", str(study)]) == 0
    assert capsys.readouterr().err == ""
    study_folders.changed(study, bounds=0.05, choices="four", prior_told=True)
    assert main(["study", "check", str(study)]) == 0
    said = capsys.readouterr().err
    for name in ("analysis.bounds", "trials.choices", "trials.prior_told"):
        assert f"warning: {name}: " in said
    assert main(["study", "plan", str(study)]) == 0
    plan = capsys.readouterr().out.split("SHA-256")[0]
    assert "the X-Turn pass rate" in plan
    assert "Equivalence" not in plan
    assert "judged human" not in plan


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"number": 0}, r"study\.toml:\d+: trials\.number: must be at least 1"),
        ({"control": "topic"}, "trials.control: topic is not for word_association"),
        ({"keys": ["f", "f"]}, "keys: must be two different ones"),
        ({"required": ["gender"]}, "required: has a question that is in no list"),
        ({"parameters": ["age"]}, "parameters: has the name of a column"),
        ({"choices": "four"}, "trials.choices: four is for conversations"),
    ],
)
def test_what_is_wrong_with_the_settings_is_named(tmp_path: Path, changes: dict[str, Any], why: str) -> None:
    trials = study_folders.write_trials(tmp_path / "T", study_folders.word_trials(20))
    study = study_folders.write_study(tmp_path / "study", trials, "word_association", **changes)
    with pytest.raises(InputError) as error:
        read_settings(study)
    assert re.search(why, "\n".join([*map(str, error.value.problems), str(error.value)]))
