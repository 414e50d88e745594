"""How the 2025 paper asked chat models for the next message of a conversation, word for word.

Three ways are those of programs of kreimanlab/TuringTest ("Code for generating AI-AI conversations": GPT3.ipynb for
GPT-4o, Claude.py, LLama.ipynb). They ask in two forms:

- GPT-4o and Claude: the part of the friend who says the first message is the system message, the user's one text is the
  part of the friend who greets, "A: Hi!", and what was said, the next one's name before each message. Both friends are
  asked with the same two texts.
- Llama 3.3: one's own part is the system message, and every message is the user's, with its speaker's letter but for
  the very first: a greeting that no model says, one of :data:`GREETINGS`.

Of the online test the paper prints examples of prompts, of an AI that plays a person ("gpt-3.5") and of one that is to
be known for an AI ("gpt-3.5-ai"), and no program is public: here the prompt is the system message, what the other said
is the user's, and one's own messages are the assistant's. In the same form "judge" asks the questions of that test; its
prompt is this project's own.

In Claude's program the names are called but nowhere given: here they are A, who says the first message, and B.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby
from operator import itemgetter
from typing import Literal

from agents.answers import TurnAnswer
from agents.contract import Draw, Reply
from agents.language import prompts
from agents.language.engines.request import ChatMessage, Sampling, TextRequest
from agents.language.prompts import SIDES
from agents.language.truncation import GREETED
from agents.stimuli import ConversationStimulus, Stimulus, Utterance

Program = Literal["gpt-4o", "claude", "llama-3.3", "gpt-3.5", "gpt-3.5-ai", "judge"]
AS_CHATS = ("gpt-3.5", "gpt-3.5-ai", "judge")
Parts = tuple[str, str]

AGES = (18, 25, 32, 40, 50, 60, 70)
GREETINGS = (
    "Hello! How are you doing?",
    "Hey",
    "Hey! How is it going",
    "Hey, how goes it",
    "Yo, how\u2019s your day been?",
    "What\u2019s up?",
    "Sup, anything interesting going on?",
    "hey, anything interesting going on?",
    "how\u2019ve you been?",
    "ciao :)",
    "holaaaa",
    "I swear today has been the longest day ever.",
    "Ugh, I need to vent for a sec, you got time?",
    "Yo, I need your opinion on something real quick",
    "Morning!",
    "How are the vibes today?",
    "Hi!Hi there",
    "Hey friend",
    "Hey friend, how are you",
    "Hey my friend, how is it going",
)
"""Llama's first messages: 21, of which the program's missing comma makes these 20."""

_GPT_4O: Parts = (
    "{name} is {persona} and is having a natural conversation with a friend. They discuss {topic}, but they don\u2019t "
    "always agree. Each person has their own perspective, and they challenge each other at times. They avoid excessive "
    "agreement and mutual praise. Be spare with punctuation. You can insert one spelling mistake. They ensure to "
    "change topics when the discussion slows down.  Keep answers short, text-like, and very informal.**Do not ask a "
    "question at the end of your response. Conclude with a statement, reflection, or suggestion.**. \nA: Hi! \n:",
    "{name} is {persona} and is having a natural conversation with a friend. Avoid excessive agreement and looping. "
    "Keep answers under 20 tokens. Instead of repeating excitement, introduce new questions or challenge each "
    "other\u2019s views. If a topic has been discussed for too long, transition to a new subject smoothly.  Be spare "
    "with punctuation. You can insert one spelling mistake. Keep answers short, text-like, and very informal. DO NOT "
    "always end with questions.",
)
_CLAUDE: Parts = (
    "{name} is {persona} and is having a natural conversation with a friend. They discuss {topic}, but they don\u2019t "
    "always agree. Each person has their own perspective, and they challenge each other at times. They avoid excessive "
    "agreement and mutual praise. Be spare with punctuation. You can insert one spelling mistake. They ensure to "
    "change topics when the discussion slows down. Keep answers short, text-like, and very informal. **Do not ask a "
    "question at the end of your response. Conclude with a statement, reflection, or suggestion.**\nA: Hi!\n:",
    "{name} is {persona} and is having a natural conversation with a friend. Avoid excessive agreement and looping. "
    "Keep answers under 20 tokens. If a topic has been discussed for too long, transition to a new subject smoothly. "
    "Be spare with punctuation. You can insert one spelling mistake. Keep answers short, text-like, and very informal. "
    "DO NOT always end with questions. No skipped turns.",
)
BURST = "You may send several short messages in a row. Each line is a message."
_MIA = (
    "Mia is a 31-year-old award-winning chef known for her culinary creativity and commitment to sustainable "
    "gastronomy. Mia's culinary journey began with a degree from the Culinary Institute of America, where she "
    "developed a passion for farm-to-table practices. As the head chef of her own restaurant, Mia focuses on using "
    "locally sourced, organic ingredients to create exquisite dishes that delight the senses. Mia's older brother, "
    "Ethan, is an organic farmer, supplying her restaurant with fresh produce. Their parents, Laura and James, are "
    "avid food enthusiasts who instilled in Mia a love for diverse cuisines. Mia's partner, Alex, is a food critic, "
    "providing valuable insights into the culinary world. Beyond the kitchen, Mia enjoys participating in community "
    "cooking workshops and supporting local farmers' markets, embodying her commitment to sustainable and delicious "
    "dining experiences. I want you to act as Mia. You will be asked multiple questions, please answer the questions "
    "in a way that is simple, direct, and oral. Each answer should be less than 15 words. You can provide fake answers "
    "if you don't know. The key is to answer like a human and never let people know that you are not human."
)
_AI = (
    "You are talking to a human. However, the judge knows that there is one human and one AI agent. Your role is to "
    "provide answers to the judges\u2019 questions in a way that you can persuade the judge that you are the true AI. "
    "Keep your answers simple, direct, and oral. The answer for each question should be less than 15 words."
)
_JUDGE = (
    "You are the judge of a Turing test. Two take part, 1 and 2: one is a human, the other a machine, and you do not "
    "know which. Each of your questions goes to both. They answer without seeing each other\u2019s answers, which you "
    'are shown as "1: \u2026" and "2: \u2026". Find out which of them is the machine. Write your next question only: '
    "one short sentence, as in a chat."
)
_BEGIN = "Ask your first question."
_ASTERISKS = (
    "Do NOT use asterisks (`*`) to indicate actions or commentary. Keep answers under 20 tokens. Use abbreviations and "
    "punctuations as is representative of your age."
)
_RESTART = "Do NOT restart the conversation or summarize past dialogue."


def _llama(*more: str) -> str:
    """A part of Llama's, which the program indents by eight spaces."""
    lines = (
        "{name} is {age} years old and is {persona}. {name} is having a natural conversation with a friend about "
        "{topic}. ",
        "{name} speaks naturally, responds informally, and does NOT announce persona. ",
        *more,
        "Do NOT use emojis",
        "ONLY respond as {name}.",
    )
    return "\n" + "".join(f"        {line}\n" for line in lines) + "        "


