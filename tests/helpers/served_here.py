"""A service whose workers are in this process, and its application: no Ray, no sockets, any agent and any limits."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
import openai

from agents import catalogue
from serving.http.conversations import OpenConversations
from serving.http.guard import Guard, Rules
from serving.http.kept_records import kept_records
from serving.http.server import create_app
from serving.http.service import ServeOptions, Service
from serving.runs.run_json import run_entry
from serving.scheduling.dispatch import Dispatcher
from serving.scheduling.worker import Worker, WorkerSpec
from tests.helpers.in_process import InProcess


class ServiceHere(Service):
    """A service with one worker per agent, in this process."""

    async def start_workers(self, say: Callable[[str], None]) -> None:
        """There are none to start."""

    async def load(self, name: str) -> None:
        worker = Worker(WorkerSpec(self.options.entries[name], self.options.settings[name], "/"))
        dispatcher = Dispatcher(self.agents[name], lambda number: InProcess(worker), breaker=False)
        self.scheduler.dispatchers[dispatcher.name] = dispatcher
        await dispatcher.start()

    async def close(self) -> None:
        await super().close()
        await self.scheduler.close()


@dataclass
class Here:
    """The service, its application and a client of it."""

    service: Service
    app: Guard
    client: httpx2.AsyncClient
    asked: asyncio.Event = field(default_factory=asyncio.Event)  # by who will hang up
    leave: asyncio.Event = field(default_factory=asyncio.Event)  # when that is to be
    sent: list[Any] = field(default_factory=list)  # to them, of bodies

    def openai(self, **chosen: Any) -> openai.AsyncOpenAI:
        """The package's client, unchanged."""
        told = {"base_url": "http://localhost/v1", "api_key": "none", "max_retries": 0, **chosen}
        return openai.AsyncOpenAI(http_client=self.client, **told)

    async def post(self, path: str, content: Any) -> tuple[int, Any]:
        """Status and body."""
        answer = await self.client.post(path, json=content)
        return answer.status_code, answer.json()

    async def hang_up(self, path: str, body: bytes) -> list[Any]:
        """Post, and go away once an agent is asked; what is sent to nobody."""
        sent: list[Any] = []
        left = [{"type": "http.request", "body": body, "more_body": False}]

        async def receive() -> Any:
            if left:
                return left.pop()
            while not any(self.service.waiting().values()):
                await asyncio.sleep(0.001)
            self.asked.set()
            await self.leave.wait()
            return {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            sent.append(message)
            self.sent += [message] if message.get("body") else []

        headers = [(b"host", b"localhost"), (b"content-type", b"application/json")]
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": "POST",
            "scheme": "http",
            "path": path,
            "raw_path": path.encode(),
            "query_string": b"",
            "headers": headers,
            "root_path": "",
        }
        await self.app(scope, receive, send)
        return sent


@asynccontextmanager
async def serve(
    settings: Mapping[str, Mapping[str, Any]],
    *,
    rules: Rules | None = None,
    kept: OpenConversations | None = None,
    out: Path | None = None,
    **options: Any,
) -> AsyncIterator[Here]:
    """Serve the agents that ``settings`` has, with these; their records are kept in ``out``."""
    entries = {name: catalogue.get(name) for name in settings}
    agents = {name: entry.make(settings[name]) for name, entry in entries.items()}
    chosen = ServeOptions(entries=entries, settings=settings, **options)
    described = {name: run_entry([(entries[name], agent)]) for name, agent in agents.items()}
    async with AsyncExitStack() as held:
        records = None
        if out is not None:
            records = held.enter_context(kept_records(out, chosen.seed, described))
            records.start()
            held.push_async_callback(records.close)
        service = ServiceHere(chosen, agents, records)
        held.push_async_callback(service.close)
        await service.start()
        while any(about["state"] == "loading" for about in service.states().values()):
            await asyncio.sleep(0.001)
        app = create_app(service, rules or Rules(), kept=kept)
        async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url="http://localhost") as client:
            yield Here(service, app, client)


def here(work: Callable[[Here], Awaitable[Any]], settings: Any = None, **options: Any) -> Any:
    """What ``work`` gives with such a service, by default of the no-op agent."""

    async def main() -> Any:
        async with serve(settings or {"null": {}}, **options) as found:
            return await work(found)

    return asyncio.run(main())


def code(answer: tuple[int, Any]) -> tuple[int, str]:
    """Status and code of an error."""
    status, body = answer
    return status, body["error"]["code"]
