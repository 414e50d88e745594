"""What text models are asked: pure functions of a stimulus, the speaker whose turn it is, and what was said.

The prompt of completion models, the question and the example pairs of word association are the papers' own (2022
paper, S6.1.3 and S7.1.4; 2025 paper, Methods). That of chat models is not in the papers; it is reconstructed here, in
our words, from what is known of it.
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from agents.contract import Draw
from agents.language.engines.request import ChatMessage, Sampling, TextRequest
from agents.stimuli import ConversationStimulus, Utterance, WordStimulus

SIDES = ("A", "B")
GREETING = "Hi!"
COMPLETION = (
    "{greeter} greets {starter}. {starter} starts to talk about {topic}. Both ask long questions, give long responses "
    "and often disagree. Then the topic changes. The conversation never ends."
)
CHAT = """You are {name}, a person, and {other} is your friend. The two of you are texting.
You are {persona}.
You are {age} years old.
You talk about {topic}. Once a subject is worn out, turn to another one without saying so.
You have your own opinions: do not agree with everything, do not praise {other}, and do not say anything twice.
Write as people do on a phone: very informal, sparing with punctuation, fewer than 20 tokens. One spelling mistake is \
fine.
Not every message is a question.
Answer with your next message and nothing else."""
PLAIN = """Use no emojis, and no asterisks for what you do.
Never say who you are meant to be, and never begin the conversation again or sum it up."""
WORD_QUESTION = "Name a word that you associate with {cue}? Please provide your answer with only one word."
WORD_EXAMPLES = "Please complete the prompt below:"

_PLACEHOLDER = re.compile(r"\{(\w+)\}")


def filled(template: str, **values: object) -> str:
    """``template`` with each ``{name}`` replaced; a line that names a value which is None or "" is left out."""
    absent = {name for name, value in values.items() if value is None or value == ""}
    lines = [line for line in template.split("\n") if not absent.intersection(_PLACEHOLDER.findall(line))]
    return _PLACEHOLDER.sub(lambda found: str(values.get(found[1], found[0])), "\n".join(lines))


def speakers(stimulus: ConversationStimulus, options: Mapping[str, Any]) -> tuple[str, str]:
    """The names of who is asked and of the other: the side that ``options`` names, or else who did not speak last."""
    first, second = stimulus.names or SIDES
    side = options.get("speaker")
    if side is None:
        side = SIDES[bool(stimulus.history) and stimulus.history[-1].speaker == first]
    return (first, second) if side == "A" else (second, first)


def drawn(stimulus: ConversationStimulus, sample: int, what: str) -> random.Random:
    """Random numbers for ``what`` that are the same at every turn of one conversation, and for both of its speakers.

    A turn's own seed is another at each turn; what was drawn for this conversation, its names above all, is not.
    """
    about = (what, stimulus.id, sample, stimulus.names, stimulus.topic, stimulus.personas)
    return random.Random("\n".join(map(str, about)))


def ages(stimulus: ConversationStimulus, sample: int) -> tuple[int, int]:
    """The ages of A and B in years: A's from 18 to 70, B's within five years of it and of these limits."""
    numbers = drawn(stimulus, sample, "ages")
    first = numbers.randint(18, 70)
    return first, numbers.randint(max(18, first - 5), min(70, first + 5))


def greeting(stimulus: ConversationStimulus, sample: int, choices: Sequence[str]) -> str:
    """One of ``choices`` for this conversation, with the topic in the place of ``{topic}``, on one line."""
    chosen = drawn(stimulus, sample, "greeting").choice(choices)
    return " ".join(filled(chosen, topic=stimulus.topic).split("\n"))


def completion_opening(stimulus: ConversationStimulus, draw: Draw) -> str:
    """What the papers' prompt for completion models tells of the two speakers before either speaks."""
    greeter, starter = _first_two(stimulus, draw)
    return filled(COMPLETION, greeter=greeter, starter=starter, topic=stimulus.topic or "something")


