"""OpenAI's interface to the agents: its routes, and answers in its form, whole or in the pieces of a stream.

A stream has the pieces as the agent makes them, where it tells them (:class:`agents.contract.Draw`, ``say``); otherwise
the words of the accepted answer.
"""

from __future__ import annotations

import asyncio
import re
import secrets
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

import orjson
from fastapi import APIRouter, Path, Request, Response
from fastapi.responses import StreamingResponse

from agents.stimuli import Task
from serving.http.bodies import aside, body_of, documented_body
from serving.http.errors import POSTED, ApiError, documented, failure, invalid, request_id
from serving.http.guard import unless_gone
from serving.http.openai_requests import AnswerRequest, ChatRequest, CompletionRequest, Question, of_chat, of_prompt
from serving.http.service import Service
from serving.scheduling.request import AgentRequest, Listener

EVENTS = "text/event-stream"
IGNORED = "turinglike-ignored"  # the header that names what has no effect
WORD = re.compile(r"\s*\S+|\s+$")  # the pieces of a whole answer; together they are the text
Finish = Literal["stop", "length", "content_filter"]
FINISH: Mapping[str, Finish] = {"length": "length", "filtered": "content_filter"}


@dataclass(frozen=True, slots=True)
class Form:
    """The form of a route's answers."""

    prefix: str
    kind: str
    stream_kind: str
    is_chat: bool

    def whole(self, text: str) -> dict[str, Any]:
        return {"message": {"role": "assistant", "content": text, "refusal": None}} if self.is_chat else {"text": text}

    def piece(self, text: str, *, is_first: bool) -> dict[str, Any]:
        if not self.is_chat:
            return {"text": text}
        return {"delta": ({"role": "assistant"} if is_first else {}) | ({"content": text} if text or is_first else {})}


CHAT = Form("chatcmpl", "chat.completion", "chat.completion.chunk", True)
TEXT = Form("cmpl", "text_completion", "text_completion", False)


ANSWERED: dict[int | str, dict[str, Any]] = {200: {"description": "The answers.", "content": {EVENTS: {}}}}


def router(service: Service) -> APIRouter:
    """The routes for a service."""
    routes = APIRouter(tags=["OpenAI's interface"])
    began = int(time.time())

    def model(name: str) -> dict[str, Any]:
        tasks = service.agent(name).tasks
        return {"id": name, "object": "model", "created": began, "owned_by": "turinglike", "tasks": list(tasks)}

    @routes.get("/v1/models", summary="The agents, as models")
    async def models() -> dict[str, Any]:
        return {"object": "list", "data": [model(name) for name in service.agents]}

    @routes.get("/v1/models/{name}", summary="One agent, as a model")
    async def retrieve(name: Annotated[str, Path(examples=["eliza"])]) -> dict[str, Any]:
        return model(name)

    @routes.post(
        "/v1/chat/completions",
        summary="The next message of a chat, or the answer to an image or a cue",
        responses=ANSWERED | POSTED | documented(502),
        openapi_extra=documented_body(ChatRequest),
    )
    async def chat(asking: Annotated[ChatRequest, body_of(ChatRequest)], request: Request) -> Response:
        """Instructions and options that tune how text is drawn have no effect; `turinglike.ignored` names them, and the
        header `Turinglike-Ignored`. Options that agents do not have (tools, log-probabilities) are refused."""
        question = await aside(request, of_chat, service, asking)
        return await unless_gone(request, respond(service, asking, question, CHAT, request_id(request)))

    @routes.post(
        "/v1/completions",
        summary="The answer to one message or a cue",
        responses=ANSWERED | POSTED | documented(502),
        openapi_extra=documented_body(CompletionRequest),
    )
    async def complete(asking: Annotated[CompletionRequest, body_of(CompletionRequest)], request: Request) -> Response:
        """The prompt is a message, which the agent answers; no agent continues it."""
        question = of_prompt(service, asking)
        return await unless_gone(request, respond(service, asking, question, TEXT, request_id(request)))

    return routes


async def respond(
    service: Service, asking: AnswerRequest, question: Question, form: Form, request_id: str = ""
) -> Response:
    """The answers, whole or in pieces. Raises ApiError."""
    name, count = asking.model, asking.n or 1
    service.check(name, question.stimulus)
    most = service.agent(name).max_samples
    if most is not None and count > most:
        raise invalid([("n", f"agent {name} has at most {most} answers to one stimulus")])
    service.check_queue(name, count)
    envelope = {
        "id": f"{form.prefix}-{secrets.token_hex(12)}",
        "object": form.stream_kind if asking.stream else form.kind,
        "created": int(time.time()),
        "model": name,
        "system_fingerprint": f"fp_{service.headers[name].digest[:10]}",
    }
    headers = {IGNORED: ", ".join(question.ignored)} if question.ignored else {}
    if asking.stream:
        stream = _Stream(service, asking, question, form, count, envelope, request_id)
        await stream.begin()
        headers["cache-control"] = "no-store"
        return StreamingResponse(stream.events(), media_type=EVENTS, headers=headers)
    with service.queued(name, count):
        items = await _answers(service, asking, question, count)
    whole = {
        **envelope,
        "choices": [
            _choice(index, form.whole(text), finish)
            for index, (text, finish) in enumerate(_texts(items, asking, question))
        ],
        "usage": _usage(items),
        "turinglike": {"records": _records(service, items), "ignored": question.ignored},
    }
    return Response(orjson.dumps(whole), media_type="application/json", headers=headers)


