"""What a server counts, in Prometheus's form. Labels are routes and the served agents, so their number is bounded."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from serving.http.guard import FinishedRequest
from serving.scheduling.request import AgentRequest

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120)
SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
METHODS = frozenset({"GET", "HEAD", "POST", "DELETE", "OPTIONS", "PUT", "PATCH"})
WEIGHT = 0.1  # of the newest answer in the running mean of seconds per answer


class Metrics:
    """Counts of one server."""

    def __init__(self, agents: Iterable[str]) -> None:
        self.registry = CollectorRegistry()
        self._requests = Counter(
            "turinglike_requests", "Requests answered.", ["method", "route", "status"], registry=self.registry
        )
        self._latency = Histogram(
            "turinglike_request_seconds", "Seconds from a request's head to its answer's end.", ["route"],
            buckets=SECONDS, registry=self.registry,
        )  # fmt: skip
        self._answers = Counter("turinglike_answers", "Answers by status.", ["agent", "status"], registry=self.registry)
        self._attempts = Counter(
            "turinglike_rejections", "Attempts that a filter rejected.", ["agent"], registry=self.registry
        )
        self._refused = Counter(
            "turinglike_refused", "Requests refused for a full queue.", ["agent"], registry=self.registry
        )
        self._sizes = Histogram(
            "turinglike_batch_size", "Size of an answer's batch.", ["agent"], buckets=SIZES, registry=self.registry
        )
        self._waits = Histogram(
            "turinglike_device_wait_seconds", "Seconds that an answer waited for its device.", ["agent"],
            buckets=SECONDS, registry=self.registry,
        )  # fmt: skip
        self._seconds = dict.fromkeys(agents, 0.0)
        for agent in self._seconds:  # so that a scrape knows every agent from the start
            for status in ("ok", "rejected", "failed"):
                self._answers.labels(agent, status)
            self._attempts.labels(agent)
            self._refused.labels(agent)

    def watch(self, waiting: Callable[[str], int], is_ready: Callable[[str], bool]) -> None:
        """Tell of each agent's queue and readiness too, by these functions, whenever somebody reads the metrics."""
        queue = Gauge("turinglike_queue", "Answers under way or waiting.", ["agent"], registry=self.registry)
        ready = Gauge("turinglike_agent_ready", "1 if the agent is loaded.", ["agent"], registry=self.registry)
        for agent in self._seconds:
            queue.labels(agent).set_function(partial(waiting, agent))
            ready.labels(agent).set_function(partial(is_ready, agent))

    def ended(self, request: FinishedRequest) -> None:
        """Count a request; paths that no route has are one."""
        route = request.route or "none"
        method = request.method if request.method in METHODS else "other"
        self._requests.labels(method, route, str(request.status)).inc()
        self._latency.labels(route).observe(request.seconds)

    def answered(self, agent: str, item: AgentRequest) -> None:
        """Count an answer."""
        self._answers.labels(agent, item.status).inc()
        rejected = sum(any(verdict["rejected"] for verdict in one["verdicts"]) for one in item.attempts)
        if rejected:
            self._attempts.labels(agent).inc(rejected)
        size = int(item.worker["batch_size"]) if item.worker else 1
        self._sizes.labels(agent).observe(size)
        self._waits.labels(agent).observe(item.waiting)
        each = item.responding / max(size, 1)
        self._seconds[agent] += WEIGHT * (each - self._seconds[agent])

    def unanswered(self, agent: str) -> None:
        """Count an answer that did not come in time, or not at all since its agent stopped."""
        self._answers.labels(agent, "failed").inc()

    def refused(self, agent: str) -> None:
        """Count a request for which the queue was full."""
        self._refused.labels(agent).inc()

    def seconds_per_answer(self, agent: str) -> float:
        """How long the device takes for one answer, lately."""
        return self._seconds[agent]

    def text(self) -> bytes:
        """All of it in the text form."""
        return generate_latest(self.registry)