def completion_request(
    stimulus: ConversationStimulus, draw: Draw, history: Sequence[Utterance], sampling: Sampling, separator: str = " "
) -> TextRequest:
    """The next message after ``history``, of a model that continues a text: the papers' prompt, what was said, and the
    name of the one whose turn it is. A message ends where a speaker's name begins.

    "John greets Alice. Alice starts to talk about movies. […] John: Hi! Alice: […] John: […] Alice:". The one who
    greets is not the one who says the first message.
    """
    name, _ = speakers(stimulus, draw.options)
    greeter, _ = _first_two(stimulus, draw)
    said = [f"{one.speaker}: {' '.join(one.text.split())}" for one in history]
    text = separator.join([completion_opening(stimulus, draw), f"{greeter}: {GREETING}", *said, f"{name}:"])
    return TextRequest(text, sampling=replace(sampling, stops=_names_begin(stimulus, draw)))


def _first_two(stimulus: ConversationStimulus, draw: Draw) -> tuple[str, str]:
    """Who greets, and who says the first message after it: the one who did, or who is asked now."""
    name, other = speakers(stimulus, draw.options)
    other_starts = bool(stimulus.history) and stimulus.history[0].speaker == other
    return (name, other) if other_starts else (other, name)


def _names_begin(stimulus: ConversationStimulus, draw: Draw) -> tuple[str, ...]:
    return tuple(f"{name}:" for name in speakers(stimulus, draw.options))


def chat_part(stimulus: ConversationStimulus, draw: Draw, template: str, has_ages: bool) -> str:
    """The part that a chat model plays. ``template`` has {name}, {other}, {persona}, {age} and {topic}."""
    name, other = speakers(stimulus, draw.options)
    side = (stimulus.names or SIDES).index(name)
    return filled(
        template,
        name=name,
        other=other,
        topic=stimulus.topic,
        persona=stimulus.personas[side] if stimulus.personas else None,
        age=ages(stimulus, draw.sample)[side] if has_ages else None,
    )


def chat_request(
    stimulus: ConversationStimulus,
    draw: Draw,
    history: Sequence[Utterance],
    sampling: Sampling,
    *,
    part: str,
    greeting: str,
) -> TextRequest:
    """The next message after ``history``, of a chat model in its ``part`` (:func:`chat_part`). A message ends where a
    speaker's name begins."""
    name, _ = speakers(stimulus, draw.options)
    messages = chat(name, history, greeting, part)
    return TextRequest(messages=messages, sampling=replace(sampling, stops=_names_begin(stimulus, draw)))


def chat(
    assistant: str, history: Sequence[Utterance], greeting: str | None = GREETING, system: str | None = None
) -> tuple[ChatMessage, ...]:
    """What was said as a chat in which ``assistant`` is the assistant.

    Messages in a row from one side become one, as many templates want speakers to take turns; and as they want the user
    to begin, the other's ``greeting``, if there is one, goes before a first message of the assistant's.
    """
    turns: list[ChatMessage] = []
    if greeting is not None and (not history or history[0].speaker == assistant):
        turns.append(ChatMessage("user", greeting))
    for one in history:
        turn = ChatMessage("assistant" if one.speaker == assistant else "user", one.text)
        if turns and turns[-1].role == turn.role:
            turns[-1] = ChatMessage(turn.role, f"{turns[-1].text}\n{turn.text}")
        else:
            turns.append(turn)
    return (*([ChatMessage("system", system)] if system else []), *turns)


def word_examples(stimulus: WordStimulus) -> str:
    """The prompt of the prompted version, as the papers' table has it: the example pairs, and the cue without its pair.

    "Cue: come; Guess: home Cue: hot; Guess: cold Cue: see; Guess: look Cue: dame; Guess:"
    """
    pairs = [f"Cue: {cue}; Guess: {guess}" for cue, guess in stimulus.examples]
    return " ".join([*pairs, f"Cue: {stimulus.cue}; Guess:"])


def chat_word(stimulus: WordStimulus, sampling: Sampling) -> TextRequest:
    """A word, of a chat model."""
    text = filled(WORD_QUESTION, cue=stimulus.cue)
    if stimulus.version == "prompted":
        text = f"{WORD_EXAMPLES}\n{word_examples(stimulus)}"
    return TextRequest(messages=(ChatMessage("user", text),), sampling=sampling)


def completion_word(stimulus: WordStimulus, sampling: Sampling) -> TextRequest:
    """A word, of a model that continues a text: what follows the question, or the example pairs up to the next one."""
    if stimulus.version == "free":
        return TextRequest(filled(WORD_QUESTION, cue=stimulus.cue), sampling=sampling)
    return TextRequest(word_examples(stimulus), sampling=replace(sampling, stops=("Cue:",)))
