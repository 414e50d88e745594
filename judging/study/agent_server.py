"""The `turinglike serve` that answers for a study's agents."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from typing import Any

REPLY_SECONDS = 120.0
TRIES = 3  # of an answer, before what it was for is void


def answer_of(server: str, body: dict[str, Any]) -> dict[str, Any]:
    """The record of an answer that is asked for. Raises OSError, and ValueError for what is none."""
    request = urllib.request.Request(
        f"{server.rstrip('/')}/answers",
        json.dumps(body).encode(),
        {"content-type": "application/json"},
        method="POST",
    )
    try:
        with urllib.request.urlopen(request, timeout=REPLY_SECONDS) as reply:
            return dict(json.loads(reply.read(1 << 22)))
    except urllib.error.HTTPError as error:
        raise OSError(f"{error.code}: {_wrong(error.read(1 << 16))}") from None


def _wrong(body: bytes) -> str:
    """What a server says is wrong, without what is of one request alone."""
    try:
        error = json.loads(body)["error"]
        return f"{error['code']}: {error['message']}"
    except (ValueError, KeyError, TypeError):
        return body.decode(errors="replace")


def served_agents(server: str) -> tuple[dict[str, list[str]], str]:
    """The agents that a server has, with their tasks, and why they are not known."""
    try:
        with urllib.request.urlopen(f"{server.rstrip('/')}/agents", timeout=10) as reply:
            return {str(one["name"]): list(one["tasks"]) for one in json.loads(reply.read(1 << 22))["agents"]}, ""
    except (OSError, ValueError, KeyError, TypeError):
        return {}, f"{server} does not answer; start `turinglike serve`"
