"""Chat histories and the agents that write as a person from one: what they are asked, and what leaves the machine."""

import json
import sys
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from agents import catalogue
from agents.contract import Draw
from agents.errors import AnswerError, InputError
from agents.language.chat import LocalChatAgent
from agents.language.person import EMOJI, HistoryMessage, read_message_file, style
from agents.stimuli import ConversationStimulus, Utterance
from serving.cli import main
from serving.http.native import _described
from tests.helpers import in_process, tiny_language
from tests.helpers import misbehaving_server as bad

SECRETS = [f"zq{number}xv" for number in range(60)]  # what no random weights generate


# histories


def test_a_history_is_read(tmp_path: Path) -> None:
    """As the program in docs/language.md writes it, and with a mark of the order of bytes."""
    rows = [
        {"speaker": "person", "text": "on my way\nsoon", "at": "2024-03-01T18:00:00"},
        {"speaker": "other", "text": "\u00e9 \U0001f600"},
    ]
    path = tmp_path / "h.jsonl"
    path.write_text("\ufeff" + "".join(json.dumps(row) + "\n" for row in rows) + "\n", encoding="utf-8")
    first = HistoryMessage("person", "on my way\nsoon", datetime.fromisoformat("2024-03-01T18:00:00"))
    assert read_message_file(path) == [first, HistoryMessage("other", "\u00e9 \U0001f600")]


def test_every_bad_line_is_named_and_none_is_quoted(tmp_path: Path) -> None:
    wrong = {
        1: "secret",
        2: '["secret"]',
        4: '{"speaker": "person", "text": 7, "at": "secret"}',
        5: '{"speaker": "secret", "text": "secret"}',
        6: '{"speaker": "person", "text": "secret", "at": "yesterday secret"}',
        7: '{"speaker": "person", "text": "  "}',
        8: '{"speaker": "person", "text": "secret", "secret": 1}',
    }
    lines = [wrong.get(number, '{"speaker": "other", "text": "fine"}') for number in range(1, 9)]
    path = tmp_path / "h.jsonl"
    path.write_text("\n".join(lines))
    with pytest.raises(InputError) as caught:
        read_message_file(path)
    assert [problem.line for problem in caught.value.problems] == list(wrong)
    assert "secret" not in str(caught.value) + "".join(map(str, caught.value.problems))


@pytest.mark.parametrize(("content", "words"), [(b"\n \n", "holds no message"), (None, "cannot be read")])
def test_bad_histories_are_refused(content: bytes | None, words: str, tmp_path: Path) -> None:
    if content is not None:
        (tmp_path / "h.jsonl").write_bytes(content)
    with pytest.raises(InputError, match=words):
        read_message_file(tmp_path / "h.jsonl")


def test_the_style_of_messages() -> None:
    texts = [["Hi", "how are YOU?"], ["ok, fine.", "\u4f60\u597d \U0001f600\U0001f44d\U0001f3fd"], ["1 2 3 4 5"]]
    turns = [[HistoryMessage("person", text) for text in turn] for turn in texts]
    assert style(turns) == (
        "{name}'s messages have 2.8 words in the mean, 3 in the median. {name} sends 1.7 messages in a row in the "
        "mean. 40% of them end with a full stop or another mark. 33% begin with a capital letter. 0.40 emoji stand in "
        "a message."
    )
    assert "capital" not in style(turns[2:])


def test_an_emoji_counts_once() -> None:
    family = "\U0001f468\u200d\U0001f469\u200d\U0001f467"
    flag = "\U0001f1e9\U0001f1ea"
    key = "1\ufe0f\u20e3"
    assert EMOJI.findall(f"no: (c) 1 # * {family}{flag}{flag}{key} 2") == [family, flag, flag, key]


# agents

HOSTS: list[str] = []


def _watch(event: str, arguments: tuple[Any, ...]) -> None:
    """Note the hosts of connections and look-ups; paths of sockets are this machine's."""
    if event == "socket.getaddrinfo" and isinstance(arguments[0], str):
        HOSTS.append(arguments[0])
    elif event in ("socket.connect", "socket.sendto") and isinstance(arguments[1], tuple):
        HOSTS.append(arguments[1][0])


sys.addaudithook(_watch)


@pytest.fixture
def nothing_leaves() -> Iterator[None]:
    """Every connection to another machine fails the test."""
    HOSTS.clear()
    yield
    assert set(HOSTS) <= {"127.0.0.1", "::1", "localhost"}


