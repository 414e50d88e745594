"""The items of one lane that wait for a worker: the oldest first, and the turns of a conversation for one place.

A worker stands at a place (from 0), and its replacement at the same. What was computed for a conversation's messages
so far is kept by the worker that answered last, so a conversation's turns wait for one place: that with the highest
hash of the conversation and the place, of the places where a worker is. So they stay where they are when another place
loses its worker, are spread over the others when theirs does, and come back with its replacement.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Collection
from hashlib import blake2b

from serving.scheduling.request import AgentRequest

_Entry = tuple[int, int, AgentRequest]


class RequestQueue:
    """A queue by the items' ``order``. With ``sticky``, turns of conversations wait for one place."""

    def __init__(self, sticky: bool) -> None:
        self._sticky = sticky
        self._free: list[_Entry] = []
        self._bound: dict[int, list[_Entry]] = {}
        self._places: list[int] = []
        self._ids = itertools.count()

    def __len__(self) -> int:
        return len(self._free) + sum(map(len, self._bound.values()))

    def push(self, item: AgentRequest) -> None:
        self._put((item.order, next(self._ids), item))

    def has(self, place: int) -> bool:
        """Whether anything waits that the worker at ``place`` may take."""
        return bool(self._free or self._bound.get(place))

    def oldest(self, place: int) -> AgentRequest:
        """The item that the worker at ``place`` is to take next; it stays."""
        return self._next(place)[0][2]

    def pop(self, count: int, place: int) -> list[AgentRequest]:
        """The next items for the worker at ``place``, at most ``count``."""
        found: list[AgentRequest] = []
        while len(found) < count and self.has(place):
            found.append(heapq.heappop(self._next(place))[2])
        return found

    def open(self, places: Collection[int]) -> None:
        """Say where there are workers now; what waits is dealt out anew."""
        self._places = sorted(places)
        entries = [entry for heap in self._bound.values() for entry in heap]
        if self._sticky:
            entries += self._free
            self._free = []
        self._bound.clear()
        for entry in entries:
            self._put(entry)

    def clear(self) -> list[AgentRequest]:
        """Take everything out."""
        entries = sorted([*self._free, *(entry for heap in self._bound.values() for entry in heap)])
        self._free.clear()
        self._bound.clear()
        return [item for _, _, item in entries]

    def _put(self, entry: _Entry) -> None:
        item, heap = entry[2], self._free
        if self._sticky and item.turn is not None and len(self._places) > 1:
            heap = self._bound.setdefault(home(item, self._places), [])
        heapq.heappush(heap, entry)

    def _next(self, place: int) -> list[_Entry]:
        """The heap whose first item is the next for that place."""
        bound = self._bound.get(place)
        return min((heap for heap in (bound, self._free) if heap), key=lambda heap: heap[0][:2])


def home(item: AgentRequest, places: Collection[int]) -> int:
    """The place of an item's conversation, of several."""
    conversation = f"{item.name}\n{item.stimulus}\n{item.sample}"
    return max(places, key=lambda place: blake2b(f"{place}\n{conversation}".encode(), digest_size=8).digest())
