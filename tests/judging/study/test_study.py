"""A study without HTTP: what is kept, what a server that starts again knows, what is refused."""

from __future__ import annotations

import asyncio
import json
import random
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import study_folders
from study_folders import run

from agents.errors import InputError, StorageError
from judging.study.events import Judge, read_personal, read_state
from judging.study.page_answers import BadAnswer
from judging.study.pages import read_phrases, view
from judging.study.settings import read_settings
from judging.study.study import Refused, Study, hashed
from judging.trial_set import QUESTIONS
from serving.cli import main


def made(folder: Path, **changes: Any) -> Path:
    trials = study_folders.write_trials(folder / "T", study_folders.word_trials(30, catch=3))
    return study_folders.write_study(folder / "study", trials, "word_association", **{"number": 6, **changes})


def said(judge: Judge, verdict: str = "human") -> dict[str, Any]:
    step = judge.current
    assert step is not None
    if step["kind"] == "trial":
        return {"verdicts": [verdict] * len(step["trials"]), "rt": 1234.5, "away": False, "key": True}
    return {"agree": True} if step["kind"] == "consent" else {}


async def go_on(study: Study, judge: Judge, steps: int) -> None:
    for _ in range(steps):
        if judge.current is not None:
            assert await study.answer(judge, judge.step, said(judge))


def test_a_server_that_starts_again_knows_what_it_knew(tmp_path: Path) -> None:
    folder = made(tmp_path, before=["age"], after=["comments"], catch=0.3)

    async def work(study: Study) -> None:
        for at in range(5):
            judge, _ = await study.join(None, None)
            await go_on(study, judge, 3 * at)
        before.append(study.state)

    before: list[Any] = []
    run(folder, work)
    assert read_state(folder) == before[0]
    assert [judge.ended for judge in before[0].judges.values()] == [None, None, None, None, "finished"]


def test_the_first_answer_to_a_step_stands(tmp_path: Path) -> None:
    async def work(study: Study) -> None:
        judge, token = await study.join(None, None)
        assert study.find(token) is judge
        assert study.find("another") is study.find(None) is None
        await go_on(study, judge, 1)
        both = await asyncio.gather(
            study.answer(judge, 1, said(judge, "human")), study.answer(judge, 1, said(judge, "machine"))
        )
        assert sorted(both) == [False, True]
        assert not await study.answer(judge, 0, {})
        with pytest.raises(Refused, match="not_yet"):
            await study.answer(judge, 3, said(judge))
        assert judge.answers[1]["verdicts"] == ["human"]

    run(folder := made(tmp_path), work)
    events = [json.loads(line) for line in (folder / "events.jsonl").read_text().splitlines()]
    assert [event["step"] for event in events if event["event"] == "step"] == [0, 1]


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (None, "an object"),
        ({}, "verdicts"),
        ({"verdicts": ["human", "human"]}, "verdicts"),
        ({"verdicts": ["cat"]}, "verdicts"),
        ({"verdicts": ["human"], "rt": -1}, "rt"),
        ({"verdicts": ["human"], "rt": float("nan")}, "rt"),
        ({"verdicts": ["human"], "rt": True}, "rt"),
        ({"verdicts": ["human"], "rt": 10**400}, "rt"),
        ({"verdicts": ["human"], "away": 1}, "away"),
        ({"verdicts": ["human"], "truth": "human"}, "parts that no page sends"),
        ({"verdicts": ["human"], "confidence": 2}, "confidence"),
        ({"verdicts": ["human"], "confidence": 0.5, "reason": "x" * 2001}, "reason"),
    ],
)
def test_what_no_page_sends_is_not_kept(tmp_path: Path, answer: Any, told: str) -> None:
    async def work(study: Study) -> None:
        judge, _ = await study.join(None, None)
        await go_on(study, judge, 1)
        with pytest.raises(BadAnswer, match=told):
            await study.answer(judge, 1, answer)
        assert judge.step == 1

    run(made(tmp_path, confidence=True, reason=True), work)


def test_who_answers_sooner_than_the_page_allows_is_not_heard(tmp_path: Path) -> None:
    async def work(study: Study) -> None:
        judge, _ = await study.join(None, None)
        await study.answer(judge, 0, {})
        for step in (1, 2):
            with pytest.raises(BadAnswer, match="sooner"):
                await study.answer(judge, step, said(judge))
            study._turned[judge.code] -= 600
            assert await study.answer(judge, step, said(judge))
            assert not await study.answer(judge, step, said(judge))  # sent again

    run(made(tmp_path, seconds_before=600.0), work)


