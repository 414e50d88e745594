"""A server's log on stderr, and its Prometheus metrics."""

import logging
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from agents.errors import printable
from serving.http.guard import FinishedRequest
from serving.scheduling.request import Outcome

HEALTH_ROUTES = ("/health", "/metrics", "/ready")  # requested again and again
SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120)
SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
METHODS = frozenset({"GET", "HEAD", "POST", "DELETE", "OPTIONS", "PUT", "PATCH"})


@dataclass(frozen=True, slots=True)
class ServerLog:
    """Lines on stderr; ``quiet`` leaves errors and the address, ``verbose`` adds placements."""

    quiet: bool = False
    verbose: bool = False

    def start(self) -> None:
        """Handle log records; of uvicorn only errors."""
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(_Formatter())
        levels = {"turinglike": logging.ERROR if self.quiet else logging.INFO, "uvicorn": logging.ERROR}
        if self.verbose:
            levels["turinglike.scheduling"] = logging.DEBUG
        for name, level in levels.items():
            logging.getLogger(name).setLevel(level)
        for name in ("turinglike", "uvicorn"):
            logger = logging.getLogger(name)
            logger.handlers = [handler]
            logger.propagate = False

    def say(self, sentence: str) -> None:
        print(printable(sentence), file=sys.stderr, flush=True)

    def progress(self, sentence: str) -> None:
        if not self.quiet:
            self.say(sentence)

    def request(self, request: FinishedRequest) -> None:
        """Log a request unless a successful health check."""
        if (request.route in HEALTH_ROUTES and request.status == 200) or (self.quiet and request.status < 500):
            return
        what = f"{request.status} {request.method[:16]} {request.route or '-'} in {1000 * request.seconds:.0f} ms"
        # Not through logging, which takes longer to find out who calls than to write the line.
        sys.stderr.write(_stamped(f"{what} [{request.request_id}]") + "\n")


def _stamped(text: str) -> str:
    return printable(f"{time.strftime('%H:%M:%S')} {text}")


class _Formatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        about = getattr(record, "about", None)
        if about is None:  # a sentence of a library
            return _stamped(record.getMessage())
        parts = ", ".join(f"{key.replace('_', ' ')}: {value}" for key, value in about.items())
        return _stamped(f"{record.levelname.lower()}: {parts}")


class Metrics:
    def __init__(self, agents: Iterable[str]) -> None:
        self.registry = CollectorRegistry()
        here: dict[str, Any] = {"registry": self.registry}
        timed: dict[str, Any] = {"buckets": SECONDS, **here}
        self._requests = Counter("turinglike_requests", "Requests answered.", ["method", "route", "status"], **here)
        self._latency = Histogram(
            "turinglike_request_seconds", "Seconds from a request's head to its answer's end.", ["route"], **timed
        )
        self._answers = Counter("turinglike_answers", "Answers by status.", ["agent", "status"], **here)
        self._rejections = Counter("turinglike_rejections", "Attempts that a filter rejected.", ["agent"], **here)
        self._not_kept = Counter(
            "turinglike_not_kept", "Answers that their requests kept out of --out.", ["agent"], **here
        )
        self._refused = Counter("turinglike_refused", "Requests refused for a full queue.", ["agent"], **here)
        self._sizes = Histogram("turinglike_batch_size", "Size of an answer's batch.", ["agent"], buckets=SIZES, **here)
        self._waits = Histogram(
            "turinglike_device_wait_seconds", "Seconds that an answer waited for its device.", ["agent"], **timed
        )
        self._agents = tuple(agents)
        for agent in self._agents:  # so that a scrape knows every agent from the start
            for status in ("ok", "rejected", "failed"):
                self._answers.labels(agent, status)
            self._rejections.labels(agent)
            self._refused.labels(agent)
            self._not_kept.labels(agent)

    def watch(self, waiting: Callable[[str], int], is_ready: Callable[[str], bool]) -> None:
        queue = Gauge("turinglike_queue", "Answers under way or waiting.", ["agent"], registry=self.registry)
        ready = Gauge("turinglike_agent_ready", "1 if the agent is loaded.", ["agent"], registry=self.registry)
        for agent in self._agents:
            queue.labels(agent).set_function(partial(waiting, agent))
            ready.labels(agent).set_function(partial(is_ready, agent))

    def ended(self, request: FinishedRequest) -> None:
        """Count a request; unknown paths share a label."""
        route = request.route or "none"
        method = request.method if request.method in METHODS else "other"
        self._requests.labels(method, route, str(request.status)).inc()
        self._latency.labels(route).observe(request.seconds)

    def answered(self, outcome: Outcome) -> None:
        """Count an answer, or a failure of one."""
        agent = outcome.request.agent
        self._answers.labels(agent, outcome.status).inc()
        rejected = sum(attempt.is_rejected for attempt in outcome.attempts)
        if rejected:
            self._rejections.labels(agent).inc(rejected)
        self._sizes.labels(agent).observe(outcome.worker.batch_size if outcome.worker else 1)
        self._waits.labels(agent).observe(outcome.timing.waiting)

    def unanswered(self, agent: str) -> None:
        """Count a late answer, or a stopped agent's."""
        self._answers.labels(agent, "failed").inc()

    def refused(self, agent: str) -> None:
        self._refused.labels(agent).inc()

    def not_kept(self, agent: str) -> None:
        self._not_kept.labels(agent).inc()

    def text(self) -> bytes:
        return generate_latest(self.registry)
