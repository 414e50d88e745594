"""A study without HTTP: what is kept, what a server that starts again knows, what is refused."""

import asyncio
import gc
import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from agents.errors import InputError
from judging.study.design.settings import read_settings
from judging.study.log.files import read_personal
from judging.study.log.state import Judge, count_pages, read_state
from judging.study.pages.page_answers import BadAnswer, Refused
from judging.study.pages.phrases import LATER_PHRASES, read_phrases
from judging.study.results.verdict_rows import rows_of
from judging.study.serving_study import ServedStudy
from judging.study.step_pages import view
from judging.trial_sets.trial_set import QUESTIONS
from serving.cli import main
from tests.helpers import study_folders
from tests.helpers.study_folders import run


def made(folder: Path, **changes: Any) -> Path:
    trials = study_folders.write_trials(folder / "T", study_folders.word_trials(30, catch=3))
    return study_folders.write_study(folder / "study", trials, "word_association", **{"number": 6, **changes})


def said(judge: Judge, verdict: str = "human") -> dict[str, Any]:
    step = judge.current
    assert step is not None
    if step.kind == "trial":
        return {"verdicts": [verdict] * len(step.trials), "rt": 1234.5, "away": False, "key": True}
    return {"agree": True} if step.kind == "consent" else {}


async def go_on(study: ServedStudy, judge: Judge, steps: int = 20) -> None:
    for _ in range(steps):
        if judge.current is not None:
            assert (await study.answer(judge, judge.step, said(judge))).is_new


async def joined(study: ServedStudy) -> Judge:
    return (await study.join(None, None))[0]


def test_what_a_program_has_frozen_stays_so(tmp_path: Path) -> None:
    folder = made(tmp_path)
    gc.freeze()
    frozen = gc.get_freeze_count()
    read_state(folder)
    assert 0 < gc.get_freeze_count() <= frozen  # an object that goes is no longer counted


def test_a_server_that_starts_again_knows_what_it_knew(tmp_path: Path) -> None:
    folder = made(tmp_path, before=["age"], after=["comments"], catch=0.3)

    async def work(study: ServedStudy) -> None:
        judges = [await joined(study) for _ in range(5)]
        for at, judge in enumerate(judges):
            await go_on(study, judge, 3 * at)
        assert [judge.keys[0] for judge in judges] == ["f", "j", "f", "j", "f"]  # counterbalanced
        assert len({str(judge.steps) for judge in judges}) == 5
        before.append(study.state)

    before: list[Any] = []
    run(folder, work)
    assert read_state(folder) == before[0]
    assert [judge.ended for judge in before[0].judges.values()] == [None, None, None, None, "finished"]


def test_the_first_answer_to_a_step_stands(tmp_path: Path) -> None:
    async def work(study: ServedStudy) -> None:
        judge, token = await study.join(None, None)
        assert study.find(token) is judge
        await go_on(study, judge, 1)
        both = [study.answer(judge, 1, said(judge, verdict)) for verdict in ("human", "machine")]
        assert sorted(receipt.is_new for receipt in await asyncio.gather(*both)) == [False, True]
        assert not (await study.answer(judge, 0, {})).is_new
        with pytest.raises(Refused, match="not_yet"):
            await study.answer(judge, 3, said(judge))
        assert judge.answers[1].verdicts == ["human"]

    run(made(tmp_path), work)


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (None, "an object"),
        ({"verdicts": ["human", "human"]}, "verdicts"),
        ({"verdicts": ["cat"]}, "verdicts"),
        ({"verdicts": ["human"], "rt": 10**400}, "rt"),
        ({"verdicts": ["human"], "truth": "human"}, "truth"),
        ({"verdicts": ["human"], "confidence": 0.5, "reason": "x" * 2001}, "reason"),
    ],
)
def test_what_no_page_sends_is_not_kept(tmp_path: Path, answer: Any, why: str) -> None:
    async def work(study: ServedStudy) -> None:
        judge = await joined(study)
        await go_on(study, judge, 1)
        with pytest.raises(BadAnswer, match=why):
            await study.answer(judge, 1, answer)
        assert judge.step == 1

    run(made(tmp_path, confidence=True, reason=True), work)


