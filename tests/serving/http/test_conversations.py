"""Conversations over HTTP: a whole one with a real server, and limits and failures with an application in this
process."""

import asyncio
from typing import Any

import httpx2
import pytest

from agents.stimuli import ConversationStimulus
from serving.conversations.dialogue import Dialogue
from serving.http.conversations import MOST_EXCHANGES, MOST_TEXT, OpenConversations
from serving.runs.records import problems
from tests.helpers import served_here
from tests.helpers.served_here import code, here

SEED = 7
OPEN = "/conversations"
FIRST = {"who_starts": "A"}  # the person, unless it is said that the person is B


async def opened(found: served_here.Here, **told: Any) -> str:
    """The id of a new conversation."""
    status, body = await found.post(OPEN, {"agent": "null", **FIRST, **told})
    assert status == 201, body
    return str(body["id"])


async def say(found: served_here.Here, talk: str, text: str = "I like books.") -> tuple[int, Any]:
    return await found.post(f"{OPEN}/{talk}/messages", {"text": text})


async def read(found: served_here.Here, talk: str) -> Any:
    answer = await found.client.get(f"{OPEN}/{talk}")
    assert answer.status_code == 200, answer.text
    return answer.json()


# conversations


def test_a_conversation_of_24_messages_is_the_one_that_the_dialogue_has(served: str) -> None:
    texts = [f"I like book number {number}, and my brother does not." for number in range(12)]
    told: dict[str, Any] = {"id": "talk", "topic": "books", "names": ("Ann", "Ben"), **FIRST}
    with httpx2.Client(base_url=served) as client:
        made = client.post(OPEN, json={"agent": "eliza", "seed": SEED, "who": "human:05", **told})
        assert made.status_code == 201, made.text
        at = f"{OPEN}/{made.json()['id']}"
        assert made.json()["messages"] == []
        heard = []
        for number, text in enumerate(texts):
            answer = client.post(f"{at}/messages", json={"text": text}).json()
            mine, theirs = answer["messages"]
            assert (mine["text"], mine["speaker"], mine["agent"]) == (text, "Ann", "human:05")
            assert (theirs["speaker"], theirs["agent"], theirs["turn"]) == ("Ben", "eliza", 2 * number + 1)
            assert answer["ended"] == (number == 11)
            heard.append(theirs["text"])
        over = client.post(f"{at}/messages", json={"text": "One more."})
        assert code((over.status_code, over.json())) == (409, "ended")

        known = client.get(f"{at}/messages", params={"after": 22, "wait": 5}).json()["messages"]
        assert [one["text"] for one in known] == [texts[-1], heard[-1]]
        shown = client.get(at).json()
        assert problems(shown["record"]) == []
        assert shown["ended"] is True
        assert [one["text"] for one in shown["messages"][1::2]] == heard
        assert [one["text"] for one in shown["record"]["answer"]["messages"][1::2]] == heard
        assert shown["record"]["agent"] == "human:05~eliza"
        assert shown["record"]["answer"]["ended_early"] is False

        assert client.delete(at).status_code == 204
        for gone in (client.get(at), client.delete(at), client.post(f"{at}/messages", json={"text": "Hi"})):
            assert code((gone.status_code, gone.json())) == (404, "unknown_conversation")

    async def alone(found: served_here.Here) -> list[str]:
        stimulus = ConversationStimulus(task="conversation", type="HM", **told)
        dialogue = Dialogue(found.service.scheduler, "eliza", stimulus, seed=SEED, who="human:05")
        said = [await dialogue.say(text) for text in texts]
        return [one.message.text for one in said if one is not None]

    assert here(alone, {"eliza": {}}) == heard


def test_an_agent_that_begins_has_begun() -> None:
    async def work(found: served_here.Here) -> None:
        status, body = await found.post(OPEN, {"agent": "null", "person": "B", "exchanges": 3, **FIRST})
        assert status == 201
        assert [one["agent"] for one in body["messages"]] == ["null"]
        assert body["person"] == "B"
        status, answer = await say(found, body["id"])
        assert [one["turn"] for one in answer["messages"]] == [1, 2]
        assert (status, answer["ended"]) == (200, True)
        opener = {"agent": "null", "person": "B", "opener": "Shall we?", **FIRST}
        [first] = (await found.post(OPEN, opener))[1]["messages"]
        assert (first["text"], first["agent"], first["finish"]) == ("Shall we?", "null", "opener")

    here(work)


# ids and limits


def test_what_nobody_uses_is_forgotten_and_a_full_house_says_when() -> None:
    now = 0.0

    async def work(found: served_here.Here) -> None:
        nonlocal now
        used = await opened(found)
        idle = await opened(found)
        answer = await found.client.post(OPEN, json={"agent": "null"})
        assert code((answer.status_code, answer.json())) == (429, "too_many_conversations")
        assert answer.headers["retry-after"] == "50"
        now = 40.0
        assert (await say(found, used))[0] == 200
        now = 50.0
        assert code(await say(found, idle)) == (404, "unknown_conversation")
        assert (await say(found, used))[0] == 200
        other = await opened(found)
        assert (await found.client.delete(f"{OPEN}/{other}")).status_code == 204
        assert (await found.client.delete(f"{OPEN}/{other}")).status_code == 404
        await opened(found)

    here(work, kept=OpenConversations(count=2, idle=50, clock=lambda: now))


