"""Language models as judges: the papers' prompts, what is read from replies, and a server that misbehaves."""

import asyncio
import base64
import io
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image as PILImage

from agents import catalogue
from agents.answers import VerdictAnswer
from agents.contract import Draw, Reply
from agents.errors import AnswerError, InputError, UnavailableError
from agents.stimuli import TASKS, JudgementStimulus, parse_row
from judging.judges import replies
from judging.judges.llm_judge import our_prompt, paper_prompt
from judging.scores.verdicts import open_verdicts, read_verdicts
from judging.trial_sets.trial_set import key_path, read_trial_key
from serving.cli import main
from serving.runs.run import Run
from serving.runs.status import status
from tests.helpers import misbehaving_server as bad
from tests.helpers import tiny_captioners, tiny_language
from tests.helpers.in_process import without_ray
from tests.helpers.plain_words import PLAIN_WORDS

JUDGES = [name for name, item in catalogue.entries().items() if item.agent.startswith("judging.judges.llm_judge:")]
ANSWERS: dict[str, dict[str, Any]] = {
    "color_estimation": {"color": "blue"},
    "object_detection": {"labels": ["cat", "sofa", "lamp"]},
    "attention_prediction": {"fixations": [[640, 512], [10, 20]], "frame": [1280, 1024]},
    "image_captioning": {"text": "A cat on a sofa."},
    "word_association": {"word": "cold"},
    "conversation": {"messages": [{"speaker": "A", "text": "Hi!"}, {"speaker": "B", "text": "Hello {you}."}]},
}
PARTS: dict[str, dict[str, Any]] = {"word_association": {"cue": "hot"}, "conversation": {"speaker": "A"}}
REPLIES = json.loads((Path(__file__).parent / "judges_replies.json").read_text("utf-8"))
PAPERS = json.loads((Path(__file__).parent / "paper_prompts.json").read_text("utf-8"))
HUMAN = '{"reason": "typos", "verdict": "human"}'
MACHINE = '{"reason": "fluent", "verdict": "machine"}'
MOST_BEFORE = 3  # requests that are answered before the kill
LOCKED = 4  # exit code


def trial(asked: str, number: int = 1, picture: bytes | None = None, **fields: Any) -> JudgementStimulus:
    names = {"image": "s.png"} if picture else {}
    row = {
        "id": f"t{number}",
        "task": "judgement",
        "asked": asked,
        "shown": "s1",
        "question": "A human or a machine?",
        "answer": ANSWERS[asked],
        **PARTS.get(asked, {}),
        **names,
        **fields,
    }
    result = parse_row(json.dumps(row), files={"s.png": picture or b"", "target.png": picture or b""})
    assert isinstance(result, JudgementStimulus)
    return result


def png(grey: int) -> bytes:
    file = io.BytesIO()
    PILImage.fromarray(np.full((32, 40, 3), grey, np.uint8)).save(file, "PNG")
    return file.getvalue()


@pytest.fixture(scope="module")
def picture() -> bytes:
    return png(90)


@pytest.mark.parametrize("asked", TASKS)
def test_the_papers_prompts_word_by_word(asked: str) -> None:
    """As they stand in the 2025 paper's Methods and the authors' program, for two answers."""
    assert paper_prompt([trial(asked, 1), trial(asked, 2)]) == PAPERS[asked]


def test_the_papers_one_shot_prompt() -> None:
    assert paper_prompt([trial("conversation")], "A: Yo\nB: Hi") == PAPERS["one_shot"]


TIMED = {
    "messages": [
        {"speaker": "A", "text": "Hi!"},
        {"speaker": "B", "text": "Hello {you}.", "delay_s": 3.25},
        {"speaker": "A", "text": "So?", "delay_s": 0.0},
    ]
}
ABOUT_DELAYS = " Seconds in brackets say how long after the previous message a message came."
LINES = "A: Hi!\nB (after 3.2 s): Hello {you}.\nA (after 0.0 s): So?"


def test_prompts_have_the_delays_that_a_trial_shows() -> None:
    plain = our_prompt(trial("conversation"))
    assert plain.startswith(
        "This is a conversation, or its beginning, between A and B.\nA: Hi!\nB: Hello {you}.\n\nA human or a machine?"
    )
    timed = our_prompt(trial("conversation", answer=TIMED))
    assert timed.startswith(f"This is a conversation, or its beginning, between A and B.{ABOUT_DELAYS}\n{LINES}\n\n")
    assert timed.partition("\n\n")[2] == plain.partition("\n\n")[2]
    assert paper_prompt([trial("conversation", answer=TIMED)]).endswith(f"Conversation: {LINES}")


