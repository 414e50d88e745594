"""Pseudo-dialogue: lines that an agent writes for both speakers before a conversation, as if they had spoken before.

As in X-Turing (ACL 2025, arXiv 2408.09853) the agent names n topics and writes m turns on each; what it writes is
completed, or cut, to m turns.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from agents.answers import PseudoMessage
from agents.errors import AnswerError
from agents.language.filters.policies import FILTERS, Policy, judge_conversation
from agents.language.pseudo_dialogue import read_messages, read_topics
from serving.conversations.journal import Turn
from serving.conversations.scenario import SIDES
from serving.conversations.transcript import Transcript

FIRST = -1_000_000  # the first request's number in seeds and journals, so that none is a turn's
_FLAGS = dict.fromkeys(("word_loop", "prompt_echo", "same_message"), "flag")
SPOILT = Policy.model_validate({**dict.fromkeys(FILTERS, "off"), **_FLAGS})
"""The filters that end a reply before the message in which they find something."""
Ask = Callable[[int, Mapping[str, Any]], Awaitable[Turn]]
"""Asks the agent for a turn, by its number and options."""


async def write_pseudo_dialogue(transcript: Transcript, side: int, ask: Ask, tries: int) -> None:
    """Let the agent of ``side`` write the pseudo-dialogue that the stimulus asks for into ``transcript.pseudo``.

    It ends early where the agent's answer is failed or rejected. Raises AnswerError after ``tries`` answers in a row
    that brought nothing.
    """
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
        earlier = {topic.casefold() for topic in topics}
        new_topics = [topic for topic in read_topics(text, names) if topic.casefold() not in earlier]
        topics += new_topics[: wanted.topics - len(topics)]
        left = tries if new_topics else left
    for topic in topics:
        written: list[PseudoMessage] = []
        while (turns := _turns(written)) < wanted.turns:
            history = transcript.shown().history
            speaker = names[history[-1].speaker == names[0] if history else transcript.starts]
            text = await write({"topic": topic, "left": wanted.turns - turns})
            if text is None:
                return
            for line in read_messages(text, names, speaker, stimulus.mode):
                spoken = [*((message.speaker, message.text) for message in written), (line.speaker, line.text)]
                if judge_conversation(spoken, SPOILT, names=names, last_only=True):
                    break
                message = PseudoMessage(
                    speaker=line.speaker, text=line.text, agent=transcript.speakers[side], topic=topic
                )
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
    """How many turns the messages are: several of one speaker in a row are one."""
    turns = 0
    speaker = None
    for message in messages:
        turns += message.speaker != speaker
        speaker = message.speaker
    return turns