BLANK = " \u200b\u2060\n"


def test_a_text_that_shows_nothing_is_not_said(tmp_path: Path) -> None:
    """Of a reason and of questions about oneself; one that must be answered is answered with what can be seen."""
    questions = {"before": ["country"], "required": ["country"], "after": ["comments"]}

    async def work(study: ServedStudy) -> None:
        judge = await joined(study)
        with pytest.raises(BadAnswer, match="country: must be answered"):
            await study.answer(judge, judge.step, {"country": BLANK})
        await study.answer(judge, judge.step, {"country": f"{BLANK}Iceland"})
        await go_on(study, judge, 1)
        await study.answer(judge, judge.step, {**said(judge), "confidence": 1.0, "reason": BLANK})
        assert judge.answers[-1].reason == ""
        await study.answer(judge, judge.step, {**said(judge), "confidence": 1.0, "reason": f"so{BLANK}"})
        assert judge.answers[-1].reason == f"so{BLANK}"
        await study.answer(judge, judge.step, {"comments": BLANK})
        assert judge.ended == "finished"

    run(folder := made(tmp_path, number=2, confidence=True, reason=True, **questions), work)
    [about] = read_personal(folder).values()
    assert about == {"country": f"{BLANK}Iceland"}


def test_no_more_judges_than_wanted(tmp_path: Path) -> None:
    async def work(study: ServedStudy) -> None:
        judges = [await joined(study) for _ in range(3)]
        with pytest.raises(Refused, match="full"):
            await study.join(None, None)
        for judge in judges[:2]:
            await go_on(study, judge)
        with pytest.raises(Refused, match="no_new"):
            await study.join(None, None)
        await go_on(study, judges[2])  # who is at it may finish
        assert [judge.ended for judge in judges] == ["finished"] * 3

    run(made(tmp_path, wanted=2, most=3), work)


def test_who_stays_away_gives_their_trials_to_others(tmp_path: Path) -> None:
    folder = made(tmp_path, wanted=2, most=2)

    async def begin(study: ServedStudy) -> None:
        await go_on(study, await joined(study), 3)
        await study.join(None, None)

    async def later(study: ServedStudy) -> None:
        judge = await joined(study)
        first = next(iter(study.state.judges.values()))
        seen = count_pages(study.state.judges.values(), study.absent())
        assert sum(seen.values()) == 2 + len(list(judge.pages()))
        await go_on(study, first)  # they come back
        assert first.ended == "finished"

    run(folder, begin)
    events = (folder / "events.jsonl").read_text()
    (folder / "events.jsonl").write_text(events.replace('"at":"20', '"at":"19'))
    run(folder, later)


def test_an_id_of_a_panel_leads_to_one_judge_from_any_browser(tmp_path: Path) -> None:
    """Also after the server has started again, and when all places are taken; the address at the end has it."""
    redirect = "https://panel.example/done?cc={code}&id={worker}"
    folder = made(tmp_path, worker="PROLIFIC_PID", wanted=1, most=1, redirect=redirect)
    pid = "a&cc=OTHER/#é"

    async def work(study: ServedStudy) -> None:
        judge, token = await study.join(None, pid)
        for again, other in [await study.join(None, pid) for _ in range(2)]:
            assert again is study.find(other) is study.find(token) is judge
        await go_on(study, judge, 2)

    async def later(study: ServedStudy) -> None:
        [judge] = study.state.judges.values()
        assert (await study.join(None, pid))[0] is judge
        with pytest.raises(Refused, match="full"):
            await study.join(None, "another")
        await go_on(study, judge)
        assert (await study.join(None, f" {pid} "))[0] is judge
        address = f"https://panel.example/done?cc={judge.end_code}&id=a%26cc%3DOTHER%2F%23%C3%A9"
        assert view(study, judge)["redirect"] == address

    run(folder, work)
    run(folder, later)
    assert len(read_state(folder).judges) == 1