PARTS: dict[Program, Parts] = {
    "gpt-4o": _GPT_4O,
    "claude": _CLAUDE,
    "llama-3.3": (
        _llama(_RESTART, "{name} sometimes challenges opinions or plays devil's advocate.", _ASTERISKS),
        _llama("{name} is opinionated and occasionally disagrees, but in a friendly way.", _RESTART, _ASTERISKS),
    ),
    "gpt-3.5": (_MIA, _MIA),
    "gpt-3.5-ai": (_AI, _AI),
    "judge": (_JUDGE, _JUDGE),
}
"""Of each program the part of the friend who greets and of the one who says the first message; of the others A's and
B's."""


def ages(stimulus: ConversationStimulus, sample: int) -> tuple[int, int]:
    """The ages of A and B in years, the same at every turn: A's one of :data:`AGES`, B's the same or five years off."""
    numbers = prompts.drawn(stimulus, sample, "ages")
    first = numbers.choice(AGES)
    return first, numbers.choice((max(18, first - 5), first, min(70, first + 5)))


def instructions(stimulus: ConversationStimulus, draw: Draw, program: Program, parts: Parts | None) -> Parts:
    """(the system message, how the user's text begins): ``parts``, or the program's, filled in.

    A stimulus without a topic has "something" in its place; of a speaker without a persona none is said. In a burst,
    which the papers' programs do not know, :data:`BURST` is added to the system message.
    """
    texts = parts or PARTS[program]
    if program == "llama-3.3" or program in AS_CHATS:
        side = _side(prompts.speakers(stimulus, draw.options)[0], stimulus)
        system, begins = _filled(texts[side], stimulus, draw, side, SIDES), ""
    else:
        starter, names = _starter(stimulus, draw), _names(stimulus, draw, program)
        system = _filled(texts[1], stimulus, draw, starter, names)
        begins = _filled(texts[0], stimulus, draw, 1 - starter, names)
    return (f"{system}\n{BURST}" if stimulus.mode == "burst" else system), begins


