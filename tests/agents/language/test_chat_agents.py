"""The agents on the transformers engine: what they ask, and what becomes of what the model says."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from transformers import AutoTokenizer

from agents import catalogue
from agents.answers import TurnAnswer
from agents.capabilities import Instructed
from agents.contract import Draw, Reply
from agents.language.chat import LocalChatAgent, LocalCompletionAgent
from agents.language.dialogue_models import BlenderbotAgent, DialoGPTAgent
from agents.language.prompts import GREETINGS
from agents.language.text_agent import TextAgent
from agents.stimuli import ConversationStimulus, Stimulus
from tests.helpers import tiny_language

AGENTS: dict[str, tuple[type[TextAgent[Any]], str, dict[str, Any]]] = {
    "chat": (LocalChatAgent, "llama", {"positions": 1024}),
    "completion": (LocalCompletionAgent, "gpt2", {"positions": 512}),
    "dialogpt": (DialoGPTAgent, "gpt2", {"positions": 256}),
    "blenderbot": (BlenderbotAgent, "blenderbot", {}),
}
PROMPT_AGENTS = ("chat", "completion")
TEXTS = ["I like music.", "Why do you say that?", "They are boring!", "Tell me more about science and movies, please."]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The tiny checkpoints. Not to be changed by a test."""
    root = tmp_path_factory.mktemp("chat")
    return {name: tiny_language.MAKERS[maker](root / name, **more) for name, (_, maker, more) in AGENTS.items()}


@pytest.fixture(scope="module")
def agents(folders: dict[str, Path]) -> dict[str, TextAgent[Any]]:
    return {name: _loaded(name, folders[name]) for name in AGENTS}


def _agent(name: str, folder: Path, **chosen: Any) -> TextAgent[Any]:
    cls: Any = AGENTS[name][0]
    return cls(cls.Settings(checkpoint=str(folder), **chosen), name)


def _loaded(name: str, folder: Path, **chosen: Any) -> TextAgent[Any]:
    agent = _agent(name, folder, **chosen)
    assert agent.missing() is None
    agent.open()
    agent.load("cpu")
    return agent


def _conversation(turns: int = 0, **fields: Any) -> ConversationStimulus:
    """Ann and Bob, Ann having begun; the messages say their number."""
    names = fields.get("names", ["Ann", "Bob"])
    history = [{"speaker": names[turn % 2], "text": f"{TEXTS[turn % 4]} ({turn})"} for turn in range(turns)]
    row = {"id": f"c{turns}", "task": "conversation", "topic": "movies", "names": names, "history": history, **fields}
    return ConversationStimulus.model_validate_json(json.dumps(row))


def _draw(seed: int = 0, turn: int = 0, **more: Any) -> Draw:
    return Draw(seed=seed, options={"speaker": "AB"[turn % 2], "turn": turn}, **more)


def _tokenizer(agents: dict[str, TextAgent[Any]], name: str) -> Any:
    return AutoTokenizer.from_pretrained(agents[name].folder())


def _replies(agent: TextAgent[Any], batch: Sequence[Stimulus], draws: Sequence[Draw]) -> list[Any]:
    replies = agent.respond([agent.prepare(stimulus) for stimulus in batch], draws)
    assert all(isinstance(reply, Reply) for reply in replies), replies
    return [*replies]


@pytest.mark.parametrize("name", AGENTS)
def test_a_person_hears_the_message_that_is_sent_as_far_as_it_is_said(
    agents: dict[str, TextAgent[Any]], name: str
) -> None:
    heard: list[list[str]] = [[] for _ in range(8)]
    batch = [_conversation(2, type="HM" if index < 6 else "MM") for index in range(8)]
    replies = _replies(agents[name], batch, [_draw(index, 2, say=said.append) for index, said in enumerate(heard)])
    assert replies == _replies(agents[name], batch, [_draw(index, 2) for index in range(8)])
    for said, reply in zip(heard, replies, strict=True):
        assert all(reply.answer.text.startswith(text) for text in said)
    if name == "blenderbot":  # whose beams are known at their end
        assert not any(heard)
    else:
        assert sum(len(set(said)) > 2 for said in heard[:6]) >= 3
        assert not any(heard[6:])  # which filters may reject


