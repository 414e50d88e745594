"""The page ``/admin`` and its routes, for whoever runs a study: how it goes, links, an export, and its end.

The page itself holds no data and needs no key. Each of its requests brings the key in a header: a key in an address
would stand in logs and in the browser's history.
"""

import asyncio
import hmac
import shutil
import tempfile
from pathlib import Path
from typing import Any

from fastapi import APIRouter, Depends, Request, Response
from fastapi.responses import FileResponse
from starlette.background import BackgroundTask

from agents.errors import InputError
from judging.study.addresses import new_links
from judging.study.export import export
from judging.study.json_bodies import json_reply, read_body
from judging.study.results.status import read_status
from judging.study.serving_study import ServedStudy
from serving.files.timestamps import now
from serving.http.errors import ApiError

MOST_LINKS = 1000
"""Personal links that are made at once."""
DOWNLOADED = "downloaded from /admin"
"""How ``exports.jsonl`` calls the place of an export that a browser has."""


def admin_routes(study: ServedStudy, admin_key: str | None) -> APIRouter:
    """The routes below ``/admin/``; with ``admin_key`` None all of them refuse."""
    wanted = (admin_key or "").encode()

    async def check_key(request: Request) -> None:
        scheme, _, key = request.headers.get("authorization", "").partition(" ")
        if not wanted or scheme.lower() != "bearer" or not hmac.compare_digest(key.strip().encode(), wanted):
            raise ApiError(401, "unauthorized", "a key is needed", headers={"www-authenticate": "Bearer"})

    routes = APIRouter(prefix="/admin", dependencies=[Depends(check_key)])

    @routes.get("/status")
    async def status() -> Response:
        return await _status(study)

    @routes.post("/entry")
    async def entry(request: Request) -> Response:
        """Let nobody new begin, or let them again: ``{"open": false}``."""
        is_open = (await read_body(request)).get("open")
        if not isinstance(is_open, bool):
            raise ApiError(422, "invalid_request", "open: must be true or false")
        await study.set_entry(is_open=is_open)
        return await _status(study)

    @routes.post("/close")
    async def close() -> Response:
        """Close the study: nobody may answer any more."""
        await study.end()
        return await _status(study)

    @routes.post("/links")
    async def links(request: Request) -> Response:
        """New personal links, of which only hashes are kept: ``{"number": 10}``."""
        number = (await read_body(request)).get("number")
        if type(number) is not int or not 1 <= number <= MOST_LINKS:
            raise ApiError(422, "invalid_request", f"number: must be a whole number from 1 to {MOST_LINKS}")
        if study.settings.judges.entry != "links":
            raise ApiError(409, "no_links", "everybody may begin without a link")
        tokens = await asyncio.to_thread(new_links, study.folder, number)
        return json_reply({"links": tokens})

    @routes.get("/export")
    async def exported(personal: bool = False) -> Response:
        """The export as a zip file, as ``turinglike study export`` writes it; ``?personal=true`` adds who is paid."""
        made = Path(tempfile.mkdtemp(prefix="turinglike-export-"))
        try:
            path = await asyncio.to_thread(zipped_export, study, made, personal)
        except BaseException as error:
            shutil.rmtree(made, ignore_errors=True)
            if isinstance(error, InputError):
                raise ApiError(409, "no_export", str(error)) from None
            raise
        name = f"{study.folder.resolve().name}-{now()[:10]}.zip"
        gone = BackgroundTask(shutil.rmtree, made, ignore_errors=True)
        headers = {"cache-control": "no-store"}
        return FileResponse(path, filename=name, media_type="application/zip", headers=headers, background=gone)

    return routes


def zipped_export(study: ServedStudy, made: Path, personal: bool) -> str:
    """Write the study's export into the folder ``made``, and return the path of its zip file. Raises InputError where
    nobody has answered yet, and StorageError."""
    out = made / "export"
    export(study.folder, study.material, out, personal=personal, force=False, place=DOWNLOADED)
    return shutil.make_archive(str(made / "made"), "zip", out)


async def _status(study: ServedStudy) -> Response:
    # In a thread, of what is on disk: judges do not wait for it.
    try:
        status: dict[str, Any] = await asyncio.to_thread(read_status, study.folder, study.material)
    except InputError as error:  # such as that the trials are no longer those which the judges see
        raise ApiError(409, "no_status", str(error)) from None
    return json_reply({"title": study.settings.texts.title, "address": _address(study), **status})


def _address(study: ServedStudy) -> dict[str, Any]:
    """What the page needs to say which address judges get."""
    judges = study.settings.judges
    return {"entry": judges.entry, "parameters": [name for name in (judges.worker, *judges.parameters) if name]}
