"""OpenAI's batch files: a file of requests goes in, a file of answers comes out.

The files are in a temporary folder of the server's own and go with it, as does what is under way. Each request is read
and answered as if it came alone, by the one scheduler; batches go one after the other, each with at most half of an
agent's queue.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

import orjson
from fastapi import APIRouter, Request, Response
from fastapi.responses import FileResponse
from pydantic import Field, StrictStr
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException

from serving.http.bodies import LARGE, Body, body_of, documented_body, parse
from serving.http.errors import MOST_PROBLEMS, POSTED, ApiError, invalid
from serving.http.guard import origin_of
from serving.http.openai_answers import CHAT, TEXT, respond
from serving.http.openai_bodies import ChatRequest, CompletionRequest, OptionalBody
from serving.http.openai_embeddings import EmbeddingRequest, embed
from serving.http.openai_routes import of_chat, of_prompt
from serving.http.service import Service

log = logging.getLogger("turinglike.http")

MOST_KEPT = 100  # files, and batches
MOST_BYTES = 1 << 30  # of all files
MOST_REQUESTS = 50_000  # of a batch
MOST_AT_ONCE = 64  # of its requests
FULL_S = 0.1  # after which a full queue is tried again
Endpoint = Literal["/v1/chat/completions", "/v1/completions", "/v1/embeddings"]
FORM = {
    "type": "object",
    "required": ["purpose", "file"],
    "properties": {"purpose": {"enum": ["batch"]}, "file": {"type": "string", "format": "binary"}},
}
Metadata = Annotated[dict[str, Annotated[StrictStr, Field(max_length=512)]], Field(max_length=16)]


class BatchRequest(OptionalBody):
    """Answer a file of requests."""

    IGNORED = frozenset({"output_expires_after"})

    input_file_id: str = Field(max_length=100, examples=["file-0"])
    endpoint: Endpoint
    completion_window: Literal["24h"]
    """OpenAI's only one, without effect: a batch is begun at once and ends when it is done."""
    metadata: Metadata | None = None


class Line(Body):
    """A line of a batch's file."""

    custom_id: Annotated[str, Field(min_length=1, max_length=512)]
    method: Literal["POST"]
    url: Endpoint
    body: dict[str, Any]


@dataclass(slots=True)
class _Files:
    """The files, by their ids, and what OpenAI says of each."""

    folder: Path
    about: dict[str, dict[str, Any]] = field(default_factory=dict)

    def path(self, name: str) -> Path:
        """Raises ApiError."""
        if name not in self.about:
            raise ApiError(404, "not_found", "there is no such file")
        return self.folder / name

    def add(self, filename: str, purpose: str, content: bytes = b"") -> str:
        """A new file's id. Raises ApiError where there is no room."""
        if len(self.about) >= MOST_KEPT:
            raise ApiError(413, "too_large", f"there are {MOST_KEPT} files already: delete some")
        self._check_room(content)
        name = f"file-{secrets.token_hex(12)}"
        self.about[name] = {
            "id": name, "object": "file", "bytes": 0, "created_at": int(time.time()), "filename": filename,
            "purpose": purpose, "status": "processed",
        }  # fmt: skip
        self.append(name, content)
        return name

    def append(self, name: str, content: bytes) -> None:
        """Raises ApiError where there is no room, or the file is deleted."""
        path = self.path(name)
        self._check_room(content)
        with path.open("ab") as file:
            file.write(content)
        self.about[name]["bytes"] += len(content)

    def _check_room(self, content: bytes) -> None:
        if len(content) + sum(one["bytes"] for one in self.about.values()) > MOST_BYTES:
            raise ApiError(413, "too_large", f"all files have at most {MOST_BYTES >> 20} MiB together: delete some")

    def delete(self, name: str) -> None:
        """Raises ApiError."""
        self.path(name).unlink(missing_ok=True)
        del self.about[name]


