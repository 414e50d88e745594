"""Language models as judges: the papers' prompts, what is read from replies, and a server that misbehaves."""

from __future__ import annotations

import asyncio
import base64
import io
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import misbehaving_server as bad
import numpy as np
import pytest
import tiny_language
from in_process import without_ray
from PIL import Image as PILImage

from agents import catalogue
from agents.answers import VerdictAnswer
from agents.contract import Draw, Reply
from agents.errors import AnswerError, InputError, UnavailableError
from agents.stimuli import TASKS, JudgementStimulus, parse_row
from judging import prompts, replies
from judging.trial_set import key_path
from judging.verdicts import read_key, read_verdicts
from serving.cli import main
from serving.runs.run import Run

JUDGES = [name for name, one in catalogue.entries().items() if one.agent.startswith("judging.llm_judge:")]
ANSWERS: dict[str, dict[str, Any]] = {
    "color_estimation": {"color": "blue"},
    "object_detection": {"labels": ["cat", "sofa", "lamp"]},
    "attention_prediction": {"fixations": [[640, 512], [10, 20]], "frame": [1280, 1024]},
    "image_captioning": {"text": "A cat on a sofa."},
    "word_association": {"word": "cold"},
    "conversation": {"messages": [{"speaker": "A", "text": "Hi!"}, {"speaker": "B", "text": "Hello {you}."}]},
}
PARTS: dict[str, dict[str, Any]] = {"word_association": {"cue": "hot"}, "conversation": {"speaker": "A"}}
PAPERS = json.loads((Path(__file__).parent / "paper_prompts.json").read_text("utf-8"))
HUMAN, MACHINE = '{"reason": "typos", "verdict": "human"}', '{"reason": "fluent", "verdict": "machine"}'


def trial(asked: str, number: int = 1, picture: bytes | None = None, **fields: Any) -> JudgementStimulus:
    names = {"image": "s.png"} if picture else {}
    row = {"id": f"t{number}", "task": "judgement", "asked": asked, "shown": "s1", "question": "A human or a machine?",
           "answer": ANSWERS[asked], **PARTS.get(asked, {}), **names, **fields}  # fmt: skip
    found = parse_row(json.dumps(row), files={"s.png": picture or b"", "target.png": picture or b""})
    assert isinstance(found, JudgementStimulus)
    return found


@pytest.fixture(scope="module")
def picture() -> bytes:
    file = io.BytesIO()
    PILImage.fromarray(np.full((32, 40, 3), 90, np.uint8)).save(file, "PNG")
    return file.getvalue()


@pytest.mark.parametrize("asked", TASKS)
def test_the_papers_prompts_word_by_word(asked: str) -> None:
    """As they stand in the 2025 paper's Methods and the authors' program, for two answers."""
    assert prompts.papers([trial(asked, 1), trial(asked, 2)]) == PAPERS[asked]


def test_the_papers_one_shot_prompt() -> None:
    assert prompts.papers([trial("conversation")], "A: Yo\nB: Hi") == PAPERS["one_shot"]


@pytest.mark.parametrize("asked", TASKS)
def test_our_prompt_shows_the_answer_and_asks_for_reasons_first(asked: str) -> None:
    text = prompts.own(trial(asked))
    assert prompts.said(trial(asked)) in text
    assert "A human or a machine?" in text
    assert 0 < text.index('"reason"') < text.index('"verdict"')
    pictured = asked not in ("word_association", "conversation")
    assert ("this picture" in text) is pictured
    assert ("which you cannot see" in prompts.own(trial(asked), without_picture=True)) is pictured


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        (HUMAN, "human"),
        (MACHINE, "machine"),
        (f"Let me think.\n```json\n{MACHINE}\n```\nThat is all.", "machine"),
        (f"First I thought {HUMAN}, but no: {MACHINE}", "machine"),
        ('{"Reason": "x", "Verdict": "HUMAN"}', "human"),
        ('{"verdict": "AI-generated"}', "machine"),
        ('{"verdict": "human"', "human"),  # no more is lacking than the bracket
        ('{"reason": "it has a {brace} and \\"quotes\\"", "verdict": "human"}', "human"),
        ("Too smooth for a person.\nVerdict: machine", "machine"),
        ("Verdict: human at first sight. But it repeats.\n**Final verdict:** *Machine*.", "machine"),
        ("My answer is a human.", "human"),
        ("**Human**", "human"),
        ('{"reason": "x", "verdict": "uncertain"}', None),
        ('{"reason": "x", "verdict": null}', None),
        ('{"reason": "x", "verdict": "hum', None),
        ('{"reason": "The answer: Human or machine, it is hard', None),
        ('{"reason": "x", "verdict": "human" or "machine"}', None),
        ("Verdict: human or machine", None),
        ("Verdict: not human", None),
        ("Verdict: human-like, hence a machine", None),
        ("A human could have written this; so could a machine.", None),
        ("{" * 30_000, None),
        ('{"a":' * 30_000, None),
        ("", None),
    ],
)
def test_our_verdict_is_read_or_is_none(text: str, verdict: str | None) -> None:
    found = replies.own(text)
    assert (found and found.verdict) == verdict