def test_llama_greets_first_and_grows_warmer_by_the_turn(folders: dict[str, Path]) -> None:
    settings = {key: value for key, value in catalogue.get("llama-3.3-70b").settings.items() if key != "checkpoint"}
    agent = _loaded("chat", folders["chat"], **settings)
    draws = [_draw(seed, 0) for seed in range(40)]
    first = _replies(agent, [_conversation(exchanges=24)] * 40, draws)
    assert {one.answer.text for one in first} < set(GREETINGS)
    test, _ = agent.declaration().filters
    assert all(test(_conversation(), one) is None for one in first)  # "Hey" has fewer words than are wanted
    stimulus = _conversation(1, exchanges=24)
    found = [agent.fitted_request(stimulus, _draw(turn=turn, attempt=3)).sampling.temperature for turn in range(1, 24)]
    assert found == pytest.approx([0.6, *(0.6 + 0.4 / 22 * i for i in range(22))])
    asked = agent.fitted_request(stimulus, _draw(turn=1)).sampling
    assert (asked.frequency_penalty, asked.presence_penalty, asked.stops) == (0, 0, ("A:", "B:"))
    kept = Reply(TurnAnswer(text="Yes.", finish="stop"), {"text": "Yes. and so on", "attempt": 0})
    assert test(stimulus, kept) is None  # counted before the cut
    assert test(stimulus, _turn_reply("Yes.", 0)) is not None


@pytest.mark.parametrize(
    ("kind", "program", "turn", "is_cut"),
    [
        ("MM", "gpt-4o", 1, True),
        ("HM", "gpt-4o", 1, False),  # 2025 paper, line 888: "no filtering to human-human or human-AI dialogues"
        ("MM", "llama-3.3", 1, False),  # whose second message alone is not cut
        ("MM", "llama-3.3", 2, True),
    ],
)
def test_which_messages_are_filtered_and_cut(
    folders: dict[str, Path], kind: str, program: str, turn: int, is_cut: bool
) -> None:
    agent = _loaded("chat", folders["chat"], truncation={"shape": 0.01, "scale": 0.01}, lower_case=0, program=program)
    stimulus = _conversation(turn, type=kind)
    test, _ = agent.declaration().filters
    assert (test(stimulus, _turn_reply("two words", 0)) is not None) == (kind == "MM")
    [reply] = _replies(agent, [stimulus], [_draw(turn=turn)])
    text = " ".join(reply.raw["text"].split())
    assert len(text.split()) > 1
    assert (reply.answer.text != text) == is_cut


@pytest.mark.parametrize("fallback", ["empty", "whole"])
def test_a_text_ends_at_its_length_and_the_same_is_sent(folders: dict[str, Path], fallback: str) -> None:
    truncation = {"fallback": fallback, "shape": 4, "scale": 1.5}
    agent = _loaded("chat", folders["chat"], truncation=truncation, lower_case=0)
    engine: Any = agent._engine
    stimulus = _conversation(2, names=["Ann", "Bob"])
    draws = [_draw(seed, 2) for seed in range(24)]
    requests = [agent.fitted_request(stimulus, draw) for draw in draws]
    ended = _replies(agent, [stimulus] * 24, draws)
    texts = engine.generate_batch([replace(each, is_enough=None) for each in requests], [draw.seed for draw in draws])
    full = [agent._reply(stimulus, draw, *each) for draw, *each in zip(draws, requests, texts, strict=True)]
    assert [reply.answer.text for reply in ended] == [reply.answer.text for reply in full]
    assert all(whole.text.startswith(reply.raw["text"]) for whole, reply in zip(texts, ended, strict=True))
    early = [reply for whole, reply in zip(texts, ended, strict=True) if reply.raw["tokens"] < whole.tokens]
    assert {reply.answer.finish for reply in early} == {"stop"}
    if fallback == "empty":
        assert sum(reply.raw["tokens"] for reply in ended) < 0.8 * sum(whole.tokens for whole in texts)


