"""What a client really sends and gets: a server on a free port that passes every request on, and notes it. The client's
program tells it how each call ended, in the same row of requests: so each request belongs to one call."""

import http.client
import json
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

PATIENCE_S = 300
OF_THE_CONNECTION = {"connection", "host", "keep-alive", "transfer-encoding"}


@dataclass
class Asked:
    """A request and the status that it got; ``message`` is the server's sentence where it refuses."""

    path: str
    body: str
    status: int = 0  # while no answer has come
    message: str = ""


class Tap:
    """Stands before the server at ``port`` of this machine; use it as a context manager.

    ``ended`` gets what the program posts to /ended, and the requests since the last time.
    """

    def __init__(self, port: int, ended: Callable[[dict[str, Any], Sequence[Asked]], None]) -> None:
        self.asked: list[Asked] = []

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(handler) -> None:
                body = handler.rfile.read(int(handler.headers.get("Content-Length") or 0))
                if handler.path != "/ended":
                    _pass_on(handler, body, port, self.asked)
                    return
                asked = self.asked[:]
                self.asked[:] = []
                ended(json.loads(body), asked)
                handler.send_response(204)
                handler.end_headers()

            do_POST = do_GET

            def log_message(handler, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port: int = self._server.server_address[1]

    def __enter__(self) -> "Tap":
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


def _pass_on(handler: BaseHTTPRequestHandler, body: bytes, port: int, asked: list[Asked]) -> None:
    note = Asked(f"{handler.command} {handler.path}", body.decode("utf-8", "replace"))
    asked.append(note)
    headers = {name: value for name, value in handler.headers.items() if name.lower() not in OF_THE_CONNECTION}
    upstream = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
    try:
        upstream.request(handler.command, handler.path, body or None, headers)
        answer = upstream.getresponse()
        note.status = answer.status
        handler.send_response(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in OF_THE_CONNECTION | {"content-length", "date", "server"}:
                handler.send_header(name, value)
        handler.send_header("Transfer-Encoding", "chunked")
        handler.end_headers()
        pieces = []
        while piece := answer.read1(65536):
            pieces.append(piece)
            handler.wfile.write(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
            handler.wfile.flush()
        if answer.status >= 400:
            note.message = _message(b"".join(pieces))
        handler.wfile.write(b"0\r\n\r\n")
    except BrokenPipeError:  # the client has read enough
        handler.close_connection = True
    finally:
        upstream.close()


def _message(body: bytes) -> str:
    try:
        return str(json.loads(body)["error"]["message"])
    except (ValueError, LookupError, TypeError):
        return body.decode("utf-8", "replace")