def test_keys_are_counterbalanced_and_lists_are_each_ones_own(tmp_path: Path) -> None:
    async def work(study: Study) -> None:
        judges = [(await study.join(None, None))[0] for _ in range(6)]
        assert [judge.keys[0] for judge in judges] == ["f", "j"] * 3
        lists = {json.dumps(judge.steps) for judge in judges}
        assert len(lists) == len({judge.code for judge in judges}) == 6

    run(made(tmp_path), work)


def test_no_more_judges_than_wanted(tmp_path: Path) -> None:
    async def work(study: Study) -> None:
        judges = [(await study.join(None, None))[0] for _ in range(3)]
        with pytest.raises(Refused, match="full"):
            await study.join(None, None)
        for judge in judges[:2]:
            await go_on(study, judge, 20)
            assert judge.ended == "finished"
        with pytest.raises(Refused, match="closed"):
            await study.join(None, None)
        await go_on(study, judges[2], 20)  # who is at it may finish
        assert judges[2].ended == "finished"

    run(made(tmp_path, wanted=2, most=3), work)


def test_who_stays_away_gives_their_trials_to_others(tmp_path: Path) -> None:
    folder = made(tmp_path, wanted=2, most=2)

    async def begin(study: Study) -> None:
        judge, _ = await study.join(None, None)
        await go_on(study, judge, 3)
        await study.join(None, None)

    async def later(study: Study) -> None:
        judge, _ = await study.join(None, None)
        first = next(iter(study.state.judges.values()))
        assert sum(study._seen.values()) == 2 + len(list(judge.pages()))
        await go_on(study, first, 20)  # they come back
        assert first.ended == "finished"

    run(folder, begin)
    events = (folder / "events.jsonl").read_text()
    (folder / "events.jsonl").write_text(events.replace('"at":"20', '"at":"19'))
    run(folder, later)


@pytest.mark.parametrize("policy", ["resume", "restart", "block"])
def test_a_page_that_is_loaded_again(tmp_path: Path, policy: str) -> None:
    async def work(study: Study) -> None:
        judge, _ = await study.join(None, None)
        await study.loaded(judge)
        await go_on(study, judge, 4)
        await study.loaded(judge)
        assert judge.loads == 2
        if policy == "resume":
            assert (judge.step, judge.ended) == (4, None)
        elif policy == "block":
            assert judge.ended == "blocked"
            with pytest.raises(Refused):
                await study.answer(judge, 4, {"verdicts": ["human"]})
        else:
            assert (judge.step, judge.ended) == (1, None)
            old, new = judge.former[0][0], judge.steps
            shown = {
                study.material.pool.key[step["trials"][0]]["stimulus"] for step in old[:5] if step["kind"] == "trial"
            }
            assert not shown & {study.material.pool.key[step["trials"][0]]["stimulus"] for step in new[1:]}
        if policy != "block":
            await go_on(study, judge, 20)
            assert judge.ended == "finished"

    run(folder := made(tmp_path, reload=policy), work)
    assert main(["study", "status", str(folder)]) == 0


def test_who_begins_anew_too_often_goes_on_where_they_are(tmp_path: Path) -> None:
    """There are other trials for a whole list only so often."""

    async def work(study: Study) -> None:
        judge, _ = await study.join(None, None)
        for _ in range(12):
            await go_on(study, judge, judge.steps.index(next(s for s in judge.steps if s["kind"] == "trial")) + 2)
            await study.loaded(judge)
            assert sum(step["kind"] == "trial" for step in judge.steps) == 6
        shown = [step for steps, said in judge.former for step in steps[: len(said) + 1] if step["kind"] == "trial"]
        stimuli = [study.material.pool.key[step["trials"][0]]["stimulus"] for step in shown]
        assert len(stimuli) == len(set(stimuli)) > 12
        await go_on(study, judge, 20)
        assert judge.ended == "finished"

    run(made(tmp_path, reload="restart"), work)


def test_a_link_opened_elsewhere_is_a_page_that_is_loaded_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = made(tmp_path, entry="links", reload="block")
    assert main(["study", "links", str(folder), "1"]) == 0
    link = capsys.readouterr().out.strip().partition("?link=")[2]

    async def work(study: Study) -> None:
        judge, _ = await study.join(link, None)
        await go_on(study, judge, 3)
        await study.join(link, None)
        assert judge.ended == "blocked"

    run(folder, work)


def test_what_an_address_brings_stays_a_part_of_the_address(tmp_path: Path) -> None:
    async def work(study: Study) -> None:
        judge, _ = await study.join(None, "a&cc=OTHER/#é")
        await go_on(study, judge, 20)
        found = view(study, judge)
        assert found["redirect"] == f"https://panel.example/done?cc={judge.end_code}&id=a%26cc%3DOTHER%2F%23%C3%A9"

    run(made(tmp_path, worker="PID", redirect="https://panel.example/done?cc={code}&id={worker}"), work)


