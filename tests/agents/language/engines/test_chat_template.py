"""What is made of chats by templates of each kind that published models have, beside ``apply_chat_template``."""

import datetime
import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from transformers import AutoTokenizer
from transformers.utils import chat_template_utils

from agents.capabilities import identity_of
from agents.contract import Draw
from agents.errors import AnswerError, UnavailableError
from agents.language.chat import LocalChatAgent
from agents.language.engines.chat_template import ChatTemplate
from agents.language.engines.text_request import ChatMessage, Sampling, TextRequest
from agents.language.engines.transformers import TransformersEngine
from agents.models.loading import unusable_template
from agents.stimuli import ConversationStimulus, Utterance, WordStimulus
from serving.runs.run_json import difference
from tests.helpers import chat_templates as kinds
from tests.helpers import tiny_language

SYSTEM = ChatMessage("system", "You are Ann, and find long books boring.")
USER = ChatMessage("user", "How are you?")
ANSWER = ChatMessage("assistant", "Fine.")
BEGUN = [(SYSTEM,), (SYSTEM, ANSWER, USER), (SYSTEM, ANSWER, USER, ANSWER, USER)]  # by the assistant
ALL = [(USER,), (SYSTEM, USER), (SYSTEM, USER, ANSWER, USER), *BEGUN]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_language.llama(tmp_path_factory.mktemp("templates"))


Made = Callable[[str], ChatTemplate]


@pytest.fixture(scope="module")
def made(folder: Path) -> Made:
    tokenizer = AutoTokenizer.from_pretrained(folder)
    return lambda template: ChatTemplate(tokenizer, template)


def by_transformers(folder: Path, template: str, *chat: ChatMessage, **variables: Any) -> str:
    """The published way of making a prompt."""
    messages = [{"role": message.role, "content": message.text} for message in chat]
    tokenizer = AutoTokenizer.from_pretrained(folder)
    text = tokenizer.apply_chat_template(
        messages, chat_template=template, add_generation_prompt=True, tokenize=False, **variables
    )
    return str(text)


# system texts


@pytest.mark.parametrize("chat", ALL, ids=len)
@pytest.mark.parametrize("name", ["PLAIN", "DEFAULT", "CHANGES_A_WORD", "NAMES_THE_EFFORT", "OPENED_BY_ANY_EFFORT"])
def test_a_template_that_keeps_what_it_is_given_makes_the_prompt(
    folder: Path, made: Made, name: str, chat: tuple[ChatMessage, ...]
) -> None:
    template = getattr(kinds, name)
    assert made(template).prompt(chat) == by_transformers(folder, template, *chat)


@pytest.mark.parametrize("name", ["INTO_THE_LAST", "INTO_THE_FIRST", "INTO_THE_FIRST_BY_TURNS"])
def test_a_system_text_that_is_lost_where_the_assistant_begins_is_the_first_user_message(
    folder: Path, made: Made, name: str
) -> None:
    template = getattr(kinds, name)
    own = made(template)
    assert own.begins == "merged"
    assert SYSTEM.text not in by_transformers(folder, template, SYSTEM)
    for chat in BEGUN:
        as_user = (ChatMessage("user", SYSTEM.text), *chat[1:])
        assert own.prompt(chat) == by_transformers(folder, template, *as_user)
        assert own.prompt(chat).count(SYSTEM.text) == 1
    for chat in ALL[:3]:  # where the user begins it is as the template has it
        assert own.prompt(chat) == by_transformers(folder, template, *chat)


def test_a_template_without_a_system_role_gets_it_as_before(folder: Path, made: Made) -> None:
    own = made(kinds.WITHOUT_SYSTEM)
    assert (own.takes_system, own.begins) == (False, "kept")
    for chat in BEGUN:
        as_user = (ChatMessage("user", SYSTEM.text), *chat[1:])
        assert own.prompt(chat) == by_transformers(folder, kinds.WITHOUT_SYSTEM, *as_user)
    merged = ChatMessage("user", f"{SYSTEM.text}\n\n{USER.text}")
    assert own.prompt((SYSTEM, USER)) == by_transformers(folder, kinds.WITHOUT_SYSTEM, merged)


