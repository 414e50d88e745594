"""What a server says of itself on stderr: words for a person on a terminal, one JSON object a line elsewhere."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from agents.errors import printable
from serving.http.guard import FinishedRequest
from serving.timestamps import now

LOOKS = ("/health", "/metrics", "/ready")  # at whether the server is well, again and again


@dataclass(frozen=True, slots=True)
class ServerLog:
    """``quiet``: only errors, and where the server listens; ``verbose``: also where agents are placed, and why."""

    as_json: bool
    quiet: bool = False
    verbose: bool = False

    def start(self) -> None:
        """Take what is logged; of uvicorn only errors."""
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(_Formatter(self))
        levels = {"turinglike": logging.ERROR if self.quiet else logging.INFO, "uvicorn": logging.ERROR}
        if self.verbose:
            levels["turinglike.scheduling"] = logging.DEBUG
        for name, level in levels.items():
            logging.getLogger(name).setLevel(level)
        for name in ("turinglike", "uvicorn"):
            logger = logging.getLogger(name)
            logger.handlers, logger.propagate = [handler], False

    def say(self, sentence: str) -> None:
        """A sentence of the command's own."""
        told = self.line("info", "server", {"message": sentence}) if self.as_json else printable(sentence)
        print(told, file=sys.stderr, flush=True)

    def request(self, request: FinishedRequest) -> None:
        """A line about a request, but not about each look at whether the server is well."""
        if (request.route in LOOKS and request.status == 200) or (self.quiet and request.status < 500):
            return
        about = {
            "request_id": request.request_id,
            "method": request.method[:16],
            "route": request.route,
            "status": request.status,
            "ms": round(request.seconds * 1000, 2),
        }
        # Not through logging, which takes longer to find out who calls than to write the line.
        sys.stderr.write(self.line("info", "request", about) + "\n")

    def line(self, level: str, event: str, about: Mapping[str, Any]) -> str:
        """What happened, and what is known about it."""
        if self.as_json:
            return orjson.dumps({"time": now(), "level": level, "event": event, **about}).decode()
        if event == "request":
            told = f"{about['status']} {about['method']} {about['route'] or '-'} in {about['ms']:.0f} ms"
        elif about.keys() == {"message"}:
            told = about["message"]
        else:
            told = f"{level}: " + ", ".join(f"{key.replace('_', ' ')}: {value}" for key, value in about.items())
        return printable(f"{time.strftime('%H:%M:%S')} {told}")


class _Formatter(logging.Formatter):
    def __init__(self, log: ServerLog) -> None:
        super().__init__()
        self._log = log

    def format(self, record: logging.LogRecord) -> str:
        event, about = record.getMessage(), getattr(record, "about", None)
        if about is None:  # sentences, which have no names for what is in them
            event, about = record.name.rpartition(".")[2], {"message": event}
        return self._log.line(record.levelname.lower(), event, about)
