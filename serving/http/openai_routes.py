"""OpenAI's interface to the agents, so that its clients talk to them unchanged.

A request becomes a stimulus, and is answered as any other: the messages of a chat are a conversation's history, an
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
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import orjson
from fastapi import APIRouter, Path, Request, Response
from fastapi.responses import StreamingResponse

from agents import seeds
from agents.stimuli import ConversationStimulus, Stimulus, Task
from serving.conversations.scenario import SIDES, draw_scenario
from serving.http.bodies import aside, body_of, checked_stimulus, documented_body, from_base64
from serving.http.disconnect import unless_gone
from serving.http.errors import POSTED, ApiError, documented, failure, invalid
from serving.http.openai_bodies import MOST_IMAGE, AnswerRequest, ChatRequest, CompletionRequest, StimulusFields
from serving.http.service import Service
from serving.scheduling.request import AgentRequest

IMAGE_TASKS: tuple[Task, ...] = (
    "image_captioning", "color_estimation", "object_detection", "attention_prediction",
)  # fmt: skip
TEXT_TASKS: tuple[Task, ...] = ("conversation", "word_association")
EVENTS = "text/event-stream"
IGNORED = "turinglike-ignored"  # the header that names what has no effect
WORD = re.compile(r"\s*\S+|\s+$")  # the pieces of a stream; together they are the text
Finish = Literal["stop", "length", "content_filter"]
FINISH: Mapping[str, Finish] = {"length": "length", "filtered": "content_filter"}


@dataclass(frozen=True, slots=True)
class Question:
    """What an agent is to answer, and what of the request has no effect."""

    stimulus: Stimulus
    files: Mapping[str, bytes] | None
    ignored: list[str]


@dataclass(frozen=True, slots=True)
class Form:
    """How one of the two routes writes its answers."""

    prefix: str
    kind: str
    stream_kind: str
    is_chat: bool

    def whole(self, text: str) -> dict[str, Any]:
        """An answer."""
        return {"message": {"role": "assistant", "content": text, "refusal": None}} if self.is_chat else {"text": text}

    def pieces(self, text: str) -> list[dict[str, Any]]:
        """An answer in the pieces of a stream, a word each; the last one has no text."""
        words = WORD.findall(text)
        if not self.is_chat:
            return [{"text": word} for word in [*words, ""]]
        return [
            {"delta": one} for one in ({"role": "assistant", "content": ""}, *({"content": word} for word in words), {})
        ]


CHAT = Form("chatcmpl", "chat.completion", "chat.completion.chunk", True)
TEXT = Form("cmpl", "text_completion", "text_completion", False)
ANSWERED: dict[int | str, dict[str, Any]] = {200: {"description": "The answers.", "content": {EVENTS: {}}}}


def router(service: Service) -> APIRouter:
    """The routes, for one service."""
    routes = APIRouter(tags=["OpenAI's interface"])
    began = int(time.time())

    def model(name: str) -> dict[str, Any]:
        tasks = service.agent(name).tasks
        return {"id": name, "object": "model", "created": began, "owned_by": "turinglike", "tasks": list(tasks)}

    @routes.get("/v1/models", summary="The agents, as models")
    async def models() -> dict[str, Any]:
        return {"object": "list", "data": [model(name) for name in service.agents]}

    @routes.get("/v1/models/{name}", summary="One agent, as a model")
    async def one_model(name: Annotated[str, Path(examples=["eliza"])]) -> dict[str, Any]:
        return model(name)

    @routes.post(
        "/v1/chat/completions",
        summary="The next message of a chat, or the answer to an image or a cue",
        responses=ANSWERED | POSTED | documented(502),
        openapi_extra=documented_body(ChatRequest),
    )
    async def chat(asking: Annotated[ChatRequest, body_of(ChatRequest)], request: Request) -> Response:
        """Instructions and options that tune how text is drawn have no effect and are named under
        `turinglike.ignored` and in the header `Turinglike-Ignored`; what agents do not have (tools, log-probabilities)
        is refused. With `stream` the accepted answer is sent in pieces."""
        question = await aside(request, _of_chat, service, asking)
        return await _respond(service, request, asking, question, CHAT)

    @routes.post(
        "/v1/completions",
        summary="The answer to one message or a cue",
        responses=ANSWERED | POSTED | documented(502),
        openapi_extra=documented_body(CompletionRequest),
    )
    async def complete(asking: Annotated[CompletionRequest, body_of(CompletionRequest)], request: Request) -> Response:
        """The prompt is a message, which the agent answers; no agent continues it."""
        question = _of_prompt(service, asking)
        return await _respond(service, request, asking, question, TEXT)

    return routes


# from a request to a stimulus


def _of_chat(service: Service, asking: ChatRequest) -> Question:
    """The stimulus of a chat. Raises ApiError."""
    extra, said, last = asking.stimulus, asking.said, asking.messages[-1]
    ignored = list(asking.ignored)
    if len(said) < len(asking.messages):
        ignored.append("messages.system")
    if any(one.ignored for one in said):
        ignored.append("messages.name")
    images = last.images()
    task = extra.task or _first_task(service, asking.model, IMAGE_TASKS if images else TEXT_TASKS)
    if images and task in TEXT_TASKS:
        raise invalid([("messages", f"an image cannot be shown in {task}")])
    if task == "conversation":
        history = [("AB"[one.role == "assistant"], one.text()) for one in said]
        return Question(_conversation(service, asking, history), None, ignored)
    if len(said) > 1:
        ignored.append("messages")
    if task == "word_association":
        return Question(_cue(extra, last.text(), "messages"), None, ignored)
    if not images:
        raise invalid([("messages", f"agent {asking.model} answers {task}, and there is no image")])
    if last.text().strip():
        ignored.append("messages.content.text")
    try:
        data = from_base64(images[0])
    except ValueError:
        raise invalid([("messages.content.image_url.url", "the image is no base64")]) from None
    if len(data) > MOST_IMAGE:
        raise ApiError(413, "too_large", f"an image has at most {MOST_IMAGE:,} bytes")
    row = {"id": _id("image", data), "task": task, "image": "image", **extra.fields()}
    return Question(checked_stimulus(row, {"image": data}), {"image": data}, ignored)


def _of_prompt(service: Service, asking: CompletionRequest) -> Question:
    """Raises ApiError."""
    ignored = asking.ignored
    task = asking.stimulus.task or _first_task(service, asking.model, TEXT_TASKS)
    if task == "conversation":
        return Question(_conversation(service, asking, [("A", asking.prompt)]), None, ignored)
    if task == "word_association":
        return Question(_cue(asking.stimulus, asking.prompt, "prompt"), None, ignored)
    raise invalid([("stimulus.task", f"{task} needs an image, which a prompt has not: see /v1/chat/completions")])


def _first_task(service: Service, name: str, likely: Sequence[Task]) -> Task:
    """The first of the ``likely`` tasks that the agent answers. Raises ApiError if there is none."""
    agent = service.agent(name)
    for task in likely:
        if task in agent.tasks:
            return task
    wanted = "images" if likely is IMAGE_TASKS else "text without an image"
    raise ApiError(422, "wrong_task", f"agent {name} answers {', '.join(agent.tasks)}: {wanted} is not for it")


def _conversation(service: Service, asking: AnswerRequest, said: Sequence[tuple[str, str]]) -> Stimulus:
    """The conversation of which ``said`` are the messages so far, each with its side: the user is A, the agent B."""
    row = {"id": _id("chat", said[0][1].encode()), "task": "conversation", "type": "HM", **asking.stimulus.fields()}
    stimulus = checked_stimulus(row, {})
    assert isinstance(stimulus, ConversationStimulus)
    run_seed = service.options.seed if asking.seed is None else asking.seed
    names = draw_scenario(stimulus, seeds.derive(run_seed, asking.model, stimulus.id, 0, None, 0)).names
    assert names is not None
    history = [{"speaker": names[SIDES.index(side)], "text": text} for side, text in said]
    return checked_stimulus({**row, "names": names, "who_starts": said[0][0], "history": history}, {})


def _cue(extra: StimulusFields, text: str, field: str) -> Stimulus:
    if not 0 < len(text.strip()) <= 200:
        raise invalid([(field, "the last message is the cue: a word, of at most 200 characters")])
    row = {"id": _id("cue", text.encode()), "task": "word_association", "cue": text, **extra.fields()}
    return checked_stimulus(row, {})


def _id(kind: str, content: bytes) -> str:
    """A stimulus's id where none is given: the same for the same thing, and for all turns of one chat."""
    return f"{kind}-{hashlib.sha256(content).hexdigest()[:16]}"


