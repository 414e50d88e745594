"""A server's log on stderr, and its metrics for Prometheus. Neither holds anything that people or agents say."""

import json
import logging
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from agents.errors import printable
from serving.files.timestamps import now
from serving.http.guard import FinishedRequest
from serving.scheduling.request import Outcome

HEALTH_ROUTES = ("/health", "/metrics", "/ready")  # programs ask for these again and again
# the upper bounds of the histograms' buckets
SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120)
SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
# Any other word that a client sends as a method counts as "other": it would be a label of its own for ever.
METHODS = frozenset({"GET", "HEAD", "POST", "DELETE", "OPTIONS", "PUT", "PATCH"})


@dataclass(frozen=True, slots=True)
class ServerLog:
    """The server's lines on stderr."""

    quiet: bool = False
    """Only errors and the address."""
    verbose: bool = False
    """Also where agents are placed, their batches, and lost workers."""
    form: Literal["text", "json"] = "text"
    """Lines for people, or a JSON object on each line, with ``time``, ``level`` and ``event``."""

    def start(self) -> None:
        """Let Python's log records of this program, and uvicorn's errors, become such lines."""
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(_JsonFormatter() if self.form == "json" else _TextFormatter())
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
        """Print a sentence, also when ``quiet``."""
        line = printable(sentence)
        if self.form == "json":
            line = _json_line("info", "server", {"message": sentence})
        print(line, file=sys.stderr, flush=True)

    def progress(self, sentence: str) -> None:
        """Print a sentence about what goes on, unless ``quiet``."""
        if not self.quiet:
            self.say(sentence)

    def request(self, request: FinishedRequest) -> None:
        """Print a line for a request: not for a health check that went well, and, if ``quiet``, only for the server's
        own faults (from status 500)."""
        if (request.route in HEALTH_ROUTES and request.status == 200) or (self.quiet and request.status < 500):
            return
        method = request.method[:16]
        milliseconds = 1000 * request.seconds
        if self.form == "json":
            about = {
                "request_id": request.request_id,
                "method": method,
                "route": request.route,
                "status": request.status,
                "ms": round(milliseconds, 2),
            }
            line = _json_line("info", "request", about)
        else:
            text = f"{request.status} {method} {request.route or '-'} in {milliseconds:.0f} ms"
            line = _stamped(f"{text} [{request.request_id}]")
        # Not through logging, which takes longer to find out who calls than to write the line.
        sys.stderr.write(line + "\n")


def _stamped(text: str) -> str:
    return printable(f"{time.strftime('%H:%M:%S')} {text}")


def _json_line(level: str, event: str, about: Mapping[str, Any]) -> str:
    # Escaped beyond ASCII: halves of characters are legal then, and no terminal obeys what is written.
    return json.dumps({"time": now(), "level": level, "event": event, **about})


class _TextFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        fields = getattr(record, "about", None)
        if fields is None:  # a sentence of a library
            return _stamped(record.getMessage())
        parts = ", ".join(f"{key.replace('_', ' ')}: {value}" for key, value in fields.items())
        return _stamped(f"{record.levelname.lower()}: {parts}")


class _JsonFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        level = record.levelname.lower()
        fields = getattr(record, "about", None)
        if fields is None:  # a sentence of a library, which is named by its logger
            return _json_line(level, record.name.rpartition(".")[2], {"message": record.getMessage()})
        return _json_line(level, record.getMessage(), fields)


class Metrics:
    """Counts of requests and answers, by agent. ``agents`` are the names of all that are served."""

    def __init__(self, agents: Iterable[str]) -> None:
        self.registry = CollectorRegistry()
        own: dict[str, Any] = {"registry": self.registry}
        timed: dict[str, Any] = {"buckets": SECONDS, **own}
        self._requests = Counter("turinglike_requests", "Requests answered.", ["method", "route", "status"], **own)
        self._latency = Histogram(
            "turinglike_request_seconds", "Seconds from a request's head to its answer's end.", ["route"], **timed
        )
        self._answers = Counter("turinglike_answers", "Answers by status.", ["agent", "status"], **own)
        self._rejections = Counter("turinglike_rejections", "Attempts that a filter rejected.", ["agent"], **own)
        self._not_kept = Counter(
            "turinglike_not_kept", "Answers that their requests kept out of --out.", ["agent"], **own
        )
        self._refused = Counter("turinglike_refused", "Requests refused for a full queue.", ["agent"], **own)
        self._sizes = Histogram("turinglike_batch_size", "Size of an answer's batch.", ["agent"], buckets=SIZES, **own)
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
        """Measure at each scrape how many answers of an agent are unfinished, and whether it is loaded."""
        queue = Gauge("turinglike_queue", "Answers under way or waiting.", ["agent"], registry=self.registry)
        ready = Gauge("turinglike_agent_ready", "1 if the agent is loaded.", ["agent"], registry=self.registry)
        for agent in self._agents:
            queue.labels(agent).set_function(partial(waiting, agent))
            ready.labels(agent).set_function(partial(is_ready, agent))

    def ended(self, request: FinishedRequest) -> None:
        """Count a request and its time; all paths without a route share a label."""
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
        """Count as failed an answer that came too late, or whose agent has stopped."""
        self._answers.labels(agent, "failed").inc()

    def refused(self, agent: str) -> None:
        """Count a request that was refused because the agent's queue is full."""
        self._refused.labels(agent).inc()

    def not_kept(self, agent: str) -> None:
        """Count an answer of which, as its request asked, no record is kept."""
        self._not_kept.labels(agent).inc()

    def text(self) -> bytes:
        """All counts in Prometheus's text form."""
        return generate_latest(self.registry)
