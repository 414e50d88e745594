"""The pages ``/`` (ask the agents in a browser) and ``/docs`` (the API), which need no key: they hold no data."""

import os

from fastapi import APIRouter, Request, Response
from fastapi.staticfiles import StaticFiles
from starlette.types import Scope

from serving.pages.rendering import STATIC

SWAGGER = ("fastapi_offline", "static")  # the package and its folder with Swagger UI's files
# Only our scripts run, only this server is asked, no form is sent, and no other page shows this one.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "cache-control": "no-cache",  # a browser keeps them and asks whether they are still the same
    "content-security-policy": POLICY,
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
}


class PageFiles(StaticFiles):
    """Static files with the headers that keep a page to itself."""

    def file_response(
        self, full_path: str | os.PathLike[str], stat_result: os.stat_result, scope: Scope, status_code: int = 200
    ) -> Response:
        """Starlette's response with :data:`HEADERS`."""
        response = super().file_response(full_path, stat_result, scope, status_code)
        response.headers.update(HEADERS)
        return response


def router() -> APIRouter:
    """The routes of the pages and of their styles and scripts."""
    routes = APIRouter(include_in_schema=False)
    files = PageFiles(directory=STATIC, packages=[SWAGGER])
    pages = {"/": "index.html", "/docs": "docs.html"}

    @routes.api_route("/", methods=["GET", "HEAD"])
    @routes.api_route("/docs", methods=["GET", "HEAD"])
    async def show(request: Request) -> Response:
        return await files.get_response(pages[request.url.path], request.scope)

    @routes.api_route("/static/{name}", methods=["GET", "HEAD"])
    async def static(request: Request, name: str) -> Response:
        return await files.get_response(name, request.scope)

    return routes