@pytest.fixture
def history(tmp_path: Path) -> Path:
    """60 turns, of three messages of the person and one of the other in turn; the texts hold their turn's number."""
    lines = []
    for number, secret in enumerate(SECRETS):
        for part in range(3 if number % 2 == 0 else 1):
            time = f"2024-03-{1 + number // 20:02d}T18:{number % 60:02d}:{10 * part:02d}"
            speaker = "person" if number % 2 == 0 else "other"
            lines.append({"at": time, "speaker": speaker, "text": f"{secret} {part}"})
    path = tmp_path / "private.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_language.llama(tmp_path_factory.mktemp("llama") / "llama", positions=2048)


def talk(count: int = 0, more: str = "", **fields: Any) -> ConversationStimulus:
    history = [Utterance(speaker="BA"[number % 2], text=f"turn{number}.{more}") for number in range(count)]
    return ConversationStimulus(id="c", task="conversation", history=history, **fields)


def agent_of(llama: Path, history: Path | None, **settings: Any) -> LocalChatAgent:
    agent = LocalChatAgent(LocalChatAgent.Settings(checkpoint=str(llama), person=history, **settings), "me")
    agent.open()
    return agent


def request(agent: LocalChatAgent, about: ConversationStimulus, **options: Any) -> tuple[list[str], int]:
    """The system's and the user's text, and how many messages are left out."""
    fitted = agent.fitted_request(about, Draw(1, options={"speaker": "A", **options}))
    return [message.text for message in fitted.messages], fitted.left_out


def test_a_person_is_asked_for_in_one_log(llama: Path, history: Path) -> None:
    agent = agent_of(llama, history, person_turns=3, max_tokens=20)
    (system, user), left_out = request(agent, talk(2, topic="tea", names=None))
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
    for words in ("2.0 words in the mean, 2 in the median", "3.0 messages in a row", "0% of them end with a full stop"):
        assert words in system
    (_, burst), _ = request(agent, talk(2, mode="burst"))
    assert "messages, one or several, each on a line of its own" in burst
    (_, dialogue), _ = request(agent, talk(2), pseudo={"topic": "snow", "left": 5})
    for words in ("zq58xv 1", "A: turn1.", "next 5 turns, in which they talk about snow"):
        assert words in dialogue


@pytest.mark.parametrize(("mode", "sent"), [("ping-pong", "one two three FOUR"), ("burst", "one two\nthree FOUR")])
def test_the_persons_words_are_sent_as_they_are(llama: Path, history: Path, mode: str, sent: str) -> None:
    agent = agent_of(llama, history)
    text = "A: one  two\n[2024-03-03 18:58] A: three FOUR\nB: not mine\nA: nor this"
    for seed in range(20):
        draw = Draw(seed, options={"speaker": "A"})
        assert agent._message(talk(0, type="MM", mode=mode), text, draw) == sent


def test_a_name_is_not_heard_as_the_beginning_of_a_message(llama: Path, history: Path) -> None:
    draw = Draw(1, options={"speaker": "A"}, say=print)
    for person, mode, is_heard in ((history, "ping-pong", False), (None, "burst", False), (None, "ping-pong", True)):
        say = agent_of(llama, person).fitted_request(talk(1, type="HM", mode=mode), draw).say
        assert (say is not None) == is_heard


def test_a_long_log_loses_its_oldest_messages(llama: Path, history: Path) -> None:
    agent = agent_of(llama, history, max_tokens=20, person_turns=60)
    remembered = [f"{secret} {part}" for number, secret in enumerate(SECRETS) for part in range(1 if number % 2 else 3)]
    for count, more, has_history in ((10, "", True), (110, " so it is, so it was", False)):
        about = talk(count, more)
        texts, left_out = request(agent, about)
        messages = [*remembered, *(f"turn{number}." for number in range(count))]
        kept = [message in "\n".join(texts) for message in messages]
        assert kept == [number >= left_out for number in range(len(messages))]
        assert 0 < left_out < len(messages) - 10
        assert (left_out < len(remembered)) == has_history