@pytest.mark.parametrize(("name", "chat"), [("BY_TURNS", BEGUN[1]), ("BY_TURNS", BEGUN[2]), ("WANTS_A_USER", BEGUN[0])])
def test_a_refused_chat_says_that_an_opening_helps_and_it_does(
    folder: Path, made: Made, name: str, chat: tuple[ChatMessage, ...]
) -> None:
    own = made(getattr(kinds, name))
    with pytest.raises(AnswerError, match=r'the setting AGENT\.opening="\(the chat begins\)" \(--set\)'):
        own.prompt(chat)
    opened = (chat[0], ChatMessage("user", "(the chat begins)"), *chat[1:])
    assert own.prompt(opened) == by_transformers(folder, getattr(kinds, name), *opened)


def test_what_no_opening_helps_promises_none(made: Made) -> None:
    with pytest.raises(AnswerError) as caught:
        made(kinds.WANTS_NO_ASSISTANT).prompt(BEGUN[1])
    assert "opening" not in str(caught.value)
    with pytest.raises(AnswerError, match=r"no two messages of one speaker in a row"):
        made(kinds.BY_TURNS).prompt((SYSTEM, USER, USER))


def test_a_system_text_is_never_lost_in_silence(made: Made) -> None:
    own = made(kinds.DROPS_ALL)  # which kept a short one
    assert own.takes_system
    with pytest.raises(AnswerError, match="drops the instructions of this chat"):
        own.prompt((SYSTEM, USER))


# dates


def test_an_earlier_answer_is_not_cut_in_silence(made: Made) -> None:
    template = made(kinds.WITHOUT_EARLIER_THOUGHTS)
    user = ChatMessage("user", "What closes a thought?")
    answers = {"The mark </think> closes a thought.": False, "A mark.": True, "No </thing> here.": True}
    for text, is_whole in answers.items():
        chat = (user, ChatMessage("assistant", text), ChatMessage("user", "And?"))
        if is_whole:
            assert text in template.prompt(chat)
        else:
            with pytest.raises(AnswerError, match="drops words of an earlier answer, which has the mark </think>"):
                template.prompt(chat)


@pytest.mark.parametrize("name", ["WITHOUT_ANSWERS", "THE_LAST_ALONE", "BACKWARDS"])
def test_a_template_that_loses_earlier_messages_is_for_single_questions(made: Made, name: str) -> None:
    template = made(getattr(kinds, name))
    assert USER.text in template.prompt((USER,))
    with pytest.raises(AnswerError, match="leaves out earlier messages, or writes them in another order"):
        template.prompt((USER, ChatMessage("assistant", "Yes."), ChatMessage("user", "And?")))


