"""Streams whose pieces are sent while the answer is made, by the application in this process."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from agents.errors import AnswerError
from tests.helpers import served_here
from tests.helpers.agent_aloud import Aloud, streamed
from tests.helpers.served_here import here


def chunks(sent: Sequence[Any]) -> list[Any]:
    """What a stream's events hold."""
    body = b"".join(message.get("body", b"") for message in sent).decode()
    return [json.loads(event) for event in body.replace("data: ", "").split("\n\n") if event and event != "[DONE]"]


def texts(sent: Sequence[Any], index: int = 0) -> list[str]:
    choices = [choice for one in chunks(sent) for choice in one.get("choices", ())]
    return [one["delta"].get("content", "") for one in choices if one["index"] == index]


@pytest.mark.parametrize("name", ["null", "null-one"])
def test_a_piece_is_sent_before_the_answer_is_whole(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    agent = Aloud(monkeypatch, "One two three.")

    async def work(found: served_here.Here) -> None:
        sent = await streamed(found, agent.go_on.set, n=2)
        assert (agent.waited, agent.listened) == (True, [True, True])
        for index in range(2):
            assert texts(sent, index) == ["One ", "two three.", ""]
        assert chunks(sent)[-1]["choices"][0]["finish_reason"] == "stop"
        assert sent[-1]["more_body"] is False
        assert found.service.waiting() == {name: 0}

    here(work, {name: {}})


def test_nobody_listens_where_the_answer_is_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    agent = Aloud(monkeypatch, "One two three.")
    agent.go_on.set()

    async def kept(found: served_here.Here) -> None:
        assert texts(await streamed(found, lambda: None)) == ["One", " two", " three.", ""]

    here(kept, out=tmp_path / "run")
    assert agent.listened == [False]


@pytest.mark.parametrize(("reply", "code"), [(AnswerError("no_text", "told to fail"), "no_text"), ("Two.", "changed")])
def test_what_fails_after_the_first_piece_is_an_event(reply: Any, code: str, monkeypatch: pytest.MonkeyPatch) -> None:
    agent = Aloud(monkeypatch, reply)

    async def work(found: served_here.Here) -> None:
        sent = await streamed(found, agent.go_on.set)
        assert texts(sent) == ["One "]
        assert chunks(sent)[-1]["error"]["code"] == code
        assert not any(b"[DONE]" in message.get("body", b"") for message in sent)
        assert found.service.waiting() == {"null": 0}

    here(work)


def test_a_client_that_goes_away_is_answered_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    agent = Aloud(monkeypatch, "One two three.")

    async def work(found: served_here.Here) -> None:
        sent = await streamed(found, found.leave.set)
        assert found.service.waiting() == {"null": 0}
        assert (texts(sent), agent.waited) == (["One "], False)
        agent.go_on.set()

    here(work)
