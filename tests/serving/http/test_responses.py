"""OpenAI's responses: shapes by the types of the ``openai`` package, and what is refused, ignored and remembered."""

import json
from collections.abc import Sequence
from typing import Any

import openai
import pytest
from null_agent import NullAgent
from openai.types.responses import Response, ResponseStreamEvent
from pydantic import TypeAdapter

from agents.answers import TurnAnswer
from agents.contract import Draw, Reply
from agents.errors import AnswerError
from agents.stimuli import Stimulus
from serving.http.said_here import SaidHere
from serving.runs.records import problems
from tests.helpers import served_here
from tests.helpers.agent_aloud import Aloud, streamed
from tests.helpers.served_here import here

PATH = "/v1/responses"
EVENT: TypeAdapter[Any] = TypeAdapter(ResponseStreamEvent)
BEGIN = ["response.created", "response.in_progress", "response.output_item.added", "response.content_part.added"]
END = ["response.output_text.done", "response.content_part.done", "response.output_item.done"]
DELTA = "response.output_text.delta"
FIRST = {"role": "user", "content": "I like tea."}
LAST = {"role": "user", "content": [{"type": "input_text", "text": "And rain."}]}
SAID = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "status": "completed",
    "content": [{"type": "output_text", "text": "So you do.", "annotations": [], "logprobs": []}],
}
TOOL = {"type": "function", "name": "f", "parameters": {"type": "object", "properties": {}}, "strict": None}
CALL = {"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}"}
RESULT = {"type": "function_call_output", "call_id": "a", "output": "4"}


def asked(given: Any, **more: Any) -> tuple[int, Any]:
    told = {"model": "null", "input": given, "stimulus": {"id": "talk"}, **more}
    found: tuple[int, Any] = here(lambda one: one.post(PATH, told))
    return found


def events(sent: Sequence[Any]) -> list[Any]:
    """The events of a stream, each as its type wants it."""
    body = b"".join(message.get("body", b"") for message in sent).decode()
    found = []
    for text in body.removesuffix("\n\n").split("\n\n"):
        name, data = text.split("\n")
        event = json.loads(data.removeprefix("data: "))
        assert name == f"event: {event['type']}"
        EVENT.validate_python(event, strict=True)
        found.append(event)
    assert [event["sequence_number"] for event in found] == list(range(len(found)))
    return found


def test_a_response_is_the_answer_of_a_chat_and_of_a_completion() -> None:
    async def work(found: served_here.Here) -> None:
        client = found.openai()
        told: dict[str, Any] = {"model": "eliza", "extra_body": {"seed": 7}}
        chat = await client.chat.completions.create(messages=[{"role": "user", "content": "I like tea."}], **told)
        made = await client.responses.create(input="I like tea.", **told)
        Response.model_validate_json(made.to_json(), strict=True)
        text = await client.completions.create(prompt="I like tea.", **told)
        wanted = chat.choices[0].message.content
        assert wanted
        assert (made.output_text, text.choices[0].text, text.choices[0].finish_reason) == (wanted, wanted, "stop")
        assert (made.status, made.object, made.store if hasattr(made, "store") else False) == (
            "completed",
            "response",
            False,
        )
        [record] = made.turinglike["records"]
        assert problems(record) == []
        for other in (chat, text):
            [same] = other.turinglike["records"]
            assert (same["seed"], same["answer"]) == (record["seed"], record["answer"])

    here(work, {"eliza": {}})


def test_a_stream_has_the_events_of_a_response_in_their_order() -> None:
    async def work(found: served_here.Here) -> None:
        told = {"model": "null", "input": "I like tea.", "seed": 7}
        _, whole = await found.post(PATH, told)
        answer = await found.client.post(PATH, json={**told, "stream": True})
        assert answer.headers["content-type"].startswith("text/event-stream")
        got = events([{"body": answer.content}])
        deltas = [event["delta"] for event in got if event["type"] == DELTA]
        assert len(deltas) == 3  # words
        assert [event["type"] for event in got] == [*BEGIN, *[DELTA] * 3, *END, "response.completed"]
        text = whole["output"][0]["content"][0]["text"]
        assert "".join(deltas) == text == got[-1]["response"]["output"][0]["content"][0]["text"]
        assert len({event["item_id"] for event in got if "item_id" in event}) == 1
        assert got[-1]["response"]["turinglike"]["records"][0]["seed"] == whole["turinglike"]["records"][0]["seed"]
        async with found.openai().responses.stream(model="null", input="I like tea.") as stream:
            final = await stream.get_final_response()
        assert final.output_text.startswith("B says ")

    here(work)


