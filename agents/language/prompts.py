"""How the papers asked text models, word for word (the texts are in ``paper_prompts.toml``).

Completion models and word association are asked as in the 2022 paper, S6.1.3 and S7.1.4, and the 2025 paper, Methods.
Chat models are asked as in kreimanlab/TuringTest, "Code for generating AI-AI conversations":

- GPT-4o (GPT3.ipynb) and Claude (Claude.py): the system message describes the speaker who begins. The user's text
  describes the speaker who greets, then goes on with "A: Hi!" and the messages, each followed by the next speaker's
  name.
- Llama 3.3 (LLama.ipynb): the system message describes the speaker. Every message is the user's, with a letter before
  it.

"gpt-3.5" plays a person; "gpt-3.5-ai" is an AI of the paper's online test. "judge" is its judge in this project's
words. "persona" and "no-persona" are the witnesses of Jones and Bergen (arXiv 2503.23674), in this project's words.
"""

import random
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Any, Literal

from agents.answers import TurnAnswer
from agents.contract import Draw, Reply
from agents.language.engines.text_request import ChatMessage, Sampling, TextRequest
from agents.stimuli import ConversationStimulus, Stimulus, Utterance, WordStimulus

SPEAKER_LETTERS = ("A", "B")
"""The two speakers' letters, which stand for their names where a stimulus has none."""
GREETING = "Hi!"
"""What the speaker who does not begin says first in prompts of completion models."""
GREETED = "greeting"
"""The ``finish`` of a first message that no model writes."""
PATIENCE = 3
"""How many attempts completion models have at the first temperature."""
Template = Literal["2022", "2025"]
"""Which paper's words a completion model reads."""
Program = Literal["gpt-4o", "claude", "llama-3.3", "gpt-3.5", "gpt-3.5-ai", "judge", "persona", "no-persona"]
"""The programs that prompt chat models; see above."""
AS_CHATS = ("gpt-3.5", "gpt-3.5-ai", "judge", "persona", "no-persona")
"""Programs in which the speaker is the assistant of a chat and the other is its user."""
QUESTIONED = ("judge",)
"""The programs of :data:`AS_CHATS` that ask the model for its first message."""
ONE_SIDED = ("llama-3.3", *AS_CHATS)
"""Programs whose system message is about the speaker alone."""
SpeakerTexts = tuple[str, str]
"""Two texts: a description of speaker A and one of speaker B, or what a docstring says of them."""

_TEXTS = tomllib.loads((Path(__file__).parent / "paper_prompts.toml").read_text(encoding="utf-8"))
GREETINGS: Sequence[str] = _TEXTS["greetings"]
"""The first messages that Llama's program draws from."""
AGES = (18, 25, 32, 40, 50, 60, 70)
"""The ages in years that A's is drawn from."""
PARTS: dict[Program, SpeakerTexts] = {program: (parts[0], parts[-1]) for program, parts in _TEXTS["parts"].items()}
"""What each program says of the two speakers, before ``{name}`` and the like are filled in."""
_PLACEHOLDER = re.compile(r"\{(\w+)\}")


class Remembered(Utterance):
    """A message from before the conversation."""

    time: str | None = None
    """When it was written, as "2024-05-01 18:30"; None where that is unknown."""


def chat_log(messages: Sequence[Utterance]) -> str:
    """The messages as lines "Name: message", the remembered ones before a blank line and with their times."""
    lines = []
    for message in messages:
        time = f"[{message.time}] " if isinstance(message, Remembered) and message.time else ""
        lines.append(f"{time}{message.speaker}: {' '.join(message.text.split())}")
    before = sum(isinstance(message, Remembered) for message in messages)
    return "\n\n".join(filter(None, ("\n".join(lines[:before]), "\n".join(lines[before:]))))


def filled(template: str, **values: object) -> str:
    r"""``template`` with each ``{name}`` replaced by its value. A line with a value that is None or "" is left out.

    Example: ``filled("Hi {name}!\nOn {topic}?", name="Al", topic=None)`` is "Hi Al!". Placeholders without a value
    stay.
    """
    absent = {name for name, value in values.items() if value is None or value == ""}
    lines = [line for line in template.split("\n") if not absent.intersection(_PLACEHOLDER.findall(line))]
    return _PLACEHOLDER.sub(lambda match: str(values.get(match[1], match[0])), "\n".join(lines))


