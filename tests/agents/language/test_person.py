"""Agents that write as a person from that person's history: what they are asked, and what of it leaves the machine."""

from __future__ import annotations

import asyncio
import json
import shutil
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import in_process
import misbehaving_server as bad
import pytest
import tiny_language

from agents import catalogue
from agents.contract import Draw
from agents.errors import AnswerError, InputError
from agents.language.chat import ChatAgent
from agents.language.openai_chat import TalkSettings
from agents.stimuli import ConversationStimulus, Utterance
from serving.cli import main
from serving.http.native import _about

pytestmark = pytest.mark.usefixtures("one_thread")

SECRETS = [f"zq{number}xv" for number in range(60)]  # what no random weights say
CONNECTED: list[Any] = []
_WATCHES = False


def _watch(event: str, arguments: tuple[Any, ...]) -> None:
    if _WATCHES and event in ("socket.connect", "socket.sendto", "socket.getaddrinfo"):
        CONNECTED.append((event, arguments[0] if event == "socket.getaddrinfo" else arguments[1]))


sys.addaudithook(_watch)


@pytest.fixture
def nothing_leaves() -> Iterator[None]:
    """Every connection to elsewhere than this machine fails the test."""
    global _WATCHES
    CONNECTED.clear()
    _WATCHES = True
    yield
    _WATCHES = False
    here = ("127.0.0.1", "::1", "localhost")
    assert [one for one in CONNECTED if isinstance(one[1], tuple) and one[1][0] not in here] == []
    assert [
        one for one in CONNECTED if isinstance(one[1], str) and one[0] == "socket.getaddrinfo" and one[1] not in here
    ] == []


@pytest.fixture
def history(tmp_path: Path) -> Path:
    """60 turns, of three messages of the person and one of the other in turn; the texts say their turn's number."""
    lines = []
    for number, secret in enumerate(SECRETS):
        for part in range(3 if number % 2 == 0 else 1):
            time = f"2024-03-{1 + number // 20:02d}T18:{number % 60:02d}:{10 * part:02d}"
            text = f"{secret} {part}"
            lines.append({"at": time, "speaker": "person" if number % 2 == 0 else "other", "text": text})
    path = tmp_path / "private.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_language.llama(tmp_path_factory.mktemp("llama") / "llama", positions=2048)


def talk(said: int = 0, more: str = "", **fields: Any) -> ConversationStimulus:
    history = [Utterance(speaker="BA"[number % 2], text=f"turn{number}.{more}") for number in range(said)]
    return ConversationStimulus(id="c", task="conversation", history=history, **fields)


def agent_of(llama: Path, history: Path | None, **chosen: Any) -> ChatAgent:
    agent = ChatAgent(ChatAgent.Settings(checkpoint=str(llama), person=history, **chosen), "me")
    agent.open()
    return agent


def asked(agent: ChatAgent, about: ConversationStimulus, **options: Any) -> tuple[list[str], str, int]:
    """(the system and the user's text, both in one, how many messages are left out)."""
    fitted = agent.fitted_request(about, Draw(1, options={"speaker": "A", **options}))
    texts = [one.text for one in fitted.request.messages]
    assert fitted.cut == 0
    return texts, "\n".join(texts), fitted.left_out


def test_a_person_is_asked_for_in_one_log(llama: Path, history: Path) -> None:
    agent = agent_of(llama, history, person_turns=3, max_tokens=20)
    (system, user), _, left_out = asked(agent, talk(2, topic="tea", names=None))
    assert left_out == 0
    assert user == (
        "[2024-03-03 18:57] B: zq57xv 0\n"
        "[2024-03-03 18:58] A: zq58xv 0\n"
        "[2024-03-03 18:58] A: zq58xv 1\n"
        "[2024-03-03 18:58] A: zq58xv 2\n"
        "[2024-03-03 18:59] B: zq59xv 0\n"
        "\n"
        "B: turn0.\n"
        "A: turn1.\n"
        "\n"
        "A and B talk about tea now. Write A's next message, and nothing else."
    )
    assert system.startswith("You are A and write messages to B.")
    assert "2.0 words in the mean, 2 in the median" in system
    assert "3.0 messages in a row" in system
    assert "0% of them end with a full stop" in system
    _, burst, _ = asked(agent, talk(2, mode="burst"))
    assert "messages, one or several, each on a line of its own" in burst
    _, dialogue, _ = asked(agent, talk(2), pseudo={"topic": "snow", "left": 5})
    assert "zq58xv 1" in dialogue
    assert "A: turn1." in dialogue
    assert "next 5 turns, in which they talk about snow" in dialogue