@dataclass(slots=True)
class _Batch:
    """One batch and what OpenAI says of it."""

    service: Service
    files: _Files
    asking: BatchRequest
    about: dict[str, Any]
    alone: asyncio.Lock  # of all batches: one after the other
    task: asyncio.Task[None] | None = None

    def turn(self, status: str) -> None:
        """Enter a status, which has its time."""
        self.about |= {"status": status, f"{status}_at": int(time.time())}

    async def run(self) -> None:
        """Read the file and answer it. What stops the whole of it is among the batch's errors."""
        try:
            async with self.alone:
                lines = iter(await asyncio.to_thread(self._read))
                self.turn("in_progress")
                async with asyncio.TaskGroup() as group:
                    for _ in range(min(MOST_AT_ONCE, max(1, self.service.options.queue // 2))):
                        group.create_task(self._work(lines))
            self.turn("completed")
        except* asyncio.CancelledError:
            self.turn("cancelled")
        except* ApiError as errors:
            first = errors.exceptions[0]
            assert isinstance(first, ApiError)
            found = [(one.field, one.message) for one in first.problems] or [("", first.detail)]
            data = [{"code": first.code, "message": said, "line": int(line or 0) or None} for line, said in found]
            self.about["errors"] = {"object": "list", "data": data}
            self.turn("failed")
        except* Exception as errors:  # who waits for the batch's end must hear of it
            about = {"request_id": self.about["id"], "fault": origin_of(errors.exceptions[0])}
            log.error("fault", extra={"about": about})
            one = {"code": "internal_error", "message": "a fault of this server's; its log has more", "line": None}
            self.about["errors"] = {"object": "list", "data": [one]}
            self.turn("failed")

    def _read(self) -> list[tuple[str, bytes]]:
        """The custom ids and bodies. Raises ApiError, whose problems have lines for fields."""
        found: list[tuple[str, bytes]] = []
        problems: list[tuple[str, str]] = []
        known: set[str] = set()
        with self.files.path(self.asking.input_file_id).open("rb") as file:
            for number, text in enumerate(file, 1):
                if len(problems) >= MOST_PROBLEMS or len(found) > MOST_REQUESTS:
                    break
                if not text.strip():
                    continue
                try:
                    line = parse(Line, text)
                except ApiError as error:
                    fields = "; ".join(f"{one.field}: {one.message}" for one in error.problems)
                    problems.append((str(number), fields or error.detail))
                    continue
                if line.url != self.asking.endpoint:
                    problems.append((str(number), f"url is not the batch's {self.asking.endpoint}"))
                elif line.custom_id in known:
                    problems.append((str(number), "another line has this custom_id"))
                known.add(line.custom_id)
                found.append((line.custom_id, orjson.dumps(line.body)))
        if not problems and not 0 < len(found) <= MOST_REQUESTS:
            problems = [("", f"a batch has 1 to {MOST_REQUESTS:,} requests")]
        if problems:
            raise ApiError(422, "invalid_request", "the file is no batch", problems=problems)
        self.about["request_counts"]["total"] = len(found)
        return found

    async def _work(self, lines: Iterator[tuple[str, bytes]]) -> None:
        for custom_id, body in lines:
            status, said = await self._answer(body)
            is_ok = status == 200
            line = {
                "id": f"batch_req_{secrets.token_hex(12)}",
                "custom_id": custom_id,
                "response": {"status_code": status, "request_id": self.about["id"], "body": orjson.Fragment(said)},
                "error": None,
            }
            kind = "output_file_id" if is_ok else "error_file_id"
            if self.about[kind] is None:
                self.about[kind] = self.files.add(f"{self.about['id']}_{kind[:-8]}.jsonl", "batch_output")
            self.files.append(self.about[kind], orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE))
            self.about["request_counts"]["completed" if is_ok else "failed"] += 1

    async def _answer(self, body: bytes) -> tuple[int, bytes]:
        """Status and body, as the endpoint gives them to a request that comes alone."""
        while True:
            try:
                return 200, bytes((await self._ask(body)).body)
            except ApiError as error:
                is_busy = error.code == "queue_full" and any(self.service.waiting().values())
                if not is_busy:
                    return error.status_code, error.body(self.about["id"])
                await asyncio.sleep(FULL_S)

    async def _ask(self, body: bytes) -> Response:
        asking: Any
        if self.asking.endpoint == "/v1/embeddings":
            return await embed(self.service, parse(EmbeddingRequest, body))
        is_chat = self.asking.endpoint == "/v1/chat/completions"
        model: Any = ChatRequest if is_chat else CompletionRequest

        def read() -> Any:
            asking = parse(model, body)
            if asking.stream:
                raise invalid([("stream", "a batch has whole answers")])
            return asking, (of_chat if is_chat else of_prompt)(self.service, asking)

        asking, question = await asyncio.to_thread(read) if len(body) >= LARGE else read()
        return await respond(self.service, asking, question, CHAT if is_chat else TEXT)


def router(service: Service) -> APIRouter:
    """The routes, for one service."""
    routes = APIRouter(tags=["OpenAI's batches"])
    files, batches, alone = _Files(Path(service.files.name)), dict[str, _Batch](), asyncio.Lock()

    def batch(name: str) -> _Batch:
        if name not in batches:
            raise ApiError(404, "not_found", "there is no such batch")
        return batches[name]

    @routes.post(
        "/v1/files",
        summary="Take a file of requests",
        responses=POSTED,
        openapi_extra={"requestBody": {"required": True, "content": {"multipart/form-data": {"schema": FORM}}}},
    )
    async def upload(request: Request) -> dict[str, Any]:
        try:
            form = await request.form(max_files=1, max_fields=4)
        except HTTPException as error:
            if error.status_code != 400:
                raise
            raise ApiError(400, "bad_request", "the form cannot be read: it has a purpose and a file") from None
        try:
            file = form.get("file")
            if form.get("purpose") != "batch" or not isinstance(file, UploadFile):
                raise invalid([("purpose", "the form has a field purpose, batch, and a file named file")])
            content = await file.read()
            name = (file.filename or "batch.jsonl")[:200]
            return files.about[await asyncio.to_thread(files.add, name, "batch", content)]
        finally:
            await form.close()

    @routes.get("/v1/files/{name}", summary="One file, but for what it holds")
    async def one_file(name: str) -> dict[str, Any]:
        files.path(name)
        return files.about[name]

    @routes.get("/v1/files/{name}/content", summary="What a file holds", response_class=FileResponse)
    async def content(name: str) -> Response:
        return FileResponse(files.path(name), media_type="application/octet-stream")

    @routes.delete("/v1/files/{name}", summary="Delete a file")
    async def delete(name: str) -> dict[str, Any]:
        files.delete(name)
        return {"id": name, "object": "file", "deleted": True}

    @routes.post(
        "/v1/batches",
        summary="Answer a file of requests",
        responses=POSTED,
        openapi_extra=documented_body(BatchRequest),
    )
    async def create(asking: Annotated[BatchRequest, body_of(BatchRequest)]) -> dict[str, Any]:
        files.path(asking.input_file_id)
        over = [name for name, one in batches.items() if one.task is not None and one.task.done()]
        if len(batches) >= MOST_KEPT:
            if not over:
                raise ApiError(429, "queue_full", f"{MOST_KEPT} batches are under way", headers={"retry-after": "60"})
            del batches[over[0]]
        about: dict[str, Any] = {
            "id": f"batch_{secrets.token_hex(12)}", "object": "batch", "endpoint": asking.endpoint, "errors": None,
            "input_file_id": asking.input_file_id, "completion_window": asking.completion_window,
            "status": "validating", "output_file_id": None, "error_file_id": None, "created_at": int(time.time()),
            "request_counts": {"total": 0, "completed": 0, "failed": 0}, "metadata": asking.metadata,
        }  # fmt: skip
        made = batches[about["id"]] = _Batch(service, files, asking, about, alone)
        made.task = asyncio.create_task(made.run())
        service.background.add(made.task)
        made.task.add_done_callback(service.background.discard)
        return about

    @routes.get("/v1/batches/{name}", summary="How a batch goes")
    async def one_batch(name: str) -> dict[str, Any]:
        return batch(name).about

    @routes.post("/v1/batches/{name}/cancel", summary="Give up what of a batch is not answered", responses=POSTED)
    async def cancel(name: str) -> dict[str, Any]:
        found = batch(name)
        if found.task is not None and not found.task.done():
            found.task.cancel()
            await asyncio.gather(found.task, return_exceptions=True)
        return found.about

    return routes
