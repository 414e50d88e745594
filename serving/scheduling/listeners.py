"""Who hears answers while they are made, and how what they hear gets to them from other threads and processes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from serving.scheduling.worker import BatchReply, PackedRequest, Worker

Say = Callable[[str], None]  # called with the text of an answer so far
Says = Mapping[int, Say]  # by the places of those requests of a batch that somebody listens to
NOBODY: Says = {}


def in_loop(says: Says) -> Says:
    """The same for other threads: they are called in the running event loop."""
    loop = asyncio.get_running_loop()

    def tell(say: Say, text: str) -> None:
        loop.call_soon_threadsafe(say, text)

    return {place: partial(tell, say) for place, say in says.items()}


async def aloud(
    worker: Worker, batch: Sequence[PackedRequest], places: Sequence[int]
) -> AsyncGenerator[dict[int, str] | BatchReply, None]:
    """What is new in the texts of the answers at ``places``, again and again while ``worker`` makes them, and at last
    its replies. Raises FatalDeviceError."""
    wake = asyncio.Event()
    texts, lengths = dict.fromkeys(places, ""), dict.fromkeys(places, 0)

    def hear(place: int, text: str) -> None:
        texts[place] = text
        wake.set()

    says = in_loop({place: partial(hear, place) for place in places})
    one = worker.agent.continuous()
    answering = asyncio.create_task(worker.answer_one(batch[0], says[0]) if one else worker.answer(batch, says))
    answering.add_done_callback(lambda _: wake.set())
    while not answering.done():
        await wake.wait()
        wake.clear()
        new = {place: text[lengths[place] :] for place, text in texts.items() if len(text) > lengths[place]}
        if new:
            lengths |= {place: len(texts[place]) for place in new}
            yield new
    yield answering.result()