def test_prompts_of_pairs_have_the_delays_of_both() -> None:
    timed = our_prompt(trial("conversation", answer=ANSWERS["conversation"], beside=TIMED, speaker=None))
    assert f"In one of them a machine speaks.{ABOUT_DELAYS}\n\nConversation 1:\nA: Hi!\nB: Hello {{you}}.\n\n" in timed
    assert f"Conversation 2:\n{LINES}\n\n" in timed
    plain = our_prompt(
        trial("conversation", answer=ANSWERS["conversation"], beside=ANSWERS["conversation"], speaker=None)
    )
    assert "In one of them a machine speaks.\n\nConversation 1:" in plain
    assert "brackets" not in plain


HMH = ["human", "machine", "human"]
READERS: dict[str, Callable[..., Any]] = {
    "verdicts": replies.read_verdict,
    "repeated": lambda text, judged: replies.read_verdict(text, judged=judged),
    "pairs": replies.read_pair,
    "answers": replies.read_answer,
    "identities": lambda text: [replies.read_identity(text, "A"), replies.read_identity(text, "B")],
}


@pytest.mark.parametrize("kind", READERS)
def test_what_is_read_from_replies(kind: str) -> None:
    more = [("{" * 30_000, None), ('{"a":' * 30_000, None)] if kind == "verdicts" else []
    for *arguments, wanted in [*REPLIES[kind], *more]:
        result = READERS[kind](*arguments)
        assert (result.verdict if isinstance(result, VerdictAnswer) else result) == wanted, arguments


def test_our_placeholder_is_no_reason() -> None:
    for reason in ("your reasons", "Your reasons.", ""):
        result = replies.read_verdict(json.dumps({"reason": reason, "verdict": "human"}))
        assert result == VerdictAnswer(verdict="human", reason=None)


def test_a_text_that_was_cut_has_only_the_verdict_of_a_whole_object() -> None:
    assert replies.read_verdict(f"{HUMAN} and so", cut=True)
    assert replies.read_verdict("My answer: human. But then, if one looks", cut=True) is None


def test_the_papers_summary_is_a_list_or_groups() -> None:
    for text, verdicts in REPLIES["summaries"]:
        assert replies.read_summary(text, len(verdicts or HMH)) == verdicts, text
    assert replies.read_summary("summary of classifications\n- human\n- AI-Generated", 2, any_case=True) == HMH[:2]
    assert replies.read_answer("answer: human", any_case=True) == "human"


# on a server


