"""How the papers asked text models, word for word (``paper_prompts.toml``).

Completion models and word association: 2022 paper, S6.1.3 and S7.1.4; 2025 paper, Methods. Chat models:
kreimanlab/TuringTest, "Code for generating AI-AI conversations":

- GPT-4o (GPT3.ipynb), Claude (Claude.py): the system message is the part of who speaks first. The user's text is the
  part of who greets, "A: Hi!", and the messages, each followed by the next speaker's name.
- Llama 3.3 (LLama.ipynb): the system message is the speaker's part; every message is the user's, with a letter.

"gpt-3.5" plays a person, "gpt-3.5-ai" an AI of the paper's online test, "judge" its judge in this project's words;
"persona" and "no-persona" are the witnesses of Jones and Bergen (arXiv 2503.23674), in this project's words.
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

SIDES = ("A", "B")
GREETING = "Hi!"
GREETED = "greeting"  # the finish of a first message that no model writes
PATIENCE = 3  # attempts of completion models at the first temperature
Template = Literal["2022", "2025"]
Program = Literal["gpt-4o", "claude", "llama-3.3", "gpt-3.5", "gpt-3.5-ai", "judge", "persona", "no-persona"]
AS_CHATS = ("gpt-3.5", "gpt-3.5-ai", "judge", "persona", "no-persona")
QUESTIONED = ("judge",)  # of these, who are asked for their first message
ONE_SIDED = ("llama-3.3", *AS_CHATS)  # whose system message is about the speaker alone
Parts = tuple[str, str]

_TEXTS = tomllib.loads((Path(__file__).parent / "paper_prompts.toml").read_text(encoding="utf-8"))
GREETINGS: Sequence[str] = _TEXTS["greetings"]
AGES = (18, 25, 32, 40, 50, 60, 70)
PARTS: dict[Program, Parts] = {program: (parts[0], parts[-1]) for program, parts in _TEXTS["parts"].items()}
_PLACEHOLDER = re.compile(r"\{(\w+)\}")


class Remembered(Utterance):
    """A message from before the conversation."""

    time: str | None = None


def log(messages: Sequence[Utterance]) -> str:
    """A line "Name: message" for each; remembered messages stand apart."""
    lines = []
    for message in messages:
        time = f"[{message.time}] " if isinstance(message, Remembered) and message.time else ""
        lines.append(f"{time}{message.speaker}: {' '.join(message.text.split())}")
    before = sum(isinstance(message, Remembered) for message in messages)
    return "\n\n".join(filter(None, ("\n".join(lines[:before]), "\n".join(lines[before:]))))


def filled(template: str, **values: object) -> str:
    """``template`` with each ``{name}`` replaced; a line with an empty value is left out."""
    absent = {name for name, value in values.items() if value is None or value == ""}
    lines = [line for line in template.split("\n") if not absent.intersection(_PLACEHOLDER.findall(line))]
    return _PLACEHOLDER.sub(lambda match: str(values.get(match[1], match[0])), "\n".join(lines))


def speakers(stimulus: ConversationStimulus, options: Mapping[str, Any]) -> tuple[str, str]:
    """The next speaker's name and the other's: the side in ``options``, or who did not speak last."""
    first, second = stimulus.names or SIDES
    side = options.get("speaker")
    if side is None:
        side = SIDES[bool(stimulus.history) and stimulus.history[-1].speaker == first]
    return (first, second) if side == "A" else (second, first)


def drawn(stimulus: ConversationStimulus, sample: int, what: str) -> random.Random:
    """Random numbers for ``what``, the same at every turn and for both speakers."""
    about = (what, stimulus.id, sample, stimulus.names, stimulus.topic, stimulus.personas)
    return random.Random("\n".join(map(str, about)))


def _starter(stimulus: ConversationStimulus, draw: Draw) -> str:
    return stimulus.history[0].speaker if stimulus.history else speakers(stimulus, draw.options)[0]


# models that continue a text


def completion_opening(stimulus: ConversationStimulus, draw: Draw, template: Template) -> str:
    """The prompt for completion models before either speaks."""
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
    """The next message after ``history``, up to a speaker's name."""
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
    """The prompted version: "Cue: come; Guess: home Cue: hot; Guess: cold Cue: dame; Guess:"."""
    pairs = [f"Cue: {cue}; Guess: {guess}" for cue, guess in stimulus.examples]
    return " ".join([*pairs, f"Cue: {stimulus.cue}; Guess:"])


def chat_word(stimulus: WordStimulus, sampling: Sampling) -> TextRequest:
    """The request for a word to a chat model."""
    text = filled(_TEXTS["chat_question"], cue=stimulus.cue)
    if stimulus.version == "prompted":
        text = f"{_TEXTS['word_examples']}\n{word_examples(stimulus)}"
    return TextRequest(messages=(ChatMessage("user", text),), sampling=sampling)


def word_game(stimulus: WordStimulus, sampling: Sampling) -> TextRequest:
    """The request as a game, whose earlier turns are the stimulus's examples or this project's."""
    messages = [ChatMessage("system", _TEXTS["game"])]
    for cue, word in [*(stimulus.examples or _TEXTS["game_examples"]), (stimulus.cue, "")]:
        messages.append(ChatMessage("user", filled(_TEXTS["game_question"], cue=cue)))
        messages.append(ChatMessage("assistant", word))
    return TextRequest(messages=tuple(messages[:-1]), sampling=sampling)


