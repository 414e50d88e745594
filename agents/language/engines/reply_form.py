"""The form of a model's replies, read from its chat template.

A template writes earlier turns as the model writes its own. So a chat with known words is rendered, and what stands
around the assistant's words is the model's form: what opens and closes its thoughts, what wraps its answer, what ends
its turn.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from agents.language.engines.reply_marks import THOUGHTS, WORDED_THOUGHTS, Mark
from agents.language.engines.reply_parts import ReplyForm

HEADER_END = 40
"""How many characters at a header's end may hold the beginning of the answer's mark."""
MARK = re.compile(r"<[^<>\s]{1,60}>|\[[^\[\]\s]{1,60}[\[\]]")
"""A mark in brackets, as templates write where they have no token for it."""

Render = Callable[[Sequence[Mapping[str, Any]], bool, bool], str]
"""A template: (messages, whether the prompt for a reply follows, whether the model is to think) to a text."""

QUESTION = "Questionone"
"""The known words of a question, by which it is found in a rendered chat."""
THOUGHT = "Thoughttext"
"""The known words of a thought."""
ANSWER = "Answertext"
"""The known words of an answer."""
NEXT = "Questiontwo"
"""The known words of a second question."""
USER = {"role": "user", "content": QUESTION}
"""The question as a message."""
ASSISTANT = {"role": "assistant", "content": ANSWER}
"""The answer as a message."""
THINKING = {**ASSISTANT, **dict.fromkeys(("reasoning_content", "reasoning", "thinking", "thoughts"), THOUGHT)}
"""The answer with a thought, under every name that templates have for one."""
FOLLOWING = {"role": "user", "content": NEXT}
"""The second question as a message."""


@dataclass(frozen=True, slots=True)
class LearnedForm:
    """What a template tells of a model's replies."""

    form: ReplyForm
    """The marks of thoughts and answers."""
    end: str = ""
    """The token that ends an assistant's turn and nothing else; "" where the template writes none such."""


def learned(render: Render, source: str, tokens: Iterable[str]) -> LearnedForm:
    """The form of a model's replies.

    - ``render``: the template; it may raise anything
    - ``source``: the template's text
    - ``tokens``: the texts of all tokens that were added to the vocabulary
    """
    worded = tuple(mark for mark in WORDED_THOUGHTS if any(text in source for text in (mark.opens, *mark.closes)))
    form = ReplyForm(worded=worded)
    chat = _rendered(render, [USER, ASSISTANT, FOLLOWING])
    prompts = [prompt for thinks in (False, True) if (prompt := _behind(render, [USER], True, thinks))]
    if chat is None or not prompts:
        return LearnedForm(form)
    begun, between = chat
    form, parting = _with_thoughts(render, form, prompts)
    form = _with_wrapper(form, begun, max(len(_common_start([begun, prompt])) for prompt in prompts))
    return _with_end(form, source, between, parting, _before_question(render), tokens)


def _rendered(render: Render, messages: Sequence[Mapping[str, Any]]) -> tuple[str, str] | None:
    """What stands between the first question and the answer, and between the answer and what follows it."""
    text = _behind(render, messages, False, True)
    before, has_answer, after = text.partition(ANSWER)
    return (before, after.partition(NEXT)[0]) if has_answer else None


def _behind(render: Render, messages: Sequence[Mapping[str, Any]], is_prompt: bool, thinks: bool) -> str:
    """What stands behind the first question, or "" where the template refuses the chat."""
    try:
        text = render(messages, is_prompt, thinks)
    except Exception:  # whatever the program in a template raises: other chats tell more
        return ""
    return text.partition(QUESTION)[2]


def _before_question(render: Render) -> str:
    try:
        return render([USER], False, False).partition(QUESTION)[0]
    except Exception:  # as above
        return ""


