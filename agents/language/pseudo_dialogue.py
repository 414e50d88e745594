"""Dialogues that a model writes alone, for both speakers, before a conversation: X-Turing (ACL 2025, arXiv 2408.09853).

A request's option "pseudo" says what is wanted: ``{"topics": n, "known": [...]}`` for n topics other than the known
ones, or ``{"topic": t, "left": m}`` for m more turns about t.
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from agents.contract import Draw
from agents.language import prompts
from agents.language.engines.text_request import ChatMessage, Sampling, TextRequest
from agents.stimuli import ConversationStimulus, Utterance

TOKENS_PER_TOPIC = 24
"""Tokens that are allowed for each topic asked for."""
TOKENS_PER_TURN = 64
"""Tokens that are allowed for each turn: more than anybody's message. In a burst a turn has several, which are
shorter."""
MOST_TOKENS = 4096
"""The most tokens of a reply, as some servers allow no more; turns that are then missing are asked for again."""
LONGEST_TOPIC = 200
"""The longest topic, in characters; the rest of a longer one is dropped."""
_MARK = re.compile(r"^[\s>#*_]*(?:[-*+\u2022\u2013]+|\(?\d{1,3}[.):])\s+")
_LINE = re.compile(r"\w+:\s+[\"“]?(?:I|My|We|You)\b")  # of dialogue, by whomever
# A time in the form of the log, or what a model makes of it.
_TIME = re.compile(r"^(?:\[\d[\d\s:/.-]{2,20}\]\s*|\d{4}-\d{2}-\d{2}[ T]\d{2}:\d{2}(?::\d{2})?(?:\s+|$))")
_AROUND = " \t*_`\"'\u201c\u201d"


def pseudo_chat_request(
    stimulus: ConversationStimulus, draw: Draw, history: Sequence[Utterance], sampling: Sampling, character: str = ""
) -> TextRequest:
    """The request to a chat model. Its system message is ``character``, or the two personas where that is ""."""
    name, other = prompts.speakers(stimulus, draw.options)
    persona = character or "\n".join(_personas(stimulus))
    parts = [f"{name} and {other} write messages to each other.", *_log(history), _instruction(stimulus, draw)]
    system = (ChatMessage("system", persona),) if persona else ()
    return TextRequest(messages=(*system, ChatMessage("user", "\n\n".join(parts))), sampling=_sampling(draw, sampling))


def pseudo_completion_request(
    stimulus: ConversationStimulus, draw: Draw, history: Sequence[Utterance], sampling: Sampling
) -> TextRequest:
    """The request to a completion model: a text that ends with the first topic's number, or with the next speaker's
    name."""
    parts = [*_personas(stimulus), *_log(history), _instruction(stimulus, draw)]
    begins = "1." if "topics" in draw.options["pseudo"] else f"{next_speaker(stimulus, draw)}:"
    return TextRequest("\n\n".join([*parts, begins]), sampling=_sampling(draw, sampling))


def written(request: TextRequest, text: str) -> str:
    """What the model wrote, with the prompt's last paragraph before it where the model continued a text: "1." or
    "Name:"."""
    if request.prompt is None:
        return text
    last = request.prompt.rsplit("\n\n", 1)[-1]
    return f"{last} {text.lstrip(' ')}"


def next_speaker(stimulus: ConversationStimulus, draw: Draw) -> str:
    """The name of whoever begins the pseudo-dialogue: the one who does not have the history's last message."""
    first, second = stimulus.names or prompts.SPEAKER_LETTERS
    if not stimulus.history:
        return prompts.speakers(stimulus, {"speaker": stimulus.who_starts or draw.options.get("speaker")})[0]
    return second if stimulus.history[-1].speaker in (first, prompts.SPEAKER_LETTERS[0]) else first


def read_topics(text: str, names: Sequence[str] = ()) -> list[str]:
    """The topics in a model's lines, each once, without numbers and bullets. Lines of dialogue and headings are left
    out; ``names`` are the speakers."""
    topics: dict[str, str] = {}
    labels = tuple(f"{name}:".casefold() for name in names)
    for line in text.splitlines():
        topic = " ".join(_MARK.sub("", line).split()).strip(_AROUND)[:LONGEST_TOPIC].rstrip()
        is_line = topic.casefold().startswith(labels) or _LINE.match(topic) is not None
        is_empty = not any(map(str.isalnum, topic)) or topic.strip("().:").isdigit()
        if not is_empty and not is_line and not topic.endswith(":"):
            topics.setdefault(topic.casefold(), topic)
    return list(topics.values())


def read_messages(
    text: str, names: tuple[str, str], speaker: str, mode: Literal["ping-pong", "burst"] = "ping-pong"
) -> list[Utterance]:
    """The messages in a model's lines of the form "Name: message".

    A line without a name goes on with the message before; ``speaker`` says the lines before the first name. By turns
    (``ping-pong``) lines in a row of one speaker become one message; in a burst each line is a message.
    """
    spelling = {name.casefold(): name for name in names}
    choices = "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))
    line_form = re.compile(
        rf"(?:[-*+>#\u2022]+\s+)?[*_]*(?:\[[^\]]*\]\s*)?[*_]*({choices})[*_]*\s*:[*_]*", re.IGNORECASE
    )
    messages: list[Utterance] = []
    for line in text.splitlines():
        line = _TIME.sub("", line.strip())
        if (named := line_form.match(line)) is not None:
            name = named[1]
            line = line[named.end() :]
            speaker = name if name in names else spelling.get(name.casefold(), speaker)
        message = " ".join(line.split())
        if not message:
            continue
        if mode == "ping-pong" and messages and messages[-1].speaker == speaker:
            message = f"{messages.pop().text} {message}"
        messages.append(Utterance(speaker=speaker, text=message))
    return messages


def _personas(stimulus: ConversationStimulus) -> list[str]:
    names = stimulus.names or prompts.SPEAKER_LETTERS
    return [f"{name} is {persona}." for name, persona in zip(names, stimulus.personas or (), strict=False) if persona]


def _log(history: Sequence[Utterance]) -> list[str]:
    return [f"This is what they wrote:\n{prompts.chat_log(history)}"] if history else []


def _instruction(stimulus: ConversationStimulus, draw: Draw) -> str:
    name, other = prompts.speakers(stimulus, draw.options)
    pseudo = draw.options["pseudo"]
    if "topics" in pseudo:
        known_topics = pseudo.get("known") or []
        other_than = f", other than these: {'; '.join(known_topics)}" if known_topics else ""
        return (
            f"Name {pseudo['topics']} different topics that {name} and {other} may talk about next{other_than}. Write "
            "each topic in a few words on a line of its own, and nothing else."
        )
    in_a_row = " It may be several short messages, each on a line of its own." if stimulus.mode == "burst" else ""
    return (
        f"Continue with the next {pseudo['left']} turns, in which they talk about {pseudo['topic']}. A turn is what "
        f"one writes before the other does.{in_a_row} Begin the line of each message with who writes it, as in "
        f'"{name}: …". {next_speaker(stimulus, draw)} begins. Write the messages and nothing else.'
    )


def _sampling(draw: Draw, sampling: Sampling) -> Sampling:
    pseudo = draw.options["pseudo"]
    tokens = TOKENS_PER_TOPIC * pseudo["topics"] if "topics" in pseudo else TOKENS_PER_TURN * pseudo["left"]
    return replace(
        sampling,
        max_tokens=min(tokens, MOST_TOKENS),
        frequency_penalty=0.0,
        presence_penalty=0.0,
        min_tokens=0,
        stops=(),
    )