def completion_word(stimulus: WordStimulus, sampling: Sampling) -> TextRequest:
    """The request for a word to a completion model."""
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
    """The next message after ``history`` and a choice of ``greetings``."""
    name, _ = speakers(stimulus, draw.options)
    greeting = None
    if len(history) == len(stimulus.history):
        chosen = drawn(stimulus, draw.sample, "greeting").choice(greetings)
        greeting = " ".join(filled(chosen, topic=stimulus.topic).split("\n"))
    return TextRequest(messages=tuple(chat(stimulus, name, history, greeting)), sampling=sampling)


def chat(
    stimulus: ConversationStimulus, assistant: str, history: Sequence[Utterance], greeting: str | None = None
) -> list[ChatMessage]:
    """A chat with ``assistant`` as the assistant, after ``greeting`` if the assistant would begin."""
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
    """The ages of A and B in years: A's of :data:`AGES`, B's the same or five off."""
    numbers = drawn(stimulus, sample, "ages")
    first = numbers.choice(AGES)
    return first, numbers.choice((max(18, first - 5), first, min(70, first + 5)))


def chat_instructions(stimulus: ConversationStimulus, draw: Draw, program: Program, parts: Parts | None) -> Parts:
    """(system message, beginning of the user's text): ``parts`` or the program's, filled in."""
    texts = parts or PARTS[program]
    if program in ONE_SIDED:
        side = _side(speakers(stimulus, draw.options)[0], stimulus)
        system = _filled_part(texts[side], stimulus, draw, side, SIDES)
        begins = ""
    else:
        starter = _side(_starter(stimulus, draw), stimulus)
        names = _names(stimulus, draw, program)
        system = _filled_part(texts[1], stimulus, draw, starter, names)
        begins = _filled_part(texts[0], stimulus, draw, 1 - starter, names)
    return (f"{system}\n{_TEXTS['burst']}" if stimulus.mode == "burst" else system), begins


def chat_names(stimulus: ConversationStimulus, draw: Draw, program: Program, parts: Parts | None) -> list[str]:
    """The program's names for the next speaker, the other, and whom to act as."""
    names = _names(stimulus, draw, program)
    side = _side(speakers(stimulus, draw.options)[0], stimulus)
    return [names[side], names[1 - side], *re.findall(r"\bact as (\w+)", "\n".join(parts or PARTS[program]))]


def llama_greeting(stimulus: Stimulus, draw: Draw) -> Reply | None:
    """The first message by Llama's program, else None."""
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
    parts: Parts | None = None,
    *,
    opening: str | None = None,
) -> TextRequest:
    """The next message after ``history``, as ``program`` asks; ``opening`` is the user's where the chat would begin
    with the assistant."""
    system, begins = chat_instructions(stimulus, draw, program, parts)
    names = _names(stimulus, draw, program)
    speaker = _side(speakers(stimulus, draw.options)[0], stimulus)
    if program in AS_CHATS:
        if opening is None and program in QUESTIONED:
            opening = _TEXTS["first_question"]
        messages = chat(stimulus, names[speaker], history, opening)
    elif program == "llama-3.3":
        texts = [f"{names[_side(message.speaker, stimulus)]}: {message.text}" for message in history]
        if history and len(history) == len(stimulus.history):
            texts[0] = history[0].text
        messages = [ChatMessage("user", text) for text in texts]
    else:
        nexts = [*(_side(message.speaker, stimulus) for message in history[1:]), speaker]
        texts = [f"{message.text}\n{names[side]}:" for message, side in zip(history, nexts, strict=False)]
        messages = [ChatMessage("user", begins + "".join(texts))]
    stopping = names[1 - speaker : 2 - speaker] if stimulus.mode == "burst" else names
    stops = () if program in ("claude", *AS_CHATS) else tuple(f"{name}:" for name in stopping)
    sampling = replace(sampling, stops=stops, label=f"{names[speaker]}:" if stops else "")
    return TextRequest(messages=(ChatMessage("system", system), *messages), sampling=sampling)


def _filled_part(template: str, stimulus: ConversationStimulus, draw: Draw, side: int, names: Parts) -> str:
    persona = stimulus.personas[side] if stimulus.personas else ""
    if not persona:
        template = template.replace(" is {persona} and", "").replace(" and is {persona}", "")
    about = {"persona": persona, "age": ages(stimulus, draw.sample)[side], "topic": stimulus.topic or "something"}
    return filled(template, name=names[side], other=names[1 - side], **about)


def _side(speaker: str, stimulus: ConversationStimulus) -> int:
    names = stimulus.names or SIDES
    return (names if speaker in names else SIDES).index(speaker)


def _names(stimulus: ConversationStimulus, draw: Draw, program: Program) -> Parts:
    if program == "llama-3.3":
        return SIDES
    if program == "claude":
        return SIDES if _side(_starter(stimulus, draw), stimulus) == 0 else (SIDES[1], SIDES[0])
    return stimulus.names or SIDES
