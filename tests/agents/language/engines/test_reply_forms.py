"""The form of a model's replies is read from its chat template: templates of each kind, in this project's own words."""

from pathlib import Path
from typing import NamedTuple

import pytest

from agents.errors import AnswerError
from agents.language.engines.text_request import ChatMessage, Sampling, TextRequest
from agents.language.engines.transformers import TransformersEngine
from tests.helpers import chat_folders, tiny_language

R = "Hm, she greets me."
A = "Hi there, how are you?"


class Kind(NamedTuple):
    """``turn`` writes a message: ``{{ text }}`` is its text, ``{{ thought }}`` its thought or nothing. ``prompt`` ends
    every prompt. ``special`` are special tokens; the tokenizer names ``end`` alone as an end. ``ends``: the token that
    also ends a turn. ``replies`` are in the model's own form."""

    turn: str
    prompt: str
    special: tuple[str, ...]
    replies: tuple[str, ...]
    end: str = "<|text_end|>"
    ends: str = ""

    def template(self) -> str:
        return (
            "{% for message in messages %}{% set text = message['content'] %}{% set role = message['role'] %}"
            "{% set thought = message.get('reasoning_content') %}" + self.turn + "{% endfor %}"
            "{% if add_generation_prompt %}" + self.prompt + "{% endif %}"
        )