@pytest.fixture
def silent() -> Iterator[str]:
    """The address of a server that answers nothing."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}/v1"


def judge(url: str, name: str = "llm-judge-openai", **settings: Any) -> Any:
    arguments = {"base_url": url, "retries": 0, **settings}
    agent = catalogue.get(name).make(arguments)
    agent.open()
    agent.load("cpu")
    return agent


def ask(agent: Any, *trials: JudgementStimulus) -> list[Reply | BaseException]:
    async def work() -> list[Reply | BaseException]:
        arguments = [agent.respond_one(agent.prepare(item), Draw(seed=at)) for at, item in enumerate(trials)]
        result = await asyncio.gather(*arguments, return_exceptions=True)
        await agent.aclose()
        return result

    return asyncio.run(work())


REFUSED: dict[str, Any] = {"message": {"role": "assistant", "content": None, "refusal": "I can't judge people."}}


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
    ],
)
def test_whatever_the_server_does_there_is_a_verdict_or_a_reason(act: Any, outcome: str) -> None:
    with bad.running() as server:
        server.acts = [act]
        agent = judge(server.url, patience_s=2)
        [result] = ask(agent, trial("word_association"))
        assert len(server.requests) == 1
    assert isinstance(result, Reply)
    assert result.answer.verdict == outcome
    assert isinstance(result.raw["text"], str)
    again = agent.declaration().filters[0](trial("word_association"), result)
    assert (again is None) is (outcome in ("human", "machine"))
    assert again is None or not again.rejected  # unless it is asked to


@pytest.mark.parametrize("asked", TASKS)
def test_a_request_has_the_trial_its_pictures_and_the_schema(asked: str, picture: bytes) -> None:
    pictured = asked not in ("word_association", "conversation")
    search: dict[str, Any] = {"target_image": "target.png"} if asked == "attention_prediction" else {}
    item = trial(asked, picture=picture if pictured else None, **search)
    with bad.running() as server:
        server.otherwise = lambda request: bad.answer(MACHINE)
        [result] = ask(judge(server.url), item)
        [again] = ask(judge(server.url, json_schema=False, without_picture=True), item)
    assert isinstance(result, Reply)
    assert isinstance(again, Reply)
    assert result.answer.reason == "fluent"
    body, other = (request.body for request in server.requests)
    form = body["response_format"]["json_schema"]
    assert form["strict"]
    assert list(form["schema"]["properties"]) == ["reason", "verdict"]
    assert "response_format" not in other
    sent = [
        part["image_url"]["url"]
        for message in body["messages"]
        for part in message["content"]
        if isinstance(part, dict) and "image_url" in part
    ]
    assert sent == [f"data:image/png;base64,{base64.b64encode(picture).decode()}"] * (pictured + len(search))
    assert all(isinstance(message["content"], str) for message in other["messages"])


def test_what_cannot_be_judged_is_said(picture: bytes, silent: str) -> None:
    def code(agent: Any, item: JudgementStimulus) -> str:
        with pytest.raises(AnswerError) as caught:
            agent.prepare(item)
        return caught.value.code

    single = judge(silent)
    assert code(single, trial("color_estimation")) == "missing_image"
    search = trial("attention_prediction", picture=picture, target_image="target.png")
    assert code(judge(silent, prompt="papers"), search) == "unsupported_mode"
    pair = trial("conversation", beside=ANSWERS["conversation"])
    assert code(judge(silent, prompt="papers"), pair) == "unsupported_mode"
    with pytest.raises(InputError):
        catalogue.get("llm-judge-openai").make({"prompt": "papers", "without_picture": True})
    with pytest.raises(UnavailableError, match="turinglike judge"):
        judge(silent, "llm-judge-openai-papers")


@pytest.mark.parametrize("name", JUDGES)
def test_no_language_model_is_given_the_key(name: str) -> None:
    settings = catalogue.get(name).load_class().Settings
    assert "key" not in settings.model_fields
    assert "trials" in settings.model_fields


def test_only_a_grids_verdicts_depend_on_the_other_trials(tmp_path: Path) -> None:
    result = []
    for text in ("a", "b"):
        (tmp_path / text).write_text(text)
        arguments = {"trials": str(tmp_path / text)}
        result.append([catalogue.get(name).make(arguments).settings.identity() for name in JUDGES])
    same = {name for name, item, other in zip(JUDGES, *result, strict=True) if item == other}
    assert same == {"llm-judge", "llm-judge-openai"}


# through the command

WORDS = PLAIN_WORDS[:24]
A_WORD = rf"\b({'|'.join(WORDS)})\b"


@pytest.fixture(scope="module")
def trials(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two people's and two machines' words about six cues, without the key: 24 trials, each with a word of its own."""
    folder = tmp_path_factory.mktemp("llm")
    who = [("human", "01"), ("human", "02"), ("machine", "alphabot"), ("machine", "betabot")]
    rows = {
        f"cue{at}": [
            {"response": WORDS[4 * at + number], "groundtruth": truth, f"{truth}_groundtruth": name}
            for number, (truth, name) in enumerate(who)
        ]
        for at in range(6)
    }
    (folder / "word.json").write_text(json.dumps(rows))
    assert main(["import", str(folder / "word.json"), "--out", str(folder / "published")]) == 0
    assert main(["trials", str(folder / "published"), "--out", str(folder / "T")]) == 0
    key_path(folder / "T").rename(folder / "hidden.csv")  # until the scores
    return folder


def _is_odd(word: str) -> bool:
    return WORDS.index(word) % 2 == 1


def by_word(request: bad.Request) -> bad.Act:
    """A server that takes odd words for machines', in whatever form it is asked."""
    text = request.body["messages"][-1]["content"]
    if "Associated Words" not in text:
        verdict = MACHINE if _is_odd(re.findall(A_WORD, text)[-1]) else HUMAN
        return bad.anthropic(verdict) if request.path == "/v1/messages" else bad.answer(verdict)
    labels = ["AI-generated" if _is_odd(word) else "Human" for word in re.findall(rf"\d+\. {A_WORD}", text)]
    return bad.answer("Summary of Classifications\n" + "\n".join(f"- {item}" for item in labels))