def test_an_id_of_a_panel_leads_to_one_judge_from_any_browser(tmp_path: Path) -> None:
    """Also after the server has started again, and when all places are taken."""
    folder = made(tmp_path, worker="PROLIFIC_PID", wanted=1, most=1)
    pid = "614a0000000000000000abcd"

    async def work(study: Study) -> None:
        judge, token = await study.join(None, pid)
        for again, other in [await study.join(None, pid) for _ in range(2)]:
            assert again is study.find(other) is study.find(token) is judge
        await go_on(study, judge, 2)

    async def later(study: Study) -> None:
        [judge] = study.state.judges.values()
        assert (await study.join(None, pid))[0] is judge
        with pytest.raises(Refused, match="full"):
            await study.join(None, "another")
        await go_on(study, judge, 20)
        assert (await study.join(None, f" {pid} "))[0] is judge
        assert view(study, judge)["kind"] == "end"

    run(folder, work)
    run(folder, later)
    assert len(read_state(folder).judges) == 1


@pytest.mark.parametrize(
    "given",
    [
        "{{%PROLIFIC_PID%}}", "{{PROLIFIC_PID}}", "${e://Field/PROLIFIC_PID}", "[worker_id]", "%WORKER_ID%", "<id>",
        "undefined", "null", "None", "NaN", "", "  ", "PROLIFIC_PID", "prolific-pid", None,
    ],
)  # fmt: skip
def test_what_a_panel_did_not_fill_in_is_no_id(tmp_path: Path, given: str | None) -> None:
    async def work(study: Study) -> None:
        first, second = [(await study.join(None, given))[0] for _ in range(2)]
        assert first is not second
        assert study.worker(first.code) == ""

    run(folder := made(tmp_path, worker="PROLIFIC_PID"), work)
    assert read_personal(folder) == {}


def test_the_pages_speak_one_language(tmp_path: Path) -> None:
    """A file of phrases has all of their words, the trials' question too."""
    folder = made(tmp_path)
    settings = read_settings(folder)
    english = read_phrases(folder, settings)
    assert {task: english[f"asked_{task}"] for task in QUESTIONS} == QUESTIONS
    path = folder / "study.toml"
    path.write_text(path.read_text().replace('phrases = ""', 'phrases = "de.toml"'))
    german = english | {"asked_word_association": "Mensch oder Maschine?"}
    for changed, told in ((german, 0), ({**german, "more": "x"}, 2), ({**german, "begin": 3}, 2), ({"begin": "x"}, 2)):
        text = "".join(f"{name} = {json.dumps(value)}\n" for name, value in changed.items())
        (folder / "de.toml").write_text(text)
        assert main(["study", "check", str(folder)]) == told


def test_another_task_is_refused(tmp_path: Path) -> None:
    folder = made(tmp_path)

    async def work(study: Study) -> None:
        await study.join(None, None)

    run(folder, work)
    events = folder / "events.jsonl"
    events.write_text(events.read_text().replace('"word_association"', '"image_captioning"'))
    with pytest.raises(InputError, match="people of this study began with image_captioning"):
        run(folder, work)


