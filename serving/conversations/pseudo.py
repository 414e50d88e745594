"""Pseudo-dialogue, which an agent writes for both speakers before a conversation.

X-Turing (ACL 2025, arXiv 2408.09853): n topics with m turns each, completed or cut to m."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from agents.answers import PseudoMessage
from agents.errors import AnswerError
from agents.language.filters.policies import FILTERS, Policy, judge_conversation
from agents.language.pseudo_dialogue import read_messages, read_topics
from serving.conversations.journal import Turn
from serving.conversations.scenario import SIDES
from serving.conversations.transcript import Transcript

FIRST = -1_000_000  # the number of the first request in seeds and journals: below those of turns
_FLAGS = dict.fromkeys(("word_loop", "prompt_echo", "same_message"), "flag")
SPOILT = Policy.model_validate({**dict.fromkeys(FILTERS, "off"), **_FLAGS})  # with these a reply ends before a message
Ask = Callable[[int, Mapping[str, Any]], Awaitable[Turn]]


async def write_pseudo_dialogue(transcript: Transcript, side: int, ask: Ask, tries: int) -> None:
    """Have ``side`` write the stimulus's pseudo-dialogue into ``transcript``. Raises AnswerError.

    ``ask`` requests a turn by number and options; ``tries`` in a row may bring nothing."""
    stimulus = transcript.stimulus
    names = transcript.names
    wanted = stimulus.pseudo
    assert wanted is not None
    topics: list[str] = []
    number = FIRST
    left = tries

    async def write(pseudo: Mapping[str, Any]) -> str | None:
        nonlocal number, left
        if not left:
            raise AnswerError("no_pseudo_dialogue", f"{transcript.speakers[side]} wrote nothing that could be read")
        turn = await ask(number, {"speaker": SIDES[side], "turn": 0, "pseudo": pseudo})
        number = number + 1
        left = left - 1
        return turn["answer"]["text"] if turn["status"] == "ok" else None

    while len(topics) < wanted.topics:
        text = await write({"topics": wanted.topics - len(topics), "known": topics})
        if text is None:
            return
        known = {topic.casefold() for topic in topics}
        fresh = [topic for topic in read_topics(text, names) if topic.casefold() not in known]
        topics += fresh[: wanted.topics - len(topics)]
        left = tries if fresh else left
    for topic in topics:
        written: list[PseudoMessage] = []
        while (turns := _turns(written)) < wanted.turns:
            history = transcript.shown().history
            speaker = names[history[-1].speaker == names[0] if history else transcript.starts]
            text = await write({"topic": topic, "left": wanted.turns - turns})
            if text is None:
                return
            for line in read_messages(text, names, speaker, stimulus.mode):
                spoken = [*((each.speaker, each.text) for each in written), (line.speaker, line.text)]
                if judge_conversation(spoken, SPOILT, names=names, last_only=True):
                    break
                about = {"agent": transcript.speakers[side], "topic": topic}
                message = PseudoMessage(speaker=line.speaker, text=line.text, **about)
                if written and line.speaker == written[-1].speaker and not transcript.is_burst:
                    joined = f"{written[-1].text} {message.text}"
                    written[-1] = transcript.pseudo[-1] = message.model_copy(update={"text": joined})
                elif _turns([*written, message]) > wanted.turns:
                    break
                else:
                    written.append(message)
                    transcript.pseudo.append(message)
            left = tries if _turns(written) > turns else left


def _turns(messages: list[PseudoMessage]) -> int:
    return sum(at == 0 or message.speaker != messages[at - 1].speaker for at, message in enumerate(messages))
