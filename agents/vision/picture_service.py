"""What agents that ask a company's service about a picture have in common, as the papers asked three such services.

Each uses the company's own Python client, with the retries and the waits that it has. The papers take the first three
labels as they come, in small letters (kreimanlab/TuringTest, objectDetection/Feedback_Obj/compile_responses.ipynb).
Nobody outside knows which model stands behind a service on a given day; a record keeps what the service says of it.
"""

from __future__ import annotations

import asyncio
import os
import threading
from abc import abstractmethod
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any, ClassVar, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from agents.answers import ObjectAnswer
from agents.contract import GIB, NO_ANSWER, Agent, Draw, Reply, Settings
from agents.errors import AnswerError, UnavailableError, quoted
from agents.stimuli import Stimulus, Task

LABELS = 3  # how many of a service's labels the papers take


class ServiceSettings(Settings):
    """How patiently a service is asked."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    concurrency: int = Field(8, ge=1, le=1000, json_schema_extra=NO_ANSWER)
    """How many requests one worker has under way at once."""
    timeout_s: float = Field(60.0, gt=0, le=3600, json_schema_extra=NO_ANSWER)
    """How long the service may be silent in one try, in seconds."""


class RetrySettings(ServiceSettings):
    """As for every service, and how often its client asks again."""

    retries: int = Field(6, ge=0, le=100, json_schema_extra=NO_ANSWER)
    """How often a request is tried again; the waits between tries are those of the service's client."""


@dataclass(frozen=True, slots=True)
class Picture:
    """A stimulus's picture as it is sent: ``data`` as it is or as a PNG (``image``: "original" or "png")."""

    task: Task
    data: bytes
    image: str


S = TypeVar("S", bound=ServiceSettings)


class PictureService(Agent[S]):
    """Base: a subclass connects, asks, and says what an error of its client means.

    Keys are in the environment only (:attr:`keys`), and are cleared from what a service says. A client is used by one
    thread alone. Requests that are under way when a run is stopped end with the worker.
    """

    extra = "cloud"
    memory = 1 * GIB  # photographs that are decoded to be looked at
    parallel = False
    service: ClassVar[str]
    distribution: ClassVar[str]
    keys: ClassVar[tuple[str, ...]]
    formats: ClassVar[tuple[str, ...]]

    def __init__(self, settings: S, name: str) -> None:
        super().__init__(settings, name)
        self.max_in_flight = settings.concurrency
        self._threads = ThreadPoolExecutor(settings.concurrency, thread_name_prefix=name)
        self._thread = threading.local()
        self._connecting = threading.Lock()

    def environment(self) -> tuple[str, ...]:
        return self.keys

    def missing(self) -> str | None:
        unset = [key for key in self.required_keys() if not os.environ.get(key, "").strip()]
        if unset:
            return (
                f"{self.service} wants a key, and the environment variable {unset[0]} holds none: set it where the "
                "agent runs (before Ray is started there, if --address names a cluster)"
            )
        return self.missing_packages()

    def required_keys(self) -> Sequence[str]:
        return self.keys

    def load(self, device: str) -> None:
        missing = self.missing()
        if missing is not None:
            raise UnavailableError(missing)

    def prepare(self, stimulus: Stimulus) -> Picture:
        """Raises ImageError."""
        data, image, _ = stimulus.image.sendable(self.formats)  # type: ignore[union-attr]
        return Picture(stimulus.task, data, image)

    async def respond_one(self, prepared: Picture, draw: Draw) -> Reply:
        """The service's answer. Raises AnswerError.

        It is raised outside of the handler: an error of a client's may hold the request and its headers, and must not
        be the context of ours.
        """
        try:
            answer, raw = await asyncio.get_running_loop().run_in_executor(self._threads, self._ask, prepared)
            return Reply(answer, {**raw, "image": prepared.image})
        except AnswerError:
            raise
        except Exception as error:  # the clients' errors have no base in common; those that they do not know go on
            found = self.failure(error)
            if found is None:
                raise
        code, message = found
        secrets = [os.environ.get(key, "").strip() for key in self.keys]
        raise AnswerError(code, f"{self.service}: {quoted(message, secrets)}")

    def provenance(self) -> dict[str, Any]:
        return {self.distribution: version(self.distribution)}

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _ask(self, picture: Picture) -> tuple[BaseModel, dict[str, Any]]:
        client = getattr(self._thread, "client", None)
        if client is None:
            with self._connecting:  # clients are not made by two threads at once
                client = self._thread.client = self.connect()
        return self.ask(client, picture)

    @abstractmethod
    def connect(self) -> Any:
        """A client, made from the settings and the environment."""

    @abstractmethod
    def ask(self, client: Any, picture: Picture) -> tuple[BaseModel, dict[str, Any]]:
        """(the answer, what else the service said) about one picture. Raises errors of the client, and AnswerError."""

    @abstractmethod
    def failure(self, error: Exception) -> tuple[str, str] | None:
        """(code, message) of an error of the client's; None if it is none of them."""


def given(part: Any, what: str) -> Any:
    """A part of a service's reply. Raises AnswerError if the reply has none."""
    if part is None:
        raise AnswerError("server_bad_reply", f"the reply holds no {what}")
    return part


def first_labels(said: Sequence[tuple[str, float]]) -> ObjectAnswer:
    """The first of the service's (label, score between 0 and 1), as many as the papers take, in small letters."""
    kept = said[:LABELS]
    return ObjectAnswer(labels=[label.lower() for label, _ in kept], scores=[round(score, 4) for _, score in kept])
