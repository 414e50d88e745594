"""An agent's dispatcher: forms batches of requests, sends them to workers, delivers the answers. A batch leaves when it
is full, or when its oldest request has waited :data:`LINGER` seconds and a worker is idle."""

import asyncio
import heapq
import itertools
import logging
from collections import deque
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import orjson

from agents import answers
from agents.contract import Agent, Declaration, Reply
from agents.errors import AgentStoppedError
from serving.files.timestamps import now
from serving.scheduling.batch import BatchReply, PackedReply
from serving.scheduling.ray_workers import RemoteWorker
from serving.scheduling.recovery import (
    DEATHS,
    LONGEST_PAUSE,
    RELOADS,
    CircuitBreaker,
    WorkerLost,
    describe_error,
    one_line,
)
from serving.scheduling.request import Failure, Outcome, OutcomeStatus, Timing, Where
from serving.scheduling.server_replies import ServerReplies
from serving.scheduling.tasks import cancel
from serving.scheduling.this_process import LocalWorker
from serving.scheduling.under_way import UnderWay
from serving.sets.kinds import Kind

LINGER = 0.004
MACHINES_CONVERSE: Kind = ("conversation", None)
log = logging.getLogger("turinglike.scheduling")


ReplicaWorker = RemoteWorker | LocalWorker


@dataclass(slots=True, eq=False)
class _Replica:
    worker: ReplicaWorker
    number: int  # its replacement gets the same
    in_flight: list[list[UnderWay]] = field(default_factory=list)
    has_suspect: bool = False  # answers a suspect, and takes nothing beside it


