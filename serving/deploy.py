"""The server on a Ray cluster, as an application of Ray Serve. ::

    serve run serving.deploy:app agents=mmcq,gbvs replicas=2 hosts=gpu-node,gpu-node.example.org

One replica of Ray Serve takes the requests, with the one scheduler; each agent has ``replicas`` workers wherever the
cluster has room. The key is read from TURINGLIKE_API_KEY where Ray was started, and always needed: Ray Serve listens
where its own options say. The limits on connections and on slow heads are Ray Serve's. Settings as on the command line:
``set`` is "AGENT.FIELD=VALUE", several parted by newlines; ``config`` a TOML file.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, Field
from ray import serve
from ray.serve import Application

from agents.errors import InputError

if TYPE_CHECKING:
    from serving.http.service import Service


class Arguments(BaseModel):
    """What may follow ``serve run serving.deploy:app``."""

    model_config = ConfigDict(extra="forbid")

    agents: str = Field(min_length=1)
    """Names, parted by commas."""
    replicas: int = Field(1, ge=1)
    """Workers of each agent."""
    hosts: str = ""
    """Names under which others reach this server, parted by commas."""
    set: str = ""
    """Settings, one a line."""
    config: str = ""
    """A TOML file of settings, there for every node."""
    seed: int = Field(0, ge=0, lt=2**53)
    """For requests that give none."""
    queue: int = Field(256, ge=1)
    """Answers of one agent at once."""
    deadline: float = Field(120.0, gt=0)
    """Seconds for one answer."""
    batch_size: int | None = Field(None, ge=1)
    """Instead of each agent's own."""


@serve.deployment(name="turinglike", num_replicas=1, max_ongoing_requests=1024)
@serve.ingress()
class Server:
    """The web application with its own scheduler and workers."""

    _service: Service | None = None

    async def __init__(self, given: dict[str, Any]) -> None:  # type: ignore[misc]  # Ray Serve awaits it
        from agents.selection import checked_agents, read_names, resolve
        from serving.http.app import create_app
        from serving.http.guard import LOOPBACK, Rules
        from serving.http.service import ServeOptions, Service
        from serving.serve import read_key

        chosen = Arguments.model_validate(given)
        names = read_names("agents", chosen.agents, "served")
        config = Path(chosen.config) if chosen.config else None
        entries, settings = resolve(names, chosen.set.splitlines(), config)
        hosts = frozenset(name.lower() for name in chosen.hosts.split(",") if name)
        key = read_key(None)
        if key is None:  # Ray Serve listens where its own options say, which is not known here
            raise InputError("a server on Ray Serve needs a key: set TURINGLIKE_API_KEY where Ray is started")
        options = ServeOptions(
            entries, settings, **chosen.model_dump(include={"seed", "replicas", "batch_size", "queue", "deadline"})
        )
        self._service = Service(options, checked_agents(entries, settings))
        self._app = create_app(self._service, Rules(LOOPBACK | hosts, key))
        await self._service.start()

    def __serve_build_asgi_app__(self) -> Any:
        return self._app

    async def __del__(self) -> None:
        """Ray Serve's hook for the end of a replica, called when what was under way is answered. What takes longer than
        Ray Serve's ``graceful_shutdown_timeout_s`` is not waited for: replica and workers are killed."""
        if self._service is not None:
            await self._service.close()


def app(arguments: dict[str, Any]) -> Application:
    """The application for ``serve run`` and ``serve.run``, with :class:`Arguments` by their names. Raises pydantic's
    ValidationError."""
    return Server.bind(Arguments.model_validate(arguments).model_dump())  # type: ignore[attr-defined, no-any-return]
