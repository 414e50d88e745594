"""What a model thinks before it answers, told apart from its answer: in the texts of servers, and as errors."""

from __future__ import annotations

import re
from typing import Literal

from agents.contract import Finding, Reply
from agents.errors import AnswerError
from agents.language.engines.reply_parts import ReplyForm, ReplyParts, closed
from agents.language.engines.text_request import GeneratedText
from agents.stimuli import Stimulus

Thinks = Literal["marks", "opened", "none"]
"""How a server's texts have the model's thoughts: between marks, before a mark (the prompt opened them), or not
at all."""

SERVED = ReplyForm(cuts_turns=True)
"""The form of servers' texts: marks of every known model, and marks of a turn's end."""
HARMONY = re.compile(r"\s*(?:analysis|commentary)(?=[^\W\d_])")
"""gpt-oss without its marks: "analysisThe user …assistantfinalHello". A server that takes special tokens out of its
texts, as vLLM does without --reasoning-parser, leaves only this. The marks of Seed-OSS,
Ministral, Magistral, Cohere's models and Apertus are taken out whole, and nobody can part their texts."""
FINAL = re.compile(r"\s*final(?=[A-Z])")
"""The same without a thought."""
NAMED_FORM = re.compile(r" ?json\s*(?=[{\[A-Z])")
"""The name of a form, which gpt-oss writes behind its channel."""
GEMMA = re.compile(r"\s*thought\n(?=\S)")
"""Gemma 4 without its marks: "thought", what it thinks, and the answer right behind."""
SOLAR = re.compile(r"(?:[.!?…)\]\"”]|(?<=[a-z]))assistant(?=[A-Z])|[.!?…]assistant(?=[a-z])")
"""Solar Open without its marks."""
MUSE = re.compile(r"\s*to=(?:self|user)(?=[^\s<])")
"""MuseGlimmer without its marks."""


def parted(text: str, thinks: Thinks = "marks", *, is_whole: bool = True, has_thought: bool = False) -> ReplyParts:
    """The parts of a server's text.

    - ``thinks``: how thoughts are told, see :data:`Thinks`
    - ``is_whole``: the model ended the text itself
    - ``has_thought``: the server sent the thoughts apart from the text
    """
    if thinks == "none":
        return ReplyParts(None, text)
    if not has_thought:
        if (left := _without_marks(text, is_whole=is_whole)) is not None:
            return left
        if thinks == "opened" and not SERVED.begins_thought(text):
            return closed(text, SERVED)
    return SERVED.parts(text, is_whole=is_whole, has_thought=has_thought)


def _without_marks(text: str, *, is_whole: bool) -> ReplyParts | None:
    """The parts of a text that has lost its marks, or None."""
    thought, final, answer = text.rpartition("assistantfinal")
    begins = HARMONY.match(text)
    if (answer_begins := FINAL.match(text)) is not None:
        return ReplyParts(None, text[answer_begins.end() :])
    if final:
        answer = NAMED_FORM.sub("", answer, count=1) if NAMED_FORM.match(answer) else answer
        return ReplyParts(thought[begins.end() :] if begins else thought, answer)
    if begins is not None:
        fault = "the reply begins with gpt-oss's channel of analysis, and no answer follows" if is_whole else None
        return ReplyParts(text[begins.end() :], None, fault=fault)
    if "thinkresponse" in text or text.rstrip().endswith("responsemessage"):  # Kimi K3
        thought, parts_it, answer = text.rpartition("thinkresponse")
        return ReplyParts(thought if parts_it else None, answer.rstrip().removesuffix("responsemessage"))
    if (begins := MUSE.match(text)) is not None:
        thought, parts_it, answer = text.partition("to=user")
        thought = thought.strip().removeprefix("to=self").removesuffix("assistant")
        return ReplyParts(thought or None, answer if parts_it else None)
    found = GEMMA.match(text) or SOLAR.search(text)
    if found is None:
        return None
    return ReplyParts(None, text, fault=f"{found[0].strip()!r} in the reply is left of marks that the server took out")


def reasoning_mark(stimulus: Stimulus, reply: Reply) -> Finding | None:
    """The filter that notes replies in which a mark of a thought stands, such as "</think>".

    The reply stays as it is. Whether the model talks about the mark, or thinks aloud, is for a reader to say.
    """
    text = reply.raw.get("text") if isinstance(reply.raw, dict) else None
    if not isinstance(text, str):
        return None
    marks = SERVED.lone_marks(text)
    return Finding("reasoning_mark", False, ", ".join(marks)) if marks else None


def unfinished(text: GeneratedText) -> AnswerError:
    """The error of a reply that ended within the model's thoughts."""
    why = "the model ended its reply within its reasoning"
    if text.finish == "length":
        why = "the reply's tokens did not suffice for its reasoning: raise reasoning_tokens"
    return AnswerError("unfinished_reasoning", why, text.record())


def unparted(text: GeneratedText, why: str, advice: str) -> AnswerError:
    """The error of a reply in which nothing tells what is the answer; ``advice`` says what to do."""
    return AnswerError("reasoning_unparted", f"{why}: {advice}", text.record())
