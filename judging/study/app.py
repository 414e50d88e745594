"""The routes of a study, and its server. A POST has JSON and an Origin of ours; a cookie names the judge."""

import asyncio
import socket
from collections.abc import Callable, Sequence
from typing import Any

from fastapi import Depends, FastAPI, Request, Response
from starlette.exceptions import HTTPException

from agents.errors import StorageError
from judging.study.admin import admin_routes
from judging.study.json_bodies import json_reply, read_body
from judging.study.log.state import Judge
from judging.study.meetings.lobby import Lobby
from judging.study.pages.first_page import first_page
from judging.study.pages.material import MEDIA_TYPES
from judging.study.pages.page_answers import BadAnswer, Refused
from judging.study.pages.phrases import phrases_sent
from judging.study.serving_study import ServedStudy
from judging.study.step_pages import STUDY_STATIC, media_of, view
from serving.http.errors import ApiError, on_fault, on_http_error, request_id
from serving.http.guard import FinishedRequest, Guard, Rules, check_type, unless_gone
from serving.http.monitoring import ServerLog
from serving.http.page import HEADERS, PageFiles
from serving.http.server import UvicornServer, config
from serving.pages.rendering import STATIC

OWN_FILES = frozenset(path.name for path in STUDY_STATIC.iterdir())
"""The files under /static that are a study's own; others are shared with the viewer."""
KEPT = 30 * 24 * 3600
"""Seconds for which a browser keeps the cookie."""
IDLE_SECONDS = 120
"""Seconds for which a connection without a request stays open: a judge thinks longer than a program."""
REFUSALS = {
    "no_link": (403, "this study is entered by a personal link"),
    "closed": (403, "this study is closed"),
    "no_new": (403, "this study takes nobody new now; who has begun goes on"),
    "full": (503, "there are as many judges as there may be; try again later"),
    "not_yet": (409, "this step is not the next"),
    "other_judge": (409, "somebody else has begun in this browser since"),
    "bad_address": (422, "an id of a panel has at most 200 letters, digits and signs that can be printed"),
}


def create_app(
    study: ServedStudy,
    phrases: dict[str, str],
    rules: Rules,
    *,
    admin_key: str | None,
    on_end: Callable[[FinishedRequest], None] = lambda request: None,
) -> Guard:
    """The application that serves a study: its pages, its routes and the guard before them.

    ``phrases`` are the pages' words. ``admin_key`` opens the page ``/admin``; with None nobody does. ``on_end`` is
    called after each request.
    """
    app = FastAPI(
        openapi_url=None, docs_url=None, redoc_url=None, redirect_slashes=False, dependencies=[Depends(check_type)]
    )
    files = PageFiles(directory=STUDY_STATIC)
    shared = PageFiles(directory=STATIC)

    @app.api_route("/", methods=["GET", "HEAD"])
    @app.api_route("/admin", methods=["GET", "HEAD"])
    async def page(request: Request) -> Response:
        name = "study.html" if request.url.path == "/" else "admin.html"
        return await files.get_response(name, request.scope)

    @app.api_route("/static/{name}", methods=["GET", "HEAD"])
    async def static(request: Request, name: str) -> Response:
        where = files if name in OWN_FILES else shared
        return await where.get_response(name, request.scope)

    @app.get("/health")
    async def health() -> Response:
        return json_reply({"status": "ok"})

    @app.get("/phrases")
    async def all_phrases() -> Response:
        return json_reply(
            phrases_sent(study.settings, phrases, study.cookie) | {"first_page": first_page(study.material)}
        )

    @app.post("/now")
    async def current_step(request: Request) -> Response:
        """Where the judge of this browser is; ``{"kind": "welcome"}`` before they begin, with ``refused`` where they
        cannot."""
        body = await read_body(request)
        link, panel_id, parameters = _address(body)
        judge = study.find(request.cookies.get(study.cookie), link, panel_id, code=_string(body, "list"))
        if judge is None:
            why = study.why_not(link, panel_id)
            return json_reply({"kind": "welcome"} | ({} if why is None else {"refused": why}))
        if body.get("loaded") is True:
            await study.entered(judge, parameters)
            await study.loaded(judge)
        return json_reply(view(study, judge))

    @app.post("/join")
    async def join(request: Request) -> Response:
        body = await read_body(request)
        link, panel_id, parameters = _address(body)
        judge = study.find(request.cookies.get(study.cookie), link, panel_id, code=_string(body, "list"))
        if judge is not None:
            await study.entered(judge, parameters)
            return json_reply(view(study, judge))
        judge, token = await study.join(link, panel_id, parameters)
        response = json_reply(view(study, judge))
        secure = request.headers.get("origin", "").startswith("https:")
        response.set_cookie(study.cookie, token, max_age=KEPT, httponly=True, samesite="strict", secure=secure)
        return response

    @app.post("/answer")
    async def answer(request: Request) -> Response:
        """Keep an answer; the next step is sent once it is on disk."""
        body = await read_body(request)
        judge = _poster(study, request, body)
        number = _number(body, "step", least=0)
        receipt = await study.answer(judge, number, body.get("answer"))
        return json_reply(
            {"new": receipt.is_new, "told": receipt.flags, "truth": receipt.truth, "next": view(study, judge)}
        )

    @app.post("/leave")
    async def leave(request: Request) -> Response:
        body = await read_body(request)
        judge = _poster(study, request, body)
        if body.get("list") == judge.code:  # nobody's answers are deleted by a page that does not say whose
            await study.leave(judge)
        return json_reply(view(study, judge))

    @app.post("/talk")
    @app.post("/test")
    async def news(request: Request) -> Response:
        """Wait for more messages of a conversation than ``after``, or another view of a test than ``version``."""
        judge, lobby, body = await _in_lobby(study, request)
        shown = _number(body, "after") if lobby.kind == "talk" else _string(body, "version") or ""
        return json_reply(await unless_gone(request, lobby.at(judge, shown)))

    @app.post("/say")
    @app.post("/act")
    async def move(request: Request) -> Response:
        """Keep a message, by its number once; or an act in a test: ready, a question, an answer, a verdict."""
        judge, lobby, body = await _in_lobby(study, request)
        if lobby.kind == "talk":
            _number(body, "turn", least=0)
        return json_reply({"why": await lobby.move(judge, body)})

    @app.api_route("/media/{name}", methods=["GET", "HEAD"])
    async def picture(request: Request, name: str) -> Response:
        judge = _judge(study, request)
        path = media_of(study, judge).get(name)
        if path is None:
            raise ApiError(404, "not_found", "there is no such file")
        kind = MEDIA_TYPES.get(name.rpartition(".")[2], "octet-stream")
        headers = {**HEADERS, "cache-control": "private, max-age=86400, immutable"}
        return Response(path.read_bytes(), media_type=f"image/{kind}", headers=headers)

    app.include_router(admin_routes(study, admin_key))
    app.add_exception_handler(HTTPException, on_http_error)
    for fault in (Refused, BadAnswer, StorageError):
        app.add_exception_handler(fault, _on_known)
    app.add_exception_handler(Exception, on_fault)
    return Guard(app, rules, on_end)