def test_what_a_panel_did_not_fill_in_is_no_id(tmp_path: Path) -> None:
    unfilled = ("{{%PROLIFIC_PID%}}", "${e://Field/PROLIFIC_PID}", "[worker_id]", "%WORKER_ID%", "undefined", None)

    async def work(study: ServedStudy) -> None:
        judges = [(await study.join(None, worker))[0] for worker in unfilled]
        assert len({judge.code for judge in judges}) == len(unfilled)

    run(folder := made(tmp_path, worker="PROLIFIC_PID"), work)
    assert read_personal(folder) == {}


def test_the_pages_speak_one_language(tmp_path: Path) -> None:
    """A file of phrases has all of their words, the trials' question too."""
    folder = made(tmp_path)
    english = read_phrases(folder, read_settings(folder))
    assert {task: english[f"asked_{task}"] for task in QUESTIONS} == QUESTIONS
    study_folders.changed(folder, phrases="de.toml")
    for changed, rc in ((english, 0), ({**english, "more": "x"}, 2), ({**english, "begin": 3}, 2), ({"begin": "x"}, 2)):
        text = "".join(f"{name} = {json.dumps(value)}\n" for name, value in changed.items())
        (folder / "de.toml").write_text(text)
        assert main(["study", "check", str(folder)]) == rc


def test_a_translation_of_an_older_version_opens_and_what_it_lacks_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of version 0.2.0, which had fewer phrases: the pages say the others in English."""
    folder = made(tmp_path)
    english = read_phrases(folder, read_settings(folder))
    study_folders.changed(folder, phrases="de.toml")
    older = {name: f"de {text}" for name, text in english.items() if name not in LATER_PHRASES}
    (folder / "de.toml").write_text("".join(f"{name} = {json.dumps(text)}\n" for name, text in older.items()))
    capsys.readouterr()
    assert main(["study", "check", str(folder)]) == 0
    warning = f"de.toml: this file lacks {', '.join(sorted(LATER_PHRASES))}; the pages show these phrases in English"
    assert warning in capsys.readouterr().err
    with study_folders.serving(folder) as server:
        assert warning in server.said()
    assert read_phrases(folder, read_settings(folder)) == {**english, **older}


def test_another_task_or_trial_set_is_refused(tmp_path: Path) -> None:
    async def work(study: ServedStudy) -> None:
        await study.join(None, None)

    run(folder := made(tmp_path), work)
    events = (folder / "events.jsonl").read_text()
    (folder / "events.jsonl").write_text(events.replace('"word_association"', '"image_captioning"'))
    with pytest.raises(InputError, match="began with the task image_captioning"):
        run(folder, work)
    (folder / "events.jsonl").write_text(events)
    study_folders.write_trials(tmp_path / "T", study_folders.word_trials(31))
    with pytest.raises(InputError, match="the people of this study began with another set"):
        run(folder, work)


KILLED = """
import os, pathlib, signal, sys
from serving.cli import main
replace, calls = pathlib.Path.replace, []
def killed(self, target):
    calls.append(target)
    if len(calls) == int(sys.argv[1]):
        os.kill(os.getpid(), signal.SIGKILL)
    return replace(self, target)
