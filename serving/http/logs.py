"""A server's log on stderr: words on a terminal, one JSON object a line elsewhere."""

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

HEALTH_ROUTES = ("/health", "/metrics", "/ready")  # asked again and again


@dataclass(frozen=True, slots=True)
class ServerLog:
    """``quiet``: errors and the address alone; ``verbose``: also where agents are placed, and why."""

    as_json: bool
    quiet: bool = False
    verbose: bool = False

    def start(self) -> None:
        """Handle the log records; of uvicorn errors alone."""
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
        """Print a sentence of the command."""
        line = self.line("info", "server", {"message": sentence}) if self.as_json else printable(sentence)
        print(line, file=sys.stderr, flush=True)

    def progress(self, sentence: str) -> None:
        """Print a sentence that ``quiet`` leaves out."""
        if not self.quiet:
            self.say(sentence)

    def request(self, request: FinishedRequest) -> None:
        """Write a line about a request, unless it is a health check that went well."""
        if (request.route in HEALTH_ROUTES and request.status == 200) or (self.quiet and request.status < 500):
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
        if self.as_json:
            return orjson.dumps({"time": now(), "level": level, "event": event, **about}).decode()
        if event == "request":
            line = f"{about['status']} {about['method']} {about['route'] or '-'} in {about['ms']:.0f} ms"
        elif about.keys() == {"message"}:
            line = about["message"]
        else:
            line = f"{level}: " + ", ".join(f"{key.replace('_', ' ')}: {value}" for key, value in about.items())
        return printable(f"{time.strftime('%H:%M:%S')} {line}")


class _Formatter(logging.Formatter):
    def __init__(self, log: ServerLog) -> None:
        super().__init__()
        self._log = log

    def format(self, record: logging.LogRecord) -> str:
        event, about = record.getMessage(), getattr(record, "about", None)
        if about is None:  # sentences, which have no names for what is in them
            event, about = record.name.rpartition(".")[2], {"message": event}
        return self._log.line(record.levelname.lower(), event, about)
