"""OpenAI's interface to the agents, so that its clients talk to them unchanged.

A request becomes a stimulus, and is answered as any other: the messages of a chat are a conversation's history, an
image is captioned (or its colour, its objects or where one looks are told), and an agent that only associates takes the
message as its cue. An agent is a participant with settings of its own and not a model to be instructed: see
:mod:`serving.http.openai_bodies` for what is honoured.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Path, Request, Response

from agents.contract import derive_seed
from agents.stimuli import ConversationStimulus, Stimulus, Task
from serving.conversations.scenario import SIDES, draw_scenario
from serving.http.bodies import aside, body_of, checked_stimulus, documented_body, from_base64
from serving.http.errors import POSTED, ApiError, documented, invalid, request_id
from serving.http.guard import unless_gone
from serving.http.openai_answers import CHAT, EVENTS, TEXT, Question, respond
from serving.http.openai_bodies import MOST_IMAGE, AnswerRequest, ChatRequest, CompletionRequest, StimulusFields
from serving.http.service import Service

IMAGE_TASKS: tuple[Task, ...] = (
    "image_captioning", "color_estimation", "object_detection", "attention_prediction",
)  # fmt: skip
TEXT_TASKS: tuple[Task, ...] = ("conversation", "word_association")


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
        is refused. With `stream` the answer is sent in pieces: as the model says them,
        or once it is accepted, a word each."""
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


# from a request to a stimulus


def of_chat(service: Service, asking: ChatRequest) -> Question:
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


def of_prompt(service: Service, asking: CompletionRequest) -> Question:
    """The stimulus of a prompt. Raises ApiError."""
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
    names = draw_scenario(stimulus, derive_seed(run_seed, asking.model, stimulus.id, 0, None, 0)).names
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
