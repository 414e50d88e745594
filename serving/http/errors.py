"""What a client is told when something is wrong: one JSON shape for every error, and never an exception's own text. ::

    {"error": {"code": "unknown_agent", "message": "…", "type": "invalid_request_error", "request_id": "…"}}

``type`` and ``param`` (the first field that is wrong) are there for clients of OpenAI's interface, which tell of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

TYPES = {400: "invalid_request_error", 401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}


class ApiError(Exception):
    """A request that is not answered. ``status`` is HTTP's, ``code`` a short word for programs, ``message`` for people;
    ``problems`` are all that is wrong with a request, by field."""

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        *,
        headers: Mapping[str, str] | None = None,
        problems: list[dict[str, str]] | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.headers = dict(headers or {})
        self.problems = problems

    def content(self, request_id: str) -> dict[str, Any]:
        """The body, as plain values."""
        kind = TYPES.get(self.status, "invalid_request_error" if self.status < 500 else "server_error")
        error: dict[str, Any] = {
            "code": self.code,
            "message": self.message,
            "type": kind,
            "request_id": request_id,
        }
        if self.problems:
            error["problems"] = self.problems
            error["param"] = self.problems[0]["field"]
        return {"error": error}

    def body(self, request_id: str) -> bytes:
        """The body."""
        return orjson.dumps(self.content(request_id))