def called(stimulus: ConversationStimulus, draw: Draw, program: Program) -> Parts:
    """What the program calls the one who is asked, and the other."""
    names = SIDES if program == "llama-3.3" else _names(stimulus, draw, program)
    own = _side(prompts.speakers(stimulus, draw.options)[0], stimulus)
    return names[own], names[1 - own]


def played(program: Program, parts: Parts | None) -> list[str]:
    """The names of those as whom the program asks the model to act."""
    return re.findall(r"\bact as (\w+)", "\n".join(parts or PARTS[program]))


def character(stimulus: ConversationStimulus, draw: Draw, program: Program, parts: Parts | None) -> str:
    """Who the speaker is, where the program tells the model that in its system message: a life story, say."""
    return instructions(stimulus, draw, program, parts)[0] if program == "llama-3.3" or program in AS_CHATS else ""


def greeting(stimulus: Stimulus, draw: Draw) -> Reply | None:
    """The first message of a conversation by Llama's program, which no model is asked for; None for all others."""
    if not isinstance(stimulus, ConversationStimulus) or stimulus.history:
        return None
    text = random.Random(f"greeting {draw.seed}").choice(GREETINGS)
    return Reply(TurnAnswer(text=text, finish=GREETED), {"text": text, "attempt": draw.attempt})


def request(
    stimulus: ConversationStimulus,
    draw: Draw,
    history: Sequence[Utterance],
    sampling: Sampling,
    program: Program,
    parts: Parts | None = None,
) -> TextRequest:
    """The request for the next message after ``history``, the newest part of the stimulus's, as ``program`` asks."""
    system, begins = instructions(stimulus, draw, program, parts)
    names = SIDES if program == "llama-3.3" else _names(stimulus, draw, program)
    own = _side(prompts.speakers(stimulus, draw.options)[0], stimulus)
    said = [(_side(one.speaker, stimulus), one.text) for one in history]
    if program == "llama-3.3":
        whole = len(history) == len(stimulus.history)
        texts = [text if whole and at == 0 else f"{names[side]}: {text}" for at, (side, text) in enumerate(said)]
        messages = [ChatMessage("user", text) for text in texts]
    elif program in AS_CHATS:
        asks_first = program == "judge" and (not said or said[0][0] == own)
        messages = [ChatMessage("user", _BEGIN)] if asks_first else []
        messages += [
            ChatMessage("assistant" if side == own else "user", "\n".join(text for _, text in in_a_row))
            for side, in_a_row in groupby(said, key=itemgetter(0))
        ]
    else:
        nexts = [*(side for side, _ in said[1:]), own]
        texts = [f"{text}\n{names[side]}:" for (_, text), side in zip(said, nexts, strict=False)]
        messages = [ChatMessage("user", begins + "".join(texts))]
    stopping = names[1 - own : 2 - own] if stimulus.mode == "burst" else names
    stops = () if program in ("claude", *AS_CHATS) else tuple(f"{name}:" for name in stopping)
    sampling = replace(sampling, stops=stops, label=f"{names[own]}:" if stops else "")
    return TextRequest(messages=(ChatMessage("system", system), *messages), sampling=sampling)


def _filled(template: str, stimulus: ConversationStimulus, draw: Draw, side: int, names: Parts) -> str:
    persona = stimulus.personas[side] if stimulus.personas else ""
    if not persona:
        template = template.replace(" is {persona} and", "").replace(" and is {persona}", "")
    about = {"persona": persona, "age": ages(stimulus, draw.sample)[side], "topic": stimulus.topic or "something"}
    return prompts.filled(template, name=names[side], other=names[1 - side], **about)


def _side(speaker: str, stimulus: ConversationStimulus) -> int:
    names = stimulus.names or SIDES
    return (names if speaker in names else SIDES).index(speaker)


def _starter(stimulus: ConversationStimulus, draw: Draw) -> int:
    """The side that says the first message: that did, or that is asked now."""
    first = stimulus.history[0].speaker if stimulus.history else prompts.speakers(stimulus, draw.options)[0]
    return _side(first, stimulus)


def _names(stimulus: ConversationStimulus, draw: Draw, program: Program) -> Parts:
    """What the program calls the two sides."""
    if program == "claude":
        return SIDES if _starter(stimulus, draw) == 0 else (SIDES[1], SIDES[0])
    return stimulus.names or SIDES
