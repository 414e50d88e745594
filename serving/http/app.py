"""The web application: every route behind the guard, and every error in one shape."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fastapi import Depends, FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic.json_schema import models_json_schema
from starlette.exceptions import HTTPException
from starlette.routing import Match

from agents import __version__
from agents.contract import is_installed
from serving.http import conversations, native, openai_routes, page
from serving.http.bodies import Body, ResponseRequest, StreamRequest
from serving.http.errors import EVERYWHERE, ApiError, invalid, request_id
from serving.http.guard import FinishedRequest, Guard, Rules, check_type
from serving.http.openai_bodies import ChatRequest, CompletionRequest
from serving.http.service import Service

if not is_installed(page.SWAGGER[0]):  # which is not imported: its files are served
    raise ModuleNotFoundError(f"No module named {page.SWAGGER[0]!r}")

# what FastAPI raises by itself: 400 is a body that is no JSON
FRAMEWORK_ERRORS = {
    400: ("bad_json", "the body is no JSON"),
    404: ("not_found", "there is no such route or file"),
    405: ("method_not_allowed", "this route has no such method"),
}


BODIES: tuple[type[Body], ...] = (
    ResponseRequest,
    StreamRequest,
    ChatRequest,
    CompletionRequest,
    conversations.OpenRequest,
    conversations.MessageRequest,
)


class WebApp(FastAPI):
    """FastAPI's, whose document has the bodies too, which the routes read themselves."""

    def openapi(self) -> dict[str, Any]:
        if self.openapi_schema is None:
            schemas = super().openapi()["components"]["schemas"]
            _, found = models_json_schema(
                [(model, "validation") for model in BODIES], ref_template="#/components/schemas/{model}"
            )
            schemas.update(found["$defs"])
        return super().openapi()


def create_app(
    service: Service,
    rules: Rules,
    on_end: Callable[[FinishedRequest], None] = lambda request: None,
    kept: conversations.OpenConversations | None = None,
) -> Guard:
    """The application for one service, which its caller starts and closes."""
    app = WebApp(
        title="Turinglike",
        version=__version__,
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        responses=EVERYWHERE,
        dependencies=[Depends(check_type)],
    )
    app.include_router(native.router(service))
    app.include_router(openai_routes.router(service))
    app.include_router(conversations.router(service, kept or conversations.OpenConversations()))
    app.include_router(page.router())

    @app.get("/openapi.json", include_in_schema=False)
    def document() -> Response:  # in a thread: making it takes a tenth of a second
        return JSONResponse(app.openapi())

    app.add_exception_handler(HTTPException, on_http_error)
    app.add_exception_handler(RequestValidationError, on_bad_query)
    app.add_exception_handler(Exception, on_fault)

    def ended(request: FinishedRequest) -> None:
        service.metrics.ended(request)
        on_end(request)

    return Guard(app, rules, ended)


async def on_http_error(request: Request, error: Exception) -> Response:
    """Every error that a route raises, in the one shape."""
    assert isinstance(error, HTTPException)
    if not isinstance(error, ApiError):
        if error.status_code not in FRAMEWORK_ERRORS:
            return Response(status_code=error.status_code)
        code, message = FRAMEWORK_ERRORS[error.status_code]
        headers = {"allow": _methods(request)} if error.status_code == 405 else error.headers
        error = ApiError(error.status_code, code, message, headers=headers)
    return error.response(request_id(request))


async def on_bad_query(request: Request, error: Exception) -> Response:
    """What the framework finds in a path or a query, in the one shape."""
    assert isinstance(error, RequestValidationError)
    found = [(str(one["loc"][-1]), str(one["msg"])) for one in error.errors()]
    return invalid(found).response(request_id(request))


def _methods(request: Request) -> str:
    """The methods of all routes with this path; the framework tells those of the first alone."""
    routes = [route for route in request.app.routes if route.matches(request.scope)[0] is not Match.NONE]
    return ", ".join(sorted({method for route in routes for method in getattr(route, "methods", ())}))


async def on_fault(request: Request, error: Exception) -> Response:
    """What else is raised; the log has where."""
    known = ApiError(500, "internal_error", "a fault of this server's; its log has more")
    return known.response(request_id(request))