pathlib.Path.replace = killed
main(["study", "forget", *sys.argv[2:]])
"""


@pytest.mark.parametrize("file", [1, 2])
def test_what_is_personal_stands_apart_and_is_forgotten(tmp_path: Path, file: int) -> None:
    """Also by a command that is killed before the first or the second file is replaced, and called again."""
    folder = made(tmp_path, before=["age", "country"], after=["comments"], consent="Yes?", worker="PID")

    async def work(study: ServedStudy) -> None:
        for at in range(3):
            judge, _ = await study.join(None, f"worker {at}")
            await study.answer(judge, 0, {"agree": at < 2})
            if at == 2:
                assert (judge.ended, judge.current) == ("declined", None)
                continue
            with pytest.raises(BadAnswer, match="age"):
                await study.answer(judge, 1, {"age": "a child"})
            await study.answer(judge, 1, {"age": ">50", "country": f"Land {at}\ud800"})
            await go_on(study, judge)

    run(folder, work)
    first, second, third = read_state(folder).judges
    assert read_personal(folder)[first] == {"worker": "worker 0", "age": ">50", "country": "Land 0?"}
    events = (folder / "events.jsonl").read_text()
    assert "Land" not in events
    assert "worker" not in events.replace('"worker":"PID"', "")
    assert subprocess.run([sys.executable, "-c", KILLED, str(file), str(folder), first]).returncode == -signal.SIGKILL
    assert ("worker 0" in (folder / "personal.jsonl").read_text()) is (file == 1)
    assert main(["study", "forget", str(folder), first]) == 0
    files = [path for path in folder.iterdir() if path.is_file()]
    assert not any(first in path.read_text() for path in files)
    assert not any(path.name.startswith(".") for path in files)
    assert main(["study", "forget", str(folder), first]) == 2
    assert list(read_personal(folder)) == list(read_state(folder).judges) == [second, third]
    assert read_state(folder).judges[second].ended == "finished"


@pytest.mark.parametrize("is_killed", [False, True])
def test_who_leaves_is_deleted_and_exports_before_it_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], is_killed: bool
) -> None:
    """At once from all that counts, and from the files when the server ends, or starts after it was killed."""
    folder = made(tmp_path, before=["country"], consent="Yes?", worker="PID")
    kept = dict[str, Any]()

    async def begin(study: ServedStudy) -> None:
        for at in range(2):
            judge, _ = await study.join(None, f"worker {at}")
            for answer in ({"agree": True}, {"country": f"Land {at}"}):
                await study.answer(judge, judge.step, answer)
            await go_on(study, judge)

    async def leave(study: ServedStudy) -> None:
        judge = study.state.judges[first]
        await study.leave(judge)
        assert (view(study, judge)["kind"], judge.step) == ("left", 0)
        assert [row["judge"] for row in rows_of(study.material, study.state, study.log.personal)] == [second] * 6
        kept["events"] = (folder / "events.jsonl").read_text()

    run(folder, begin)
    first, second = read_state(folder).judges
    assert main(["study", "export", str(folder), "-o", str(tmp_path / "V")]) == 0
    assert main(["study", "export", str(folder), "-o", str(tmp_path / "one.json"), "--judge", first]) == 0
    person = json.loads((tmp_path / "one.json").read_text())
    assert person["personal"] == {"worker": "worker 0", "country": "Land 0"}
    assert person["consent"] == ["Yes?"]
    assert sum(event.get("kind") == "trial" for event in person["events"]) == 6
    assert second not in json.dumps(person)
    run(folder, leave)
    if is_killed:
        (folder / "events.jsonl").write_text(kept["events"])
        assert list(read_state(folder).judges) == [first, second]
        run(folder, lambda study: asyncio.sleep(0))
    files = [path for path in folder.iterdir() if path.is_file()]
    assert not any(word in path.read_text() for path in files for word in (first, "worker 0", "Land 0"))
    assert read_state(folder).judges[second].ended == "finished"
    capsys.readouterr()
    assert main(["study", "status", str(folder)]) == 0
    deleted = "2 people" if is_killed else "1 person"
    assert f"may still contain data of {deleted} deleted later: {tmp_path / 'V'}" in capsys.readouterr().out


def test_damage_is_named_and_a_torn_end_is_none(tmp_path: Path) -> None:
    async def work(study: ServedStudy) -> None:
        await go_on(study, await joined(study), 4)

    run(folder := made(tmp_path), work)
    events = folder / "events.jsonl"
    events.write_bytes(events.read_bytes() + b'{"event":"st')
    assert read_state(folder).judges
    run(folder, work)
    lines = events.read_bytes().split(b"\n")
    for damage in (b"{", b'{"event":"test_answered","test":"t"}'):
        lines[2] = damage
        events.write_bytes(b"\n".join(lines))
        with pytest.raises(InputError, match=r"events\.jsonl:3: is damaged"):
            read_state(folder)
