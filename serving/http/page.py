"""The page at ``/`` and the files that it is made of: a fixed list, no other file is ever read.

They hold no data and need no key. What the page may do, its headers say: it runs our scripts only, asks this server
only, sends no form, and is shown in no other page.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from importlib import resources

from fastapi import APIRouter, Request, Response

from serving.http.errors import ApiError

TYPES = {
    "index.html": "text/html; charset=utf-8",
    "style.css": "text/css; charset=utf-8",
    "icon.svg": "image/svg+xml",
    **dict.fromkeys(
        ("answers.js", "api.js", "app.js", "dom.js", "images.js", "scanpath.js", "talk.js"),
        "text/javascript; charset=utf-8",
    ),
}
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


@dataclass(frozen=True, slots=True)
class _File:
    content: bytes
    headers: dict[str, str]


def router() -> APIRouter:
    """The routes of the page. The files are read here, once."""
    routes = APIRouter(include_in_schema=False)
    folder = resources.files("serving.web").joinpath("static")
    files = {name: _file(folder.joinpath(name).read_bytes(), kind) for name, kind in TYPES.items()}

    @routes.api_route("/", methods=["GET", "HEAD"])
    async def page(request: Request) -> Response:
        return _reply(request, files["index.html"])

    @routes.api_route("/static/{name}", methods=["GET", "HEAD"])
    async def static(request: Request, name: str) -> Response:
        if name not in files:
            raise ApiError(404, "not_found", "there is no such file")
        return _reply(request, files[name])

    return routes


def _file(content: bytes, kind: str) -> _File:
    tag = f'"{hashlib.sha256(content).hexdigest()[:32]}"'
    return _File(content, {**HEADERS, "content-type": kind, "etag": tag})


def _reply(request: Request, file: _File) -> Response:
    """The file, or 304 where the client has it."""
    had = {tag.strip().removeprefix("W/") for tag in request.headers.get("if-none-match", "").split(",")}
    if file.headers["etag"] in had:
        return Response(status_code=304, headers=file.headers)
    return Response(file.content, headers=file.headers)
