"""OpenAI's interface to the agents, so that its clients talk to them unchanged.

What is asked becomes a stimulus, and is answered as any other: the messages of a chat are a conversation's history, an
image is captioned (or its colour, its objects or where one looks are told), and an agent that only associates takes the
message as its cue. An agent is a participant with settings of its own and not a model to be instructed: see
:mod:`serving.http.openai_bodies` for what is honoured.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
import secrets
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import orjson
from fastapi import APIRouter, Path, Request, Response
from fastapi.responses import StreamingResponse

from agents import seeds
from agents.contract import Agent
from agents.stimuli import ConversationStimulus, Stimulus, Task
from serving.conversations.scenario import SIDES, draw_scenario
from serving.http.bodies import checked_stimulus, parse
from serving.http.errors import ApiError
from serving.http.failed_answers import documented, failure
from serving.http.native import JSON, request_body, unless_gone
from serving.http.openai_bodies import MOST_IMAGE, ChatRequest, CompletionRequest, Given
from serving.http.service import Service
from serving.scheduling.request import AgentRequest

LOOKING: tuple[Task, ...] = ("image_captioning", "color_estimation", "object_detection", "attention_prediction")
TALKING: tuple[Task, ...] = ("conversation", "word_association")
EVENTS = "text/event-stream"
DONE = b"data: [DONE]\n\n"
PIECE = re.compile(r"\s*\S+|\s+$")
Finish = Literal["stop", "length", "content_filter"]
FINISH: Mapping[str, Finish] = {"length": "length", "filtered": "content_filter"}


@dataclass(frozen=True, slots=True)
class Question:
    """What an agent is asked, and what of the request is not read."""

    stimulus: Stimulus
    files: dict[str, bytes] | None
    ignored: list[str]


@dataclass(frozen=True, slots=True)
class Choice:
    """One answer as text."""

    index: int
    text: str
    finish: Finish
    record: Any

    def pieces(self) -> list[str]:
        """The text in pieces of a word each; together they are the text."""
        return PIECE.findall(self.text)


@dataclass(frozen=True, slots=True)
class Form:
    """How one of the two routes writes its answers."""

    prefix: str
    kind: str
    stream_kind: str
    chats: bool

    def whole(self, choice: Choice) -> dict[str, Any]:
        """A choice."""
        said: dict[str, Any] = {"text": choice.text}
        if self.chats:
            said = {"message": {"role": "assistant", "content": choice.text, "refusal": None}}
        return {"index": choice.index, **said, "finish_reason": choice.finish, "logprobs": None}

    def pieces(self, choice: Choice) -> Iterator[dict[str, Any]]:
        """A choice in the pieces of a stream; the last one has no text but says how it ended."""
        start: list[dict[str, Any]] = [{"role": "assistant", "content": ""}] if self.chats else []
        deltas = [*start, *({"content": piece} for piece in choice.pieces()), {}]
        for place, delta in enumerate(deltas, 1):
            said = {"delta": delta} if self.chats else {"text": delta.get("content", "")}
            finish = choice.finish if place == len(deltas) else None
            yield {"index": choice.index, **said, "finish_reason": finish, "logprobs": None}


CHAT = Form("chatcmpl", "chat.completion", "chat.completion.chunk", True)
TEXT = Form("cmpl", "text_completion", "text_completion", False)


def router(service: Service) -> APIRouter:
    """The routes, for one service."""
    routes = APIRouter(tags=["OpenAI's interface"])
    began = int(time.time())

    def model(name: str) -> dict[str, Any]:
        tasks = service.agent(name).tasks
        return {"id": name, "object": "model", "created": began, "owned_by": "turinglike", "tasks": list(tasks)}

    example = {"id": "eliza", "object": "model", "created": 1767225600, "owned_by": "turinglike", "tasks": TALKING[:1]}
    listed = {"object": "list", "data": [example]}

    @routes.get("/v1/models", summary="The agents, as models", responses=_shown(listed))
    async def models() -> dict[str, Any]:
        return {"object": "list", "data": [model(name) for name in service.agents]}

    @routes.get("/v1/models/{name}", summary="One agent, as a model", responses=_shown(example))
    async def one_model(name: Annotated[str, Path(examples=["eliza"])]) -> dict[str, Any]:
        return model(name)

    @routes.post(
        "/v1/chat/completions",
        summary="The next message of a chat, or the answer to an image or a cue",
        openapi_extra=request_body(ChatRequest),
        responses={200: _described(CHAT), **documented(502)},
        response_class=Response,
    )
    async def chat(request: Request) -> Response:
        """Options that only tune how text is drawn have no effect and are named under `turinglike.ignored`; what
        agents do not have (instructions, tools, formats, stops, log-probabilities) is refused. With `stream` the
        accepted answer is sent in pieces."""
        asked = parse(ChatRequest, await request.body())
        return await _respond(service, request, asked, _of_chat(service, asked), CHAT)

    @routes.post(
        "/v1/completions",
        summary="The answer to one message or a cue",
        openapi_extra=request_body(CompletionRequest),
        responses={200: _described(TEXT), **documented(502)},
        response_class=Response,
    )
    async def complete(request: Request) -> Response:
        """The prompt is a message, which the agent answers; no agent continues it."""
        asked = parse(CompletionRequest, await request.body())
        return await _respond(service, request, asked, _of_prompt(service, asked), TEXT)

    return routes


def _shown(example: Mapping[str, Any]) -> dict[int | str, dict[str, Any]]:
    return {200: {"content": {JSON: {"example": example}}}}


def _described(form: Form) -> dict[str, Any]:
    """The good answer, for the OpenAPI document."""
    choice = Choice(0, "What do you like about books?", "stop", {})
    example = _envelope(form, "eliza", f"{form.prefix}-0123456789abcdef01234567", 1767225600, "0" * 10)
    keys = ("id", "object", "created", "model", "choices", "usage", "turinglike")
    properties = {name: {"type": "array" if name == "choices" else "string"} for name in ("id", "model", "choices")}
    whole = {**example, "choices": [form.whole(choice)], "usage": None, "turinglike": {"records": [], "ignored": []}}
    schema = {"type": "object", "required": list(keys), "properties": properties}
    return {
        "description": "The answers.",
        "content": {
            JSON: {"schema": schema, "example": whole},
            EVENTS: {"example": "data: {…}\n\ndata: [DONE]\n\n"},
        },
    }


# what is asked


def _of_chat(service: Service, asked: ChatRequest) -> Question:
    """Raises ApiError."""
    agent, given, last = service.agent(asked.model), asked.stimulus, asked.messages[-1]
    ignored = asked.ignored()
    if any(one.name is not None for one in asked.messages):
        ignored.append("messages.name")
    images = last.images()
    task = _task(agent, given, LOOKING if images else TALKING)
    if images and task in TALKING:
        raise _wrong("messages", f"an image cannot be shown in {task}")
    if task == "conversation":
        history = [("AB"[one.role == "assistant"], one.text()) for one in asked.messages]
        return Question(_conversation(service, asked.model, asked.seed, given, history), None, ignored)
    if len(asked.messages) > 1:
        ignored.append("messages")
    if task == "word_association":
        return Question(_cue(given, last.text(), "messages"), None, ignored)
    if not images:
        raise _wrong("messages", f"agent {asked.model} answers {task}, and there is no image")
    if last.text().strip():
        ignored.append("messages.content.text")
    try:
        data = images[0].read()
    except ValueError:
        raise _wrong("messages.content.image_url.url", "the image is no base64") from None
    if len(data) > MOST_IMAGE:
        raise ApiError(413, "too_large", f"an image has at most {MOST_IMAGE:,} bytes")
    row = {"id": _id("image", data), "task": task, "image": "image", **_fields(given)}
    files = {"image": data}
    return Question(checked_stimulus(row, files), files, ignored)


def _of_prompt(service: Service, asked: CompletionRequest) -> Question:
    """Raises ApiError."""
    task = _task(service.agent(asked.model), asked.stimulus, TALKING)
    if task == "conversation":
        stimulus = _conversation(service, asked.model, asked.seed, asked.stimulus, [("A", asked.text())])
    elif task == "word_association":
        stimulus = _cue(asked.stimulus, asked.text(), "prompt")
    else:
        raise _wrong("stimulus.task", f"{task} cannot be asked with a prompt; see /v1/chat/completions")
    return Question(stimulus, None, asked.ignored())


def _task(agent: Agent[Any], given: Given, likely: Sequence[Task]) -> Task:
    """What the request is for: what it says itself, or else the first of the ``likely`` that the agent answers. Raises
    ApiError if there is none."""
    if given.task is not None:
        return given.task
    for task in likely:
        if task in agent.tasks:
            return task
    wanted = "images" if likely is LOOKING else "text without an image"
    raise ApiError(422, "wrong_task", f"agent {agent.name} answers {', '.join(agent.tasks)}: {wanted} is not for it")


def _conversation(
    service: Service, agent: str, seed: int | None, given: Given, said: Sequence[tuple[str, str]]
) -> Stimulus:
    """The conversation of which ``said`` are the messages so far, each with its side: the user is A, the agent B."""
    stimulus = checked_stimulus(
        {"id": _id("chat", said[0][1].encode()), "task": "conversation", "type": "HM", **_fields(given)}, {}
    )
    assert isinstance(stimulus, ConversationStimulus)
    run_seed = service.options.seed if seed is None else seed
    names = draw_scenario(stimulus, seeds.derive(run_seed, agent, stimulus.id, 0, None, 0)).names
    assert names is not None
    history = [{"speaker": names[SIDES.index(side)], "text": text} for side, text in said]
    row = {**stimulus.model_dump(exclude_defaults=True), "names": names, "who_starts": said[0][0], "history": history}
    return checked_stimulus(row, {})


def _cue(given: Given, text: str, field: str) -> Stimulus:
    if not 0 < len(text.strip()) <= 200:
        raise _wrong(field, "the last message is the cue: a word, of at most 200 characters")
    return checked_stimulus(
        {"id": _id("cue", text.encode()), "task": "word_association", "cue": text, **_fields(given)}, {}
    )


def _fields(given: Given) -> dict[str, Any]:
    return given.model_dump(exclude_none=True, exclude={"task"})


def _id(kind: str, said: bytes) -> str:
    """A stimulus's id where none is given: the same for the same thing, and for all turns of one chat."""
    return f"{kind}-{hashlib.sha256(said).hexdigest()[:16]}"


