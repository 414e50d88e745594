"""One agent's lane: its queue, its workers, and what happens when one of them fails.

- A worker's death: its unfinished items become suspects. While there are any, a worker takes nothing but one suspect
  at a time, so that a death has one culprit. Only such a death counts against an item; the third makes it failed.
- Out of memory: the worker halves the batch and says so; the lane remembers. A worker that Ray ended for want of
  memory counts the same way, not as poison.
- Turns of one conversation go to the same worker, where the engine batches by itself; see ``queue``.
- The circuit breaker: if the first :data:`FIRST` items, or :data:`IN_A_ROW` in a row, fail with one code, the agent
  stops, and the rest stays unanswered. There is none where strangers ask: their bad stimuli would stop it for all.
- A lost worker is loaded again. In a run it is tried :data:`RELOADS` times, and without any worker left the agent
  stops; where strangers ask, for ever, at growing intervals.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from collections import deque
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, Protocol

import orjson

from agents import answers, stimuli
from agents.contract import Agent, Reply
from agents.errors import AgentStoppedError
from serving.scheduling.queue import RequestQueue
from serving.scheduling.ray_workers import WorkerLost
from serving.scheduling.request import AgentRequest
from serving.scheduling.worker import BatchReply, PackedReply, PackedRequest, describe

LINGER = 0.004
DEATHS = 3
FIRST = 20
IN_A_ROW = 50
RELOADS = 3
LONGEST = 60.0  # seconds between two attempts to load a lost worker


class ReplicaWorker(Protocol):
    """What a lane needs of a worker; :class:`serving.scheduling.ray_workers.RemoteWorker` is one."""

    host: str
    device: str

    async def start(self, timeout: float) -> dict[str, Any]: ...
    async def call(self, works: list[PackedRequest], timeout: float) -> BatchReply: ...
    def kill(self) -> None: ...


@dataclass(slots=True, eq=False)
class _Slot:
    """A worker, its place, and the batches that it has in hand."""

    worker: ReplicaWorker
    place: int
    calls: dict[int, list[AgentRequest]] = field(default_factory=dict)
    lost: bool = False
    alone: bool = False  # answers a suspect, and takes nothing beside it
    crowded: set[int] = field(default_factory=set)  # calls that have not been alone all the time


@dataclass(slots=True)
class CircuitBreaker:
    """Counts failures with one code: from the first item on, and in a row."""

    seen: int = 0
    code: str | None = None
    row: int = 0

    def note(self, code: str | None) -> bool:
        """Note an item's error code (None: no error); whether the breaker opens."""
        self.seen += 1
        if code is None or code != self.code:
            self.row = 0
        self.code = code
        if code is None:
            return False
        self.row += 1
        return self.row == self.seen == FIRST or self.row >= IN_A_ROW