@dataclass(slots=True)
class _Stream:
    """The answers to one request in pieces: :meth:`begin`, then :meth:`events`."""

    service: Service
    asking: AnswerRequest
    question: Question
    form: Form
    count: int
    envelope: Mapping[str, Any]
    request_id: str
    _texts: list[str] = field(init=False)  # of each answer, as far as it is known
    _sent: list[str] = field(init=False)
    _wake: asyncio.Event = field(init=False, default_factory=asyncio.Event)
    _answering: asyncio.Task[list[AgentRequest]] = field(init=False)

    async def begin(self) -> None:
        """Return when there is something to send. Raises ApiError, as long as nothing is sent."""
        self._texts, self._sent = [""] * self.count, [""] * self.count
        self._answering = asyncio.create_task(self._answer())
        self._answering.add_done_callback(lambda _: self._wake.set())
        try:
            await self._wake.wait()
        except asyncio.CancelledError:
            await self._give_up()
            raise
        if self._answering.done():
            self._answering.result()

    async def _answer(self) -> list[AgentRequest]:
        def listener(index: int) -> Listener:
            def say(text: str) -> None:
                if len(text) > len(self._texts[index]):
                    self._texts[index] = text
                    self._wake.set()

            return say

        # What a client's own stops would cut is not known before the end.
        says = [] if any(self.asking.stop) else [listener(index) for index in range(self.count)]
        with self.service.queued(self.asking.model, self.count):
            return await _answers(self.service, self.asking, self.question, self.count, says)

    async def _give_up(self) -> None:
        self._answering.cancel()
        await asyncio.gather(self._answering, return_exceptions=True)

    async def events(self) -> AsyncGenerator[bytes, None]:
        """The events. A failure after the first piece is the last of them."""
        tells = self.asking.stream_options is not None and self.asking.stream_options.include_usage
        no_usage_yet = {"usage": None} if tells else {}

        def event(index: int, text: str, finish: Finish | None = None, **more: Any) -> bytes:
            piece = self.form.piece(text, is_first=not self._sent[index] and finish is None)
            self._sent[index] += text
            return _event({**self.envelope, "choices": [_choice(index, piece, finish)], **no_usage_yet, **more})

        try:
            while not self._answering.done():
                for index, text in enumerate(self._texts):
                    if text.startswith(self._sent[index]) and text != self._sent[index]:
                        yield event(index, text[len(self._sent[index]) :])
                await self._wake.wait()
                self._wake.clear()
            items = self._answering.result()
            for index, (text, finish) in enumerate(_texts(items, self.asking, self.question)):
                sent = self._sent[index]
                if not text.startswith(sent):
                    raise failure(self.asking.model, "changed")
                left = text[len(sent) :]
                for piece in [left] * bool(left) if sent else WORD.findall(text) or [""]:
                    yield event(index, piece)
                records = _records(self.service, items[index : index + 1])
                yield event(index, "", finish, turinglike={"records": records, "ignored": self.question.ignored})
            if tells:
                yield _event({**self.envelope, "choices": [], "usage": _usage(items)})
            yield b"data: [DONE]\n\n"
        except ApiError as error:
            yield b"data: " + error.body(self.request_id) + b"\n\n"
        finally:
            await self._give_up()


async def _answers(
    service: Service, asking: AnswerRequest, question: Question, count: int, says: Sequence[Listener | None] = ()
) -> list[AgentRequest]:
    """Samples 0 to ``count`` - 1, whose texts ``says`` get while they are made. If one fails, the others are
    cancelled. Raises ApiError."""
    tasks = [
        asyncio.create_task(
            service.answer(
                asking.model, question.stimulus, files=question.files, sample=sample, seed=asking.seed, say=say
            )
        )
        for sample, say in zip(range(count), says or [None] * count, strict=True)
    ]
    try:
        items = await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    for item in items:
        if item.status != "ok":
            raise failure(asking.model, "rejected" if item.status == "rejected" else (item.error or ("failed",))[0])
    return items


def _texts(items: Sequence[AgentRequest], asking: AnswerRequest, question: Question) -> list[tuple[str, Finish]]:
    return [_cut(*_text(question.stimulus.task, item.answer or b""), asking.stop) for item in items]


def _records(service: Service, items: Sequence[AgentRequest]) -> list[orjson.Fragment]:
    return [orjson.Fragment(service.record(item).rstrip()) for item in items]


def _choice(index: int, content: Mapping[str, Any], finish: Finish | None) -> dict[str, Any]:
    return {"index": index, **content, "finish_reason": finish, "logprobs": None}


def _text(task: Task, answer: bytes) -> tuple[str, Finish]:
    """An answer as text, and how it ended."""
    fields = orjson.loads(answer)
    match task:
        case "color_estimation":
            text = fields["color"]
        case "object_detection":
            text = ", ".join(fields["labels"])
        case "attention_prediction":
            text = orjson.dumps(fields["fixations"]).decode()
        case "word_association":
            text = fields["word"]
        case _:
            text = fields["text"]
    return text, FINISH.get((fields.get("finish") or "").partition(";")[0], "stop")


def _cut(text: str, finish: Finish, stops: Sequence[str]) -> tuple[str, Finish]:
    """The text before the first of the ``stops``."""
    ends = [at for stop in stops if stop and (at := text.find(stop)) >= 0]
    return (text[: min(ends)], "stop") if ends else (text, finish)


def _usage(items: Sequence[AgentRequest]) -> dict[str, int] | None:
    """Numbers of tokens; None unless the agent counts those of every answer."""
    prompts, answers = 0, 0
    for item in items:
        match None if item.raw is None else orjson.loads(item.raw):
            case {"prompt_tokens": int(prompt), "tokens": int(tokens)}:
                prompts, answers = max(prompts, prompt), answers + tokens
            case _:
                return None
    return {"prompt_tokens": prompts, "completion_tokens": answers, "total_tokens": prompts + answers}


def _event(content: Mapping[str, Any]) -> bytes:
    return b"data: " + orjson.dumps(content) + b"\n\n"