def speakers(stimulus: ConversationStimulus, options: Mapping[str, Any]) -> tuple[str, str]:
    """(name of the next speaker, name of the other). The next is the side in ``options["speaker"]``, or else who did
    not speak last."""
    first, second = stimulus.names or SPEAKER_LETTERS
    side = options.get("speaker")
    if side is None:
        first_spoke_last = bool(stimulus.history) and stimulus.history[-1].speaker == first
        side = "B" if first_spoke_last else "A"
    return (first, second) if side == "A" else (second, first)


def drawn(stimulus: ConversationStimulus, sample: int, what: str) -> random.Random:
    """Random numbers for ``what`` ("ages", "greeting"). They depend on the conversation and the ``sample``, and on no
    turn, so that both speakers draw the same at every turn."""
    seeds = (what, stimulus.id, sample, stimulus.names, stimulus.topic, stimulus.personas)
    return random.Random("\n".join(map(str, seeds)))


def _starter(stimulus: ConversationStimulus, draw: Draw) -> str:
    return stimulus.history[0].speaker if stimulus.history else speakers(stimulus, draw.options)[0]


# models that continue a text


def completion_opening(stimulus: ConversationStimulus, draw: Draw, template: Template) -> str:
    """The prompt of a completion model before either speaks: who greets, who begins, and the topic."""
    greeter, starter = _first_two(stimulus, draw)
    return filled(_TEXTS["completion"][template], greeter=greeter, starter=starter, topic=stimulus.topic or "something")


def completion_request(
    stimulus: ConversationStimulus,
    draw: Draw,
    history: Sequence[Utterance],
    sampling: Sampling,
    separator: str = " ",
    template: Template = "2022",
) -> TextRequest:
    """The request for the next message after ``history``.

    ``separator`` stands between messages. The text stops at a speaker's name; in a burst at the other's alone, as the
    speaker may write several messages.
    """
    name, other = speakers(stimulus, draw.options)
    greeter, _ = _first_two(stimulus, draw)
    messages = [f"{message.speaker}: {' '.join(message.text.split())}" for message in history]
    opening = completion_opening(stimulus, draw, template)
    # In the program a space stands before the line's end after the opening and the greeting, and not after messages.
    parts = [opening, f"{greeter}: {GREETING}", separator.join([*messages, f"{name}:"])]
    stops = (f"{other}:",) if stimulus.mode == "burst" else (f"{name}:", f"{other}:")
    text = f" {separator.strip(' ')}".join(parts)
    return TextRequest(text, sampling=replace(sampling, stops=stops, label=f"{name}:"))


def _first_two(stimulus: ConversationStimulus, draw: Draw) -> tuple[str, str]:
    name, other = speakers(stimulus, draw.options)
    return (name, other) if _starter(stimulus, draw) == other else (other, name)


# word association


def word_examples(stimulus: WordStimulus) -> str:
    """The prompted version of word association: "Cue: come; Guess: home Cue: hot; Guess: cold Cue: dame; Guess:"."""
    pairs = [f"Cue: {cue}; Guess: {guess}" for cue, guess in stimulus.examples]
    return " ".join([*pairs, f"Cue: {stimulus.cue}; Guess:"])


def chat_word(stimulus: WordStimulus, sampling: Sampling) -> TextRequest:
    """The request to a chat model for a word: the papers' question, or in the prompted version the examples."""
    text = filled(_TEXTS["chat_question"], cue=stimulus.cue)
    if stimulus.version == "prompted":
        text = f"{_TEXTS['word_examples']}\n{word_examples(stimulus)}"
    return TextRequest(messages=(ChatMessage("user", text),), sampling=sampling)