def _wrong(field: str, message: str) -> ApiError:
    return ApiError(422, "invalid_request", message, problems=[{"field": field, "message": message}])


# what is answered


async def _respond(
    service: Service, request: Request, asked: ChatRequest | CompletionRequest, question: Question, form: Form
) -> Response:
    """The answers, whole or in pieces. Raises ApiError."""
    name, count = asked.model, asked.n or 1
    service.check(name, question.stimulus)
    most = service.agent(name).max_samples
    if most is not None and count > most:
        raise _wrong("n", f"agent {name} has at most {most} answers to one stimulus")
    with service.place(name, count):
        items = await unless_gone(request, _answers(service, name, question, count, asked.seed))
    for item in items:
        if item.status != "ok":
            raise failure(name, "rejected" if item.status == "rejected" else (item.error or ("failed",))[0])
    choices = [
        Choice(index, *_said(question.stimulus.task, item.answer or b""), orjson.loads(service.record(item)))
        for index, item in enumerate(items)
    ]
    answer_id = f"{form.prefix}-{secrets.token_hex(12)}"
    envelope = _envelope(form, name, answer_id, int(time.time()), service.headers[name].digest[:10])
    usage = _usage(items)
    if asked.stream:
        envelope["object"] = form.stream_kind
        tells = asked.stream_options is not None and bool(asked.stream_options.include_usage)
        body = _events(form, envelope, choices, question.ignored, usage, tells)
        return StreamingResponse(body, media_type=EVENTS, headers={"cache-control": "no-store"})
    whole = {
        **envelope,
        "choices": [form.whole(one) for one in choices],
        "usage": usage,
        "turinglike": {"records": [one.record for one in choices], "ignored": question.ignored},
    }
    return Response(orjson.dumps(whole), media_type=JSON)


