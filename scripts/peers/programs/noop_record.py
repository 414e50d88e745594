"""The record of the no-op agent's answer over HTTP, as a server of a few lines makes it."""

import datetime
import hashlib
import json
from pathlib import Path
from typing import Any


class Records:
    """Makes records; what their other fields hold is taken from one of ``turinglike serve``, a file."""

    def __init__(self, template: str) -> None:
        self._template: dict[str, Any] = json.loads(Path(template).read_bytes())

    def record(self, body: dict[str, Any]) -> bytes:
        """The record of a request's body as JSON, in the bytes of ``turinglike serve``."""
        stimulus = body["stimulus"]
        row = json.dumps(stimulus, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        key = json.dumps([1, body["seed"], body["agent"], stimulus["id"], 0, None, 0], separators=(",", ":"))
        seed = int.from_bytes(hashlib.sha256(key.encode()).digest()[:8], "big") >> 11
        now = datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        made = {
            **self._template,
            "stimulus": stimulus["id"],
            "stimulus_sha256": hashlib.sha256(row.encode()).hexdigest(),
            "seed": seed,
            "answer": {"word": f"{seed:x}", "candidates": None, "skipped": []},
            "raw": f"{seed:x}",
            "created": now,
        }
        return json.dumps(made, separators=(",", ":"), ensure_ascii=False).encode()
