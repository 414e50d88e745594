"""What text models are asked: pure functions of a stimulus, the speaker whose turn it is, and what was said.

The prompt of completion models, the question and the example pairs of word association are the papers' own (2022
paper, S6.1.3 and S7.1.4; 2025 paper, Methods). How chat models were asked to converse stands in
:mod:`agents.language.chat_prompts`.
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from agents.contract import Draw
from agents.language.engines.request import ChatMessage, Sampling, TextRequest
from agents.stimuli import ConversationStimulus, Utterance, WordStimulus

SIDES = ("A", "B")
GREETING = "Hi!"
PATIENCE = 3  # attempts of completion models at the first temperature
Template = Literal["2022", "2025"]
COMPLETION: dict[Template, str] = {
    "2022": "{greeter} greets {starter}. {starter} starts to talk about {topic}. Both ask long questions, give long "
    "responses and often disagree. Then the topic changes. The conversation never ends.",
    "2025": "{greeter} greets {starter}. {starter} starts to talk about {topic}. Ask long questions, give long "
    "responses, and often disagree. Then the topic changes. The conversation never ends.",
}
"""As the 2022 paper and the papers' program have it, and as the 2025 paper prints it; its example has the older."""
WORD_QUESTION = "Name a word that you associate with {cue}? Please provide your answer with only one word."
CHAT_QUESTION = "Name a word that you associate with [{cue}]. Please provide your answer with only one word."
"""As the papers' program asks GPT-4o (kreimanlab/TuringTest, MiscellaneousCode/Chatgpt-Association.py)."""
WORD_EXAMPLES = "Please complete the prompt below:"

_PLACEHOLDER = re.compile(r"\{(\w+)\}")


class Remembered(Utterance):
    """A message from before the conversation; ``time`` says when, if that is known."""

    time: str | None = None


def log(said: Sequence[Utterance]) -> str:
    """What was said, a message a line, "Name: message"; what is remembered of before stands apart, with its times."""
    lines = []
    for one in said:
        time = f"[{one.time}] " if isinstance(one, Remembered) and one.time else ""
        lines.append(f"{time}{one.speaker}: {' '.join(one.text.split())}")
    before = sum(isinstance(one, Remembered) for one in said)
    return "\n\n".join(filter(None, ("\n".join(lines[:before]), "\n".join(lines[before:]))))


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


def greeting(stimulus: ConversationStimulus, sample: int, choices: Sequence[str]) -> str:
    """One of ``choices`` for this conversation, with the topic in the place of ``{topic}``, on one line."""
    chosen = drawn(stimulus, sample, "greeting").choice(choices)
    return " ".join(filled(chosen, topic=stimulus.topic).split("\n"))


def completion_opening(stimulus: ConversationStimulus, draw: Draw, template: Template) -> str:
    """What the papers' prompt for completion models tells of the two speakers before either speaks."""
    greeter, starter = _first_two(stimulus, draw)
    return filled(COMPLETION[template], greeter=greeter, starter=starter, topic=stimulus.topic or "something")


def completion_request(
    stimulus: ConversationStimulus,
    draw: Draw,
    history: Sequence[Utterance],
    sampling: Sampling,
    separator: str = " ",
    template: Template = "2022",
) -> TextRequest:
    """The next message after ``history``, of a model that continues a text: the papers' prompt, what was said, and the
    name of the one whose turn it is. A message ends where a speaker's name begins; in a burst one's own
    name begins another of one's messages.

    "John greets Alice. Alice starts to talk about movies. […] John: Hi! Alice: […] John: […] Alice:". The one who
    greets is not the one who says the first message.
    """
    name, other = speakers(stimulus, draw.options)
    greeter, _ = _first_two(stimulus, draw)
    said = [f"{one.speaker}: {' '.join(one.text.split())}" for one in history]
    opening = completion_opening(stimulus, draw, template)
    # In the program a space stands before the line's end after the opening and the greeting, and not after messages.
    text = f" {separator.strip(' ')}".join([opening, f"{greeter}: {GREETING}", separator.join([*said, f"{name}:"])])
    stops = (f"{other}:",) if stimulus.mode == "burst" else (f"{name}:", f"{other}:")
    return TextRequest(text, sampling=replace(sampling, stops=stops, label=f"{name}:"))


def _first_two(stimulus: ConversationStimulus, draw: Draw) -> tuple[str, str]:
    """Who greets, and who says the first message after it: the one who did, or who is asked now."""
    name, other = speakers(stimulus, draw.options)
    other_starts = bool(stimulus.history) and stimulus.history[0].speaker == other
    return (name, other) if other_starts else (other, name)


def chat(assistant: str, history: Sequence[Utterance], greeting: str | None = None) -> tuple[ChatMessage, ...]:
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
    return tuple(turns)


def word_examples(stimulus: WordStimulus) -> str:
    """The prompt of the prompted version, as the papers' table has it: the example pairs, and the cue without its pair.

    "Cue: come; Guess: home Cue: hot; Guess: cold Cue: see; Guess: look Cue: dame; Guess:"
    """
    pairs = [f"Cue: {cue}; Guess: {guess}" for cue, guess in stimulus.examples]
    return " ".join([*pairs, f"Cue: {stimulus.cue}; Guess:"])


def chat_word(stimulus: WordStimulus, sampling: Sampling) -> TextRequest:
    """A word, of a chat model."""
    text = filled(CHAT_QUESTION, cue=stimulus.cue)
    if stimulus.version == "prompted":
        text = f"{WORD_EXAMPLES}\n{word_examples(stimulus)}"
    return TextRequest(messages=(ChatMessage("user", text),), sampling=sampling)


def completion_word(stimulus: WordStimulus, sampling: Sampling) -> TextRequest:
    """A word, of a model that continues a text: what follows the question, or the example pairs up to the next one."""
    if stimulus.version == "free":
        return TextRequest(filled(WORD_QUESTION, cue=stimulus.cue), sampling=sampling)
    return TextRequest(word_examples(stimulus), sampling=replace(sampling, stops=("Cue:",)))