def _with_thoughts(render: Render, form: ReplyForm, prompts: Sequence[str]) -> tuple[ReplyForm, str]:
    """With the marks around what the assistant thinks, where they are new; and all that parts it from the answer."""
    for messages in ([USER, THINKING], [USER, THINKING, FOLLOWING]):
        text = _behind(render, messages, False, True)
        before, has_thought, rest = text.partition(THOUGHT)
        middle, has_answer, _ = rest.partition(ANSWER)
        if not has_thought or not has_answer or not middle.strip():
            continue
        for start in _mark_starts(before):
            parts = form.parts(f"{before[start:]}{THOUGHT}{middle}{ANSWER}")
            if (parts.thought, parts.answer) == (THOUGHT, ANSWER):
                return form, middle
        for begun in filter(None, map(form.begun, prompts)):
            parts = form.parts(f"{THOUGHT}{middle}{ANSWER}", begun)
            if (parts.thought, parts.answer) == (THOUGHT, ANSWER):
                return form, middle
        header = _whole_marks(max((_common_start([before, prompt]) for prompt in prompts), key=len))
        # Where the prompt itself opens the thought, the mark is the end of the prompt, on a line of its own.
        opens = before[len(header) :].strip() or prompts[-1].strip().rpartition("\n")[2]
        closes, *others = middle.split()
        form = replace(form, thoughts=(*form.thoughts, Mark(opens, (closes,))))
        if others:
            form = replace(form, answers=(*form.answers, Mark(" ".join(others), ())))
        return form, middle
    return form, ""


def _with_wrapper(form: ReplyForm, begun: str, header: int) -> ReplyForm:
    """With what stands before an answer without thoughts, where it is new. ``begun`` is what stands between question
    and answer, and its first ``header`` characters are in every prompt."""
    just_before = [start for start in _mark_starts(begun) if header - HEADER_END <= start < header]
    for start in (header, *just_before):
        parts = form.parts(f"{begun[start:]}{ANSWER}")
        if parts.answer is None or parts.answer.lstrip() == ANSWER:
            return form
    before = begun[len(_whole_marks(begun[:header])) :]
    return replace(form, answers=(*form.answers, Mark(before.lstrip(), ())))


def _mark_starts(text: str) -> list[int]:
    """Where marks may begin, the last first."""
    return [index for index in range(len(text) - 1, -1, -1) if text[index] in "<[◁"]


def _whole_marks(text: str) -> str:
    """Without a mark at the end that is not whole."""
    start = max(text.rfind("<"), text.rfind("["), text.rfind("◁"))
    is_open = start >= 0 and not any(end in text[start:] for end in (">", "]", "▷"))
    return text[:start] if is_open else text


def _with_end(
    form: ReplyForm, source: str, between: str, parting: str, first: str, tokens: Iterable[str]
) -> LearnedForm:
    """With what ends an answer, of what stands ``between`` it and the next question: the token behind it, or the text
    up to that question's header. ``parting`` parts a thought from its answer, ``first`` stands before a chat's
    question."""
    behind = between.lstrip()
    end = max((token for token in tokens if token.strip() and behind.startswith(token)), key=len, default="")
    if end:
        own_marks = [mark for mark in form.thoughts if mark not in THOUGHTS or mark.opens in source]
        if end in parting or any(end in close for mark in own_marks for close in mark.closes):
            return LearnedForm(replace(form, ends=(*form.ends, end)))
        return LearnedForm(form, end)
    # No token of the tokenizer's: a mark in brackets, or the next question's header, which begins the chat, too.
    if (mark := MARK.match(behind)) is not None:
        return LearnedForm(replace(form, ends=(*form.ends, mark[0])))
    header = _common_start([between[::-1], first[::-1]])[::-1]
    words = between[: len(between) - len(header)].strip() or between.rstrip()
    return LearnedForm(replace(form, ends=(*form.ends, words)) if words.strip() else form)


def _common_start(texts: Sequence[str]) -> str:
    """The longest text with which all ``texts`` begin."""
    length = 0
    for letters in zip(*texts, strict=False):
        if len(set(letters)) > 1:
            break
        length += 1
    return texts[0][:length]
