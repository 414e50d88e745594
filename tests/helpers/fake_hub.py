"""A local HTTP server that answers the hub's client as the hub does, as far as a download goes.

Model info with licence; ``resolve`` with ETag and X-Repo-Commit, large files behind a redirect to
another address; ranges; gated, private and missing models; connections that break off in the middle of a file.
"""

import hashlib
import json
import logging
import threading
import time
import types
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
from huggingface_hub import close_session, constants, file_download

from agents.models.checkpoints import PINNED

LARGE = (".safetensors", ".bin", ".h5", ".msgpack", ".onnx")


@dataclass
class Repository:
    """One model: its files at each commit, the commits of its branches, its licence, and who may see it."""

    commits: dict[str, dict[str, bytes]]
    branches: dict[str, str]
    card: dict[str, Any] | None = None
    gated: bool = False
    token: str | None = None  # a private model's


@dataclass
class Hub:
    """``asked`` are the requests so far as (method, path); ``cut`` ends each answer with this file's content at the
    so many bytes, ``pause`` is the time in seconds between pieces of 1000 bytes."""

    models: dict[str, Repository] = field(default_factory=dict)
    asked: list[tuple[str, str]] = field(default_factory=list)
    cut: dict[str, int] = field(default_factory=dict)
    pause: float = 0.0
    address: str = ""
    elsewhere: str = ""

    def add(self, name: str, files: dict[str, bytes], **about: Any) -> str:
        """Add a model, at the commit that is pinned, or a new commit of its main branch; returns the commit."""
        known = self.models.setdefault(name, Repository({}, {}, **about))
        commit = hashlib.sha1(repr((name, len(known.commits))).encode()).hexdigest()
        if not known.commits:
            commit = PINNED.get(name, commit)
        known.commits[commit] = files
        known.branches["main"] = commit
        return commit

    def files_asked(self, method: str = "GET") -> set[str]:
        """The names of the files whose content was asked for."""
        paths = [path for kind, path in self.asked if kind == method and not path.startswith("/api/")]
        return {unquote(path.rsplit("/", 1)[1]) for path in paths}


@contextmanager
def running() -> Iterator[Hub]:
    """A hub that listens until the block ends."""
    hub = Hub()
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"hub": hub}))
    server.daemon_threads = True
    hub.address = f"http://127.0.0.1:{server.server_address[1]}"
    hub.elsewhere = f"http://localhost:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield hub
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    hub: Hub

    def do_HEAD(self) -> None:
        self._answer()

    def do_GET(self) -> None:
        self._answer()

    def _answer(self) -> None:
        path = urlsplit(self.path).path
        self.hub.asked.append((self.command, path))
        parts = path.strip("/").split("/")
        if parts[:2] == ["api", "models"]:
            self._info("/".join(parts[2:4]), unquote(parts[5]) if len(parts) > 5 else "main")
        elif parts[0] == "content":
            commits = [files for model in self.hub.models.values() for files in model.commits.values()]
            content = next(
                files[parts[2]]
                for files in commits
                if parts[2] in files and hashlib.sha256(files[parts[2]]).hexdigest() == parts[1]
            )
            self._content(parts[2], content, {"ETag": f'"{parts[1]}"'})
        elif parts[2:3] != ["resolve"]:
            self._refuse(404, "EntryNotFound", "not of this hub")
        else:
            self._resolve("/".join(parts[:2]), unquote(parts[3]), "/".join(parts[4:]))

    def _allowed(self, name: str) -> Repository | None:
        """The model; None, and an answer that says so, if the asker may not see it."""
        model = self.hub.models.get(name)
        if model is None or (model.token and self.headers.get("Authorization") != f"Bearer {model.token}"):
            self._refuse(401, "RepoNotFound", "Repository not found")
            return None
        return model

    def _commit(self, model: Repository, revision: str) -> str | None:
        commit = model.branches.get(revision, revision)
        if commit not in model.commits:
            self._refuse(404, "RevisionNotFound", "Invalid rev id")
            return None
        return commit

    def _info(self, name: str, revision: str) -> None:
        if (model := self._allowed(name)) is None or (commit := self._commit(model, revision)) is None:
            return
        about: dict[str, Any] = {
            "id": name,
            "modelId": name,
            "sha": commit,
            "cardData": model.card,
            "gated": model.gated,
            "tags": [],
        }
        about["siblings"] = [{"rfilename": file} for file in model.commits[commit]]
        self._send(200, json.dumps(about).encode(), {"Content-Type": "application/json"})

    def _resolve(self, name: str, revision: str, file: str) -> None:
        if (model := self._allowed(name)) is None or (commit := self._commit(model, revision)) is None:
            return None
        if model.gated:
            return self._refuse(403, "GatedRepo", f"Access to model {name} is restricted")
        content = model.commits[commit][unquote(file)]
        if not file.endswith(LARGE):
            return self._content(file, content, {"ETag": f'"{_blob(content)}"', "X-Repo-Commit": commit})
        sha256 = hashlib.sha256(content).hexdigest()
        linked = {"X-Linked-Etag": f'"{sha256}"', "X-Linked-Size": str(len(content)), "X-Repo-Commit": commit}
        self._send(302, b"", {**linked, "Location": f"{self.hub.elsewhere}/content/{sha256}/{file}"})
        return None

    def _content(self, name: str, content: bytes, headers: dict[str, str]) -> None:
        whole = len(content)
        start = 0
        if wanted := self.headers.get("Range"):
            start = int(wanted.removeprefix("bytes=").split("-")[0])
            headers["Content-Range"] = f"bytes {start}-{whole - 1}/{whole}"
        end = self.hub.cut.get(name, whole)
        if self.command == "GET" and end <= start < whole:
            self.close_connection = True
            return
        self._send(206 if start else 200, content[start:], headers, end - start)

    def _refuse(self, status: int, code: str, message: str) -> None:
        self._send(status, b"", {"X-Error-Code": code, "X-Error-Message": message})

    def _send(self, status: int, content: bytes, headers: dict[str, str], end: int | None = None) -> None:
        self.send_response(status)
        for key, value in {**headers, "Content-Length": str(len(content))}.items():
            self.send_header(key, value)
        self.end_headers()
        if self.command == "HEAD":
            return
        sent = content if end is None else content[:end]
        if len(sent) < len(content):
            self.close_connection = True
        for place in range(0, len(sent), 1000 if self.hub.pause else max(len(sent), 1)):
            self.wfile.write(sent[place : place + 1000] if self.hub.pause else sent)
            self.wfile.flush()
            time.sleep(self.hub.pause)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing on the terminal."""

    def handle(self) -> None:
        try:
            super().handle()
        except ConnectionError:  # the client has gone
            self.close_connection = True


@contextmanager
def running_here(folder: Path) -> Iterator[Hub]:
    """The same as this process's hub, with its cache in ``folder``."""
    with running() as hub, pytest.MonkeyPatch.context() as patch:
        patch.setattr(constants, "ENDPOINT", hub.address)
        template = hub.address + "/{repo_id}/resolve/{revision}/{filename}"
        patch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
        patch.setattr(constants, "HF_HUB_CACHE", str(folder / "hub"))
        patch.setattr(constants, "HF_TOKEN_PATH", str(folder / "no token"))
        patch.delenv("HF_TOKEN", raising=False)
        patch.setattr(file_download, "time", types.SimpleNamespace(sleep=lambda seconds: None))
        logging.getLogger("huggingface_hub").setLevel(logging.ERROR)
        close_session()
        yield hub
        close_session()


def _blob(content: bytes) -> str:
    """git's name of a file's content."""
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()
