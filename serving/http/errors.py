"""What a client is told when something is wrong: one JSON shape for every error, and never an exception's own text. ::

    {"error": {"code": "unknown_agent", "message": "…", "type": "invalid_request_error", "request_id": "…"}}

``type`` and ``param`` (the first field that is wrong) are there for clients of OpenAI's interface, which read them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

MOST_PROBLEMS = 20  # in one error
TYPES = {400: "invalid_request_error", 401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}
# what another request may mend, by the code of an answer's failure
MENDABLE = {
    "rejected": "the agent's filters let none of its answers pass; with another seed they may",
    "filtered": "the server behind the agent withheld its answer",
    "bad_image": "the image cannot be decoded",
    "missing_image": "an image is missing",
    "image_too_large": "the image has too many pixels or bytes",
    "image_too_narrow": "the image is too narrow for the agent",
    "unknown_cue": "the agent does not know the cue",
    "no_word": "the agent has no such word for the cue",
    "too_few_beams": "the agent has no such sample",
}
# codes of failures whose message is a library's, or quotes one
QUOTING = frozenset({
    "bad_image", "bad_prompt", "device_error", "filter_failed", "no_room", "prepare_failed", "respond_failed",
    "unavailable", "worker_died", "worker_failed",
})  # fmt: skip


class Problem(BaseModel):
    """One thing that is wrong with a request."""

    field: str
    message: str


class ErrorDetails(BaseModel):
    """``code`` is a short word for programs, ``message`` is for people."""

    code: str
    message: str
    type: str
    request_id: str
    param: str | None = None
    problems: list[Problem] | None = None


class ErrorBody(BaseModel):
    """The body of every error."""

    error: ErrorDetails


class ApiError(HTTPException):
    """A request that is not answered. ``problems`` are pairs of a field and what is wrong with it."""

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        *,
        headers: Mapping[str, str] | None = None,
        problems: Sequence[tuple[str, str]] = (),
    ) -> None:
        super().__init__(status, message, dict(headers or {}))
        self.code = code
        self.problems = [
            Problem(field=_plain(field), message=_plain(message)) for field, message in problems[:MOST_PROBLEMS]
        ]

    def response(self, request_id: str) -> Response:
        """The whole response."""
        return Response(self.body(request_id), self.status_code, self.headers, "application/json")

    def body(self, request_id: str) -> bytes:
        """The body, as JSON."""
        kind = TYPES.get(self.status_code, "invalid_request_error" if self.status_code < 500 else "server_error")
        details = ErrorDetails(code=self.code, message=self.detail, type=kind, request_id=request_id)
        if self.problems:
            details.problems, details.param = self.problems, self.problems[0].field
        return ErrorBody(error=details).model_dump_json(exclude_none=True).encode()


def invalid(problems: Sequence[tuple[str, str]]) -> ApiError:
    """The error for pairs of a field and what is wrong with it."""
    message = f"{len(problems)} fields of the request are wrong"
    if len(problems) == 1:
        message = _plain(": ".join(problems[0]))
    return ApiError(422, "invalid_request", message, problems=problems)


def failure(agent: str, code: str) -> ApiError:
    """The error for a failed answer of ``agent``, by the failure's code, where no record was asked for."""
    if code == "deadline":
        return ApiError(504, code, f"agent {agent} had no answer in time")
    if code in MENDABLE:
        return ApiError(422, code, MENDABLE[code])
    return ApiError(502, code, f"agent {agent} could not answer this")


def quotes_others(code: str) -> bool:
    """Whether the message of a failure with this code may hold what a client is not to see: paths, addresses, text of
    other servers."""
    return code in QUOTING or code.startswith("server_")


def documented(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """``responses`` of a route for these errors."""
    return {status: {"model": ErrorBody, "description": HTTPStatus(status).phrase} for status in statuses}


EVERYWHERE = documented(401, 403, 404, 405, 422, 503)
POSTED = documented(400, 408, 413, 415, 429, 504)


def request_id(request: Request) -> str:
    """The id by which the log knows a request."""
    return str(request.scope.get("state", {}).get("request_id", ""))


def _plain(text: str) -> str:
    """At most 200 characters, without halves of any."""
    return text[:200].encode(errors="replace").decode()
