"""What text models are asked: pure functions of a stimulus, the speaker whose turn it is, and what was said.

The prompt of completion models, the question and the example pairs of word association are the papers' own (2022
paper, S6.1.3 and S7.1.4; 2025 paper, Methods). That of chat models is not in the papers; it is reconstructed here, in
our words, from what is known of it.
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from typing import Any

from agents.language.engines.request import ChatMessage
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


def completion(
    speakers: tuple[str, str],
    topic: str | None,
    history: Sequence[Utterance],
    separator: str = " ",
    starter: str | None = None,
) -> str:
    """The papers' prompt for completion models, what was said, and the name of ``speakers[0]``, whose turn it is.

    "John greets Alice. Alice starts to talk about movies. […] John: Hi! Alice: […] John: […] Alice:". The one who
    greets is not the ``starter``, who says the first message.
    """
    asked, other = speakers
    starter = starter or first_speaker(speakers, history)
    greeter = other if starter == asked else asked
    said = [f"{one.speaker}: {' '.join(one.text.split())}" for one in history]
    return separator.join([opening(speakers, topic, starter), f"{greeter}: {GREETING}", *said, f"{asked}:"])


def opening(speakers: tuple[str, str], topic: str | None, starter: str) -> str:
    """What that prompt tells of the two ``speakers`` before either speaks."""
    greeter = speakers[1] if starter == speakers[0] else speakers[0]
    return filled(COMPLETION, greeter=greeter, starter=starter, topic=topic or "something")


def first_speaker(speakers: tuple[str, str], history: Sequence[Utterance]) -> str:
    """Who says the first message: the one who did, or who is asked now."""
    return history[0].speaker if history and history[0].speaker in speakers else speakers[0]


def chat(
    asked: str, history: Sequence[Utterance], greeting: str | None = GREETING, system: str | None = None
) -> tuple[ChatMessage, ...]:
    """What was said as a chat in which ``asked`` is the assistant.

    Messages in a row from one side become one, as many templates want speakers to take turns; and as they want the user
    to begin, the other's ``greeting``, if there is one, goes before a first message of the assistant's.
    """
    turns: list[ChatMessage] = []
    if greeting is not None and (not history or history[0].speaker == asked):
        turns.append(ChatMessage("user", greeting))
    for one in history:
        turn = ChatMessage("assistant" if one.speaker == asked else "user", one.text)
        if turns and turns[-1].role == turn.role:
            turns[-1] = ChatMessage(turn.role, f"{turns[-1].text}\n{turn.text}")
        else:
            turns.append(turn)
    return (*([ChatMessage("system", system)] if system else []), *turns)


def word_question(stimulus: WordStimulus) -> str:
    """The question of the free version."""
    return filled(WORD_QUESTION, cue=stimulus.cue)


def word_examples(stimulus: WordStimulus) -> str:
    """The prompt of the prompted version, as the papers' table has it: the example pairs, and the cue without its pair.

    "Cue: come; Guess: home Cue: hot; Guess: cold Cue: see; Guess: look Cue: dame; Guess:"
    """
    pairs = [f"Cue: {cue}; Guess: {guess}" for cue, guess in stimulus.examples]
    return " ".join([*pairs, f"Cue: {stimulus.cue}; Guess:"])
