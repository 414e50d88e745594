"""Pseudo-dialogue: what an agent writes itself before a conversation, for both speakers, as if it had been said.

X-Turing (ACL 2025, arXiv 2408.09853) makes long dialogues of it: the model names n topics; for each it
continues the dialogue by m turns, which become part of what was said. If it writes fewer it is asked to go on, what it
writes beyond m is cut. The first of the two agents that can writes it, and both have it before them, after the history
that the stimulus gives. N = n m turns and then those that are really said make one dialogue.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from agents.answers import PseudoMessage, TurnAnswer
from agents.language.pseudo_dialogue import read_messages, read_topics
from serving.conversations.journal import Turn
from serving.conversations.scenario import SIDES
from serving.conversations.transcript import Transcript

FIRST = -1_000_000  # the number of the first request in seeds and journals: below those of turns
Ask = Callable[[int, Mapping[str, Any]], Awaitable[Turn]]


class NothingWritten(Exception):
    """The agent was asked again and again and wrote nothing that could be used."""


async def write_pseudo_dialogue(transcript: Transcript, side: int, ask: Ask, tries: int) -> Turn | None:
    """Have the agent on ``side`` write the pseudo-dialogue that the stimulus wants into the ``transcript``.

    ``ask`` asks it for the request of a number, with options; at most ``tries`` in a row may bring no more. Returns
    the turn that failed or was rejected, if one was. Raises NothingWritten.
    """
    stimulus = transcript.stimulus
    wanted, names = stimulus.pseudo, stimulus.names
    assert wanted is not None
    assert names is not None
    topics: list[str] = []
    number, left = FIRST, tries

    async def text_of(pseudo: Mapping[str, Any]) -> tuple[Turn, str]:
        nonlocal number, left
        if not left:
            raise NothingWritten
        turn = await ask(number, {"speaker": SIDES[side], "turn": 0, "pseudo": pseudo})
        number, left = number + 1, left - 1
        return turn, TurnAnswer.model_validate(turn["answer"]).text if turn["status"] == "ok" else ""

    while len(topics) < wanted.topics:
        turn, text = await text_of({"topics": wanted.topics - len(topics), "known": topics})
        if turn["status"] != "ok":
            return turn
        known = {topic.casefold() for topic in topics}
        fresh = [topic for topic in read_topics(text) if topic.casefold() not in known]
        topics += fresh[: wanted.topics - len(topics)]
        left = tries if fresh else left
    for topic in topics:
        written: list[PseudoMessage] = []
        while (turns := _turns(written)) < wanted.turns:
            history = transcript.shown().history
            next_one = _after(history[-1].speaker, names) if history else names[transcript.starts]
            turn, text = await text_of({"topic": topic, "left": wanted.turns - turns})
            if turn["status"] != "ok":
                return turn
            said = read_messages(text, names, next_one, stimulus.mode)
            agent = transcript.speakers[side]
            for one in said:
                message = PseudoMessage(agent=agent, topic=topic, speaker=one.speaker, text=one.text)
                if written and one.speaker == written[-1].speaker and stimulus.mode == "ping-pong":
                    joined = f"{written[-1].text} {message.text}"
                    written[-1] = transcript.pseudo[-1] = message.model_copy(update={"text": joined})
                elif _turns([*written, message]) > wanted.turns:
                    break
                else:
                    written.append(message)
                    transcript.pseudo.append(message)
            left = tries if _turns(written) > turns else left
    return None


def _turns(messages: list[PseudoMessage]) -> int:
    """How many turns the messages are: what one says in a row is one."""
    return sum(at == 0 or one.speaker != messages[at - 1].speaker for at, one in enumerate(messages))


def _after(speaker: str, names: tuple[str, str]) -> str:
    return names[1] if speaker == names[0] else names[0]
