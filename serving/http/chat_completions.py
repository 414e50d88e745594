"""OpenAI's interface: models and chat completions."""

import asyncio
import re
import secrets
import time
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from typing import Annotated, Any, Literal

import orjson
from fastapi import APIRouter, Path, Request, Response
from fastapi.responses import StreamingResponse

from serving.http.bodies import JSON
from serving.http.chat_requests import ChatRequest, chat_stimulus
from serving.http.errors import POSTED, ApiError, documented, failure, invalid, request_id
from serving.http.guard import unless_gone
from serving.http.service import Service
from serving.scheduling.tasks import all_of, cancel
from serving.scheduling.worker import AgentRequest, Listener

EVENTS = "text/event-stream"
IGNORED = "turinglike-ignored"
PIECE = re.compile(r"\s*\S+|\s+$")  # the pieces of a whole answer; together they are the text
Finish = Literal["stop", "length", "content_filter"]
FINISH: Mapping[str, Finish] = {"length": "length", "filtered": "content_filter"}


def router(service: Service) -> APIRouter:
    routes = APIRouter(tags=["OpenAI's interface"])
    began = int(time.time())

    def model(name: str) -> dict[str, Any]:
        tasks = service.agent(name).tasks
        return {"id": name, "object": "model", "created": began, "owned_by": "turinglike", "tasks": list(tasks)}

    @routes.get("/v1/models", summary="The agents, as models")
    async def models() -> dict[str, Any]:
        return {"object": "list", "data": [model(name) for name in service.agents]}

    @routes.get("/v1/models/{name}", summary="An agent, as a model")
    async def retrieve(name: Annotated[str, Path(examples=["eliza"])]) -> dict[str, Any]:
        return model(name)

    @routes.post(
        "/v1/chat/completions",
        summary="The next message of a chat, or the answer to an image or a cue",
        responses={200: {"description": "The answers.", "content": {EVENTS: {}}}} | POSTED | documented(502),
    )
    async def complete(chat: ChatRequest, request: Request) -> Response:
        """Instructions and options of models have no effect; `turinglike.ignored` names them, and the header
        `Turinglike-Ignored`."""
        chat.check_options()
        headers = {IGNORED: ", ".join(names)} if (names := chat.ignored()) else {}
        completion = await asyncio.to_thread(_Completion, service, chat, request_id(request))
        if not chat.stream:
            content = await unless_gone(request, completion.whole())
            return Response(orjson.dumps(content), media_type=JSON, headers=headers)
        await unless_gone(request, completion.begin())
        return StreamingResponse(
            completion.events(), media_type=EVENTS, headers={**headers, "cache-control": "no-store"}
        )

    return routes