class Dispatcher:
    """The queue and the workers of one agent.

    ``make_worker`` gives a fresh, unstarted worker. ``timeout`` is for one batch, ``load_timeout`` for loading, in
    seconds. ``provenance`` is what the first worker that was loaded told of itself.
    """

    def __init__(
        self,
        agent: Agent[Any],
        make_worker: Callable[[], ReplicaWorker],
        *,
        batch_size: int | None = None,
        timeout: float = 600.0,
        load_timeout: float = 1800.0,
        breaker: bool = True,
    ) -> None:
        self.name = agent.name
        self.agent = agent
        self.continuous = agent.continuous()
        self.batch_size = 1 if self.continuous else batch_size or agent.batch_size
        self.depth = max(1, agent.max_in_flight) if self.continuous else 2
        self.timeout = timeout
        self.load_timeout = load_timeout
        self.provenance: dict[str, Any] | None = None
        self.stopped: AgentStoppedError | None = None
        self._make_worker = make_worker
        self._queue = RequestQueue(sticky=self.continuous)
        self._suspects: deque[AgentRequest] = deque()
        self._slots: list[_Slot] = []
        self._breaker = CircuitBreaker() if breaker else None
        self._ids = itertools.count()
        self._tasks: set[asyncio.Task[None]] = set()
        self._timer: asyncio.TimerHandle | None = None

    @property
    def queued(self) -> int:
        """Items that no worker has yet."""
        return len(self._queue) + len(self._suspects)

    @property
    def loaded_workers(self) -> int:
        """How many are loaded; fewer than were asked for while lost ones are being replaced."""
        return len(self._slots)

    @property
    def window(self) -> int:
        """How many waiting items keep the workers busy; a stream holds back beyond it."""
        return 2 * max(self.batch_size, self.depth) * max(1, len(self._slots))

    async def start(self, replicas: int = 1) -> None:
        """Load the agent into ``replicas`` workers. Raises AgentStoppedError if one of them cannot be loaded."""
        spawns = [asyncio.create_task(self._spawn(place)) for place in range(replicas)]
        self._tasks.update(spawns)  # so that close() ends them, too
        for spawn in spawns:
            spawn.add_done_callback(self._tasks.discard)
        results = await asyncio.gather(*spawns, return_exceptions=True)
        for result in results:
            if isinstance(result, AgentStoppedError):
                self.stop(result)
            if isinstance(result, BaseException):
                raise result

    async def _spawn(self, place: int) -> None:
        worker = self._make_worker()
        loaded = await worker.start(self.load_timeout)
        self.provenance = self.provenance or loaded
        if self.stopped is not None:
            worker.kill()
            return
        self._slots.append(_Slot(worker, place))
        self._queue.open([slot.place for slot in self._slots])
        self.pump()

    async def _replace(self, place: int) -> None:
        """A new worker in place of a lost one."""
        pause = 1.0
        for reload in itertools.count(1):
            if self.stopped is not None:
                return
            try:
                await self._spawn(place)
            except AgentStoppedError as error:
                if self._breaker is not None and reload >= RELOADS:
                    if not self._slots:
                        self.stop(error)
                    return
            else:
                return
            await asyncio.sleep(pause)
            if self._breaker is None:
                pause = min(2 * pause, LONGEST)

    def submit(self, item: AgentRequest) -> None:
        """Queue an item. :meth:`pump` sends it on."""
        if self.stopped is not None:
            item.status = "unanswered"
            self._put(item)
            return
        item.since = asyncio.get_running_loop().time()
        self._queue.push(item)

    def pump(self) -> None:
        """Send what can be sent now."""
        while self.stopped is None and self._slots:
            slot = self._slots[0] if len(self._slots) == 1 else min(self._slots, key=self._readiness)
            if len(slot.calls) >= self.depth or slot.alone:
                return
            if self._suspects:
                if slot.calls:
                    return
                suspect = self._suspects.popleft()
                if not self._stale(suspect):
                    slot.alone = True
                    self._send(slot, [suspect])
                continue
            if not self._queue.has(slot.place):
                return
            if len(self._queue) < self.batch_size:
                if slot.calls:
                    return  # the device is busy: let the batch grow
                left = self._queue.oldest(slot.place).since + LINGER - asyncio.get_running_loop().time()
                if left > 0:
                    self._wake_in(left)
                    return
            self._send(slot, [item for item in self._queue.pop(self.batch_size, slot.place) if not self._stale(item)])

    def _readiness(self, slot: _Slot) -> tuple[bool, bool, int]:
        """The least goes first: a worker that can take something, has something to take, and is the least busy."""
        is_full = slot.alone or len(slot.calls) >= self.depth
        return is_full, not self._suspects and not self._queue.has(slot.place), len(slot.calls)

    def _stale(self, item: AgentRequest) -> bool:
        """Nobody waits for it any more, or its time is over: then it fails."""
        if item.dropped:
            return True
        if item.deadline is None or item.deadline >= asyncio.get_running_loop().time():
            return False
        item.status, item.error = "failed", ("deadline", "no worker was free in time")
        self._put(item)
        return True

    def _wake_in(self, seconds: float) -> None:
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(seconds, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        self.pump()

    def _send(self, slot: _Slot, items: list[AgentRequest]) -> None:
        if items:
            call = next(self._ids)
            slot.calls[call] = items
            if len(slot.calls) > 1:
                slot.crowded.update(slot.calls)
            self._track(self._call(slot, call, items))

    def _track(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        """A fault of ours in a task that nobody waits for must end the agent, not leave its items waiting."""
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self.stop(AgentStoppedError(f"agent {self.name} was stopped by an internal error: {describe(error)}"))

    async def _call(self, slot: _Slot, call: int, items: list[AgentRequest]) -> None:
        now = asyncio.get_running_loop().time()
        works: list[PackedRequest] = []
        for item in items:
            item.waiting += now - item.since
            works.append((item.row, item.files, item.draw_seed(), item.sample, item.attempt, item.options))
        # A worker answers its batches in turn: the time of those ahead is not this one's.
        ahead = 0 if self.continuous else len(slot.calls) - 1
        try:
            batch = await slot.worker.call(works, self.timeout * (1 + ahead))
        except WorkerLost as lost:
            self._lose(slot, lost)
            return
        except Exception as error:
            # The call itself failed (a reply that cannot be sent between processes, say): these items have no answer.
            failed: PackedReply = ("worker_failed", " ".join(str(error).split())[:500], None, None, 0.0)
            batch = BatchReply([failed] * len(items), 0.0, len(items))
        if slot.calls.pop(call, None) is not None:
            slot.alone = False
            crowded = call in slot.crowded
            slot.crowded.discard(call)
            self._deliver(slot, items, batch, crowded)
        self.pump()

    def _lose(self, slot: _Slot, lost: WorkerLost) -> None:
        if slot.lost:
            return  # another call of the same worker saw it first
        slot.lost = True
        self._slots.remove(slot)
        self._queue.open([slot.place for slot in self._slots])
        slot.worker.kill()
        items = [item for call in slot.calls.values() for item in call]
        slot.calls.clear()
        if lost.cause == "out_of_memory" and len(items) > 1:
            self.batch_size = max(1, self.batch_size // 2)
            self.depth = max(1, self.depth // 2)
            for item in items:
                self.submit(item)
        elif len(items) == 1:
            [item] = items
            item.deaths += 1
            if item.deaths >= DEATHS:
                item.status, item.error = "failed", (lost.cause, f"{lost}, {DEATHS} times with this stimulus alone")
                self._finish(item)
            else:
                self._suspects.append(item)
        else:
            self._suspects.extend(items)
        if self.stopped is None:
            self._track(self._replace(slot.place))
            self.pump()

    def _deliver(self, slot: _Slot, items: list[AgentRequest], batch: BatchReply, crowded: bool) -> None:
        if batch.limit is not None:
            self.batch_size = min(self.batch_size, batch.limit)
        worker = {"host": slot.worker.host, "device": slot.worker.device, "batch_size": batch.size}
        created, responding = time.time(), round(batch.responding, 6)
        for item, (code, message, raw, sha256, preparing) in zip(items, batch.results, strict=True):
            if item.dropped:
                continue
            item.worker, item.sha256, item.raw, item.created = worker, sha256, raw, created
            item.preparing += preparing
            item.responding += responding
            if code == "out_of_memory" and self.continuous and crowded:
                self.depth = max(1, min(self.depth, (len(slot.calls) + 1) // 2))
                self.submit(item)
                continue
            if code is not None:
                item.status, item.answer, item.error = "failed", None, (code, str(message))
            else:
                assert isinstance(message, bytes)
                item.status, item.answer = "ok", message
                try:
                    if self.agent.filters and self._rejected(item):
                        continue
                except Exception as error:  # a filter is an agent's own code: what it raises fails this item alone
                    item.status, item.answer, item.error = "failed", None, ("filter_failed", describe(error))
            self._finish(item)

    def _rejected(self, item: AgentRequest) -> bool:
        """Run the filters; whether the item has gone back into the queue for its next attempt."""
        stimulus = stimuli.parse_row(item.row)
        model = answers.TurnAnswer if stimulus.task == "conversation" else answers.BY_TASK[stimulus.task]
        assert item.answer is not None
        reply = Reply(model.model_validate_json(item.answer), None if item.raw is None else orjson.loads(item.raw))
        found = [verdict for test in self.agent.filters if (verdict := test(stimulus, reply)) is not None]
        if not found:
            return False
        item.attempts.append(
            item.rejected_attempt([{"filter": v.filter, "rejected": v.rejected, "found": v.found} for v in found])
        )
        if not any(verdict.rejected for verdict in found):
            return False
        if item.attempt + 1 >= self.agent.attempts:
            item.status = "rejected"
            return False
        item.attempt += 1
        self.submit(item)
        return True

    def _finish(self, item: AgentRequest) -> None:
        if self.stopped is not None:
            item.status, item.answer, item.error = "unanswered", None, None
        elif self._breaker is not None and self._breaker.note(item.error[0] if item.error else None):
            code, message = item.error or ("", "")
            count = f"its first {FIRST}" if self._breaker.seen == FIRST else f"{IN_A_ROW} in a row"
            self._put(item)
            self.stop(
                AgentStoppedError(f"agent {self.name} was stopped: {count} answers failed with {code}: {message}")
            )
            return
        self._put(item)

    def _put(self, item: AgentRequest) -> None:
        if item.sink is not None and not item.dropped:
            item.sink.put(item)

    def stop(self, error: AgentStoppedError) -> None:
        """End the agent: its workers are killed, and everything that it still had comes back unanswered."""
        if self.stopped is not None:
            return
        self.stopped = error
        left = [item for slot in self._slots for call in slot.calls.values() for item in call]
        left += [*self._suspects, *self._queue.clear()]
        for slot in self._slots:
            slot.calls.clear()
            slot.lost = True
            slot.worker.kill()
        self._slots.clear()
        self._suspects.clear()
        for item in left:
            item.status = "unanswered"
            self._put(item)

    async def close(self) -> None:
        """End the agent and whatever is still under way for it."""
        self.stop(AgentStoppedError(f"agent {self.name} was ended"))
        if self._timer is not None:
            self._timer.cancel()
        tasks = [task for task in self._tasks if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