# from records to an answer


async def _respond(
    service: Service, request: Request, asking: AnswerRequest, question: Question, form: Form
) -> Response:
    """The answers, whole or in pieces. Raises ApiError."""
    name, count = asking.model, asking.n or 1
    service.check(name, question.stimulus)
    most = service.agent(name).max_samples
    if most is not None and count > most:
        raise invalid([("n", f"agent {name} has at most {most} answers to one stimulus")])
    with service.queued(name, count):
        items = await unless_gone(request, _answers(service, name, question, count, asking.seed))
    for item in items:
        if item.status != "ok":
            raise failure(name, "rejected" if item.status == "rejected" else (item.error or ("failed",))[0])
    envelope = {
        "id": f"{form.prefix}-{secrets.token_hex(12)}",
        "object": form.stream_kind if asking.stream else form.kind,
        "created": int(time.time()),
        "model": name,
        "system_fingerprint": f"fp_{service.headers[name].digest[:10]}",
    }
    answers = [_cut(*_text(question.stimulus.task, item.answer or b""), asking.stop) for item in items]
    records = [orjson.Fragment(service.record(item).rstrip()) for item in items]
    usage = _usage(items)

    def choice(index: int, said: Mapping[str, Any], finish: Finish | None) -> dict[str, Any]:
        return {"index": index, **said, "finish_reason": finish, "logprobs": None}

    async def events() -> AsyncIterator[bytes]:
        tells = asking.stream_options is not None and asking.stream_options.include_usage
        no_usage_yet = {"usage": None} if tells else {}
        for index, (text, finish) in enumerate(answers):
            *pieces, last = form.pieces(text)
            for piece in pieces:
                yield _event({**envelope, "choices": [choice(index, piece, None)], **no_usage_yet})
            with_record = {"turinglike": {"records": [records[index]], "ignored": question.ignored}}
            yield _event({**envelope, "choices": [choice(index, last, finish)], **no_usage_yet, **with_record})
        if tells:
            yield _event({**envelope, "choices": [], "usage": usage})
        yield b"data: [DONE]\n\n"

    headers = {IGNORED: ", ".join(question.ignored)} if question.ignored else {}
    if asking.stream:
        return StreamingResponse(events(), media_type=EVENTS, headers={"cache-control": "no-store", **headers})
    whole = {
        **envelope,
        "choices": [choice(index, form.whole(text), finish) for index, (text, finish) in enumerate(answers)],
        "usage": usage,
        "turinglike": {"records": records, "ignored": question.ignored},
    }
    return Response(orjson.dumps(whole), media_type="application/json", headers=headers)


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


def _text(task: Task, answer: bytes) -> tuple[str, Finish]:
    """An answer as text, and how it ended."""
    found = orjson.loads(answer)
    match task:
        case "color_estimation":
            text = found["color"]
        case "object_detection":
            text = ", ".join(found["labels"])
        case "attention_prediction":
            text = orjson.dumps(found["fixations"]).decode()
        case "word_association":
            text = found["word"]
        case _:
            text = found["text"]
    return text, FINISH.get((found.get("finish") or "").partition(";")[0], "stop")


def _cut(text: str, finish: Finish, stops: Sequence[str]) -> tuple[str, Finish]:
    """The text before the first of the ``stops``."""
    ends = [at for stop in stops if stop and (at := text.find(stop)) >= 0]
    return (text[: min(ends)], "stop") if ends else (text, finish)


def _usage(items: Sequence[AgentRequest]) -> dict[str, int] | None:
    """Numbers of tokens where the agent tells them of every answer; null is what is not known."""
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
