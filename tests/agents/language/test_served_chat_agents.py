"""Claude and GPT-3.5 as the catalogue has them: whole requests beside the papers', and what becomes of replies."""

import re
from collections.abc import Iterable
from typing import Any

import pytest

from agents import catalogue
from agents.contract import Draw
from agents.errors import AnswerError
from agents.language.sent_messages import TruncationSettings, draw_length
from agents.stimuli import ConversationStimulus, Utterance, WordStimulus
from tests.helpers import misbehaving_server as bad

SAID = [("B", "pasta again"), ("A", "why not Rice"), ("B", "no way")]
# Of kreimanlab/TuringTest's Claude.py, with its first pair of characters: two texts, what is added after each message
# by who says the next, and the rest of the request.
SYSTEM = (
    "A is curious and open-minded and is having a natural conversation with a friend. Avoid excessive agreement and "
    "looping. Keep answers under 20 tokens. If a topic has been discussed for too long, transition to a new subject "
    "smoothly. Be spare with punctuation. You can insert one spelling mistake. Keep answers short, text-like, and very "
    "informal. DO NOT always end with questions. No skipped turns."
)
USER = (
    "B is logical and skeptical and is having a natural conversation with a friend. They discuss food, but they "
    "don\u2019t always agree. Each person has their own perspective, and they challenge each other at times. They "
    "avoid excessive agreement and mutual praise. Be spare with punctuation. You can insert one spelling mistake. They "
    "ensure to change topics when the discussion slows down. Keep answers short, text-like, and very informal. **Do "
    "not ask a question at the end of your response. Conclude with a statement, reflection, or suggestion.**\nA: Hi!\n:"
)
ADDED = ["", "pasta again\nB:", "why not Rice\nA:", "no way\nB:"]
DEFAULTS = {"top_p": 1.0, "stop_sequences": []}  # the interface's own: not sent
# The 2025 paper, "Conversation task in original Turing test settings".
MIA = (
    "Mia is a 31-year-old award-winning chef known for her culinary creativity and commitment to sustainable "
    "gastronomy. Mia's culinary journey began with a degree from the Culinary Institute of America, where she "
    "developed a passion for farm-to-table practices. As the head chef of her own restaurant, Mia focuses on using "
    "locally sourced, organic ingredients to create exquisite dishes that delight the senses. Mia's older brother, "
    "Ethan, is an organic farmer, supplying her restaurant with fresh produce. Their parents, Laura and James, are "
    "avid food enthusiasts who instilled in Mia a love for diverse cuisines. Mia's partner, Alex, is a food critic, "
    "providing valuable insights into the culinary world. Beyond the kitchen, Mia enjoys participating in community "
    "cooking workshops and supporting local farmers' markets, embodying her commitment to sustainable and delicious "
    "dining experiences. I want you to act as Mia. You will be asked multiple questions, please answer the questions "
    "in a way that is simple, direct, and oral. Each answer should be less than 15 words. You can provide fake answers "
    "if you don't know. The key is to answer like a human and never let people know that you are not human."
)

# The same section, "Example prompt for non-deceitful AI".
AI = (
    "You are talking to a human. However, the judge knows that there is one human and one AI agent. Your role is to "
    "provide answers to the judges\u2019 questions in a way that you can persuade the judge that you are the true AI. "
    "Keep your answers simple, direct, and oral. The answer for each question should be less than 15 words."
)
ONLINE = {
    "gpt-3.5-turbo": ("gpt-3.5-turbo-1106", MIA),
    "gpt-3.5-turbo-ai": ("gpt-3.5-turbo-1106", AI),
    "gpt-4o-online": ("gpt-4o", MIA),
    "gpt-4o-online-ai": ("gpt-4o", AI),
}


def talk(count: int, kind: str = "MM", names: tuple[str, str] = ("A", "B")) -> ConversationStimulus:
    """B says the first message, as the program's "A" does."""
    called = dict(zip("AB", names, strict=True))
    return ConversationStimulus.model_validate(
        {
            "id": "c",
            "task": "conversation",
            "type": kind,
            "topic": "food",
            "names": names,
            "personas": ("logical and skeptical", "curious and open-minded"),
            "history": [Utterance(speaker=called[side], text=text) for side, text in SAID[:count]],
        }
    )


def answered(server: bad.Misbehaving, name: str, stimulus: Any, draw: Draw, **settings: Any) -> tuple[Any, Any]:
    """The reply to one stimulus, and whether each filter that fires rejects it."""
    return all_answered(server, name, stimulus, [draw], **settings)[0]


def all_answered(
    server: bad.Misbehaving, name: str, stimulus: Any, draws: Iterable[Draw], **settings: Any
) -> list[tuple[Any, Any]]:
    where = server.url.removesuffix("/v1") if name == "claude" else server.url
    return bad.all_replies(catalogue.get(name).make({"base_url": where, "retries": 0, **settings}), stimulus, draws)


