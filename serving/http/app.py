"""The web application: every route behind the guard."""

from __future__ import annotations

from collections.abc import Callable

from fastapi import Depends, FastAPI, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from agents import __version__
from agents.contract import is_installed
from serving.http import chat_completions, conversations, native, page
from serving.http.errors import EVERYWHERE, on_fault, on_http_error, on_invalid
from serving.http.guard import FinishedRequest, Guard, Rules, check_type
from serving.http.service import Service

if not is_installed(page.SWAGGER[0]):  # which is not imported: its files are served
    raise ModuleNotFoundError(f"No module named {page.SWAGGER[0]!r}")


def create_app(
    service: Service,
    rules: Rules,
    on_end: Callable[[FinishedRequest], None] = lambda request: None,
    kept: conversations.OpenConversations | None = None,
) -> Guard:
    """The application for a service that its caller starts and closes."""
    app = FastAPI(
        title="Turinglike",
        version=__version__,
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        responses=EVERYWHERE,
        dependencies=[Depends(check_type)],
        exception_handlers={
            HTTPException: on_http_error,
            RequestValidationError: on_invalid,
            Exception: on_fault,
        },
    )
    app.include_router(native.router(service))
    app.include_router(chat_completions.router(service))
    app.include_router(conversations.router(service, kept or conversations.OpenConversations()))
    app.include_router(page.router())

    @app.get("/openapi.json", include_in_schema=False)
    def document() -> Response:  # in a thread: making it takes a tenth of a second
        return JSONResponse(app.openapi())

    def ended(request: FinishedRequest) -> None:
        service.metrics.ended(request)
        on_end(request)

    return Guard(app, rules, ended)