@pytest.mark.parametrize(("mode", "sent"), [("ping-pong", "one two three FOUR"), ("burst", "one two\nthree FOUR")])
def test_the_persons_words_are_sent_as_they_are(llama: Path, history: Path, mode: str, sent: str) -> None:
    agent = agent_of(llama, history)
    text = "A: one  two\n[2024-03-03 18:58] A: three FOUR\nB: not mine\nA: nor this"
    for seed in range(20):
        draw = Draw(seed, options={"speaker": "A"})
        assert agent._message(talk(0, type="MM", mode=mode), text, draw) == sent


@pytest.mark.parametrize(
    ("mode", "is_person", "is_heard"),
    [("ping-pong", True, False), ("burst", True, False), ("burst", False, False), ("ping-pong", False, True)],
)
def test_a_name_is_not_heard_as_the_beginning_of_a_message(
    llama: Path, history: Path, mode: str, is_person: bool, is_heard: bool
) -> None:
    agent = agent_of(llama, history if is_person else None)
    draw = Draw(1, options={"speaker": "A"}, say=print)
    said = agent.fitted_request(talk(1, type="HM", mode=mode), draw).request.say
    assert (said is not None) == is_heard


def test_110_turns_lose_the_oldest_first(llama: Path, history: Path) -> None:
    """Of history, pseudo-dialogue and conversation, what has no room is left out from the beginning, and told."""
    agent = agent_of(llama, history, max_tokens=20, person_turns=60)
    agent.load("cpu")
    whole = [f"{secret} {part}" for number, secret in enumerate(SECRETS) for part in range(1 if number % 2 else 3)]
    turns = [f"turn{number}." for number in range(110)]
    for said, more, has_history in ((10, "", True), (110, "", True), (110, " so it is, so it was", False)):
        about = talk(said, more)
        _, text, left_out = asked(agent, about)
        all_said = [*whole, *turns[:said]]
        assert [one in text for one in all_said] == [number >= left_out for number in range(len(all_said))]
        assert 0 < left_out < len(all_said) - 10
        assert (left_out < len(whole)) == has_history
        [reply] = agent.respond([about], [Draw(1, options={"speaker": "A"})])
        assert reply.raw["messages_left_out"] == left_out  # type: ignore[union-attr]
        assert reply.answer.finish.endswith("; prompt cut")  # type: ignore[union-attr]
    roomy = agent_of(llama, history, max_tokens=20, person_turns=2)
    assert asked(roomy, talk(10))[2] == 0


