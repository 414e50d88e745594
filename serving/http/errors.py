"""The server's errors: all have the same JSON shape, and none quotes an exception. ::

    {"error": {"code": "unknown_agent", "message": "…", "type": "invalid_request_error", "request_id": "…"}}

Clients of OpenAI's interface read ``type`` and ``param`` (the first wrong field). What libraries say goes to the log
alone: it may hold paths, addresses or other servers' texts.
"""

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ConfigDict, ValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match

MOST_PROBLEMS = 20  # that one error names
TYPES = {400: "invalid_request_error", 401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}
# code and message of what FastAPI raises by itself; 400 is a body that is no JSON
FRAMEWORK_ERRORS = {
    400: ("bad_json", "the body is no JSON"),
    404: ("not_found", "there is no such route or file"),
    405: ("method_not_allowed", "this route has no such method"),
}
OPENAI_ROUTES = (
    "of OpenAI's interface there are /v1/models, /v1/chat/completions, /v1/responses and /v1/completions alone"
)
# failures that another request may avoid, by code: the client did something about them, so that they are 422
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
# codes of failures whose messages are a library's, or quote one
QUOTING = frozenset(
    {
        "bad_image",
        "bad_prompt",
        "device_error",
        "filter_failed",
        "no_room",
        "prepare_failed",
        "respond_failed",
        "unavailable",
        "worker_died",
        "worker_failed",
    }
)


class Problem(BaseModel):
    """A wrong field of a request."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    field: str
    """The path of the field, such as "items.3.stimulus.cue"."""
    message: str
    """What is wrong with it."""


class ErrorDetails(BaseModel):
    """What went wrong, for programs and for people."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    code: str
    """A short word for programs."""
    message: str
    """A sentence for people."""
    type: str
    """The kind of error by OpenAI's names, such as "invalid_request_error"."""
    request_id: str
    """The request's id in the server's log."""
    param: str | None = None
    """The first wrong field."""
    problems: list[Problem] | None = None
    """All wrong fields, 20 at most."""


class ErrorBody(BaseModel):
    """The JSON of each answer with a status from 400 on."""

    error: ErrorDetails
    """What went wrong. OpenAI's clients read this key."""


class ApiError(HTTPException):
    """A request that is refused with the HTTP status ``status``. ``code`` is a short word for programs, ``message`` a
    sentence for people, and ``problems`` are pairs (field, what is wrong with it)."""

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
        self.problems = [Problem(field=_short(field), message=_short(why)) for field, why in problems[:MOST_PROBLEMS]]

    def response(self, request_id: str) -> Response:
        """The HTTP response to the request of that id."""
        return Response(self.body(request_id), self.status_code, self.headers, "application/json")

    def body(self, request_id: str) -> bytes:
        """The JSON of the error, as :class:`ErrorBody`."""
        kind = TYPES.get(self.status_code, "invalid_request_error" if self.status_code < 500 else "server_error")
        details = ErrorDetails(code=self.code, message=self.detail, type=kind, request_id=request_id)
        if self.problems:
            details.problems = self.problems
            details.param = self.problems[0].field
        return ErrorBody(error=details).model_dump_json(exclude_none=True).encode()


def invalid(problems: Sequence[tuple[str, str]]) -> ApiError:
    """The error 422 of a request with wrong fields: pairs (field, what is wrong with it)."""
    message = f"{len(problems)} fields of the request are wrong"
    if len(problems) == 1:
        message = _short(": ".join(problems[0]))
    return ApiError(422, "invalid_request", message, problems=problems)


def unreadable(error: ValidationError) -> ApiError:
    """The error 422 of a body that pydantic does not accept."""
    return invalid([(_field(problem["loc"]), problem["msg"]) for problem in problems_of(error)])


def _field(place: Sequence[object]) -> str:
    return ".".join(map(str, place)) or "body"


def problems_of(error: ValidationError) -> list[Any]:
    """Pydantic's problems without the wrong values, which may be secret or large."""
    return list(error.errors(include_url=False, include_input=False, include_context=False))


def agent_failed(agent: str, why: str) -> ApiError:
    """The error 503 of an agent that cannot answer any request; ``why`` goes on after its name ("has stopped")."""
    return ApiError(503, "agent_failed", f"agent {agent} {why}; GET /ready says why")


def failure(agent: str, code: str) -> ApiError:
    """The error of an answer that failed with ``code``: 504 too late, 422 what another request may avoid, else 502."""
    if code == "deadline":
        return ApiError(504, code, f"agent {agent} had no answer in time")
    if code in MENDABLE:
        return ApiError(422, code, MENDABLE[code])
    return ApiError(502, code, f"agent {agent} could not answer this")


def quotes_others(code: str) -> bool:
    """Whether a failure's message may quote paths, addresses or other servers."""
    return code in QUOTING or code.startswith("server_")


def documented(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """FastAPI's ``responses`` of a route that may answer with these errors."""
    return {status: {"model": ErrorBody, "description": HTTPStatus(status).phrase} for status in statuses}


EVERYWHERE = documented(401, 403, 404, 405, 422, 503)
POSTED = documented(400, 408, 413, 415, 429, 504)


def request_id(request: Request) -> str:
    """The id by which the log names a request; "" outside the guard."""
    return str(request.scope.get("state", {}).get("request_id", ""))


# exception handlers of an application


async def on_http_error(request: Request, error: Exception) -> Response:
    """The response to an :class:`ApiError`, and to what FastAPI raises by itself."""
    assert isinstance(error, HTTPException)
    if not isinstance(error, ApiError):
        if error.status_code not in FRAMEWORK_ERRORS:
            return Response(status_code=error.status_code)
        code, message = FRAMEWORK_ERRORS[error.status_code]
        if code == "not_found" and request.url.path.startswith("/v1/"):
            message = OPENAI_ROUTES
            if request.url.path.startswith("/v1/responses/"):
                message = "no response is stored; send the whole conversation to /v1/responses"
        headers = {"allow": _methods(request)} if error.status_code == 405 else error.headers
        error = ApiError(error.status_code, code, message, headers=headers)
    return error.response(request_id(request))


async def on_invalid(request: Request, error: Exception) -> Response:
    """The response to a request whose body, path or query FastAPI does not accept."""
    assert isinstance(error, RequestValidationError)
    problems = error.errors()
    if problems[0]["type"] == "json_invalid":
        return ApiError(400, *FRAMEWORK_ERRORS[400]).response(request_id(request))
    return invalid([(_field(problem["loc"][1:]), problem["msg"]) for problem in problems]).response(request_id(request))


async def on_fault(request: Request, error: Exception) -> Response:
    """The response to a fault of the server itself; the guard writes it to the log."""
    fault = ApiError(500, "internal_error", "a fault of this server's; its log has more")
    return fault.response(request_id(request))


def _methods(request: Request) -> str:
    methods: set[str] = set()
    for route in request.app.routes:
        if route.matches(request.scope)[0] is not Match.NONE:
            methods |= set(getattr(route, "methods", ()))
    return ", ".join(sorted(methods))


def _short(text: str) -> str:
    return text[:200].encode(errors="replace").decode()
