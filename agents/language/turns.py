"""How the papers' models are asked for a message or a word, and what becomes of a message: the same for a model that is
run here and for one on a server.

``sampling`` is the request's, but for the stops, which are added here: a message ends where a speaker's name begins.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

from agents.contract import Draw, Reply, Verdict
from agents.language import prompts
from agents.language.engines.request import Asked, ChatMessage, Sampling
from agents.language.filters.texts import words
from agents.language.truncation import TruncationSettings, draw_length, read_lengths, truncate
from agents.stimuli import ConversationStimulus, Utterance, WordStimulus

# what is asked


def chat(
    stimulus: ConversationStimulus,
    draw: Draw,
    history: Sequence[Utterance],
    sampling: Sampling,
    *,
    part: str,
    greeting: str,
) -> Asked:
    """The next message after ``history``, of a chat model in the ``part`` that :func:`chat_part` gives."""
    name, other = prompts.speakers(stimulus, draw.options)
    messages = prompts.chat(name, history, greeting, part)
    return Asked(messages=messages, sampling=replace(sampling, stops=(f"{name}:", f"{other}:")))


def chat_part(stimulus: ConversationStimulus, draw: Draw, template: str, ages: bool) -> str:
    """The part that a chat model plays. ``template`` has {name}, {other}, {persona}, {age} and {topic}; ``ages`` says
    whether the two have ages."""
    name, other = prompts.speakers(stimulus, draw.options)
    side = (stimulus.names or prompts.SIDES).index(name)
    return prompts.filled(
        template,
        name=name,
        other=other,
        topic=stimulus.topic,
        persona=stimulus.personas[side] if stimulus.personas else None,
        age=prompts.ages(stimulus, draw.sample)[side] if ages else None,
    )


def completion(
    stimulus: ConversationStimulus, draw: Draw, history: Sequence[Utterance], sampling: Sampling, separator: str
) -> Asked:
    """The next message after ``history``, of a model that continues a text."""
    speakers = prompts.speakers(stimulus, draw.options)
    starter = prompts.first_speaker(speakers, stimulus.history)
    text = prompts.completion(speakers, stimulus.topic, history, separator, starter)
    return Asked(text, sampling=replace(sampling, stops=tuple(f"{name}:" for name in speakers)))


def completion_opening(stimulus: ConversationStimulus, draw: Draw) -> str:
    """What stands before all messages in the prompt of a model that continues a text."""
    speakers = prompts.speakers(stimulus, draw.options)
    return prompts.opening(speakers, stimulus.topic, prompts.first_speaker(speakers, stimulus.history))


def chat_word(stimulus: WordStimulus, sampling: Sampling) -> Asked:
    """A word, of a chat model."""
    text = prompts.word_question(stimulus)
    if stimulus.version == "prompted":
        text = f"{prompts.WORD_EXAMPLES}\n{prompts.word_examples(stimulus)}"
    return Asked(messages=(ChatMessage("user", text),), sampling=sampling)


def completion_word(stimulus: WordStimulus, sampling: Sampling) -> Asked:
    """A word, of a model that continues a text: what follows the question, or the example pairs up to the next one."""
    if stimulus.version == "free":
        return Asked(prompts.word_question(stimulus), sampling=sampling)
    return Asked(prompts.word_examples(stimulus), sampling=replace(sampling, stops=("Cue:",)))


def tried(draw: Draw, attempts: int) -> float:
    """How far through the attempts this one is, from 0 to 1."""
    return min(draw.attempt / max(attempts - 1, 1), 1.0)


# what becomes of what is said


def lengths(truncation: TruncationSettings | None) -> tuple[int, ...]:
    """The lengths in the file that ``truncation`` names; none if it names no file. Raises InputError."""
    return read_lengths(truncation.lengths) if truncation is not None and truncation.lengths is not None else ()


def message(
    text: str, draw: Draw, truncation: TruncationSettings | None, lengths: Sequence[int], lower_case: float
) -> str:
    """The message that is sent: on one line, cut to a length drawn by ``truncation`` from ``lengths``, and for a share
    of draws ``lower_case`` in small letters."""
    text = " ".join(text.split())
    if truncation is not None:
        text = truncate(text, draw_length(draw.seed, truncation, lengths), truncation.fallback)
    return text.lower() if random.Random(f"case {draw.seed}").random() < lower_case else text


def too_few_words(reply: Reply, least: int, attempts: int) -> Verdict | None:
    """The filter of messages of fewer than ``least`` words, before they are cut. The last of the ``attempts`` is kept
    if it has any. The record's ``text`` and ``attempt`` say what was said, and when."""
    count = len(words(reply.raw["text"]))
    if count >= max(least, 1):
        return None
    is_last = reply.raw["attempt"] + 1 >= attempts
    return Verdict("too_few_words", count == 0 or not is_last, f"{count} words: {reply.raw['text'][:200]}")
