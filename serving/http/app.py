"""The web application: every route behind the guard, and every error in one shape."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.openapi.utils import get_openapi
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from agents import __version__
from serving.http import bodies, conversations, native, openai_bodies, openai_routes, page
from serving.http.errors import ApiError
from serving.http.guard import Guard, Rules, Seen
from serving.http.service import Service

CODES = {400: "bad_request", 404: "not_found", 405: "method_not_allowed"}
ERROR_STATUS = {
    400: "The request cannot be read, or its body is no JSON.",
    401: "The key is missing or wrong.",
    403: "Another site's page, a foreign Host, or a missing header.",
    404: "There is no such thing.",
    405: "The route has no such method.",
    408: "The request did not arrive in time.",
    413: "The request is too large.",
    415: "The body is of another type.",
    422: "The request is wrong; `problems` says where.",
    429: "The agent's queue is full; `Retry-After` says when to come back.",
    431: "The request's head is too large.",
    503: "The agent failed or is being loaded, or the server is ending or has too much to do.",
    504: "There was no answer in time.",
}
ERROR_SCHEMA = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["code", "message", "type", "request_id"],
            "properties": {
                "code": {"type": "string"},
                "message": {"type": "string"},
                "type": {"type": "string"},
                "request_id": {"type": "string"},
                "param": {"type": "string"},
                "problems": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "properties": {"field": {"type": "string"}, "message": {"type": "string"}},
                    },
                },
            },
        }
    },
}


def create_app(
    service: Service,
    rules: Rules,
    on_end: Callable[[Seen], None] = lambda seen: None,
    limits: conversations.Limits | None = None,
) -> Guard:
    """The application for one service, which its caller starts and closes."""
    app = FastAPI(
        title="Turinglike", version=__version__, docs_url=None, redoc_url=None, openapi_url=None, redirect_slashes=False
    )
    app.include_router(native.router(service))
    app.include_router(openai_routes.router(service))
    app.include_router(conversations.router(service, limits))
    app.include_router(page.router())
    app.add_exception_handler(ApiError, _api_error)
    app.add_exception_handler(HTTPException, _http_error)
    app.add_exception_handler(native.ClientGone, _gone)
    app.add_exception_handler(ClientDisconnect, _gone)
    app.add_exception_handler(Exception, _fault)
    document = openapi(app)

    @app.get("/openapi.json", include_in_schema=False)
    async def described() -> JSONResponse:
        return JSONResponse(document)

    def ended(seen: Seen) -> None:
        service.metrics.ended(seen)
        on_end(seen)

    service.metrics.watch(
        service.waiting, lambda: {name: about["state"] == "ready" for name, about in service.states().items()}
    )
    return Guard(app, rules, ended)


def openapi(app: FastAPI) -> dict[str, Any]:
    """The OpenAPI document: the routes with the bodies that they read themselves, and the errors that any may have."""
    found: dict[str, Any] = get_openapi(title=app.title, version=app.version, routes=app.routes)
    schemas = found.setdefault("components", {}).setdefault("schemas", {})
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)
    schemas["Error"] = ERROR_SCHEMA
    schemas.update(bodies.stimulus_schemas())
    for model in (*bodies.MODELS, *openai_bodies.MODELS, *conversations.MODELS):
        schema = model.model_json_schema(ref_template="#/components/schemas/{model}")
        schemas.update(schema.pop("$defs", {}))
        schemas[model.__name__] = schema
    for schema in schemas.values():  # what a stimulus is stands once in the document
        if schema.get("properties", {}).get("stimulus", {}).get("type") == "object":
            schema["properties"]["stimulus"] = {"$ref": "#/components/schemas/Stimulus"}
    error = {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}
    for methods in found["paths"].values():
        for method, operation in methods.items():
            operation["responses"].pop("422", None)  # FastAPI's own, of another shape
            for status, meaning in ERROR_STATUS.items():
                if method == "post" or status in (401, 403, 404, 405, 431, 503):
                    operation["responses"].setdefault(str(status), {"description": meaning, "content": error})
    found["components"]["securitySchemes"] = {"key": {"type": "http", "scheme": "bearer"}}
    return found


def _request_id(request: Request) -> str:
    return str(request.scope.get("state", {}).get("request_id", ""))


async def _api_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, ApiError)
    return Response(error.body(_request_id(request)), error.status, error.headers, "application/json")


async def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    said: Mapping[int, str] = {404: "there is no such route", 405: "this route has no such method"}
    code = CODES.get(error.status_code, "bad_request")
    message = said.get(error.status_code, "the request cannot be read")
    known = ApiError(error.status_code, code, message, headers=error.headers)
    return await _api_error(request, known)


async def _gone(request: Request, error: Exception) -> Response:
    return Response(status_code=499)  # nobody reads it; the log and the metrics do


async def _fault(request: Request, error: Exception) -> Response:
    return await _api_error(request, ApiError(500, "internal_error", "a fault of this server's; its log has more"))