def test_no_prompt_has_todays_date(folder: Path, made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    class Tomorrow(datetime.datetime):
        @classmethod
        def now(cls, tz: Any = None) -> "Tomorrow":
            return cls(2031, 3, 5)

    names = ("ASKS_FOR_THE_TIME", "ASKS_WITHOUT_SYSTEM", "TAKES_A_DATE")
    before = [made(getattr(kinds, name)).prompt((USER,)) for name in names]
    monkeypatch.setattr(chat_template_utils, "datetime", Tomorrow)
    after = [made(getattr(kinds, name)).prompt((USER,)) for name in names]
    assert "2031" in by_transformers(folder, kinds.ASKS_FOR_THE_TIME, USER)  # the clock that templates get is replaced
    assert before == after
    found = [text.partition("<|start|>")[0].strip() for text in after]
    assert found == ["Today is 26 July 2024.", "Today is 2024-07-26.", "Today Date: 26 Jul 2024"]


@pytest.mark.parametrize(
    ("name", "asks", "takes"),
    [
        ("ASKS_FOR_THE_TIME", True, True),
        ("ASKS_WITHOUT_SYSTEM", True, True),
        ("TAKES_A_DATE", False, True),
        ("PLAIN", False, False),
    ],
)
def test_who_is_told_a_date(made: Made, name: str, asks: bool, takes: bool) -> None:
    own = made(getattr(kinds, name))
    assert (own.asks_for_the_time, own.takes_a_date) == (asks, takes)


# switches


@pytest.mark.parametrize(
    ("name", "off", "on"),
    [
        ("BY_REASONING", {"reasoning": False}, {}),
        ("BY_BUDGET", {"thinking_budget": 0}, {}),
        ("BY_MODE", {"thinking_mode": "disabled"}, {}),
        ("BY_EFFORT", {}, {"reasoning_effort": "high"}),
        ("BY_LEAST_EFFORT", {"reasoning_effort": "minimal"}, {}),
        ("OPENED_BY_ANY_EFFORT", {}, {}),
        ("NAMES_THE_EFFORT", {}, {}),
        ("BY_THINKING", {}, {}),
        ("PLAIN", {}, {}),
    ],
)
def test_switches_are_found_in_the_template(
    folder: Path, made: Made, name: str, off: dict[str, Any], on: dict[str, Any]
) -> None:
    template = getattr(kinds, name)
    own = made(template)
    assert (own.switches(False), own.switches(True)) == (off, on)
    closed = by_transformers(folder, template, USER, enable_thinking=False, **off)
    opened = by_transformers(folder, template, USER, enable_thinking=True, **on)
    assert (own.prompt((USER,)), own.prompt((USER,), thinks=True)) == (closed, opened)


# agents


def agent_of(folder: Path, template: str, **chosen: Any) -> LocalChatAgent:
    tiny_language.llama(folder, template=template)
    return LocalChatAgent(LocalChatAgent.Settings(checkpoint=str(folder), **chosen), "tiny")


@pytest.mark.parametrize(
    ("name", "chosen", "effects"),
    [
        ("PLAIN", {}, {}),
        ("PLAIN", {"program": "gpt-3.5", "reasoning_tokens": 5}, {}),
        ("DEFAULT", {}, {}),
        ("TAKES_A_DATE", {}, {}),
        ("WITHOUT_SYSTEM", {"program": "gpt-3.5"}, {}),
        ("BY_TURNS", {"program": "gpt-3.5"}, {}),
        ("INTO_THE_LAST", {}, {}),  # whose user speaks first
        ("INTO_THE_LAST", {"program": "judge"}, {}),
        ("INTO_THE_LAST", {"program": "gpt-3.5", "opening": "(the chat begins)"}, {}),
        ("INTO_THE_LAST", {"program": "gpt-3.5"}, {"instructions": "first user message where the agent begins"}),
        ("ASKS_FOR_THE_TIME", {}, {"date": "2024-07-26"}),
        ("ASKS_WITHOUT_SYSTEM", {"date": "2025-01-02"}, {"date": "2025-01-02"}),
        ("BY_BUDGET", {}, {"switches": {"thinking_budget": 0}}),
        ("BY_BUDGET", {"reasoning_tokens": 100}, {}),
        ("BY_EFFORT", {"reasoning_tokens": 100}, {"switches": {"reasoning_effort": "high"}}),
    ],
)
def test_the_digest_changes_only_where_the_prompts_do(
    tmp_path: Path, name: str, chosen: dict[str, Any], effects: dict[str, Any]
) -> None:
    agent = agent_of(tmp_path, getattr(kinds, name), **chosen)
    assert agent.template_effects() == effects
    expected = agent.settings.identity() | ({"chat_template": effects} if effects else {})
    assert identity_of(agent) == expected
    later = {"date", "opening"} & chosen.keys()
    assert {"date", "opening"} & agent.settings.identity().keys() == later


def test_a_refused_resume_says_what_the_template_does() -> None:
    before: dict[str, Any] = {"checkpoint": "c", "revision": None, "settings": {"top_k": 0}}
    now = before | {"settings": {"top_k": 0, "date": "2024-07-26"}, "chat_template": {"date": "2024-07-26"}}
    assert difference(before, now) == (
        "its chat template makes other prompts than those of the run (date was as the template has it, is 2024-07-26)"
    )


def test_limits_name_what_becomes_of_instructions(tmp_path: Path) -> None:
    agent = agent_of(tmp_path, kinds.INTO_THE_LAST, program="gpt-3.5")
    agent.open()
    assert any("drops instructions where it begins" in limit for limit in agent.limits())
    other = agent_of(tmp_path, kinds.INTO_THE_LAST, program="gpt-3.5", opening="Hi")
    other.open()
    assert not any("drops instructions" in limit for limit in other.limits())


def test_an_opening_stands_before_every_chat_that_the_agent_begins(folder: Path) -> None:
    chosen = LocalChatAgent.Settings(checkpoint=str(folder), program="gpt-3.5", opening="(the chat begins)")
    agent = LocalChatAgent(chosen, "tiny")
    agent.open()
    stimulus = ConversationStimulus(
        id="s", task="conversation", names=("Ann", "Bob"), topic="music", personas=("calm", "calm")
    )
    draw = Draw(1, options={"speaker": "A", "turn": 0})
    first = agent._turn(stimulus, draw, [])
    said = [Utterance(speaker="Ann", text="Hello."), Utterance(speaker="Bob", text="Hey.")]
    later = agent._turn(stimulus, Draw(1, options={"speaker": "A", "turn": 2}), said)
    assert [message.role for message in first.messages] == ["system", "user"]
    assert [message.role for message in later.messages] == ["system", "user", "assistant", "user"]
    assert first.messages[1].text == later.messages[1].text == "(the chat begins)"
    answered = agent._turn(stimulus, Draw(1, options={"speaker": "B", "turn": 1}), said[:1])
    assert [message.text for message in answered.messages[1:]] == ["Hello."]  # the other began


def test_the_prompt_of_a_word_is_hashed_in_its_record(tmp_path: Path) -> None:
    agent = agent_of(tmp_path, kinds.ASKS_FOR_THE_TIME, word_tokens=3)
    stimulus = WordStimulus(id="w", task="word_association", cue="dog")
    agent.open()
    agent.load("cpu")
    prompt = agent.prompt(stimulus, Draw(1))
    assert prompt is not None
    assert prompt.startswith("Today is 26 July 2024.")
    [reply] = agent.respond([stimulus], [Draw(1)])
    assert reply.raw["prompt_sha256"] == hashlib.sha256(prompt.encode()).hexdigest()
    assert reply.raw["prompt_date"] == "2024-07-26"
    assert str(agent.template_adds()).startswith("Today is 26 July 2024.")


def test_a_persons_history_is_hashed_alone(tmp_path: Path) -> None:
    (tmp_path / "ann.jsonl").write_text('{"speaker": "person", "text": "My secret."}\n')
    agent = agent_of(tmp_path / "model", kinds.PLAIN, person=tmp_path / "ann.jsonl")
    agent.open()
    stimulus = ConversationStimulus(id="s", task="conversation", names=("Ann", "Bob"))
    draw = Draw(1, options={"speaker": "A", "turn": 0})
    request = agent.fitted_request(stimulus, draw)
    assert "My secret." in agent._engine.prompt_text(request)
    assert agent.prompt(stimulus, draw) == ""
    assert agent._engine.about_prompt(request).keys() == {"prompt_sha256"}


@pytest.mark.parametrize("name", ["WANTS_FUNCTIONS", "WANTS_TOOLS"])
def test_templates_that_refuse_every_chat_are_found_before_they_are_opened(tmp_path: Path, name: str) -> None:
    tiny_language.llama(tmp_path, template=getattr(kinds, name))
    with pytest.raises(UnavailableError, match="refuses this chat"):
        TransformersEngine(tmp_path).open(chat=True)
    assert "refuses every chat" in str(unusable_template(tmp_path))


def test_a_token_of_the_tokenizers_class_is_no_reason_to_refuse(tmp_path: Path) -> None:
    tiny_language.llama(tmp_path, template="{{ image_token + '' }}" + kinds.PLAIN)
    assert unusable_template(tmp_path) is None


def test_a_rendered_prompt_keeps_no_pixels(folder: Path) -> None:
    engine = TransformersEngine(folder, template=kinds.PLAIN)
    engine.open(chat=True)
    request = TextRequest(messages=(USER,), sampling=Sampling())
    assert engine.tokens(request) == engine.tokens(request)
    assert engine.chat_template.prompt.cache_info().hits >= 1