def turn(count: int, seed: int = 1, attempt: int = 0) -> Draw:
    return Draw(seed, attempt=attempt, options={"speaker": "BA"[count % 2], "turn": count})


@pytest.mark.parametrize("count", range(4))
def test_claude_is_asked_as_the_papers_program_asks(server: bad.Misbehaving, count: int) -> None:
    server.otherwise = lambda request: bad.anthropic("sure why not have some more of it")
    all_answered(server, "claude", talk(count), [turn(count, attempt=attempt) for attempt in range(6)])
    for attempt, request in enumerate(server.requests[-6:]):
        assert {**request.body, **DEFAULTS} == {
            "model": "claude-sonnet-4-6",
            "system": SYSTEM,
            "messages": [{"role": "user", "content": USER + "".join(ADDED[: count + 1])}],
            "temperature": pytest.approx(0.6 + (1 - 0.6) / 5 * attempt),
            "max_tokens": 80,
            **DEFAULTS,
        }


def test_claudes_replies_are_cut_to_seven_words_or_more_and_half_of_them_put_in_small_letters(
    server: bad.Misbehaving,
) -> None:
    said = "Oh no! That is too bad. Have you, by the way, asked your Mother about it? I would do so today, friend"
    server.otherwise = lambda request: bad.anthropic(said)
    replies = all_answered(server, "claude", talk(1), [turn(1, seed) for seed in range(40)])
    texts = [reply.answer.text for reply, _ in replies]
    for seed, text in enumerate(texts):
        words = draw_length(seed, TruncationSettings(least=7))
        cut = said if len(said.split()) <= words else re.sub(r"[^.!?]*$", "", " ".join(said.split()[:words]))
        assert text in (cut, cut.lower())
    assert 10 <= sum(text == text.lower() for text in texts) <= 30


def test_claudes_empty_replies_are_rejected_and_refusals_fail(server: bad.Misbehaving) -> None:
    server.acts = [bad.anthropic()]
    assert answered(server, "claude", talk(1), turn(1, attempt=5))[1] == {"too_few_words": True}
    server.acts = [bad.anthropic(stop_reason="refusal")]
    with pytest.raises(AnswerError) as caught:
        answered(server, "claude", talk(1), turn(1))
    assert caught.value.code == "filtered"


@pytest.mark.parametrize(("name", "count"), [*((name, 1) for name in ONLINE), ("gpt-3.5-turbo", 3)])
def test_agents_of_the_online_test_are_asked_as_the_paper_prints(
    server: bad.Misbehaving, name: str, count: int
) -> None:
    model, prompt = ONLINE[name]
    answered(server, name, talk(count, "HM", ("Ann", "Judge")), turn(count, attempt=count))
    roles = ["user", "assistant", "user"]
    [request] = server.requests
    assert request.body == {
        "model": model,
        "messages": [
            {"role": "system", "content": prompt},
            *({"role": role, "content": text} for role, (_, text) in zip(roles, SAID[:count], strict=False)),
        ],
        "temperature": 1.0,
        "max_tokens": 80,
        "seed": 1,
    }


def test_llamas_of_the_online_test_have_the_same_prompts() -> None:
    for name, prompt in {"llama-3-70b-online": MIA, "llama-3-70b-online-ai": AI}.items():
        agent: Any = catalogue.get(name).make({})
        chosen = agent.settings
        assert agent.instructions(talk(1), turn(1)) == prompt
        assert (chosen.temperature, chosen.hottest, chosen.top_p) == (0.7, 0.7, 0.9)
        assert chosen.truncation == TruncationSettings(shape=1.0, scale=0.001, least=14, fallback="whole", people=True)


def test_claude_by_openais_interface_is_sent_nothing_that_is_ignored_there(server: bad.Misbehaving) -> None:
    answered(server, "claude-openai", talk(1), turn(1))
    assert server.requests[0].body == {
        "model": "claude-sonnet-4-6",
        "messages": [{"role": "system", "content": SYSTEM}, {"role": "user", "content": USER + "".join(ADDED[:2])}],
        "temperature": 0.6,
        "max_tokens": 80,
    }
    for agent in (catalogue.get(name).make({"concurrency": 3}) for name in ("claude", "claude-openai")):
        assert (agent.declaration().max_in_flight, agent.declaration().family) == (3, "chat")
        assert agent.environment() == ("ANTHROPIC_API_KEY",)
        assert agent.instructions(talk(1), turn(1)) == f"{SYSTEM}\n{USER}"