class _Completion:
    """Use :meth:`whole`, or :meth:`begin` and then :meth:`events`. Raises ApiError."""

    def __init__(self, service: Service, chat: ChatRequest, request_id: str) -> None:
        self.service, self.chat, self.request_id = service, chat, request_id
        self.count = chat.n or 1
        self.stimulus, self.files = chat_stimulus(service, chat)
        service.check(chat.model, self.stimulus)
        most = service.agent(chat.model).max_samples
        if most is not None and self.count > most:
            raise invalid([("n", f"agent {chat.model} has at most {most} answers to one stimulus")])
        service.check_queue(chat.model, self.count)
        self._texts = [""] * self.count  # of each answer, as far as it is known
        self._sent = [""] * self.count
        self._wake = asyncio.Event()

    async def whole(self) -> dict[str, Any]:
        items = await self._answers([None] * self.count)
        choices = []
        for index, item in enumerate(items):
            text, finish = self._text(item)
            message = {"role": "assistant", "content": text, "refusal": None}
            choices.append(_choice(index, {"message": message}, finish))
        more = {"choices": choices, "usage": _usage(items), "turinglike": self._more(items)}
        return self._envelope("chat.completion") | more

    async def begin(self) -> None:
        """Await the first piece. Raises ApiError."""
        # What the request's stops cut is not known before the end.
        listeners = [None if self.chat.stop else self._listener(index) for index in range(self.count)]
        self._answering = asyncio.create_task(self._answers(listeners))
        self._answering.add_done_callback(lambda _: self._wake.set())
        try:
            await self._wake.wait()
        except asyncio.CancelledError:
            await cancel(self._answering)
            raise
        if self._answering.done():
            self._answering.result()

    async def events(self) -> AsyncGenerator[bytes, None]:
        """The events; a later failure is the last."""
        has_usage = self.chat.stream_options is not None and self.chat.stream_options.include_usage
        envelope = self._envelope("chat.completion.chunk") | ({"usage": None} if has_usage else {})

        def event(index: int, text: str, finish: Finish | None = None, **more: Any) -> bytes:
            is_first = not self._sent[index] and finish is None
            delta = ({"role": "assistant"} if is_first else {}) | ({"content": text} if text or is_first else {})
            self._sent[index] += text
            return _event({**envelope, "choices": [_choice(index, {"delta": delta}, finish)], **more})

        try:
            while not self._answering.done():
                for index, text in enumerate(self._texts):
                    if text.startswith(self._sent[index]) and text != self._sent[index]:
                        yield event(index, text[len(self._sent[index]) :])
                await self._wake.wait()
                self._wake.clear()
            items = self._answering.result()
            for index, item in enumerate(items):
                text, finish = self._text(item)
                sent = self._sent[index]
                if not text.startswith(sent):
                    raise failure(self.chat.model, "changed")
                left = text[len(sent) :]
                for piece in [left] * bool(left) if sent else PIECE.findall(text) or [""]:
                    yield event(index, piece)
                yield event(index, "", finish, turinglike=self._more([item]))
            if has_usage:
                yield _event({**envelope, "choices": [], "usage": _usage(items)})
            yield b"data: [DONE]\n\n"
        except ApiError as error:
            yield b"data: " + error.body(self.request_id) + b"\n\n"
        finally:
            await cancel(self._answering)

    async def _answers(self, listeners: Sequence[Listener | None]) -> list[AgentRequest]:
        name, answer = self.chat.model, self.service.answer
        more: dict[str, Any] = {"files": self.files, "seed": self.chat.seed}
        with self.service.queued(name, self.count):
            items = await all_of(
                answer(name, self.stimulus, sample=sample, say=listener, **more)
                for sample, listener in enumerate(listeners)
            )
        for item in items:
            if item.status != "ok":
                raise failure(name, "rejected" if item.status == "rejected" else (item.error or ("failed",))[0])
        return items

    def _listener(self, index: int) -> Callable[[str], None]:
        def say(text: str) -> None:
            if len(text) > len(self._texts[index]):
                self._texts[index] = text
                self._wake.set()

        return say

    def _envelope(self, kind: str) -> dict[str, Any]:
        return {
            "id": f"chatcmpl-{secrets.token_hex(12)}",
            "object": kind,
            "created": int(time.time()),
            "model": self.chat.model,
            "system_fingerprint": f"fp_{self.service.headers[self.chat.model].digest[:10]}",
        }

    def _more(self, items: Sequence[AgentRequest]) -> dict[str, Any]:
        records = [orjson.Fragment(self.service.record(item).rstrip()) for item in items]
        return {"records": records, "ignored": self.chat.ignored()}

    def _text(self, item: AgentRequest) -> tuple[str, Finish]:
        fields = orjson.loads(item.answer or b"")
        match self.stimulus.task:
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
        ends = [at for stop in self.chat.stop if stop and (at := text.find(stop)) >= 0]
        if ends:
            return text[: min(ends)], "stop"
        return text, FINISH.get((fields.get("finish") or "").partition(";")[0], "stop")


def _choice(index: int, content: Mapping[str, Any], finish: Finish | None) -> dict[str, Any]:
    return {"index": index, **content, "finish_reason": finish, "logprobs": None}


def _usage(items: Sequence[AgentRequest]) -> dict[str, int]:
    """Zeros where an agent counts no tokens: some clients cannot do without numbers."""
    prompts, answers = 0, 0
    for item in items:
        match None if item.raw is None else orjson.loads(item.raw):
            case {"prompt_tokens": int(prompt), "tokens": int(tokens)}:
                prompts, answers = max(prompts, prompt), answers + tokens
            case _:
                return dict.fromkeys(("prompt_tokens", "completion_tokens", "total_tokens"), 0)
    return {"prompt_tokens": prompts, "completion_tokens": answers, "total_tokens": prompts + answers}


def _event(content: Mapping[str, Any]) -> bytes:
    return b"data: " + orjson.dumps(content) + b"\n\n"
