"""Records as lines of JSON: what an answered request becomes before the store writes it."""

from __future__ import annotations

from dataclasses import dataclass, field

import orjson

from serving.runs.schemas import RECORD
from serving.scheduling.request import AgentRequest
from serving.timestamps import now


@dataclass(frozen=True, slots=True)
class RecordHeader:
    """The part of a record that all of one agent's records in a run share."""

    run: str
    kind: str
    digest: str
    checkpoint: str | None
    revision: str | None
    _provenance: orjson.Fragment = field(init=False, repr=False)

    def __post_init__(self) -> None:
        about = {"digest": self.digest, "checkpoint": self.checkpoint, "revision": self.revision}
        object.__setattr__(self, "_provenance", orjson.Fragment(orjson.dumps(about)))

    def line(self, request: AgentRequest, task: str) -> bytes:
        """The request's record: one line of JSON with its newline."""
        return orjson.dumps(
            {
                "schema": RECORD,
                "run": self.run,
                "task": task,
                "stimulus": request.stimulus,
                "stimulus_sha256": request.sha256,
                "agent": request.name or request.agent,
                "kind": self.kind,
                "sample": request.sample,
                "seed": request.seed,
                "status": request.status,
                "answer": None if request.answer is None else orjson.Fragment(request.answer),
                "raw": None if request.raw is None else orjson.Fragment(request.raw),
                "attempts": request.attempts,
                "error": None if request.error is None else {"code": request.error[0], "message": request.error[1]},
                "provenance": self._provenance,
                "timing": {
                    "waiting": round(request.waiting, 6),
                    "preparing": round(request.preparing, 6),
                    "responding": request.responding,
                },
                "worker": request.worker,
                "created": request.created or now(),
            },
            option=orjson.OPT_APPEND_NEWLINE,
        )