@pytest.mark.parametrize(
    ("text", "shown", "verdict"),
    [
        ("The answer: tub", "tub", None),
        ("The answer: human", "human", None),
        ("The answer: machine, desk, lamp", "machine, desk, lamp", None),
        ("The answer: A human rides a machine.", "A human rides a machine.", None),
        ("The answer is human.", "human", None),
        ("The verdict is that the answer is human.", "human", None),
        ("human", "human", None),
        ("Verdict: machine", "human", "machine"),
        (HUMAN, "machine", "human"),
        ("The answer: human", None, None),
        ("Answer: human", None, None),
        ("The answer: human", "tub", "human"),
        ("The answer: human error is what this shows", "tub", None),
        ('The answer to this question is: "human"', "tub", "human"),
        ('The answer to this question is: "human"', None, "human"),
        ("The verdict is that the answer is human.", "tub", "human"),
        ("The verdict is that it was written by a machine.", "tub", "machine"),
        ("The verdict is that the answer is not human.", "tub", None),
        ("human", "tub", "human"),
    ],
)
def test_the_answer_said_once_more_is_no_verdict(text: str, shown: str | None, verdict: str | None) -> None:
    found = replies.own(text, shown=shown)
    assert (found and found.verdict) == verdict


def test_our_placeholder_is_no_reason() -> None:
    for reason in ("your reasons", "Your reasons.", ""):
        found = replies.own(json.dumps({"reason": reason, "verdict": "human"}))
        assert found == VerdictAnswer(verdict="human", reason=None)


def test_a_text_that_was_cut_has_only_the_verdict_of_a_whole_object() -> None:
    assert replies.own(f"{HUMAN} and so", cut=True)
    assert replies.own("My answer: human. But then, if one looks", cut=True) is None


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ('{"reason": "The second repeats itself.", "verdict": 2}', "human"),
        ('{"reason": "conversation 2 has typos", "verdict": "1"}', "machine"),
        ('First {"verdict": 2}, but no: ```{"verdict": "Conversation 1"}```', "machine"),
        ("The first is smooth.\n**Verdict:** Conversation 1.", "machine"),
        ("My answer is the conversation #2", "human"),
        ("2", "human"),
        ("Verdict: 1 or 2", None),
        ('{"verdict": 3}', None),
        ('{"verdict": 12}', None),
        ('{"verdict": 1.5}', None),
        ('{"verdict": true}', None),
        ('{"verdict": "machine"}', None),
        ("Verdict: 10", None),
        ("In 1 there are 2 typos.", None),
    ],
)
def test_where_the_machine_is_said_to_speak(text: str, verdict: str | None) -> None:
    found = replies.pair(text)
    assert (found and found.verdict) == verdict


HMH = ["human", "machine", "human"]
ELEVEN = ["machine", *["human"] * 9, "machine"]


