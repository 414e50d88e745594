"""Work that is given up when the client goes away."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

from fastapi import Request

from serving.http.guard import ClientGone

T = TypeVar("T")


async def unless_gone(request: Request, work: Awaitable[T]) -> T:
    """What ``work`` gives; it is cancelled when the client goes away, which raises ClientGone."""
    task = asyncio.current_task()
    assert task is not None
    cancelled = task.cancelling()
    is_gone = False

    async def watch() -> None:
        nonlocal is_gone
        while (await request.receive())["type"] != "http.disconnect":
            pass
        is_gone = True
        task.cancel()

    watching = asyncio.create_task(watch())
    try:
        return await work
    except asyncio.CancelledError:
        if is_gone and task.uncancel() <= cancelled:
            raise ClientGone from None
        raise
    finally:
        watching.cancel()