@pytest.mark.parametrize("turns", [40, 41, 42, 43])
def test_a_long_conversation_keeps_its_opening_and_newest_messages(
    agents: dict[str, TextAgent[Any]], turns: int
) -> None:
    agent = agents["completion"]
    stimulus = _conversation(turns)
    request = agent.fitted_request(stimulus, _draw(turn=turns))
    prompt = request.prompt or ""
    assert 0 < request.left_out < turns
    assert prompt.startswith("Bob greets Ann. Ann starts")
    assert prompt.endswith(f"({turns - 1}) {('Ann', 'Bob')[turns % 2]}:")
    kept = [number for number in range(turns) if f"({number})" in prompt]
    assert kept == list(range(request.left_out, turns))
    tokenizer = _tokenizer(agents, "completion")
    used = len(tokenizer(prompt)["input_ids"]) + request.sampling.max_tokens
    # No more is left out than must be.
    oldest = stimulus.history[request.left_out - 1]
    assert used <= 512 < used + len(tokenizer(f" {oldest.speaker}: {oldest.text}")["input_ids"])
    [reply] = _replies(agent, [stimulus], [_draw(turn=turns)])
    assert reply.answer.finish in ("stop; prompt cut", "length; prompt cut")
    assert reply.raw["messages_left_out"] == request.left_out
    [short] = _replies(agent, [_conversation(1)], [_draw(turn=1)])
    assert short.answer.finish in ("stop", "length")


def _told(agents: dict[str, TextAgent[Any]], name: str, stimulus: ConversationStimulus, turn: int) -> str:
    """What the model is given."""
    engine: Any = agents[name]._engine
    request = agents[name].fitted_request(stimulus, _draw(turn=turn))
    return str(_tokenizer(agents, name).decode(engine.fitted_tokens(request)))


def test_dialogpts_messages_are_joined_by_the_end_of_text(agents: dict[str, TextAgent[Any]]) -> None:
    spoiled = _conversation(2, history=[{"speaker": "Ann", "text": "x<|endoftext|>y"}, {"speaker": "Bob", "text": "z"}])
    assert _told(agents, "dialogpt", spoiled, 1) == "xy<|endoftext|>z<|endoftext|>"
    found = _told(agents, "dialogpt", _conversation(4), 4)
    assert found.endswith("<|endoftext|>")
    assert found.count("<|endoftext|>") == 5  # the greeting and four messages
    assert _told(agents, "dialogpt", _conversation(), 0) == "Hi! What do you think about movies?<|endoftext|>"
    assert _told(agents, "dialogpt", _conversation(topic=None), 0) == "Hi!<|endoftext|>"
    assert agents["dialogpt"].fitted_request(_conversation(), _draw()).sampling.top_k == 10


@pytest.mark.parametrize("turns", [1, 4, 9, 30])
def test_blenderbots_history_is_cut_to_its_128_positions(agents: dict[str, TextAgent[Any]], turns: int) -> None:
    stimulus = _conversation(turns)
    [reply] = _replies(agents["blenderbot"], [stimulus], [_draw(turn=turns)])
    messages = [f"{TEXTS[turn % 4]} ({turn})" for turn in range(turns)]
    kept = turns - reply.raw["messages_left_out"]
    assert reply.raw["prompt_tokens"] <= 128
    assert 19 <= reply.raw["tokens"] <= 58  # 20 to 60 with the start token and the end token
    greeting = ["Hi! What do you think about movies?"] if kept == turns and turns % 2 == 0 else []
    text = _told(agents, "blenderbot", stimulus, turns)
    assert text == f" {'   '.join([*greeting, *messages[-kept:]])}</s>"
    if kept < turns:
        more = "   ".join(messages[-kept - 1 :])
        assert len(_tokenizer(agents, "blenderbot")(f" {more}")["input_ids"]) + 1 > 128
        assert kept >= 3
    else:
        assert turns < 9