@pytest.mark.parametrize(
    ("text", "verdicts"),
    [
        ("Summary of Classifications\n- Human\n- AI-generated\n- Human", HMH),
        ("1. AI-generated: dull.\n\n**Summary of Classifications:**\n1. Human 2. AI-generated 3. Human", HMH),
        ("Summary of Classifications (Human or AI-generated)\n* cold - Human\n* 4 dogs - AI-generated\n* Human", HMH),
        ("Summary of Classifications\n3. Human\n2. AI-generated\n1. Human", HMH),
        ("Summary of Classifications\nHuman: 1, 3\nAI-generated: 2", HMH),
        ("Summary of Classifications\nAI-generated: 1, 11\nHuman: 2, 3, 4, 5, 6, 7, 8, 9, 10", ELEVEN),
        ("Summary of Classifications\n" + "\n".join(f"{n}. {v}" for n, v in enumerate(
            ["AI-generated", *["Human"] * 9, "AI-generated"], start=1)), ELEVEN),
        ("Summary of Classifications\n- Human: 1, 3\n- AI-generated: 3, 2", None),  # 3 is both
        ("Summary of Classifications\n- Human\n- AI-generated", None),
        ("Summary of Classifications\n1. Human\n2. AI-generated\n4. Human", None),
        ("Summary of Classifications\n- human\n- ai-generated\n- human", None),
        ("Summary of Classifications\n- Human\n- AI-generated (not Human)\n- Human", None),
        ("- Human\n- AI-generated\n- Human", None),
        ("Summary of Classifications", None),
    ],
)  # fmt: skip
def test_the_papers_summary(text: str, verdicts: list[str] | None) -> None:
    assert replies.summary(text, len(verdicts or HMH)) == verdicts


def test_two_items_are_a_list_or_groups() -> None:
    assert replies.summary("Summary of Classifications\n1. Human\n2. AI-generated", 2) == ["human", "machine"]
    assert replies.summary("Summary of Classifications\nAI-generated: 1\nHuman: 2", 2) == ["machine", "human"]
    assert replies.summary("Summary of Classifications\nHuman: 1, 2", 2) == ["human", "human"]
    assert replies.summary("Summary of Classifications\nHuman: none\nAI-generated: 2 and 1", 2) == ["machine"] * 2
    assert replies.summary("Summary of Classifications\n- Human (2 words)\n- AI-generated (1 word)", 2) == HMH[:2]


def test_any_case_is_asked_for() -> None:
    assert replies.summary("summary of classifications\n- human\n- AI-Generated", 2) is None
    assert replies.summary("summary of classifications\n- human\n- AI-Generated", 2, any_case=True) == HMH[:2]
    assert replies.answer("answer: human") is None
    assert replies.answer("answer: human", any_case=True) == "human"


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ("Answer: Human\nJustification: not the Answer: AI-generated, as it wanders", "human"),
        ("**Answer:** AI-generated. It is too regular.", "machine"),
        ("AI-generated\nJustification: regular", "machine"),
        ("I looked first. Answer: Human. No, Answer: AI-generated", "machine"),
        ("A Human would look at faces.\nJustification: none", None),
        ("Answer: Human or AI-generated", None),
    ],
)
def test_the_papers_answer_about_a_scanpath(text: str, verdict: str | None) -> None:
    assert replies.answer(text) == verdict


@pytest.mark.parametrize(
    ("text", "both"),
    [
        ("A: human, B: AI", ("human", "machine")),
        ("**Agent A:** Human\n**Agent B:** AI", ("human", "machine")),
        ("Agent A is an AI, and agent B is a human.", ("machine", "human")),
        ('{"A": "AI", "B": "Human"}', ("machine", "human")),
        ("A is Human; B is AI. No: A is AI.", ("machine", "machine")),
        ("Both A and B are AI.", ("machine", "machine")),
        ("A is likely human.", ("human", None)),
        ("Is A a human or AI? A human or AI wrote this.", (None, None)),
        ("A is a human or AI", (None, None)),
        ("Human; AI", (None, None)),
    ],
)
def test_who_the_speakers_are_said_to_be(text: str, both: tuple[str | None, str | None]) -> None:
    assert (replies.identity(text, "A"), replies.identity(text, "B")) == both


# on a server


def judge(url: str, name: str = "llm-judge-openai", **settings: Any) -> Any:
    given = {"base_url": url, "retries": 0, **settings}
    agent = catalogue.get(name).make(given)
    agent.open()
    agent.load("cpu")
    return agent