@pytest.mark.parametrize(
    ("name", "count"),
    [("llm-judge-openai", 24), ("llm-judge-openai-papers", 6), ("ollama:model-1", 24), ("anthropic:model-1", 24)],
)
def test_every_trial_has_its_verdicts(
    name: str, count: int, trials: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One request for each trial, or in a grid for each stimulus; nothing in it but what a judge may see."""
    without_ray(monkeypatch)
    with bad.running() as server:
        server.otherwise = by_word
        url = server.url.removesuffix("/v1") if name.startswith("anthropic") else server.url
        arguments = ["--judges", name, "--set", f"{name}.base_url={url}", "--out", str(tmp_path / "V")]
        assert main(["judge", str(trials / "T"), *arguments]) == 0
        assert main(["judge", str(trials / "T"), *arguments]) == 0  # which asks nothing again
    assert len(server.requests) == count
    sent = " ".join(json.dumps(request.body) for request in server.requests)
    rows = [json.loads(line) for line in (trials / "T" / "trials.jsonl").read_text().splitlines()]
    for hidden in ("alphabot", "betabot", "groundtruth", "published", *(row["id"] for row in rows)):
        assert hidden not in sent
    table = read_verdicts(open_verdicts([tmp_path / "V"], trials / "hidden.csv"))
    spoken = {row["id"]: row["answer"]["word"] for row in rows}
    assert len(table) == 24
    for row in table.to_dict("records"):
        assert row["verdict"] == ("machine" if _is_odd(spoken[row["trial"]]) else "human")


def test_a_killed_judge_gives_each_verdict_once(trials: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SIGKILL of the whole session once some verdicts are on disk and others are not; the same command resumes."""
    name = "llm-judge-openai-papers"  # whose verdicts come by groups
    held = threading.Event()

    def slowly(request: bad.Request) -> bad.Act:
        if len(server.requests) > MOST_BEFORE:
            held.wait(30)
        return by_word(request)

    with bad.running() as server:
        server.otherwise = slowly
        arguments = ["--judges", name, "--set", f"{name}.base_url={server.url}", "--out", str(tmp_path / "V")]
        command = [sys.executable, "-m", "serving.cli", "judge", str(trials / "T"), *arguments]
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
        while (code := main(["judge", str(trials / "T"), *arguments])) == LOCKED and time.monotonic() < deadline:
            time.sleep(0.2)
        assert code == 0
    table = read_verdicts(open_verdicts([tmp_path / "V"], trials / "hidden.csv"))
    assert sorted(table["trial"]) == sorted(read_trial_key(trials / "hidden.csv"))
    assert set(table["verdict"]) == {"human", "machine"}


def test_a_grids_order_is_drawn(trials: Path, silent: str) -> None:
    """Each order is the group's own, all trials of a group have the same, and another seed's is another."""
    arguments = {"trials": str(trials / "T" / "trials.jsonl")}
    rows = [parse_row(line) for line in (trials / "T" / "trials.jsonl").read_bytes().splitlines()]
    orders = []
    for seed in (0, 1):
        agent = judge(silent, "llm-judge-openai-papers", seed=seed, **arguments)
        asked = [agent.group(item, Draw(seed=at)) for at, item in enumerate(rows)]
        texts = [agent.fitted_request(agent.prepare(item), Draw(seed=0)).messages[0].text for item in rows]
        by_key = {(item.key, text, item.seed) for item, text in zip(asked, texts, strict=True)}
        assert len(by_key) == len({item.key for item in asked}) == 6
        orders.append([tuple(trial.id for trial in item.trials) for item in asked])
    assert orders[0] != orders[1]
    assert any(list(order) != sorted(order) for order in orders[0])


def test_a_failed_grid_is_asked_for_again_and_a_short_one_is_nobodys(trials: Path) -> None:
    rows = [parse_row(line) for line in (trials / "T" / "trials.jsonl").read_bytes().splitlines()]
    group: Any = [item for item in rows if getattr(item, "cue", None) == "cue0"]
    arguments = {"trials": str(trials / "T" / "trials.jsonl"), "concurrency": 1}
    with bad.running() as server:
        server.acts = [bad.status(500), bad.answer("Summary of Classifications\n- Human\n- Human\n- Human")]
        agent = judge(server.url, "llm-judge-openai-papers", **arguments)
        assert [item.code for item in ask(agent, *group)] == ["server_busy"] * 4
        result: Any = ask(agent, *group)
        assert len(server.requests) == 2
    assert [item.answer.verdict for item in result] == ["unparsed"] * 4
    assert len({tuple(item.raw["order"]) for item in result}) == 1
    assert all(item.raw["text"].endswith("Human") for item in result)


def test_attempts_are_asked_for_and_kept(
    trials: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    without_ray(monkeypatch)
    name = "llm-judge-openai"
    with bad.running() as server:
        server.otherwise = lambda request: bad.answer("Who knows.")
        arguments = ["--judges", name, "--set", f"{name}.base_url={server.url}", "--set", f"{name}.attempts=2"]
        main(["judge", str(trials / "T"), *arguments, "--out", str(tmp_path / "V")])
    assert len(server.requests) == 48
    records = list(Run(tmp_path / "V").latest(name))
    assert {record["answer"]["verdict"] for record in records} == {"unparsed"}
    assert {record["status"] for record in records} == {"ok"}
    for record in records:
        assert [item["raw"]["text"] for item in record["attempts"]] == ["Who knows."] * 2
        assert [item["verdicts"][0]["rejected"] for item in record["attempts"]] == [True, False]
    told = f"{name}: 24 of 24 answers are no verdict (24 unparsed)"
    assert f"{told}; they count in no rate" in "".join(capsys.readouterr())
    assert main(["status", str(tmp_path / "V")]) == 0
    assert told in capsys.readouterr().out
    assert status(tmp_path / "V")["agents"][name]["verdicts"] == {"unparsed": 24}


def test_a_conversations_speakers_share_the_papers_question(tmp_path: Path) -> None:
    both = [trial("conversation", 1), trial("conversation", 2, speaker="B")]
    other = trial("conversation", 3, answer={"messages": [{"speaker": "A", "text": "Bye"}]})
    rows = [json.dumps(item.model_dump(mode="json", exclude_defaults=True)) for item in (*both, other)]
    (tmp_path / "trials.jsonl").write_text("\n".join(rows))
    (tmp_path / "example.txt").write_text("A: Yo\nB: Hi\n")
    with bad.running() as server:
        server.otherwise = lambda request: bad.answer("A: human, B: AI")
        arguments = {"trials": str(tmp_path / "trials.jsonl"), "example": str(tmp_path / "example.txt")}
        result: Any = ask(judge(server.url, "llm-judge-openai-papers", **arguments), *both, other)
        assert len(server.requests) == 2
    assert PAPERS["one_shot"] in [request.body["messages"][0]["content"] for request in server.requests]
    assert [item.answer.verdict for item in result] == ["human", "machine", "human"]


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
def test_a_local_judge_does_not_mind_batches(grid: bool, tiny: Path, trials: Path) -> None:
    settings = {"prompt": "papers", "grid": True, "trials": str(trials / "T" / "trials.jsonl")} if grid else {}
    rows = [parse_row(line) for line in (trials / "T" / "trials.jsonl").read_bytes().splitlines()][:8]

    def judged(order: Sequence[int], size: int) -> dict[str, tuple[str, str]]:
        agent = local(tiny, **settings)
        result = {}
        for start in range(0, len(order), size):
            part = order[start : start + size]
            arguments = [agent.prepare(rows[at]) for at in part], [Draw(seed=at) for at in part]
            for at, reply in zip(part, agent.respond(*arguments), strict=True):
                result[rows[at].id] = (reply.answer.verdict, reply.raw["text"])
        return result

    overall = judged(range(8), 8)
    assert overall == judged(range(8), 1) == judged(range(7, -1, -1), 3)
    texts = {text for _, text in overall.values()}
    assert len(texts) == (len({item.cue for item in rows}) if grid else 8)
    assert {verdict for verdict, _ in overall.values()} <= {"human", "machine", "refused", "unparsed"}


def test_a_local_judge_sees_what_its_checkpoint_reads(tiny: Path, tmp_path: Path, picture: bytes) -> None:
    seeing = local(tiny_captioners.llava_next(tmp_path / "seeing"), json_schema=False)
    assert seeing.declaration().judges == TASKS
    search = seeing.prepare(trial("attention_prediction", picture=picture, target_image="target.png"))
    assert [message.image for message in seeing.fitted_request(search, Draw(1)).messages] == [picture, picture]
    texts = [
        seeing.respond([seeing.prepare(trial("image_captioning", picture=seen))], [Draw(1)])[0].raw["text"]
        for seen in (picture, png(250))
    ]
    assert texts[0] != texts[1]
    assert local(tiny).declaration().judges == ("word_association", "conversation")
    blind = local(tiny, without_picture=True)
    assert blind.declaration().judges == TASKS
    [reply] = blind.respond([blind.prepare(trial("image_captioning"))], [Draw(seed=1)])
    assert reply.raw["prompt_tokens"] > 50
    [error] = blind.respond([blind.prepare(trial("image_captioning", answer={"text": "a " * 4000}))], [Draw(seed=1)])
    assert isinstance(error, AnswerError)
    assert error.code == "no_room"
