"""The requests of one agent that wait for a worker, the oldest first.

Where an engine batches by itself, it keeps what it computed for the messages of a conversation. The turns of one
conversation are therefore bound to one replica (rendezvous hashing): when a replica is lost, only its own conversations
move to others, and they come back with its replacement.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterable

from serving.scheduling.request import AgentRequest

_Entry = tuple[int, int, AgentRequest]  # order, number of arrival, request


class RequestQueue:
    """A priority queue by ``order``. With ``sticky``, the turns of a conversation wait for one replica."""

    def __init__(self, sticky: bool) -> None:
        self._sticky = sticky
        self._shared: list[_Entry] = []
        self._bound: dict[int, list[_Entry]] = {}  # by the replica's number
        self._replicas: list[int] = []
        self._arrivals = itertools.count()

    def __len__(self) -> int:
        return len(self._shared) + sum(map(len, self._bound.values()))

    def push(self, request: AgentRequest) -> None:
        self._push((request.order, next(self._arrivals), request))

    def first(self, replica: int) -> AgentRequest | None:
        """The next request for the replica of that number, left where it is; None if there is none."""
        heap = self._heap(replica)
        return heap[0][2] if heap else None

    def pop(self, count: int, replica: int) -> list[AgentRequest]:
        """Take out the next requests for a replica, at most ``count``."""
        requests: list[AgentRequest] = []
        while len(requests) < count and (heap := self._heap(replica)):
            requests.append(heapq.heappop(heap)[2])
        return requests

    def set_replicas(self, numbers: Iterable[int]) -> None:
        """Set the present replicas; the turns that wait are bound anew."""
        self._replicas = list(numbers)
        if self._sticky:
            for entry in self._take_all():
                self._push(entry)

    def clear(self) -> list[AgentRequest]:
        """Take everything out, the oldest first."""
        return [request for _, _, request in sorted(self._take_all(), key=lambda entry: entry[:2])]

    def _push(self, entry: _Entry) -> None:
        request, heap = entry[2], self._shared
        if self._sticky and request.turn is not None and len(self._replicas) > 1:
            conversation = (request.name, request.stimulus, request.sample)
            heap = self._bound.setdefault(max(self._replicas, key=lambda number: hash((number, *conversation))), [])
        heapq.heappush(heap, entry)

    def _heap(self, replica: int) -> list[_Entry]:
        """The heap that holds the next request for a replica; an empty one if there is none."""
        bound = self._bound.get(replica)
        if not bound:
            return self._shared
        return min(bound, self._shared, key=lambda heap: heap[0][:2]) if self._shared else bound

    def _take_all(self) -> list[_Entry]:
        entries = [*self._shared, *(entry for heap in self._bound.values() for entry in heap)]
        self._shared, self._bound = [], {}
        return entries
