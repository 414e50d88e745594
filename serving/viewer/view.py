"""``turinglike view``: the viewer on this machine's own address (the loopback), until Ctrl-C.

It follows runs that go on: the page asks again and again for ``/data/stamp.js``, and where files of the runs have
changed the data are made anew. For a folder of runs it shows a list with a link to each.
"""

import base64
import re
import shutil
import signal
import tempfile
import threading
import webbrowser
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from functools import lru_cache
from hashlib import sha256
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import orjson
from markupsafe import Markup

from agents.errors import ImageError, InputError, TuringlikeError
from serving.pages.rendering import STATIC, render
from serving.pages.thumbnails import thumbnail
from serving.runs.run import Run
from serving.viewer.data import gathered
from serving.viewer.report import page_files, script

HOST = "127.0.0.1"
CONTENT_TYPES = {  # by the ending of a file
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
    "jpg": "image/jpeg",
}
STYLE = base64.b64encode(sha256(STATIC.joinpath("style.css").read_bytes()).digest()).decode()  # inside the list
POLICY = (
    f"default-src 'none'; script-src 'self'; style-src 'self' 'sha256-{STYLE}'; img-src 'self' data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "cache-control": "no-store",
    "content-security-policy": POLICY,
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}
THUMBNAILS = 200  # kept in memory
RUN = "run.json"
DEPTH = 3  # levels of folders that are looked through for runs


class Viewer:
    """The page of some runs. Its data stand in ``folder``, and are made anew when the page asks and runs have changed.
    Raises InputError for folders that are no runs, and for damaged ones."""

    def __init__(self, paths: Sequence[Path | str], folder: Path) -> None:
        self._runs = [Path(path) for path in paths]
        self._folder = folder
        self._making = threading.Lock()
        self._reading = threading.Lock()
        self._make()

    def _make(self) -> None:
        stamp = _stamp(self._runs)
        folder = Path(tempfile.mkdtemp(dir=self._folder))
        with gathered([Run(path) for path in self._runs], stamp) as data:
            data.write(
                lambda chunk, content: (folder / f"{chunk}.js").write_bytes(script(chunk, content)),
                pictures=lambda number, image: None,
            )
        with self._reading:
            self._stamp = stamp
            self._files = folder
            self._pictures = data.pictures
            self._thumbnail = lru_cache(THUMBNAILS)(lambda number: thumbnail(data.pictures[number]))
        for other in set(self._folder.iterdir()) - {folder}:
            shutil.rmtree(other)

    def _newest(self) -> bytes:
        # A run may be half written, as where it is begun anew: the page keeps what it has, and asks again.
        with self._making, suppress(TuringlikeError, OSError):
            if _stamp(self._runs) != self._stamp:
                self._make()
        return script("stamp", orjson.dumps(self._stamp))

    def find(self, path: str) -> bytes | None:
        """The bytes of the file at the path of an address, such as ``/data/index.js``; None where there is none."""
        name = "viewer.html" if path == "/" else path.removeprefix("/static/")
        if name in ("viewer.html", *page_files()):
            return STATIC.joinpath(name).read_bytes()
        if path == "/data/stamp.js":
            return self._newest()
        if match := re.fullmatch(r"/data/(\d{1,9}|index|whole)\.js", path):
            with self._reading, suppress(FileNotFoundError):
                return (self._files / f"{match[1]}.js").read_bytes()
        if (match := re.fullmatch(r"/pictures/(\d{1,9})\.jpg", path)) and int(match[1]) < len(self._pictures):
            with suppress(ImageError, MemoryError):
                return self._thumbnail(int(match[1]))
        return None