async def _on_known(request: Request, error: Exception) -> Response:
    fault = ApiError(503, "unavailable", "nothing can be written")  # the page keeps its answer and tries again
    if isinstance(error, Refused):
        status, message = REFUSALS[error.why]
        fault = ApiError(status, error.why, message)
    elif isinstance(error, BadAnswer):
        fault = ApiError(422, "invalid_request", str(error))
    return fault.response(request_id(request))


def _judge(study: ServedStudy, request: Request) -> Judge:
    judge = study.find(request.cookies.get(study.cookie))
    if judge is None:
        raise ApiError(401, "unauthorized", "this browser has not begun here")
    return judge


def _poster(study: ServedStudy, request: Request, body: dict[str, Any]) -> Judge:
    """The judge of this browser, unless the page is another judge's: a tab that was left open. What it sends is
    nobody's here."""
    judge = _judge(study, request)
    if body.get("list", judge.code) != judge.code:
        raise Refused("other_judge")
    return judge


async def _in_lobby(study: ServedStudy, request: Request) -> tuple[Judge, Lobby[Any], dict[str, Any]]:
    body = await read_body(request)
    judge = _poster(study, request, body)
    if study.lobby is None or judge.current is None or judge.current.kind != study.lobby.kind:
        raise Refused("not_yet")
    return judge, study.lobby, body


def _address(body: dict[str, Any]) -> tuple[str | None, str | None, dict[str, str | None]]:
    """What a page found in its address: a personal link, a panel's id, and the other parameters that are kept."""
    sent = body.get("parameters")
    parameters = {name: _string(sent, name) for name in sent} if isinstance(sent, dict) else {}
    return _string(body, "link"), _string(body, "worker"), parameters


def _string(body: dict[str, Any], name: str) -> str | None:
    value = body.get(name)
    return value if isinstance(value, str) else None


def _number(body: dict[str, Any], name: str, *, least: int | None = None) -> int:
    value = body.get(name)
    if type(value) is not int or (least is not None and value < least):
        raise ApiError(422, "invalid_request", f"{name}: must be a whole number")
    return value


async def serve(study: ServedStudy, app: Guard, sockets: Sequence[socket.socket], log: ServerLog) -> None:
    """Serve until cancelled. Raises StorageError where nothing can be written any more."""
    server = UvicornServer(config(app, idle_seconds=IDLE_SECONDS))
    writer = study.start()
    serving = asyncio.create_task(server.serve(list(sockets)))
    host, port = sockets[0].getsockname()[:2]
    log.say(f"serving the study at http://{f'[{host}]' if ':' in host else host}:{port}/ (Ctrl-C ends it)")
    try:
        finished, _ = await asyncio.wait({serving, writer}, return_when=asyncio.FIRST_COMPLETED)
        finished.pop().result()
    finally:
        server.should_exit = True
        if study.lobby is not None:
            study.lobby.closing = True
        await asyncio.wait({serving})
        await study.close()