@pytest.mark.usefixtures("nothing_leaves")
def test_nothing_of_a_history_leaves_or_stands_in_a_run(
    llama: Path, history: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    in_process.without_ray(monkeypatch)
    source, run = tmp_path / "set.jsonl", tmp_path / "run"
    row = {"task": "conversation", "type": "MM", "topic": "tea", "exchanges": 4}
    long = {"mode": "burst", "pseudo": {"topics": 2, "turns": 3}}
    source.write_text("".join(json.dumps({"id": f"c{len(more)}", **row, **more}) + "\n" for more in ({}, long)))
    config = tmp_path / "agents.toml"
    config.write_text("".join(
        f'[{name}]\nagent = "llama-3.1-8b"\ncheckpoint = "{llama}"\nperson = "{history}"\nmax_tokens = 12\n'
        for name in ("me", "myself")
    ))  # fmt: skip
    begin = ["generate", str(source), "--agents", "me~myself", "-o", str(run), "--config", str(config)]
    assert main([*begin, "--verbose"]) == 0
    records = [json.loads(line) for line in (run / "records" / "me~myself.jsonl").read_text().splitlines()]
    assert [one["status"] for one in records] == ["ok", "ok"]
    assert sum(len(one["answer"]["pseudo"]) for one in records) >= 6
    assert main(["report", str(run)]) == 0
    for name in ("jsonl", "csv"):
        assert main(["export", str(run), "--format", name, "-o", str(tmp_path / "out" / name)]) == 0
    assert main(["agents", "llama-3.1-8b", "--json"]) == 0
    written = [
        path.read_bytes() for folder in ("run", "out") for path in (tmp_path / folder).rglob("*") if path.is_file()
    ]
    assert len(written) > 10
    told = "".join(capfd.readouterr()).encode()
    for secret in SECRETS:
        assert not [one for one in [*written, told] if secret.encode() in one]


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[bad.Misbehaving]:
    monkeypatch.setenv("HTTP_PROXY", "http://proxy.example:9")
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-0123456789")
    with bad.running() as told:
        yield told


def served(url: str, history: Path, **chosen: Any) -> Any:
    agent: Any = catalogue.get("gpt-4o-online").make({"base_url": url, "person": str(history), "retries": 0, **chosen})

    async def main() -> Any:
        agent.open()
        agent.load("cpu")
        try:
            return await agent.respond_one(talk(1), Draw(1, options={"speaker": "A"}))
        finally:
            await agent.aclose()

    return asyncio.run(main())


@pytest.mark.usefixtures("nothing_leaves")
def test_a_server_on_this_machine_is_asked_without_a_proxy(server: bad.Misbehaving, history: Path) -> None:
    server.otherwise = lambda request: bad.answer("A: Yes. I DO so\nB: no")
    assert served(server.url, history).answer.text == "Yes. I DO so"
    [request] = server.requests
    assert [one["role"] for one in request.body["messages"]] == ["system", "user"]
    assert all(secret in request.body["messages"][1]["content"] for secret in SECRETS)
    assert "Mia" not in str(request.body)


@pytest.mark.usefixtures("nothing_leaves")
def test_what_a_server_says_of_an_error_is_not_told(server: bad.Misbehaving, history: Path) -> None:
    quoting = json.dumps({"error": {"message": f"bad prompt: {SECRETS[0]}"}}).encode()
    for status in (400, 401, 500):
        server.otherwise = lambda request, status=status: bad.body(quoting, status)  # type: ignore[misc]
        with pytest.raises(AnswerError, match=f"answered {status}$") as caught:
            served(server.url, history)
        assert SECRETS[0] not in str(caught.value)


@pytest.mark.parametrize(
    "url",
    [
        "https://api.openai.com/v1",
        "http://10.0.0.7/v1",
        "http://127.0.0.1.example/v1",
        "http://0.0.0.0:8000/v1",
        "http://me.localhost:8000/v1",
    ],
)
@pytest.mark.usefixtures("nothing_leaves")
def test_a_server_elsewhere_is_refused_before_anything_is_sent(url: str, history: Path) -> None:
    with pytest.raises(InputError) as caught:
        catalogue.get("openai-chat").make({"base_url": url, "person": str(history)})
    [problem] = caught.value.problems
    assert problem.message.startswith(f"a person's history would leave this machine: {url} is elsewhere")
    assert "person_leaves=true" in problem.message
    assert isinstance(
        catalogue.get("openai-chat").make({"base_url": url, "person": str(history), "person_leaves": True}).settings,
        TalkSettings,
    )
    with pytest.raises(InputError) as caught:
        catalogue.get("claude").make({"person": str(history)})
    assert "would leave this machine" in caught.value.problems[0].message


@pytest.mark.usefixtures("nothing_leaves")
@pytest.mark.parametrize("name", ["program", "parts", "min_words", "lower_case", "truncation"])
def test_no_setting_changes_the_persons_words(name: str, server: bad.Misbehaving, history: Path) -> None:
    value = {"program": "llama-3.3", "parts": ("a", "b"), "min_words": 9, "lower_case": 1.0, "truncation": None}[name]
    server.otherwise = lambda request: bad.answer("A: Yes. I DO so\nB: no")
    assert served(server.url, history).answer.text == "Yes. I DO so"
    assert served(server.url, history, **{name: value}).answer.text == "Yes. I DO so"
    plain, changed = server.requests
    assert changed.body == plain.body


def test_room_in_memory_is_kept_for_the_history(llama: Path, history: Path, tmp_path: Path) -> None:
    long = tmp_path / "long"
    shutil.copytree(llama, long)
    config = json.loads((long / "config.json").read_text())
    (long / "config.json").write_text(json.dumps({**config, "max_position_embeddings": 65536}))
    room = [
        agent_of(long, person, **more).item_memory()
        for person, more in ((None, {}), (history, {}), (history, {"person_turns": 200}))
    ]
    assert None not in room
    assert room == sorted(set(room))  # type: ignore[type-var]


def test_a_server_does_not_tell_where_the_history_is(llama: Path, history: Path) -> None:
    agent = agent_of(llama, history)
    header = SimpleNamespace(kind="machine", checkpoint=None, revision=None, digest="d")
    service = SimpleNamespace(agents={"me": agent}, headers={"me": header}, states=lambda: {"me": {}})
    told = _about(service, "me")  # type: ignore[arg-type]
    assert told["settings"]["person_turns"] == 100
    assert str(history) not in json.dumps(told)


def test_a_history_without_the_person_is_refused(llama: Path, tmp_path: Path) -> None:
    path = tmp_path / "h.jsonl"
    path.write_text('{"speaker": "other", "text": "hi"}\n')
    with pytest.raises(InputError, match="no message in it is the person's"):
        agent_of(llama, path)


def test_the_watch_sees_connections() -> None:
    global _WATCHES
    _WATCHES = True
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        one.connect(("192.0.2.1", 9))
    _WATCHES = False
    assert ("socket.connect", ("192.0.2.1", 9)) in CONNECTED