CHATML = "<|im_start|>{{ role }}\n{{ text }}<|im_end|>\n"
KINDS = {
    "harmony": Kind(
        "<|start|>{{ role }}{% if role == 'assistant' %}{% if thought %}<|channel|>analysis<|message|>{{ thought }}"
        "<|end|><|start|>assistant{% endif %}<|channel|>final{% endif %}<|message|>{{ text }}<|end|>",
        "<|start|>assistant",
        ("<|start|>", "<|channel|>", "<|message|>", "<|end|>"),
        (
            f"<|channel|>analysis<|message|>{R}<|end|><|start|>assistant<|channel|>final<|message|>{A}<|end|>",
            f"<|channel|>final<|message|>{A}<|end|><|start|>user<|message|>Fine.<|end|>",
        ),
    ),
    "a thought and an answer that end alike": Kind(
        "<|begin|>{{ role }}{% if thought %}<|think|>{{ thought }}<|end|><|begin|>{{ role }}{% endif %}<|content|>"
        "{{ text }}<|end|>",
        "<|begin|>assistant",
        ("<|begin|>", "<|think|>", "<|content|>", "<|end|>"),
        (
            f"<|think|>{R}<|end|><|begin|>assistant<|content|>{A}<|end|><|begin|>user<|content|>Fine.",
            f"<|content|>{A}<|end|>",
        ),
    ),
    "to whom a part goes": Kind(
        "<|start|>{{ role }}{% if role == 'assistant' %}{% if thought %} to=self<|message|>{{ thought }}<|eom|>"
        "<|start|>assistant{% endif %} to=user{% endif %}<|message|>{{ text }}<|eot|>",
        "<|start|>assistant",
        ("<|start|>", "<|message|>", "<|eom|>", "<|eot|>"),
        (f" to=self<|message|>{R}<|eom|><|start|>assistant to=user<|message|>{A}", f" to=user<|message|>{A}"),
        ends="<|eot|>",
    ),
    "elements of three tokens": Kind(
        '<|open|>message role="{{ role }}"<|sep|>{% if role == \'assistant\' %}<|open|>think<|sep|>{{ thought or "" }}'
        "<|close|>think<|sep|><|open|>response<|sep|>{{ text }}<|close|>response<|sep|>{% else %}{{ text }}{% endif %}"
        "<|close|>message<|sep|>",
        '<|open|>message role="assistant"<|sep|><|open|>{{ "think" if enable_thinking else "response" }}<|sep|>',
        ("<|open|>", "<|sep|>", "<|close|>"),
        (f"{A}<|close|>response<|sep|><|close|>message<|sep|>", A),
    ),
    "marks that no history shows": Kind(
        "<|{{ role }}_start|>{{ text }}<|{{ role }}_end|>",
        "<|assistant_start|>",
        (
            "<|assistant_start|>",
            "<|assistant_end|>",
            "<|user_start|>",
            "<|user_end|>",
            "<|inner_prefix|>",
            "<|inner_suffix|>",
        ),
        (f"<|inner_prefix|>{R}<|inner_suffix|>{A}", A),
        ends="<|assistant_end|>",
    ),
    "marks that nobody knows": Kind(
        "<|{{ role }}|>{% if thought %}{muse}{{ thought }}{/muse} {say}{% endif %}{{ text }}<|stop|>",
        "<|assistant|>",
        ("<|assistant|>", "<|user|>", "<|stop|>"),
        (f"{{muse}}{R}{{/muse}} {{say}}{A}", A),
        ends="<|stop|>",
    ),
    "a thought that the prompt opens in words": Kind(
        "<|begin_{{ role }}|>\n{% if thought %}Here are my reasoning steps:\n{{ thought }}\n[BEGIN FINAL RESPONSE]\n"
        "{% endif %}{{ text }}\n<|end|>\n",
        "<|begin_assistant|>\nHere are my reasoning steps:\n",
        ("<|begin_assistant|>", "<|begin_user|>", "<|end|>"),
        (f"{R}\n[BEGIN FINAL RESPONSE]\n{A}",),
        ends="<|end|>",
    ),
    "a thought that the prompt opens": Kind(
        CHATML,
        "<|im_start|>assistant\n<think>\n",
        ("<|im_start|>", "<|im_end|>"),
        (f"{R}\n</think>\n\n{A}",),
        ends="<|im_end|>",
    ),
    "an answer that is wrapped": Kind(
        "<|{{ role }}|>{% if role == 'assistant' %}<|START_RESPONSE|>{{ text }}<|END_RESPONSE|>{% else %}{{ text }}"
        "{% endif %}<|turn|>",
        "<|assistant|>",
        ("<|assistant|>", "<|user|>", "<|START_RESPONSE|>", "<|END_RESPONSE|>", "<|turn|>"),
        (f"<|START_RESPONSE|>{A}",),
        ends="<|END_RESPONSE|>",
    ),
    "to whom an answer goes, in words": Kind(
        "<|head|>{{ role }}\n>>>{% if role == 'assistant' %}all\n{% endif %}{{ text }}<|eot|>",
        "<|head|>assistant\n>>>",
        ("<|head|>", "<|eot|>"),
        (f"all\n{A}",),
        ends="<|eot|>",
    ),
    "the next speaker's token": Kind(
        "<|{{ role }}|>\n{{ text }}",
        "<|assistant|>\n",
        ("<|assistant|>", "<|user|>"),
        (f"<think>{R}</think>\n{A}", A),
        ends="<|user|>",
    ),
    "words alone": Kind(
        "{{ 'User' if role == 'user' else 'Assistant' }}: {{ text }}\n\n",
        "Assistant:",
        (),
        (f" {A}\n\nUser: Fine.\n\nAssistant: Good.",),
    ),
    "marks that are no tokens, behind every turn": Kind(
        "{% if loop.first and role != 'system' %}<|role|>system<|end_role|>Be kind.<|turn_end|>\n{% endif %}"
        "<|role|>{{ role }}<|end_role|>{{ text }}<|turn_end|>\n",
        "<|role|>assistant<|end_role|>",
        (),
        (f"{A}<|turn_end|>\n<|role|>user<|end_role|>Fine.", f"{A}<|turn_end|> and more"),
    ),
    "tags that are no tokens": Kind(
        "<{{ role }}>{{ text }}</{{ role }}>\n", "<assistant>", (), (f"{A}</assistant>\n<user>Fine.</user>\n",)
    ),
}
ORDINARY = [
    "analysis",
    "My final answer is moon.",
    "begin",
    "I think </think> closes a thought.",
    "Use `<answer>` in XML.",
    "all",
    "all of us",
    "Here is what I think: no.",
    "My user: nobody.",
    "to=user is an option of it.",
]


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> Kind:
    return KINDS[request.param]