@pytest.mark.usefixtures("nothing_leaves")
def test_nothing_of_a_history_leaves_or_stands_in_a_run(
    llama: Path, history: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    in_process.without_ray(monkeypatch)
    source = tmp_path / "set.jsonl"
    run = tmp_path / "run"
    row = {"task": "conversation", "type": "MM", "topic": "tea", "exchanges": 4}
    long = {"mode": "burst", "pseudo": {"topics": 2, "turns": 3}}
    source.write_text("".join(json.dumps({"id": f"c{len(more)}", **row, **more}) + "\n" for more in ({}, long)))
    config = tmp_path / "agents.toml"
    chosen = f'agent = "llama-3.1-8b"\ncheckpoint = "{llama}"\nperson = "{history}"\nmax_tokens = 12\n'
    config.write_text(f"[me]\n{chosen}[myself]\n{chosen}")
    begin = ["generate", str(source), "--agents", "me~myself", "-o", str(run), "--config", str(config)]
    assert main([*begin, "--verbose"]) == 0
    records = [json.loads(line) for line in (run / "records" / "me~myself.jsonl").read_text().splitlines()]
    assert [record["status"] for record in records] == ["ok", "ok"]
    assert sum(len(record["answer"]["pseudo"]) for record in records) >= 6
    assert main(["report", str(run)]) == 0
    for name in ("jsonl", "csv"):
        assert main(["export", str(run), "--format", name, "-o", str(tmp_path / "out" / name)]) == 0
    files = [path for folder in ("run", "out") for path in (tmp_path / folder).rglob("*") if path.is_file()]
    assert len(files) > 10
    texts = [*(path.read_bytes() for path in files), "".join(capfd.readouterr()).encode()]
    assert not [text for text in texts for secret in SECRETS if secret.encode() in text]


def served(url: str, history: Path, **settings: Any) -> Any:
    chosen = {"base_url": url, "person": str(history), "retries": 0, **settings}
    return bad.replied(catalogue.get("gpt-4o-online").make(chosen), talk(1), Draw(1, options={"speaker": "A"}))[0]


@pytest.mark.usefixtures("nothing_leaves")
def test_a_server_on_this_machine_is_asked_without_a_proxy(server: bad.Misbehaving, history: Path) -> None:
    """And whatever settings have no part in a person's words."""
    server.otherwise = lambda request: bad.answer("A: Yes. I DO so\nB: no")
    settings = {"program": "llama-3.3", "parts": ("a", "b"), "min_words": 9, "lower_case": 1.0, "truncation": None}
    assert served(server.url, history).answer.text == "Yes. I DO so"
    assert served(server.url, history, **settings).answer.text == "Yes. I DO so"
    plain, changed = server.requests
    assert changed.body == plain.body
    assert [message["role"] for message in plain.body["messages"]] == ["system", "user"]
    assert all(secret in plain.body["messages"][1]["content"] for secret in SECRETS)
    assert "Mia" not in str(plain.body)


def test_a_servers_words_about_an_error_are_kept_private(server: bad.Misbehaving, history: Path) -> None:
    server.otherwise = lambda request: bad.status(400, f"bad prompt: {SECRETS[0]}")
    with pytest.raises(AnswerError, match=r"answered 400$"):
        served(server.url, history)


@pytest.mark.usefixtures("nothing_leaves")
@pytest.mark.parametrize("name", ["openai-chat", "claude"])
def test_a_server_elsewhere_is_refused_before_anything_is_sent(name: str, history: Path) -> None:
    chosen: dict[str, Any] = {"base_url": "http://127.0.0.1.example/v1", "person": str(history)}
    with pytest.raises(InputError) as caught:
        catalogue.get(name).make(chosen)
    assert "a person's history would leave this machine" in caught.value.problems[0].message
    catalogue.get(name).make({**chosen, "person_leaves": True})


def test_a_server_does_not_tell_where_the_history_is(llama: Path, history: Path) -> None:
    header = SimpleNamespace(kind="machine", checkpoint=None, revision=None, digest="d")
    agent = agent_of(llama, history)
    service: Any = SimpleNamespace(
        agents={"me": agent},
        headers={"me": header},
        states=lambda: {"me": {}},
        declared=lambda name: agent.declaration(),
    )
    about = _described(service, "me")
    assert about["settings"]["person_turns"] == 100
    assert str(history) not in json.dumps(about)


def test_a_history_without_the_person_is_refused(llama: Path, tmp_path: Path) -> None:
    path = tmp_path / "h.jsonl"
    path.write_text('{"speaker": "other", "text": "hi"}\n')
    with pytest.raises(InputError, match="no message in it is the person's"):
        agent_of(llama, path)