def _envelope(form: Form, name: str, answer_id: str, created: int, digest: str) -> dict[str, Any]:
    return {
        "id": answer_id,
        "object": form.kind,
        "created": created,
        "model": name,
        "system_fingerprint": f"fp_{digest}",
    }


async def _answers(service: Service, name: str, question: Question, count: int, seed: int | None) -> list[AgentRequest]:
    """Samples 0 to ``count`` - 1; if one cannot be had, the others are given up."""
    tasks = [
        asyncio.create_task(service.answer(name, question.stimulus, files=question.files, sample=sample, seed=seed))
        for sample in range(count)
    ]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _said(task: Task, answer: bytes) -> tuple[str, Finish]:
    """An answer as text, and how it ended."""
    said = orjson.loads(answer)
    if task == "color_estimation":
        text = said["color"]
    elif task == "object_detection":
        text = ", ".join(said["labels"])
    elif task == "attention_prediction":
        text = orjson.dumps(said["fixations"]).decode()
    elif task == "word_association":
        text = said["word"]
    else:
        text = said["text"]
    return text, FINISH.get((said.get("finish") or "").partition(";")[0], "stop")


def _usage(items: Sequence[AgentRequest]) -> dict[str, int] | None:
    """Numbers of tokens where the agent tells them of every answer; null is what is not known."""
    asked, said = 0, 0
    for item in items:
        match None if item.raw is None else orjson.loads(item.raw):
            case {"prompt_tokens": int(prompt), "tokens": int(tokens)}:
                asked, said = max(asked, prompt), said + tokens
            case _:
                return None
    return {"prompt_tokens": asked, "completion_tokens": said, "total_tokens": asked + said}


async def _events(
    form: Form, envelope: Mapping[str, Any], choices: Sequence[Choice], ignored: list[str], usage: Any, tells: bool
) -> AsyncIterator[bytes]:
    """The events of a stream. The piece that ends an answer has its record."""
    unsaid = {"usage": None} if tells else {}
    for choice in choices:
        for piece in form.pieces(choice):
            more = {"turinglike": {"records": [choice.record], "ignored": ignored}} if piece["finish_reason"] else {}
            yield _event({**envelope, "choices": [piece], **unsaid, **more})
    if tells:
        yield _event({**envelope, "choices": [], "usage": usage})
    yield DONE


def _event(content: Mapping[str, Any]) -> bytes:
    return b"data: " + orjson.dumps(content) + b"\n\n"
