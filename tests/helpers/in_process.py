"""A worker of a lane in this process: no Ray, no actor."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

from serving.scheduling.worker import BatchReply, PackedRequest, Worker


@dataclass
class InProcess:
    """The worker that an actor hosts, without the actor."""

    worker: Worker
    host: str = "here"
    device: str = "cpu"

    async def start(self, timeout: float) -> dict[str, Any]:
        return await asyncio.to_thread(self.worker.load)

    async def call(self, works: list[PackedRequest], timeout: float) -> BatchReply:
        return await self.worker.answer(works)

    def kill(self) -> None:
        """There is no process to end."""