class Listing:
    """A page that lists the runs below ``top``, and a :class:`Viewer` of each, made in ``folder`` when it is opened."""

    def __init__(self, top: Path, folder: Path) -> None:
        self._top = top
        self._folder = folder
        self._opening = threading.Lock()
        self._viewers: dict[str, Viewer] = {}

    def find(self, path: str) -> bytes | None:
        """The bytes of the file at the path of an address, such as ``/data/index.js``; None where there is none."""
        names = runs_below(self._top)
        if path == "/":
            title = f"Runs in {self._top.resolve().name}"
            rows = [self._row(name) for name in names]
            return render("serving.pages", "runs.html", title=title, rows=rows).encode()
        name = max((name for name in names if path.startswith(f"/{name}/")), key=len, default=None)
        if name is None:
            return None
        with self._opening:
            try:
                if name not in self._viewers:
                    self._viewers[name] = Viewer([self._top / name], Path(tempfile.mkdtemp(dir=self._folder)))
            except TuringlikeError as error:
                return render("serving.pages", "runs.html", title=str(error), rows=[]).encode()
        return self._viewers[name].find(path.removeprefix(f"/{name}"))

    def _row(self, name: str) -> list[Any]:
        try:
            run = Run(self._top / name)
        except InputError as error:
            return [name, str(error)]
        files = list((run.path / "records").glob("[!.]*.jsonl"))
        changed = max(file.stat().st_mtime for file in [run.path / RUN, *files])
        when = datetime.fromtimestamp(changed, UTC).isoformat(" ", "seconds").removesuffix("+00:00")
        link = Markup('<a href="{}/">{}</a>').format(quote(name), name)
        return [link, ", ".join([*run.agents(), *run.imports()]), (run.meta["set"] or {}).get("source"), when]


def runs_below(folder: Path) -> list[str]:
    """The runs in a folder and in its folders, as paths from there, sorted; [] where it is a run itself."""
    if (folder / RUN).exists():
        return []
    runs = []
    for depth in range(1, DEPTH + 1):
        runs += [file.parent.relative_to(folder).as_posix() for file in folder.glob("*/" * depth + RUN)]
    return sorted(runs)


def _stamp(runs: Sequence[Path]) -> str:
    """A text of sizes and times of all files of the runs: another one when a file has changed."""
    files: list[Path] = []
    for run in runs:
        files += [run / RUN, run / "stimuli.jsonl", *run.glob("records/*.jsonl")]
    return str([(file.stat().st_size, file.stat().st_mtime_ns) for file in files if file.exists()])


@contextmanager
def viewer(paths: Sequence[Path | str], port: int = 0) -> Iterator[ThreadingHTTPServer]:
    """A server of the viewer, bound to ``port`` (0: a free one) and not yet serving. Raises InputError for wrong runs
    and for a port that is taken."""
    with tempfile.TemporaryDirectory() as name:
        top = Path(paths[0])
        folder = Path(name)
        pages = Listing(top, folder) if len(paths) == 1 and runs_below(top) else Viewer(paths, folder)
        try:
            server = ThreadingHTTPServer((HOST, port), _handler(pages.find))
        except OSError as error:
            raise InputError(f"cannot listen at {HOST}:{port}: {error.strerror}") from error
        with server:
            yield server


def _handler(find: Callable[[str], bytes | None]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        timeout = 30
        disable_nagle_algorithm = True  # else the body waits for the receipt of the head

        def do_GET(self) -> None:
            port = self.connection.getsockname()[1]
            # A name of somebody else's can be made to mean this machine (DNS rebinding).
            is_ours = self.headers.get_all("host") in ([f"{HOST}:{port}"], [f"localhost:{port}"])
            path = unquote(self.path.partition("?")[0])
            content = find(path) if is_ours else None
            if content is None:
                self.send_error(HTTPStatus.NOT_FOUND if is_ours else HTTPStatus.FORBIDDEN)
                return
            self.send_response(HTTPStatus.OK)
            ending = "html" if path.endswith("/") else path.rpartition(".")[2]
            self.send_header("content-type", CONTENT_TYPES[ending])
            self.send_header("content-length", str(len(content)))
            for name, value in HEADERS.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: object) -> None:
            """Log nothing."""

    return Handler


def view(paths: Sequence[Path | str], *, port: int = 0, open_browser: bool = False) -> int:
    """Serve the page of the runs ``paths``, or the list of the runs in one folder, until Ctrl-C or SIGTERM; returns 0.
    Only the main thread may call it. Raises InputError as :func:`viewer`."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # the temporary folder goes then too
    print("reading the runs …", flush=True)
    with viewer(paths, port) as server:
        address = f"http://{HOST}:{server.server_address[1]}/"
        print(f"{address}  (Ctrl-C ends it)", flush=True)
        if open_browser:
            threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()
        with suppress(KeyboardInterrupt):
            server.serve_forever()
    return 0