def test_a_newest_message_that_is_too_long_keeps_its_end(agents: dict[str, TextAgent[Any]]) -> None:
    long = " ".join(f"{number} music" for number in range(200)) + " the end."
    history = [{"speaker": "Ann", "text": "Hi."}, {"speaker": "Bob", "text": long}]
    stimulus = _conversation(2, history=history)
    assert _told(agents, "blenderbot", stimulus, 2).endswith("199 music the end.</s>")
    [reply] = _replies(agents["blenderbot"], [stimulus], [_draw(turn=2)])
    assert reply.raw["messages_left_out"] == 1
    assert reply.raw["prompt_tokens"] == 128
    assert reply.raw["tokens_cut"] > 0


# what becomes of a reply


def _turn_reply(text: str, attempt: int) -> Reply:
    return Reply(TurnAnswer(text=text, finish="stop"), {"text": text, "attempt": attempt})


@pytest.mark.parametrize("name", PROMPT_AGENTS)
def test_a_part_of_a_pseudo_dialogue_has_half_of_the_positions(folders: dict[str, Path], name: str) -> None:
    """It has room for many turns, and leaves as much for the prompt."""
    agent = _loaded(name, folders[name], max_tokens=5)
    about = _conversation(40)
    pseudo = [{"topics": 3, "known": []}, {"topic": "tea", "left": 20}]
    draws = [Draw(1, options={"speaker": "A", "turn": 0, "pseudo": one}) for one in pseudo]
    fitted = [agent.fitted_request(about, draw) for draw in draws]
    positions = AGENTS[name][2]["positions"]
    assert [one.sampling.max_tokens for one in fitted] == [72, positions // 2]
    text = fitted[1].prompt or fitted[1].messages[-1].text
    kept = [f"({turn})" in text for turn in range(40)]
    assert kept == [turn >= fitted[1].left_out for turn in range(40)]
    assert 0 < fitted[1].left_out < 40


@pytest.mark.parametrize(
    ("name", "text", "attempt", "expected"),
    [
        ("chat", "one two three four five", 0, None),
        ("chat", "one two three four", 4, True),
        ("chat", "one two three four", 5, False),  # the last is kept as it is
        ("chat", "...", 5, True),  # but not without a word
        ("completion", "one two three four", 5, False),
        ("dialogpt", "ok", 0, None),
        ("dialogpt", " ?", 0, True),
        ("blenderbot", "", 0, True),
    ],
)
def test_short_messages_are_asked_for_again(
    folders: dict[str, Path], name: str, text: str, attempt: int, expected: bool | None
) -> None:
    agent = _agent(name, folders[name])
    test, _ = agent.declaration().filters
    verdict = test(_conversation(), _turn_reply(text, attempt))
    assert (None if verdict is None else verdict.rejected) == expected
    assert agent.declaration().family == {"dialogpt": "other"}.get(name, name)


@pytest.mark.parametrize("speaker", ["A", "B"])
def test_the_instructions_are_what_the_model_is_told_before_all_messages(
    agents: dict[str, TextAgent[Any]], speaker: str
) -> None:
    stimulus = _conversation(1, personas=["shy", "loud"])
    draw = Draw(seed=1, options={"speaker": speaker})
    told = {name: agent for name, agent in agents.items() if isinstance(agent, Instructed)}
    instructions = {name: agent.instructions(stimulus, draw) for name, agent in told.items()}
    system, user = agents["chat"].fitted_request(stimulus, draw).messages
    assert f"{system.text}\n{user.text}".startswith(instructions["chat"] or "")
    prompt = agents["completion"].fitted_request(stimulus, draw).prompt or ""
    assert prompt.split(": Hi!")[0].rpartition(" ")[0] == instructions["completion"]
    assert instructions.keys() == {"chat", "completion"}