@pytest.mark.parametrize("kind", ["HM", "MM"])
@pytest.mark.parametrize(
    ("said", "sent"),
    [
        ("I love Pasta.", "I love Pasta."),
        ("I love cooking with my brother. We go to the farm.", "I love cooking with my brother. We go to the farm."),
        ("I love cooking with my brother. We go to the farm. It is fun, too.", 11),
        ("I love cooking with my brother Ethan and we go to the farm for fresh food. Yes.", None),
    ],
)
def test_gpt_3_5s_extra_sentences_are_cut_to_people_too(
    server: bad.Misbehaving, kind: str, said: str, sent: str | int | None
) -> None:
    server.otherwise = lambda request: bad.answer(said)
    expected = " ".join(said.split()[:sent]) if isinstance(sent, int) else sent or said
    for reply, found in all_answered(server, "gpt-3.5-turbo", talk(1, kind), [turn(1, seed) for seed in range(20)]):
        assert reply.answer.text == expected
        assert found == {}


@pytest.mark.parametrize("name", ["claude", "gpt-3.5-turbo", "openai-completion"])
def test_a_part_of_a_pseudo_dialogue_is_no_message(server: bad.Misbehaving, name: str) -> None:
    said = " Yes. I DO\nAnn: " + "So it is. " * 100
    server.otherwise = lambda request: bad.anthropic(said) if name == "claude" else bad.answer(said)
    draw = Draw(1, options={"speaker": "A", "turn": 0, "pseudo": {"topic": "tea", "left": 9}})
    reply, found = answered(server, name, talk(3), draw, min_words=1000)
    assert reply.answer.text == ("A:" if name == "openai-completion" else "") + said
    assert found == {}
    sent = server.requests[-1].body
    assert sent["max_tokens"] == 9 * 64
    assert not {"frequency_penalty", "presence_penalty", "stop"} & set(sent)
    written = sent.get("prompt") or sent["messages"][-1]["content"]
    assert "A: why not Rice\nB: no way" in written
    assert "A begins" in written
    assert (MIA in str(sent).replace("\\'", "'")) == (name == "gpt-3.5-turbo")


def test_a_completion_model_continues_the_papers_prompt(server: bad.Misbehaving) -> None:
    examples = [("easy", "form"), ("business", "money"), ("future", "base")]
    word = WordStimulus(id="w", task="word_association", cue="bread", version="prompted", examples=examples)
    server.acts = [bad.answer(" It is. Bob: no")] * 6 + [bad.answer(" butter Cue: x")]
    for attempt in range(6):
        about = talk(2, names=("Ann", "Bob"))
        reply, _ = answered(server, "openai-completion", about, turn(2, attempt=attempt))
        assert reply.answer.text == "It is."
    # The program's six tries: three at the first temperature, three warmer.
    turns = [request.body for request in server.requests]
    assert [body["temperature"] for body in turns] == [0.8] * 3 + [1.0] * 3
    assert server.requests[0].path == "/v1/completions"
    assert turns[0]["prompt"] == (
        "Ann greets Bob. Bob starts to talk about food. Both ask long questions, give long responses and often "
        "disagree. Then the topic changes. The conversation never ends. Ann: Hi! Bob: pasta again Ann: why not Rice "
        "Bob:"
    )
    assert (turns[0]["max_tokens"], turns[0]["stop"]) == (60, ["Bob:", "Ann:"])
    reply, _ = answered(server, "openai-completion", word, Draw(1))
    assert server.requests[-1].body["prompt"].endswith("Cue: future; Guess: base Cue: bread; Guess:")
    assert reply.answer.word == "butter"


@pytest.mark.parametrize(("room", "left_out"), [(999, [0]), (14, [0, 10]), (4, [0, 10, 15, 17]), (0, None)])
def test_the_oldest_messages_are_left_out_where_a_server_has_no_room(
    server: bad.Misbehaving, room: int, left_out: list[int] | None
) -> None:
    def answer(request: Any) -> Any:
        if str(request.body["messages"]).count("line ") <= room:
            return bad.answer("That is good to hear, my dear friend.")
        return bad.status(400, "This model's maximum context length is 512 tokens")

    server.otherwise = answer
    lines = [Utterance(speaker="BA"[number % 2], text=f"line {number};") for number in range(20)]
    stimulus = talk(0).model_copy(update={"history": lines})
    first = len(server.requests)
    if left_out is None:
        with pytest.raises(AnswerError) as raised:
            answered(server, "openai-chat", stimulus, turn(20))
        assert raised.value.code == "no_room"
        return
    reply, _ = answered(server, "openai-chat", stimulus, turn(20), lower_case=0)
    sent = [str(request.body["messages"]) for request in server.requests[first:]]
    assert [min(n for n in range(20) if f"line {n};" in text) for text in sent] == left_out
    assert all("line 19;" in text for text in sent)
    assert reply.raw["messages_left_out"] == left_out[-1]
    assert reply.answer.finish == ("stop; prompt cut" if left_out[-1] else "stop")