def test_in_a_burst_dialogue_both_write_whenever_they_like() -> None:
    soon = {"base": 0.05, "type_mean": 0, "type_sd": 0, "read_mean": 0, "read_sd": 0, "think_scale": 0}

    async def work(found: served_here.Here) -> None:
        talk = await opened(found, mode="burst", exchanges=3, delays=soon, quiet_s=0.05)
        heard = asyncio.create_task(found.client.get(f"{OPEN}/{talk}/messages", params={"after": 2, "wait": 20}))
        for text in ("Hello!", "Are you there?"):
            status, body = await say(found, talk, text)
            assert (status, [one["text"] for one in body["messages"]]) == (200, [text])
        [answer] = (await heard).json()["messages"]
        assert (answer["turn"], answer["agent"], (await heard).json()["ended"]) == (2, "null", True)
        assert code(await say(found, talk)) == (409, "ended")
        conversation = await read(found, talk)
        assert conversation["mode"] == "burst"
        assert [one["agent"] for one in conversation["messages"]] == ["human", "human", "null"]
        assert not problems(conversation["record"])
        times = [one["at"] for one in conversation["record"]["answer"]["messages"]]
        assert times[2] >= times[1] + 0.1 - 0.002
        for bad in ({"wait": 31}, {"after": -1}, {"wait": "x"}):
            refused = await found.client.get(f"{OPEN}/{talk}/messages", params=bad)
            assert code((refused.status_code, refused.json())) == (422, "invalid_request")

    here(work)


# failures


def test_one_message_at_a_time() -> None:
    async def work(found: served_here.Here) -> None:
        talk = await opened(found, agent="null-one")
        first, second = await asyncio.gather(say(found, talk, "One."), say(found, talk, "Two."))
        assert first[0] == 200
        assert code(second) == (409, "busy")
        assert (await read(found, talk))["messages"][0]["text"] == "One."
        assert (await say(found, talk, "Two."))[0] == 200

    here(work, {"null-one": {"delay_s": 0.1}})


def test_a_conversation_that_could_not_begin_is_none() -> None:
    async def work(found: served_here.Here) -> None:
        begins = {"agent": "null", "person": "B", **FIRST}
        for _ in range(2):
            assert code(await found.post(OPEN, {**begins, "id": "bad"})) == (502, "told_to_fail")
        assert (await found.post(OPEN, {**begins, "id": "good"}))[0] == 201

    here(work, {"null": {"fail": "bad"}}, kept=OpenConversations(count=1))


def test_who_hangs_up_frees_the_place_and_may_come_back() -> None:
    async def work(found: served_here.Here) -> None:
        talk = await opened(found, agent="null-one", exchanges=6)
        other = await opened(found, agent="null-one")
        gone = asyncio.create_task(found.hang_up(f"{OPEN}/{talk}/messages", b'{"text": "Hello?"}'))
        await found.asked.wait()
        assert found.service.waiting() == {"null-one": 1}
        assert code(await say(found, other)) == (429, "queue_full")
        found.leave.set()
        await gone
        assert found.service.waiting() == {"null-one": 0}
        assert (await read(found, talk))["messages"] == []
        status, body = await say(found, talk, "Are you there?")
        assert status == 200
        assert [one["turn"] for one in body["messages"]] == [0, 1]

    here(work, {"null-one": {"delay_s": 0.3}}, queue=1)


HOSTILE: dict[str, tuple[Any, int]] = {
    "an unknown agent": ({"agent": "gpt-4o"}, 404),
    "an agent that sees": ({"agent": "mmcq"}, 422),
    "no agent": ({}, 422),
    "many exchanges": ({"agent": "null", "exchanges": MOST_EXCHANGES + 1}, 422),
    "an agent as person": ({"agent": "null", "who": "null"}, 422),
    "a person with an odd space": ({"agent": "null", "who": "human:a\x1eb"}, 422),
    "three names": ({"agent": "null", "names": ["Ann", "Ben", "Eve"]}, 422),
    "a long opener": ({"agent": "null", "opener": "x" * (MOST_TEXT + 1)}, 422),
    "a path for an id": ({"agent": "null", "id": "../x"}, 422),
    "pseudo-dialogues of one that writes none": ({"agent": "null", "pseudo": {"topics": 2, "turns": 3}}, 422),
    "many turns of pseudo-dialogues": ({"agent": "gpt-4o", "pseudo": {"topics": 20, "turns": 11}}, 422),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_what_is_no_conversation_is_refused(case: str) -> None:
    content, status = HOSTILE[case]

    async def work(found: served_here.Here) -> None:
        answer = await found.post(OPEN, content)
        assert answer[0] == status, answer
        assert set(answer[1]["error"]) >= {"code", "message", "type", "request_id"}
        await opened(found)  # nothing was kept

    here(work, {"null": {}, "mmcq": {}}, kept=OpenConversations(count=1))


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 422),
        (b'{"text": ""}', 422),
        (b'{"text": " \\u200b\\n"}', 422),
        (b'{"text": "\\udfff"}', 422),
        (b'{"text": "x", "speaker": "null"}', 422),
        (b'{"text": "' + b"x" * (MOST_TEXT + 1) + b'"}', 422),
        (b'{"text": "' + b"x" * MOST_TEXT + b'"}', 200),
        (b'{"text": "\\u0000 <script>"}', 200),
    ],
)
def test_what_is_no_message_is_refused(body: bytes, status: int) -> None:
    async def work(found: served_here.Here) -> None:
        talk = await opened(found)
        headers = {"content-type": "application/json"}
        answer = await found.client.post(f"{OPEN}/{talk}/messages", content=body, headers=headers)
        assert answer.status_code == status, answer.text
        assert len((await read(found, talk))["messages"]) == (2 if status == 200 else 0)

    here(work)
