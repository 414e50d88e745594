"""``turinglike view``: the viewer on the loopback."""

from __future__ import annotations

import re
import signal
import tempfile
import threading
import webbrowser
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from agents.errors import ImageError, InputError
from serving.runs.run import Run
from serving.web.report import STATIC, page_files, script, thumbnail
from serving.web.viewer_data import gathered

HOST = "127.0.0.1"
KINDS = {"html": "text/html", "css": "text/css", "js": "text/javascript", "svg": "image/svg+xml", "jpg": "image/jpeg"}
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "cache-control": "no-store",
    "content-security-policy": POLICY,
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}
PICTURES = 200  # small ones that are kept in memory


@contextmanager
def viewer(paths: Sequence[Path | str], port: int = 0) -> Iterator[ThreadingHTTPServer]:
    """The bound viewer's server; ``port`` 0: a free port. Raises InputError."""
    with gathered([Run(path) for path in paths]) as data, tempfile.TemporaryDirectory() as name:

        @lru_cache(PICTURES)
        def picture(number: int) -> bytes:
            return thumbnail(data.pictures[number])

        folder = Path(name)
        data.write(
            lambda chunk, content: (folder / f"{chunk}.js").write_bytes(script(chunk, content)),
            pictures=lambda number, image: None,
        )

        def find(path: str) -> bytes | None:
            if path == "/":
                return STATIC.joinpath("viewer.html").read_bytes()
            if path.removeprefix("/static/") in page_files():
                return STATIC.joinpath(path.removeprefix("/static/")).read_bytes()
            if match := re.fullmatch(r"/data/(\d{1,9}|index)\.js", path):
                file = folder / f"{match[1]}.js"
                return file.read_bytes() if file.is_file() else None
            if (match := re.fullmatch(r"/pictures/(\d{1,9})\.jpg", path)) and int(match[1]) < len(data.pictures):
                try:
                    return picture(int(match[1]))
                except (ImageError, MemoryError):
                    return None
            return None

        try:
            server = ThreadingHTTPServer((HOST, port), _handler(find))
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
            ours = self.headers.get_all("host") in ([f"{HOST}:{port}"], [f"localhost:{port}"])
            path = self.path.partition("?")[0]
            content = find(path) if ours else None
            if content is None:
                self.send_error(HTTPStatus.NOT_FOUND if ours else HTTPStatus.FORBIDDEN)
                return
            self.send_response(HTTPStatus.OK)
            kind = KINDS["html" if path == "/" else path.rpartition(".")[2]]
            self.send_header("content-type", kind + ("; charset=utf-8" if kind.startswith("text/") else ""))
            self.send_header("content-length", str(len(content)))
            for name, value in HEADERS.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: object) -> None:
            """Log nothing."""

    return Handler


def view(paths: Sequence[Path | str], *, port: int = 0, open_browser: bool = False) -> int:
    """Serve until Ctrl-C or SIGTERM, in the main thread; returns the exit code."""
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