def word_game(stimulus: WordStimulus, sampling: Sampling) -> TextRequest:
    """The request for a word as a game, for small models. Its earlier turns are the stimulus's examples, or this
    project's."""
    messages = [ChatMessage("system", _TEXTS["game"])]
    for cue, word in [*(stimulus.examples or _TEXTS["game_examples"]), (stimulus.cue, "")]:
        messages.append(ChatMessage("user", filled(_TEXTS["game_question"], cue=cue)))
        messages.append(ChatMessage("assistant", word))
    return TextRequest(messages=tuple(messages[:-1]), sampling=sampling)


def completion_word(stimulus: WordStimulus, sampling: Sampling) -> TextRequest:
    """The request to a completion model for a word. With examples the text stops where the model begins a new cue."""
    if stimulus.version == "free":
        return TextRequest(filled(_TEXTS["word_question"], cue=stimulus.cue), sampling=sampling)
    return TextRequest(word_examples(stimulus), sampling=replace(sampling, stops=("Cue:",)))


# models of dialogues


def dialogue_request(
    stimulus: ConversationStimulus,
    draw: Draw,
    history: Sequence[Utterance],
    sampling: Sampling,
    greetings: Sequence[str],
) -> TextRequest:
    """The request to DialoGPT or BlenderBot for the next message: the conversation as a chat.

    One of ``greetings`` is put before it, unless old messages were left out to make room.
    """
    name, _ = speakers(stimulus, draw.options)
    greeting = None
    if len(history) == len(stimulus.history):
        template = drawn(stimulus, draw.sample, "greeting").choice(greetings)
        greeting = " ".join(filled(template, topic=stimulus.topic).split("\n"))
    return TextRequest(messages=tuple(chat(stimulus, name, history, greeting)), sampling=sampling)


def chat(
    stimulus: ConversationStimulus, assistant: str, history: Sequence[Utterance], greeting: str | None = None
) -> list[ChatMessage]:
    """The conversation as a chat in which the speaker ``assistant`` is the assistant. Messages in a row of one speaker
    become one, a line each. ``greeting`` is put before a chat that the assistant would begin."""
    side = _side(assistant, stimulus)
    messages = [
        ChatMessage("assistant" if speaker == side else "user", "\n".join(message.text for message in in_a_row))
        for speaker, in_a_row in groupby(history, key=lambda message: _side(message.speaker, stimulus))
    ]
    if greeting is not None and (not messages or messages[0].role == "assistant"):
        messages.insert(0, ChatMessage("user", greeting))
    return messages


# chat models


def ages(stimulus: ConversationStimulus, sample: int) -> tuple[int, int]:
    """The ages of A and B in years. A's is one of :data:`AGES`; B's is the same, five years less or five more, from 18
    to 70."""
    numbers = drawn(stimulus, sample, "ages")
    first = numbers.choice(AGES)
    return first, numbers.choice((max(18, first - 5), first, min(70, first + 5)))


def chat_instructions(
    stimulus: ConversationStimulus, draw: Draw, program: Program, parts: SpeakerTexts | None
) -> SpeakerTexts:
    """(system message, beginning of the user's text): ``parts``, or the program's, filled in. The beginning is "" in
    one-sided programs."""
    texts = parts or PARTS[program]
    if program in ONE_SIDED:
        side = _side(speakers(stimulus, draw.options)[0], stimulus)
        system = _filled_part(texts[side], stimulus, draw, side, SPEAKER_LETTERS)
        begins = ""
    else:
        starter = _side(_starter(stimulus, draw), stimulus)
        names = _names(stimulus, draw, program)
        system = _filled_part(texts[1], stimulus, draw, starter, names)
        begins = _filled_part(texts[0], stimulus, draw, 1 - starter, names)
    if stimulus.mode == "burst":
        system = f"{system}\n{_TEXTS['burst']}"
    return system, begins


def chat_names(stimulus: ConversationStimulus, draw: Draw, program: Program, parts: SpeakerTexts | None) -> list[str]:
    """What the prompt calls people: the next speaker, the other, and whomever it tells the model to "act as". Replies
    may begin with any of them as a label."""
    names = _names(stimulus, draw, program)
    side = _side(speakers(stimulus, draw.options)[0], stimulus)
    return [names[side], names[1 - side], *re.findall(r"\bact as (\w+)", "\n".join(parts or PARTS[program]))]