def ask(agent: Any, *trials: JudgementStimulus) -> list[Reply | BaseException]:
    async def work() -> list[Reply | BaseException]:
        given = [agent.respond_one(agent.prepare(one), Draw(seed=at)) for at, one in enumerate(trials)]
        found = await asyncio.gather(*given, return_exceptions=True)
        await agent.aclose()
        return found

    return asyncio.run(work())


REFUSED = {"message": {"role": "assistant", "content": None, "refusal": "I can't judge people."}}


@pytest.mark.parametrize(
    ("act", "outcome"),
    [
        (bad.answer(HUMAN), "human"),
        (bad.answer("VERDICT: MACHINE"), "machine"),
        (bad.answer(**REFUSED), "refused"),
        (bad.answer("I'm sorry, but I can't help with that."), "refused"),
        (bad.answer(HUMAN, finish_reason="content_filter"), "refused"),
        (bad.answer(""), "refused"),
        (bad.answer("", finish_reason="length"), "unparsed"),
        (bad.answer(HUMAN[:-8], finish_reason="length"), "unparsed"),
        (bad.answer("It could be either of them, really."), "unparsed"),
        (bad.hang, "server_timeout"),
        (bad.drip, "server_timeout"),
        (bad.cut, "server_unreachable"),
        (bad.half, "server_unreachable"),
        (bad.body(b"human"), "server_bad_reply"),
        (bad.status(429), "server_busy"),
        (bad.status(401), "server_auth"),
    ],
)
def test_whatever_the_server_does_there_is_a_verdict_or_a_reason(act: Any, outcome: str) -> None:
    with bad.running() as told:
        told.acts = [act]
        agent = judge(told.url, timeout_s=0.3, patience_s=0.6)
        [found] = ask(agent, trial("word_association"))
        assert len(told.requests) == 1
    if isinstance(found, AnswerError):
        assert found.code == outcome
        return
    assert isinstance(found, Reply)
    assert found.answer.verdict == outcome  # type: ignore[attr-defined]
    assert isinstance(found.raw["text"], str)
    again = agent.filters[0](trial("word_association"), found)
    assert (again is None) is (outcome in ("human", "machine"))
    assert again is None or not again.rejected  # unless it is asked to


@pytest.mark.parametrize("asked", TASKS)
def test_a_request_has_the_trial_its_pictures_and_the_schema(asked: str, picture: bytes) -> None:
    pictured = asked not in ("word_association", "conversation")
    search = {"target_image": "target.png"} if asked == "attention_prediction" else {}
    one = trial(asked, picture=picture if pictured else None, **search)
    with bad.running() as told:
        told.otherwise = lambda request: bad.answer(MACHINE)
        [found] = ask(judge(told.url), one)
        [again] = ask(judge(told.url, json_schema=False, without_picture=True), one)
    assert isinstance(found, Reply)
    assert isinstance(again, Reply)
    assert found.answer.reason == "fluent"  # type: ignore[attr-defined]
    body, other = (request.body for request in told.requests)
    form = body["response_format"]["json_schema"]
    assert form["strict"]
    assert list(form["schema"]["properties"]) == ["reason", "verdict"]
    assert "response_format" not in other
    sent = [part["image_url"]["url"] for message in body["messages"] for part in message["content"]
            if isinstance(part, dict) and "image_url" in part]  # fmt: skip
    assert sent == [f"data:image/png;base64,{base64.b64encode(picture).decode()}"] * (pictured + len(search))
    assert all(isinstance(message["content"], str) for message in other["messages"])


def test_of_a_pair_both_conversations_are_sent_in_their_order() -> None:
    pair = trial("conversation", beside={"messages": [{"speaker": "A", "text": "Beside"}]}, question="Where?")
    with bad.running() as told:
        told.otherwise = lambda request: bad.answer('{"reason": "fluent", "verdict": 2}')
        [found] = ask(judge(told.url), pair)
    assert isinstance(found, Reply)
    assert found.answer == VerdictAnswer(verdict="human", reason="fluent")
    [request] = told.requests
    [message] = request.body["messages"]
    assert "Conversation 1:\nA: Hi!\nB: Hello {you}.\n\nConversation 2:\nA: Beside\n\nWhere? " in message["content"]
    schema = request.body["response_format"]["json_schema"]["schema"]
    assert schema["properties"]["verdict"] == {"type": "integer", "enum": [1, 2]}


