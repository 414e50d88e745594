"""Coroutines that run together."""

import asyncio
from collections.abc import Coroutine, Iterable
from typing import Any, TypeVar

T = TypeVar("T")


async def all_of(works: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """All results; the first error cancels the others."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(work) for work in works]
    except ExceptionGroup as errors:
        raise errors.exceptions[0] from None
    return [task.result() for task in tasks]


async def cancel(*tasks: asyncio.Task[Any]) -> None:
    """Cancel the tasks, and return when all have ended."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
