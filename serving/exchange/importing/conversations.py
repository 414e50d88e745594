"""Conversations of a person with a machine, as exports of chat models and public collections have them."""

from collections.abc import Mapping, Sequence
from typing import Any

from agents.answers import ConversationAnswer, Message, plain
from agents.catalogue import NAME
from agents.errors import InputError, Problem
from serving.exchange.importing.form_files import Conversations, Form
from serving.exchange.importing.json_columns import value_at
from serving.exchange.importing.recognising import tell_form
from serving.exchange.importing.source import ImportOptions, Source, refuse
from serving.exchange.importing.table_cells import shortened
from serving.runs.run import PERSON


def add_conversation(
    source: Source, stimulus: str, lines: Sequence[tuple[str, str]], agents: Mapping[str, str], raw: Any
) -> None:
    """Add a conversation to ``source``: ``lines`` are speakers with what they say, ``agents`` who the speakers are."""
    messages = [
        Message(turn=turn, speaker=speaker, agent=agents[speaker], text=text)
        for turn, (speaker, text) in enumerate(lines)
    ]
    pair = "~".join(agents.values())
    agent = pair if {*agents.values()} == {PERSON} else f"published:{pair}"
    source.add(stimulus, agent, raw, plain(ConversationAnswer(messages=messages)))


def add_conversations(source: Source, rows: Sequence[Mapping[str, Any]], form: Form, options: ImportOptions) -> None:
    """Add the conversations in the rows of a file to ``source``. Raises InputError with every problem.

    The person is speaker A, the machine B. ``--name A~B`` says who they are; without it the person is ``human``, and
    the machine is what the row calls it.
    """
    tell_form(source, form)
    content = form.conversations
    assert content is not None
    source.name = options.name
    if options.name is not None and "~" not in options.name:
        raise InputError("holds conversations of two speakers: --name A~B")
    problems: list[Problem] = []
    for place, row in enumerate(rows):
        faults: list[str] = []
        messages = _messages(row, content, faults)
        lines = _lines(source, messages, content, faults)
        machine = _first(row, content.agent)
        name = options.name or f"{PERSON}~{machine.lower()}"
        if options.name is None and not NAME.fullmatch(machine.lower()):
            faults.append("does not say which machine spoke; give both speakers with --name human~MODEL")
        problems += [Problem(str(source.path), None, f"[{place}].{content.messages}", fault) for fault in faults]
        if faults:
            continue
        if not lines:
            source.noticed["conversations_without_messages"] += 1
            continue
        stimulus = _first(row, content.stimulus) or f"{source.path.stem}/{place + 1}"
        agents = dict(zip("AB", name.split("~"), strict=True))
        add_conversation(source, stimulus, lines, agents, messages)
    refuse(problems)


def _first(row: Mapping[str, Any], paths: Sequence[str]) -> str:
    """The first text or number under one of several paths; "" where there is none."""
    for path in paths:
        value = value_at(row, path.split("."))
        if isinstance(value, str | int) and str(value).strip():
            return str(value).strip()
    return ""


def _messages(row: Mapping[str, Any], content: Conversations, faults: list[str]) -> list[Any]:
    """The messages of a conversation in their order. In a tree, of several answers to one message that is taken which
    leads to the last message."""
    value = value_at(row, content.messages.split("."))
    if not content.last:
        if isinstance(value, list):
            return value
        faults.append("must be a list of messages")
        return []
    path: list[Any] = []
    name = row.get(content.last)
    seen = set()
    while isinstance(value, dict) and isinstance(name, str) and name not in seen:
        node = value.get(name)
        if not isinstance(node, dict):
            faults.append(f"has no message {shortened(name)!r}")
            break
        seen.add(name)
        path.append(node)
        name = node.get("parent")
    return path[::-1]


def _lines(source: Source, messages: Sequence[Any], content: Conversations, faults: list[str]) -> list[tuple[str, str]]:
    lines = []
    for number, message in enumerate(messages):
        parts = content.speaker.split(".")
        speaker = value_at(message, parts)
        if content.last and value_at(message, parts[:1]) is None:
            continue  # the root of a tree, which nobody said
        if speaker in content.left_out:
            source.noticed[f"messages_of_{speaker}_left_out"] += 1
            continue
        if speaker not in content.person and speaker not in content.machine:
            known = ", ".join([*content.person, *content.machine])
            faults.append(f"message {number}: the speaker must be one of {known}, not {shortened(speaker)!r}")
            continue
        text = _text(source, value_at(message, content.text.split(".")))
        if text is None:
            faults.append(f"message {number}: has no text")
        elif not text.strip():
            source.noticed["messages_without_a_text"] += 1
        else:
            lines.append(("A" if speaker in content.person else "B", text))
    return lines


def _text(source: Source, value: Any) -> str | None:
    """The text of a message. Of a list the texts are taken; pictures and other parts are counted."""
    if isinstance(value, str):
        return value
    if not isinstance(value, list):
        return None
    texts = []
    for part in value:
        text = part.get("text") if isinstance(part, dict) else part
        if isinstance(text, str):
            texts.append(text)
        else:
            source.noticed["parts_of_messages_that_are_no_text"] += 1
    return "\n".join(texts)