def test_a_link_leads_one_judge_back_from_any_browser(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = made(tmp_path, entry="links")
    assert main(["study", "links", str(folder), "3"]) == 0
    links = [line.partition("?link=")[2] for line in capsys.readouterr().out.splitlines()]
    assert len(set(links)) == 3
    assert not any(link in (folder / "links.jsonl").read_text() for link in links)

    async def work(study: Study) -> None:
        for wrong in (None, "", "guess", hashed(links[0])):
            with pytest.raises(Refused, match="no_link"):
                await study.join(wrong, None)
        judge, token = await study.join(links[0], None)
        again, other = await study.join(links[0], None)
        assert again is judge
        assert study.find(token) is study.find(other) is judge
        assert (await study.join(links[1], None))[0] is not judge

    run(folder, work)
    assert len(read_state(folder).judges) == 2


def test_what_is_personal_stands_apart_and_is_forgotten(tmp_path: Path) -> None:
    folder = made(tmp_path, before=["age", "country"], after=["comments"], consent="Yes?", worker="PID")

    async def work(study: Study) -> None:
        for at in range(2):
            judge, _ = await study.join(None, f"worker {at}")
            await study.answer(judge, 0, {"agree": True})
            with pytest.raises(BadAnswer, match="age"):
                await study.answer(judge, 1, {"age": "a child"})
            await study.answer(judge, 1, {"age": ">50", "country": f"Land {at}\ud800"})
            await go_on(study, judge, 20)

    run(folder, work)
    codes = list(read_state(folder).judges)
    assert read_personal(folder)[codes[0]] == {"worker": "worker 0", "age": ">50", "country": "Land 0?"}
    events = (folder / "events.jsonl").read_text()
    assert "Land" not in events
    assert "worker" not in events.replace('"worker":"PID"', "")
    assert main(["study", "forget", str(folder), codes[0]]) == 0
    for name in ("events.jsonl", "personal.jsonl"):
        assert codes[0] not in (folder / name).read_text()
        assert codes[1] in (folder / name).read_text()
    assert main(["study", "forget", str(folder), codes[0]]) == 2
    assert read_state(folder).judges[codes[1]].ended == "finished"


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
def test_who_is_half_forgotten_is_forgotten_by_the_same_command(tmp_path: Path, file: int) -> None:
    """Killed before the first or the second file is replaced; and what a call before this version has left."""
    folder = made(tmp_path, before=["country"], worker="PID")

    async def work(study: Study) -> None:
        for at in range(3):
            judge, _ = await study.join(None, f"worker {at}")
            await study.answer(judge, 0, {"country": f"Land {at}"})

    run(folder, work)
    first, second, third = read_state(folder).judges
    assert subprocess.run([sys.executable, "-c", KILLED, str(file), str(folder), first]).returncode == -signal.SIGKILL
    assert ("worker 0" in (folder / "personal.jsonl").read_text()) is (file == 1)
    assert main(["study", "forget", str(folder), first]) == 0
    files = [path for path in folder.iterdir() if path.is_file()]
    assert not any(first in path.read_text() for path in files)
    assert not any(path.name.startswith(".") for path in files)
    events = (folder / "events.jsonl").read_text().splitlines(keepends=True)
    (folder / "events.jsonl").write_text("".join(line for line in events if second not in line))
    assert main(["study", "forget", str(folder), second]) == 0
    assert list(read_personal(folder)) == list(read_state(folder).judges) == [third]


def test_who_declines_is_asked_nothing_more(tmp_path: Path) -> None:
    async def work(study: Study) -> None:
        judge, _ = await study.join(None, None)
        await study.answer(judge, 0, {"agree": False})
        assert (judge.ended, judge.current) == ("declined", None)

    run(made(tmp_path, consent="Yes?"), work)


def test_nothing_is_told_to_be_kept_in_a_file_that_is_gone(tmp_path: Path) -> None:
    """As when an editor saves another file in its place."""
    folder = made(tmp_path)

    async def work(study: Study) -> None:
        judge, _ = await study.join(None, None)
        (folder / "events.jsonl").rename(folder / "moved")
        (folder / "events.jsonl").write_bytes((folder / "moved").read_bytes())
        await study.answer(judge, 0, {})

    with pytest.raises(StorageError):
        run(folder, work)


def test_damage_is_told_and_a_torn_end_is_none(tmp_path: Path) -> None:
    folder = made(tmp_path)

    async def work(study: Study) -> None:
        judge, _ = await study.join(None, None)
        await go_on(study, judge, 4)

    run(folder, work)
    events = folder / "events.jsonl"
    whole = events.read_bytes()
    events.write_bytes(whole + b'{"event":"st')
    assert read_state(folder).judges
    run(folder, work)
    lines = events.read_bytes().split(b"\n")
    lines[2] = b"{"
    events.write_bytes(b"\n".join(lines))
    with pytest.raises(InputError, match=r"events\.jsonl:3: is damaged"):
        read_state(folder)
    said = {"test": "t", "side": 1, "text": "", "clock": 0, "delay_s": 0, "raw": None}
    names = ("at", "judge", "condition", "exchanges", "verdicts")
    events.write_text(
        json.dumps({"event": "test", "test": "t", "agents": [], "parts": [], **dict.fromkeys(names, "")})
        + f"\n{json.dumps({'event': 'test_answered', **said})}\n\n"
    )
    with pytest.raises(InputError, match=r"events\.jsonl:2: is damaged"):
        read_state(folder)


def test_another_trial_set_is_refused(tmp_path: Path) -> None:
    folder = made(tmp_path)

    async def work(study: Study) -> None:
        await study.join(None, None)

    run(folder, work)
    rows = study_folders.word_trials(31)
    random.Random(1).shuffle(rows)
    study_folders.write_trials(tmp_path / "T", rows)
    with pytest.raises(InputError, match="is not the set that the people of this study began with"):
        run(folder, work)
