"""What an agent's own filters say of an answer, and whether it is asked again."""

from __future__ import annotations

from typing import Any

import orjson

from agents import answers, stimuli
from agents.contract import Agent, Reply
from serving.scheduling.request import AgentRequest


def is_retried(request: AgentRequest, agent: Agent[Any]) -> bool:
    """Run the filters on an answer: note what they found, and count the attempt up if there is to be another.

    After the last attempt the request's status is ``rejected``. Raises whatever a filter raises.
    """
    stimulus = stimuli.parse_row(request.row)
    model = answers.TurnAnswer if stimulus.task == "conversation" else answers.BY_TASK[stimulus.task]
    assert request.answer is not None
    reply = Reply(model.model_validate_json(request.answer), None if request.raw is None else orjson.loads(request.raw))
    verdicts = [verdict for judge in agent.filters if (verdict := judge(stimulus, reply)) is not None]
    if not verdicts:
        return False
    request.attempts.append(
        request.attempt_record([{"filter": v.filter, "rejected": v.rejected, "found": v.found} for v in verdicts])
    )
    if not any(verdict.rejected for verdict in verdicts):
        return False
    if request.attempt + 1 >= agent.attempts:
        request.status = "rejected"
        return False
    request.attempt += 1
    return True


def is_empty(request: AgentRequest) -> bool:
    """Whether a word or a text that was answered is empty. What two machines say to each other is judged as a
    conversation."""
    answer = request.answer or b""
    if request.status != "ok" or not answer.startswith((b'{"text":"', b'{"word":"')):
        return False
    if answer[9:10].isalnum():  # as of most
        return False
    stimulus = stimuli.parse_row(request.row)
    if isinstance(stimulus, stimuli.ConversationStimulus) and (
        stimulus.type == "MM" or "pseudo" in (request.options or {})
    ):
        return False
    found = orjson.loads(answer)
    return answers.is_blank(found.get("text", found.get("word", "")))