def engine_of(kind: Kind, folder: Path) -> TransformersEngine:
    return chat_folders.opened(folder, kind.template(), kind.special, kind.end)


def prompt_of(engine: TransformersEngine) -> str:
    return engine._template_text([ChatMessage("user", "Hi")], False)


def test_a_reply_in_a_models_own_form_leaves_exactly_its_answer(kind: Kind, tmp_path: Path) -> None:
    engine = engine_of(kind, tmp_path)
    for text in kind.replies:
        said = chat_folders.reply(engine, prompt_of(engine), text)
        assert said.text.strip() == A
        assert (said.reasoning or R) == R


def test_ordinary_words_stay_as_they_are(kind: Kind, tmp_path: Path) -> None:
    engine = engine_of(kind, tmp_path)
    opened = "think" in prompt_of(engine) or "reasoning steps" in prompt_of(engine)
    for text in ORDINARY:
        written = f"{R}</think>{text}" if opened else text
        if "reasoning steps" in prompt_of(engine):
            written = f"{R}\n[BEGIN FINAL RESPONSE]\n{text}"
        assert chat_folders.reply(engine, prompt_of(engine), written).text == text


def test_the_token_that_a_template_writes_behind_a_turn_ends_it(kind: Kind, tmp_path: Path) -> None:
    engine = engine_of(kind, tmp_path)
    ends = engine._tokenizer.convert_ids_to_tokens(engine._end_tokens(None))
    assert set(ends) == {kind.end, kind.ends} - {""}


def test_a_reply_that_is_cut_before_its_answer_has_none(tmp_path: Path) -> None:
    engine = engine_of(KINDS["harmony"], tmp_path)
    whole = f"<|channel|>analysis<|message|>{R}<|end|><|start|>assistant<|channel|>final<|message|>"
    marks = ("<|channel|>", "analysis", "<|message|>", R, "<|end|>", "<|start|>", "assistant", "<|channel|>", "final")
    for count in range(3, len(marks) + 1):
        text = "".join(marks[:count])
        assert whole.startswith(text)
        with pytest.raises(AnswerError) as caught:
            chat_folders.reply(engine, "<|start|>assistant", text, is_full=True)
        assert caught.value.code == "unfinished_reasoning"


def test_a_local_reply_that_cannot_be_parted_is_no_answer(tmp_path: Path) -> None:
    engine = engine_of(KINDS["the next speaker's token"], tmp_path)
    with pytest.raises(AnswerError) as caught:
        chat_folders.reply(engine, prompt_of(engine), f"{R}\n</think>\n\n{A}")
    assert caught.value.code == "reasoning_unparted"
    assert caught.value.raw["raw"] == f"{R}\n</think>\n\n{A}"


@pytest.mark.parametrize("special", [True, False], ids=["a token", "several tokens"])
def test_a_model_whose_end_no_configuration_names_speaks_for_itself_alone(tmp_path: Path, special: bool) -> None:
    """The model goes on behind the end of its turn, as one does that no end stops."""
    turn = "{% for message in messages %}<|start|>{{ message['role'] }} {{ message['content'] }}END\n{% endfor %}"
    mark = "[/THINK]" if special else "end"
    template = turn.replace("END", mark) + "{% if add_generation_prompt %}<|start|>assistant Q{% endif %}"
    said = ("a", "b", mark, "c", "d") if special else ("a", "b", "e", "n", "d", "f", "g")
    engine = TransformersEngine(tiny_language.scripted(tmp_path, template, *said))
    engine.open(chat=True)
    engine.load("cpu")
    heard: list[str] = []
    asked = TextRequest(messages=(ChatMessage("user", "Hi"),), sampling=Sampling(0.0, max_tokens=20), say=heard.append)
    [text] = engine.generate_batch([asked], [0])
    assert (text.text, text.finish) == ("ab", "stop")
    assert all("ab".startswith(each) for each in heard)