@pytest.mark.parametrize(("finish", "reason"), [("length", "max_output_tokens"), ("filtered", "content_filter")])
def test_an_answer_that_was_cut_is_incomplete(finish: str, reason: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def respond(agent: NullAgent, batch: Sequence[Stimulus], draws: Sequence[Draw]) -> list[Reply]:
        return [Reply(TurnAnswer(text="So it", finish=finish), {"prompt_tokens": 10, "tokens": 3}) for _ in draws]

    monkeypatch.setattr(NullAgent, "respond", respond)

    async def work(found: served_here.Here) -> None:
        made = await found.openai().responses.create(model="null", input="I like tea.")
        assert made.incomplete_details is not None
        assert (made.status, made.incomplete_details.reason) == ("incomplete", reason)
        assert made.usage is not None
        assert (made.usage.input_tokens, made.usage.output_tokens, made.usage.total_tokens) == (10, 3, 13)
        answer = await found.client.post(PATH, json={"model": "null", "input": "I like tea.", "stream": True})
        assert events([{"body": answer.content}])[-1]["type"] == "response.incomplete"

    here(work)


def test_a_piece_is_sent_before_the_answer_is_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    agent = Aloud(monkeypatch, "One two three.")

    async def work(found: served_here.Here) -> None:
        sent = await streamed(found, agent.go_on.set, path=PATH)
        assert (agent.waited, agent.listened) == (True, [True])
        got = events(sent)
        assert [event["delta"] for event in got if event["type"] == DELTA] == ["One ", "two three."]
        assert got[-1]["type"] == "response.completed"

    here(work)


@pytest.mark.parametrize(("reply", "code"), [(AnswerError("no_text", "told to fail"), "no_text"), ("Two.", "changed")])
def test_what_fails_after_the_first_piece_is_an_event(reply: Any, code: str, monkeypatch: pytest.MonkeyPatch) -> None:
    agent = Aloud(monkeypatch, reply)

    async def work(found: served_here.Here) -> None:
        got = events(await streamed(found, agent.go_on.set, path=PATH))
        assert [event["type"] for event in got] == [*BEGIN, DELTA, "response.failed"]
        failed = got[-1]["response"]
        assert (failed["status"], failed["turinglike"]["code"]) == ("failed", code)
        assert "told to fail" not in json.dumps(got)
        assert found.service.waiting() == {"null": 0}

    here(work)


def test_a_client_that_goes_away_is_answered_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    agent = Aloud(monkeypatch, "One two three.")

    async def work(found: served_here.Here) -> None:
        await streamed(found, found.leave.set, path=PATH)
        assert found.service.waiting() == {"null": 0}
        assert not agent.waited
        agent.go_on.set()

    here(work)


HISTORIES: dict[str, tuple[Any, list[str]]] = {
    "messages": ([FIRST, SAID, LAST], []),
    "instructions": ([{"role": "developer", "content": "Be kind."}, FIRST, SAID, LAST], ["input.system"]),
    "reasoning": (
        [FIRST, {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": None}, SAID, LAST],
        ["input.reasoning"],
    ),
    "a tool was called": ([FIRST, CALL, RESULT, SAID, LAST], ["input.tool"]),
    "a hosted tool was called": (
        [FIRST, {"type": "web_search_call", "id": "ws_1", "status": "completed"}, SAID, LAST],
        ["input.tool"],
    ),
    "a refusal": (
        [FIRST, {**SAID, "content": [{"type": "refusal", "refusal": "So you do."}]}, LAST],
        [],
    ),
    "a picture before": (
        [
            {
                "role": "user",
                "content": [
                    {"type": "input_text", "text": "I like tea."},
                    {"type": "input_image", "image_url": "https://example.org/a.png", "detail": "auto"},
                ],
            },
            SAID,
            LAST,
        ],
        ["input.image"],
    ),
    "a file before": (
        [
            {
                "role": "user",
                "content": [
                    {"type": "input_text", "text": "I like tea."},
                    {"type": "input_file", "file_id": "file_1"},
                ],
            },
            SAID,
            LAST,
        ],
        ["input.input_file"],
    ),
    "an empty answer": ([FIRST, SAID, {"role": "assistant", "content": ""}, LAST], ["input.empty"]),
}


@pytest.mark.parametrize("case", HISTORIES)
def test_a_history_is_that_of_a_chat_and_what_has_no_effect_is_named(case: str) -> None:
    given, ignored = HISTORIES[case]

    async def work(found: served_here.Here) -> None:
        told = {"model": "null", "stimulus": {"id": "talk"}}
        chat = [FIRST, {"role": "assistant", "content": "So you do."}, {"role": "user", "content": "And rain."}]
        _, wanted = await found.post("/v1/chat/completions", {**told, "messages": chat})
        status, body = await found.post(PATH, {**told, "input": given})
        assert status == 200, body
        assert body["turinglike"]["ignored"] == ignored
        [record] = body["turinglike"]["records"]
        [same] = wanted["turinglike"]["records"]
        assert record["stimulus_sha256"] == same["stimulus_sha256"]
        assert record["answer"] == same["answer"]

    here(work)


def test_options_have_no_effect_and_are_named() -> None:
    status, body = asked(
        [FIRST],
        instructions="Be kind.",
        store=True,
        max_output_tokens=16,
        temperature=0.5,
        tools=[TOOL],
        tool_choice="auto",
        include=["reasoning.encrypted_content"],
        text={"format": {"type": "text"}, "verbosity": "low"},
        truncation="auto",
        metadata={"a": "b"},
        background=False,
        seed=-1,
    )
    assert status == 200, body
    assert body["turinglike"]["ignored"] == [
        "instructions",
        "store",
        "max_output_tokens",
        "temperature",
        "tools",
        "truncation",
        "metadata",
        "text.verbosity",
    ]
    assert body["output"] == [{**asked([FIRST])[1]["output"][0], "id": body["output"][0]["id"]}]


JSON_SCHEMA = {"type": "json_schema", "name": "a", "schema": {"type": "object"}}
REFUSED: dict[str, tuple[dict[str, Any], int, str, str]] = {
    "an earlier response": ({"previous_response_id": "resp_1"}, 400, "previous_response_id", "no response is stored"),
    "a conversation": ({"conversation": "conv_1"}, 400, "conversation", "no response is stored"),
    "a stored prompt": ({"prompt": {"id": "pmpt_1"}}, 400, "prompt", "no response is stored"),
    "background": ({"background": True}, 400, "background", "wait for the answer"),
    "a schema": ({"text": {"format": JSON_SCHEMA}}, 400, "text", "agents answer in plain text only"),
    "log probabilities": ({"top_logprobs": 2}, 400, "top_logprobs", "no log probabilities"),
    "included ones": ({"include": ["message.output_text.logprobs"]}, 400, "include", "no log probabilities"),
    "a tool": ({"tools": [TOOL], "tool_choice": "required"}, 400, "tool_choice", "agents call no tools"),
    "that tool": ({"tool_choice": {"type": "function", "name": "f"}}, 400, "tool_choice", "agents call no tools"),
    "one of some": ({"tool_choice": {"type": "allowed_tools", "mode": "required"}}, 400, "tool_choice", "no tools"),
    "a tool's result": ({"input": [FIRST, CALL, RESULT]}, 400, "input.2", "a tool's result is to be answered"),
    "the assistant's turn": ({"input": [FIRST, SAID]}, 422, "input", "the last message is the user's"),
    "nothing": ({"input": " "}, 400, "input", "nothing to answer"),
    "no input": ({"input": []}, 422, "input", "at least 1 item"),
    "no role": ({"input": [{"type": "message", "content": "x"}]}, 422, "input.0.role", "is missing"),
    "a file": (
        {"input": [{"role": "user", "content": [{"type": "input_file", "file_id": "file_1"}]}]},
        422,
        "input.0.content.0.type",
        "must be a text",
    ),
    "a stored image": (
        {"input": [{"role": "user", "content": [{"type": "input_image", "file_id": "file_1"}]}]},
        422,
        "input.0.content.0.image_url",
        "nothing is fetched",
    ),
    "an unknown message": ({"input": [{"type": "item_reference", "id": "x"}, FIRST]}, 422, "input.0", "send its text"),
}


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_honoured_is_refused_in_a_sentence(case: str, stream: bool) -> None:
    told, status, param, why = REFUSED[case]
    found, body = asked(
        **{"given": [FIRST], "stream": stream, **told}
        if "input" not in told
        else {"given": told["input"], "stream": stream}
    )
    assert (found, body["error"]["param"]) == (status, param), body
    assert why in body["error"]["message"]


def test_no_response_can_be_asked_for_again() -> None:
    async def work(found: served_here.Here) -> None:
        client = found.openai().responses
        made = await client.create(model="null", input="I like tea.")
        for ask in (client.retrieve, client.delete, client.cancel, client.input_items.list):
            with pytest.raises(openai.NotFoundError, match="no response is stored; send the whole conversation"):
                await ask(made.id)

    here(work)


def test_the_id_of_what_was_said_stands_for_its_text() -> None:
    """As the AI SDK sends histories by default."""

    async def work(found: served_here.Here) -> None:
        told = {"model": "null", "stimulus": {"id": "talk"}}
        streamed_answer = await found.client.post(PATH, json={**told, "input": "I like tea.", "stream": True})
        message = events([{"body": streamed_answer.content}])[-1]["response"]["output"][0]
        answers = []
        for before in ({"type": "item_reference", "id": message["id"]}, {"id": message["id"]}, message):
            status, body = await found.post(PATH, {**told, "input": [FIRST, before, LAST]})
            assert status == 200, body
            answers.append((body["turinglike"]["records"][0]["stimulus_sha256"], body["turinglike"]["ignored"]))
        assert answers == [answers[0]] * 3

    here(work)


def test_what_was_said_is_forgotten() -> None:
    now = [0.0]
    said = SaidHere(most=10, seconds=60.0, clock=lambda: now[0])
    said.remember("a", "12345")
    now[0] = 30.0
    said.remember("b", "12345")
    assert [said.text(key) for key in "ab"] == ["12345", "12345"]
    said.remember("c", "1")
    assert [said.text(key) for key in "abc"] == [None, "12345", "1"]
    now[0] = 90.0
    assert [said.text(key) for key in "abc"] == [None, None, None]
    said.remember("d", "1234567890")
    assert said.text("d") == "1234567890"
    said.remember("e", "12345678901")
    assert [said.text(key) for key in "de"] == [None, None]
    assert len({SaidHere.new_id() for _ in range(100)}) == 100
