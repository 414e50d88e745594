"""Machines of a study on this machine, where the environment names a proxy: a real one that must see nothing."""

import asyncio
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from agents.loopback import is_loopback
from judging.study.meetings.agent_server import AgentClient, served_agents

AGENTS = {"agents": [{"name": "eliza", "tasks": ["conversation"]}]}
ANSWER = {"answer": {"messages": [{"text": "hello"}]}, "error": None}


@contextmanager
def _listening() -> Iterator[tuple[int, list[str]]]:
    """A server that answers as `turinglike serve` does; its port, and the targets of what it was asked."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._send(AGENTS)

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            self._send(ANSWER)

        def _send(self, value: Any) -> None:
            asked.append(self.path)
            body = json.dumps(value).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server.server_address[1], asked
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.mark.parametrize("variable", ["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"])
def test_no_word_of_a_participant_goes_by_a_proxy(variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)

    async def ask(server: str) -> None:
        client = AgentClient()
        assert await client.record(server, {"agent": "eliza", "stimulus": {}}) == ANSWER
        await client.close()

    with _listening() as (port, asked), _listening() as (proxy_port, seen):
        monkeypatch.setenv(variable, f"http://127.0.0.1:{proxy_port}")
        here = f"http://127.0.0.1:{port}/"
        assert served_agents(here) == ({"eliza": ["conversation"]}, "")
        asyncio.run(ask(here))
        assert seen == []
        assert asked == ["/agents", "/answers"]
        elsewhere = "http://machines.example:8000"  # that this is a proxy at all
        assert served_agents(elsewhere) == ({"eliza": ["conversation"]}, "")
        asyncio.run(ask(elsewhere))
        assert seen == [f"{elsewhere}/agents", f"{elsewhere}/answers"]


@pytest.mark.parametrize(
    ("url", "is_here"),
    [
        *((f"http://{host}:8000/v1", True) for host in ("127.0.0.1", "127.1.2.3", "localhost", "LOCALHOST", "[::1]")),
        ("https://[::ffff:127.0.0.1]/", True),
        *(
            (f"http://{host}/", False)
            for host in ("10.0.0.1", "128.0.0.1", "localhost.example", "a.localhost", "[::2]")
        ),
        ("", False),
    ],
)
def test_which_addresses_are_this_machine(url: str, is_here: bool) -> None:
    assert is_loopback(url) is is_here