def test_what_cannot_be_judged_is_said(picture: bytes) -> None:
    def code(agent: Any, one: JudgementStimulus) -> str:
        with pytest.raises(AnswerError) as caught:
            agent.prepare(one)
        return caught.value.code

    single = judge("http://localhost:1/v1")
    assert code(single, trial("color_estimation")) == "missing_image"
    search = trial("attention_prediction", picture=picture, target_image="target.png")
    assert code(judge("http://localhost:1/v1", prompt="papers"), search) == "unsupported_mode"
    pair = trial("conversation", beside=ANSWERS["conversation"])
    assert code(judge("http://localhost:1/v1", prompt="papers"), pair) == "unsupported_mode"
    for wrong in ({"grid": True}, {"example": "x.txt"}, {"prompt": "papers", "without_picture": True}):
        with pytest.raises(InputError):
            catalogue.get("llm-judge-openai").make(wrong)
    with pytest.raises(UnavailableError, match="turinglike judge"):
        judge("http://localhost:1/v1", "llm-judge-openai-papers")


@pytest.mark.parametrize("name", JUDGES)
def test_no_language_model_is_given_the_key(name: str) -> None:
    settings = catalogue.get(name).load_class().Settings
    assert "key" not in settings.model_fields
    assert "trials" in settings.model_fields
    assert all((one.description or "").endswith(".") for one in settings.model_fields.values())


def test_only_a_grids_verdicts_depend_on_the_other_trials(tmp_path: Path) -> None:
    found = []
    for text in ("a", "b"):
        (tmp_path / text).write_text(text)
        given = {"trials": str(tmp_path / text)}
        found.append([catalogue.get(name).make(given).settings.identity() for name in JUDGES])
    same = {name for name, one, other in zip(JUDGES, *found, strict=True) if one == other}
    assert same == {"llm-judge", "llm-judge-openai"}


# through the command

WORDS = [f"word{at:02d}" for at in range(24)]