class Dispatcher:
    """The queue of one agent, and the workers that empty it."""

    def __init__(
        self,
        agent: Agent[Any],
        make_worker: Callable[[int], ReplicaWorker],
        *,
        batch_size: int | None = None,
        timeout: float = 600.0,
        load_timeout: float = 1800.0,
        breaker: bool = True,
    ) -> None:
        """``make_worker`` makes an unstarted worker for a replica's number, from 0. ``timeout`` of a batch and
        ``load_timeout`` are in seconds. With ``breaker`` the agent stops after many failures."""
        self.name = agent.name
        self.agent = agent
        self.declared = agent.declaration()
        self.continuous = self.declared.batches_by_itself
        self.batch_size = 1 if self.continuous else batch_size or self.declared.batch_size
        self.max_in_flight = self.declared.max_in_flight if self.continuous else 2  # batches in hand of a worker
        self.timeout = timeout
        self.load_timeout = load_timeout
        self.provenance: dict[str, Any] | None = None
        self.stopped: AgentStoppedError | None = None
        self.responding_s: dict[int, float] = {}
        """Seconds in which workers called the agent, by the worker's number; calls at once are summed."""
        self.threads = 1
        """The threads of a worker that prepare stimuli."""
        self._make_worker = make_worker
        self._queue: list[tuple[int, int, UnderWay]] = []  # a heap: order, number of arrival, request
        self._arrivals = itertools.count()
        self._suspects: deque[UnderWay] = deque()
        self._replicas: list[_Replica] = []
        self._breaker = CircuitBreaker() if breaker else None
        self._server_replies = ServerReplies(agent.name)
        self._tasks: set[asyncio.Task[None]] = set()
        self._timer: asyncio.TimerHandle | None = None

    @property
    def queued(self) -> int:
        """The requests that no worker has in hand."""
        return len(self._queue) + len(self._suspects)

    @property
    def loaded_workers(self) -> int:
        """The workers that can answer now."""
        return len(self._replicas)

    @property
    def window(self) -> int:
        """How many queued requests keep the workers busy."""
        return 2 * max(self.batch_size, self.max_in_flight) * max(1, len(self._replicas))

    # workers

    async def start(self, replicas: int = 1) -> None:
        """Load the agent into ``replicas`` workers. Raises AgentStoppedError."""
        try:
            async with asyncio.TaskGroup() as group:
                for number in range(replicas):
                    group.create_task(self._start_replica(number))
        except ExceptionGroup as errors:
            if isinstance(error := errors.exceptions[0], AgentStoppedError):
                self.stop(error)
            raise error from None

    async def _start_replica(self, number: int) -> None:
        if self.stopped is not None:
            return
        worker = self._make_worker(number)
        provenance = await worker.start(self.load_timeout)
        log.debug("%s: worker %d is loaded on %s, %s", self.name, number, worker.host, worker.device)
        self.provenance = self.provenance or provenance
        if self.stopped is not None:
            worker.kill()
            return
        replica = _Replica(worker, number)
        self.responding_s.setdefault(number, 0.0)
        self._replicas.append(replica)
        self._run_in_background(self._watch(replica))
        self.dispatch()

    async def _watch(self, replica: _Replica) -> None:
        self._lose(replica, await replica.worker.died())

    async def _replace(self, lost: _Replica) -> None:
        pause = 1.0
        for attempt in itertools.count(1):
            try:
                await self._start_replica(lost.number)
                return
            except AgentStoppedError as error:
                if attempt == RELOADS and self._breaker is not None:
                    if not self._replicas:
                        self.stop(error)
                    return
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)

    # requests to workers

    def submit(self, request: UnderWay) -> None:
        """Put a request into the queue; it leaves with :meth:`dispatch`."""
        if self.stopped is not None:
            _end(request, "unanswered")
            return
        request.queued_at = asyncio.get_running_loop().time()
        heapq.heappush(self._queue, (request.order, next(self._arrivals), request))

    def dispatch(self) -> None:
        """Send as many batches as workers take now."""
        while self.stopped is None and self._replicas:
            replica = min(self._replicas, key=lambda replica: (self._is_full(replica), len(replica.in_flight)))
            if self._is_full(replica):
                return
            if self._suspects:
                if replica.in_flight:
                    return
                batch = [self._suspects.popleft()]
                replica.has_suspect = True
            elif self._has_batch(replica):
                number = min(self.batch_size, len(self._queue))
                batch = [heapq.heappop(self._queue)[2] for _ in range(number)]
            else:
                return
            if batch := [request for request in batch if not request.is_cancelled]:
                replica.in_flight.append(batch)
                self._run_in_background(self._call(replica, batch))
            else:
                replica.has_suspect = False

    def _is_full(self, replica: _Replica) -> bool:
        return replica.has_suspect or len(replica.in_flight) >= self.max_in_flight

    def _has_batch(self, replica: _Replica) -> bool:
        if not self._queue or len(self._queue) >= self.batch_size:
            return bool(self._queue)
        if replica.in_flight:
            return False  # the device is busy: let the batch grow
        loop = asyncio.get_running_loop()
        left = self._queue[0][2].queued_at + LINGER - loop.time()
        if left > 0 and self._timer is None:
            self._timer = loop.call_later(left, self._end_lingering)
        return left <= 0

    def _end_lingering(self) -> None:
        self._timer = None
        self.dispatch()

    def _run_in_background(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._end_task)

    def _end_task(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self.stop(AgentStoppedError(f"agent {self.name} was stopped by an internal error: {describe_error(error)}"))

    async def _call(self, replica: _Replica, batch: list[UnderWay]) -> None:
        sent_at = asyncio.get_running_loop().time()
        for request in batch:
            request.waiting += sent_at - request.queued_at
        packed = [request.packed() for request in batch]
        listeners = {place: under.listen for place, under in enumerate(batch) if under.request.listener is not None}
        # A worker answers its batches in turn: the time of those ahead does not count.
        ahead = 0 if self.continuous else len(replica.in_flight) - 1
        try:
            reply = await replica.worker.call(packed, self.timeout * (1 + ahead), listeners)
        except WorkerLost as lost:
            self._lose(replica, lost)
            return
        except Exception as error:  # of the call itself: a reply that cannot be sent between processes, say
            failed = PackedReply("worker_failed", one_line(error))
            reply = BatchReply([failed] * len(batch), 0.0, len(batch))
        if replica in self._replicas:
            replica.in_flight.remove(batch)
            replica.has_suspect = False
            self._deliver(replica, batch, reply)
        self.dispatch()

    def _lose(self, replica: _Replica, lost: WorkerLost) -> None:
        if replica not in self._replicas:
            return  # another call of the same worker saw it first
        self._replicas.remove(replica)
        replica.worker.kill()
        log.debug("%s: worker %d is lost: %s: %s", self.name, replica.number, lost.cause, lost)
        requests = [request for batch in replica.in_flight for request in batch]
        replica.in_flight.clear()
        if lost.cause == "out_of_memory" and len(requests) > 1:
            self.batch_size = max(1, self.batch_size // 2)
            self.max_in_flight = max(1, self.max_in_flight // 2)
            for request in requests:
                self.submit(request)
        else:
            if len(requests) == 1:
                requests[0].deaths += 1
            for request in requests:
                if request.deaths < DEATHS:
                    self._suspects.append(request)
                else:
                    self._fail(request, Failure(lost.cause, f"{lost}, {DEATHS} times with this stimulus alone"))
        if self.stopped is None:
            self._run_in_background(self._replace(replica))
            self.dispatch()

    # answers to whoever waits for them

    def _deliver(self, replica: _Replica, batch: list[UnderWay], reply: BatchReply) -> None:
        if reply.limit is not None and reply.limit < self.batch_size:
            self.batch_size = reply.limit
            log.debug("%s: batches of %d from now on: more is too much for its memory", self.name, reply.limit)
        worker = Where(replica.worker.host, replica.worker.device, reply.size)
        created = now()
        responding = round(reply.responding, 6)
        self.responding_s[replica.number] += responding
        for request, packed in zip(batch, reply.replies, strict=True):
            if request.is_cancelled:
                continue
            request.take(packed, responding, worker, created)
            if packed.code == "out_of_memory" and self.continuous and self.max_in_flight > 1:
                self.max_in_flight = max(1, min(self.max_in_flight, (len(replica.in_flight) + 1) // 2))
                self.submit(request)
            elif packed.code is not None:
                self._fail(request, Failure(packed.code, str(packed.content)))
            else:
                self._judge(request)

    def _judge(self, request: UnderWay) -> None:
        """Let the filters see an answer: it is delivered, or tried again."""
        is_rejected = False
        if self.declared.filters:
            try:
                is_rejected = _is_rejected(request, self.declared)
            except Exception as error:  # a filter is an agent's own code: what it raises fails this request alone
                self._fail(request, Failure("filter_failed", describe_error(error)))
                return
        if is_rejected and request.attempt + 1 < self.declared.attempts:
            request.attempt += 1
            self.submit(request)
        elif is_rejected:
            self._finish(request, "rejected")
        elif _lacks_text(request) and not getattr(self.agent, "random", False):
            self._fail(request, Failure("no_text", "the answer is empty"))
        else:
            self._finish(request, "ok")

    def _fail(self, request: UnderWay, error: Failure) -> None:
        self._finish(request, "failed", error)

    def _finish(self, request: UnderWay, status: OutcomeStatus, error: Failure | None = None) -> None:
        if self.stopped is not None:
            _end(request, "unanswered")
            return
        self._server_replies.note(request)
        _end(request, status, error)
        if self._breaker is not None:
            code, message = error or (None, "")
            if why := self._breaker.note(code, request.request.failed_before):
                self.stop(AgentStoppedError(f"agent {self.name} was stopped: {why}: {message}"))

    def stop(self, error: AgentStoppedError) -> None:
        """End the agent: workers are killed, and open requests come back unanswered."""
        if self.stopped is not None:
            return
        self.stopped = error
        left: list[UnderWay] = []
        for replica in self._replicas:
            left += chain.from_iterable(replica.in_flight)
        left += [*self._suspects, *(request for _, _, request in sorted(self._queue))]
        for replica in self._replicas:
            replica.worker.kill()
        self._replicas.clear()
        self._suspects.clear()
        self._queue.clear()
        for request in left:
            _end(request, "unanswered")

    async def close(self) -> None:
        """End the agent, and wait for what still runs."""
        self.stop(AgentStoppedError(f"agent {self.name} was ended"))
        if self._timer is not None:
            self._timer.cancel()
        await cancel(*(task for task in self._tasks if task is not asyncio.current_task()))


def _end(request: UnderWay, status: OutcomeStatus, error: Failure | None = None) -> None:
    """Make the outcome and deliver it, if somebody waits for it. A failure has no answer."""
    if request.is_cancelled:
        return
    reply = request.reply
    outcome = Outcome(  # by position, in the order of its fields: by keywords it takes twice as long
        request.request,
        status,
        request.seed,
        request.number,
        request.answer if status in ("ok", "rejected") else None,
        reply.raw,
        error,
        reply.sha256,
        request.attempts,
        Timing(request.waiting, request.preparing, request.responding),
        request.worker,
        request.created,
    )
    request.deliver(request, outcome)


def _is_rejected(request: UnderWay, declared: Declaration) -> bool:
    """Whether a filter rejects the last answer; what filters note is kept."""
    stimulus = request.request.row.parsed()
    model = answers.TurnAnswer if stimulus.task == "conversation" else answers.BY_TASK[stimulus.task]
    raw = request.reply.raw
    reply = Reply(model.model_validate_json(request.answer or b""), None if raw is None else orjson.loads(raw))
    findings = [look(stimulus, reply) for look in declared.filters]
    noted = tuple(finding for finding in findings if finding is not None)
    return bool(noted) and request.note(noted).is_rejected


def _lacks_text(request: UnderWay) -> bool:
    """Whether an answer that must have text has none. Turns between machines are left to the conversation's filters,
    and what is written of a pseudo-dialogue to its reader."""
    if not request.reply.is_blank:
        return False
    asked = request.request
    is_of_dialogue = asked.row.kind == MACHINES_CONVERSE or "pseudo" in (asked.options or {})
    return not is_of_dialogue