def llama_greeting(stimulus: Stimulus, draw: Draw) -> Reply | None:
    """The first message in Llama's program, which is drawn and not generated; None for any other message."""
    if not isinstance(stimulus, ConversationStimulus) or stimulus.history:
        return None
    text = random.Random(f"greeting {draw.seed}").choice(GREETINGS)
    return Reply(TurnAnswer(text=text, finish=GREETED), {"text": text, "attempt": draw.attempt})


def chat_request(
    stimulus: ConversationStimulus,
    draw: Draw,
    history: Sequence[Utterance],
    sampling: Sampling,
    program: Program,
    parts: SpeakerTexts | None = None,
    *,
    opening: str | None = None,
) -> TextRequest:
    """The request to a chat model for the next message after ``history``, as ``program`` asks.

    ``parts`` replace the program's texts. ``opening`` is a user's message for chats that the assistant would begin.
    """
    system, begins = chat_instructions(stimulus, draw, program, parts)
    names = _names(stimulus, draw, program)
    speaker = _side(speakers(stimulus, draw.options)[0], stimulus)
    if program in AS_CHATS:
        if opening is None and program in QUESTIONED:
            opening = _TEXTS["first_question"]
        messages = chat(stimulus, names[speaker], history, opening)
    elif program == "llama-3.3":
        messages = _llama_messages(stimulus, history, names)
    else:
        messages = [ChatMessage("user", begins + _dialogue_text(stimulus, history, names, speaker))]
    if program not in ("claude", *AS_CHATS):
        stopping = (names[1 - speaker],) if stimulus.mode == "burst" else names
        stops = tuple(f"{name}:" for name in stopping)
        sampling = replace(sampling, stops=stops, label=f"{names[speaker]}:")
    else:
        sampling = replace(sampling, stops=(), label="")
    return TextRequest(messages=(ChatMessage("system", system), *messages), sampling=sampling)


def _llama_messages(
    stimulus: ConversationStimulus, history: Sequence[Utterance], names: SpeakerTexts
) -> list[ChatMessage]:
    """Every message as the user's, after its speaker's letter. The conversation's first message has no letter."""
    texts = [f"{names[_side(message.speaker, stimulus)]}: {message.text}" for message in history]
    if history and len(history) == len(stimulus.history):
        texts[0] = history[0].text
    return [ChatMessage("user", text) for text in texts]


def _dialogue_text(
    stimulus: ConversationStimulus, history: Sequence[Utterance], names: SpeakerTexts, speaker: int
) -> str:
    """Each message, and on a new line the name of whoever speaks after it: at the end ``speaker``, 0 or 1."""
    next_sides = [*(_side(message.speaker, stimulus) for message in history[1:]), speaker]
    texts = [f"{message.text}\n{names[side]}:" for message, side in zip(history, next_sides, strict=False)]
    return "".join(texts)


def _filled_part(template: str, stimulus: ConversationStimulus, draw: Draw, side: int, names: SpeakerTexts) -> str:
    persona = stimulus.personas[side] if stimulus.personas else ""
    if not persona:
        template = template.replace(" is {persona} and", "").replace(" and is {persona}", "")
    age = ages(stimulus, draw.sample)[side]
    topic = stimulus.topic or "something"
    return filled(template, name=names[side], other=names[1 - side], persona=persona, age=age, topic=topic)


def _side(speaker: str, stimulus: ConversationStimulus) -> int:
    names = stimulus.names or SPEAKER_LETTERS
    return (names if speaker in names else SPEAKER_LETTERS).index(speaker)


def _names(stimulus: ConversationStimulus, draw: Draw, program: Program) -> SpeakerTexts:
    if program == "llama-3.3":
        return SPEAKER_LETTERS
    if program == "claude":
        return (
            SPEAKER_LETTERS
            if _side(_starter(stimulus, draw), stimulus) == 0
            else (SPEAKER_LETTERS[1], SPEAKER_LETTERS[0])
        )
    return stimulus.names or SPEAKER_LETTERS