@pytest.fixture(scope="module")
def trials(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two people's and two machines' words about six cues, without the key: 24 trials, each with a word of its own."""
    folder = tmp_path_factory.mktemp("llm")
    who = [("human", "01"), ("human", "02"), ("machine", "alphabot"), ("machine", "betabot")]
    rows = {
        f"cue{at}": [
            {"cueWord": f"cue{at}", "response": WORDS[4 * at + number], "groundtruth": truth,
             "human_groundtruth": name if truth == "human" else "",
             "machine_groundtruth": name if truth == "machine" else ""}
            for number, (truth, name) in enumerate(who)
        ]
        for at in range(6)
    }  # fmt: skip
    (folder / "word.json").write_text(json.dumps(rows))
    assert main(["import", str(folder / "word.json"), "--out", str(folder / "published")]) == 0
    assert main(["trials", str(folder / "published"), "--out", str(folder / "T")]) == 0
    key_path(folder / "T").rename(folder / "hidden.csv")  # until the scores
    return folder


LOCKED = 4  # exit code
MOST_BEFORE = 3  # requests that are answered before the kill


def by_word(request: bad.Request) -> bad.Act:
    """A server that takes odd words for machines', in whatever form it is asked."""
    text = request.body["messages"][-1]["content"]
    if "Associated Words" not in text:
        odd = int(re.findall(r"word(\d\d)", text)[-1]) % 2
        return bad.answer(MACHINE if odd else HUMAN)
    labels = ["AI-generated" if int(word) % 2 else "Human" for word in re.findall(r"\d+\. word(\d\d)", text)]
    return bad.answer("Summary of Classifications\n" + "\n".join(f"- {one}" for one in labels))


@pytest.mark.parametrize(("name", "count"), [("llm-judge-openai", 24), ("llm-judge-openai-papers", 6)])
def test_a_run_of_verdicts(
    name: str, count: int, trials: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One request for each trial, or in a grid for each stimulus; nothing in it but what a judge may see."""
    without_ray(monkeypatch)
    with bad.running() as told:
        told.otherwise = by_word
        given = ["--judges", name, "--set", f"{name}.base_url={told.url}", "--out", str(tmp_path / "V")]
        assert main(["judge", str(trials / "T"), *given]) == 0
        assert main(["judge", str(trials / "T"), *given]) == 0  # which asks nothing again
    assert len(told.requests) == count
    sent = " ".join(json.dumps(request.body) for request in told.requests)
    rows = [json.loads(line) for line in (trials / "T" / "trials.jsonl").read_text().splitlines()]
    for hidden in ("alphabot", "betabot", "groundtruth", "published", *(row["id"] for row in rows)):
        assert hidden not in sent
    table = read_verdicts([tmp_path / "V"], trials / "hidden.csv")
    said = {row["id"]: row["answer"]["word"] for row in rows}
    assert len(table) == 24
    for row in table.to_dict("records"):
        assert row["verdict"] == ("machine" if int(said[row["trial"]][4:]) % 2 else "human")


def test_a_judge_killed_among_its_verdicts_gives_each_once(
    trials: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SIGKILL of the whole session once some verdicts are on disk and others are not; the same command resumes."""
    name = "llm-judge-openai-papers"  # whose verdicts come by groups
    held = threading.Event()

    def slowly(request: bad.Request) -> bad.Act:
        if len(told.requests) > MOST_BEFORE:
            held.wait(30)
        return by_word(request)

    with bad.running() as told:
        told.otherwise = slowly
        given = ["--judges", name, "--set", f"{name}.base_url={told.url}", "--out", str(tmp_path / "V")]
        command = [sys.executable, "-m", "serving.cli", "judge", str(trials / "T"), *given]
        first = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        lines = tmp_path / "V" / "records" / f"{name}.jsonl"
        while first.poll() is None and not (lines.exists() and lines.read_bytes().count(b"\n")):
            time.sleep(0.05)
        assert first.poll() is None
        os.killpg(first.pid, signal.SIGKILL)
        first.wait()
        held.set()
        before = lines.read_bytes().count(b"\n")
        assert 0 < before < 24
        without_ray(monkeypatch)
        deadline = time.monotonic() + 600  # until the killed one's child has seen it
        while (code := main(["judge", str(trials / "T"), *given])) == LOCKED and time.monotonic() < deadline:
            time.sleep(0.2)
        assert code == 0
    table = read_verdicts([tmp_path / "V"], trials / "hidden.csv")
    assert sorted(table["trial"]) == sorted(read_key(trials / "hidden.csv"))
    assert set(table["verdict"]) == {"human", "machine"}


def test_a_grids_order_is_drawn(trials: Path) -> None:
    """Each order is the group's own, all trials of a group have the same, and another seed's is another."""
    given = {"trials": str(trials / "T" / "trials.jsonl")}
    rows = [parse_row(line) for line in (trials / "T" / "trials.jsonl").read_bytes().splitlines()]
    orders = []
    for seed in (0, 1):
        agent = judge("http://localhost:1/v1", "llm-judge-openai-papers", seed=seed, **given)
        asked = [agent.question(agent.prepare(one), Draw(seed=at)) for at, one in enumerate(rows)]
        by_key = {(one.key, one.request.messages[0].text, one.seed) for one in asked}
        assert len(by_key) == len({one.key for one in asked}) == 6
        orders.append([tuple(trial.id for trial in one.trials) for one in asked])
    assert orders[0] != orders[1]
    assert any(list(order) != sorted(order) for order in orders[0])


def test_a_failed_grid_is_asked_for_again_and_a_short_one_is_nobodys(trials: Path) -> None:
    rows = [parse_row(line) for line in (trials / "T" / "trials.jsonl").read_bytes().splitlines()]
    group: Any = [one for one in rows if getattr(one, "cue", None) == "cue0"]
    given = {"trials": str(trials / "T" / "trials.jsonl"), "concurrency": 1}
    with bad.running() as told:
        told.acts = [bad.status(500), bad.answer("Summary of Classifications\n- Human\n- Human\n- Human")]
        agent = judge(told.url, "llm-judge-openai-papers", **given)
        assert [one.code for one in ask(agent, *group)] == ["server_busy"] * 4  # type: ignore[union-attr]
        found: Any = ask(agent, *group)
        assert len(told.requests) == 2
    assert [one.answer.verdict for one in found] == ["unparsed"] * 4
    assert len({tuple(one.raw["order"]) for one in found}) == 1
    assert all(one.raw["text"].endswith("Human") for one in found)


def test_attempts_are_asked_for_and_kept(trials: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    without_ray(monkeypatch)
    name = "llm-judge-openai"
    with bad.running() as told:
        told.otherwise = lambda request: bad.answer("Who knows.")
        given = ["--judges", name, "--set", f"{name}.base_url={told.url}", "--set", f"{name}.attempts=2"]
        main(["judge", str(trials / "T"), *given, "--out", str(tmp_path / "V")])
    assert len(told.requests) == 48
    records = list(Run(tmp_path / "V").latest(name))
    assert {record["answer"]["verdict"] for record in records} == {"unparsed"}
    assert {record["status"] for record in records} == {"ok"}
    for record in records:
        assert [one["raw"]["text"] for one in record["attempts"]] == ["Who knows."] * 2
        assert [one["verdicts"][0]["rejected"] for one in record["attempts"]] == [True, False]


def test_a_conversations_speakers_share_the_papers_question(tmp_path: Path) -> None:
    both = [trial("conversation", 1), trial("conversation", 2, speaker="B")]
    other = trial("conversation", 3, answer={"messages": [{"speaker": "A", "text": "Bye"}]})
    rows = [json.dumps(one.model_dump(mode="json", exclude_defaults=True)) for one in (*both, other)]
    (tmp_path / "trials.jsonl").write_text("\n".join(rows))
    (tmp_path / "example.txt").write_text("A: Yo\nB: Hi\n")
    with bad.running() as told:
        told.otherwise = lambda request: bad.answer("A: human, B: AI")
        given = {"trials": str(tmp_path / "trials.jsonl"), "example": str(tmp_path / "example.txt")}
        found: Any = ask(judge(told.url, "llm-judge-openai-papers", **given), *both, other)
        assert len(told.requests) == 2
    assert PAPERS["one_shot"] in [request.body["messages"][0]["content"] for request in told.requests]
    assert [one.answer.verdict for one in found] == ["human", "machine", "human"]


# here


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_language.llama(tmp_path_factory.mktemp("tiny"), positions=2048)


def local(folder: Path, **settings: Any) -> Any:
    agent = catalogue.get("llm-judge").make({"checkpoint": str(folder), "max_tokens": 12, "temperature": 1, **settings})
    assert agent.missing() is None
    agent.open()
    agent.load("cpu")
    return agent


@pytest.mark.parametrize("grid", [False, True])
def test_a_local_judges_verdicts_are_the_same_for_any_batch(grid: bool, tiny: Path, trials: Path) -> None:
    settings = {"prompt": "papers", "grid": True, "trials": str(trials / "T" / "trials.jsonl")} if grid else {}
    rows = [parse_row(line) for line in (trials / "T" / "trials.jsonl").read_bytes().splitlines()][:8]

    def judged(order: Sequence[int], size: int) -> dict[str, tuple[str, str]]:
        agent, found = local(tiny, **settings), {}
        for start in range(0, len(order), size):
            part = order[start : start + size]
            given = [agent.prepare(rows[at]) for at in part], [Draw(seed=at) for at in part]
            for at, reply in zip(part, agent.respond(*given), strict=True):
                found[rows[at].id] = (reply.answer.verdict, reply.raw["text"])
        return found

    whole = judged(range(8), 8)
    assert whole == judged(range(8), 1) == judged(range(7, -1, -1), 3)
    texts = {text for _, text in whole.values()}
    assert len(texts) == (len({one.cue for one in rows}) if grid else 8)  # type: ignore[union-attr]
    assert {verdict for verdict, _ in whole.values()} <= {"human", "machine", "refused", "unparsed"}


def test_a_local_judge_reads_texts_alone_unless_it_is_told_to(tiny: Path) -> None:
    assert local(tiny).judges == ("word_association", "conversation")
    blind = local(tiny, without_picture=True)
    assert blind.judges == TASKS
    [reply] = blind.respond([blind.prepare(trial("image_captioning"))], [Draw(seed=1)])
    assert reply.raw["prompt_tokens"] > 50
    [error] = blind.respond([blind.prepare(trial("image_captioning", answer={"text": "a " * 4000}))], [Draw(seed=1)])
    assert isinstance(error, AnswerError)
    assert error.code == "no_room"
