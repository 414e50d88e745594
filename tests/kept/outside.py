"""What stands outside of the program: a server of models and of a study's agents, a participant's browser, a served
study. Nothing here imports the program, so that it drives any version of it."""

import hashlib
import http.client
import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

WORDS = ("sun", "tea", "house", "river", "green", "dog", "bread", "night", "winter", "garden", "music", "stone")
MODELS = "http://models.invalid/v1"
"""The address of the models in settings. It enters the digest, and a free port would change it: the models are reached
by a proxy instead."""
NAMES = ("argues", "deceives")
"""The agents of a study."""


class Models(ThreadingHTTPServer):
    """Answers as a server of chat models (``POST …/chat/completions``, ``…/completions``) and as the agents of a study
    (``GET /agents``, ``POST /answers``). A text follows from the seed of its request alone.

    ``hangs_at`` is the number of the first request to a model, from 1, that is never answered; ``hung`` is set then.
    While ``fails`` is set the agents of a study answer with status 500."""

    daemon_threads = True

    def __init__(self, hangs_at: int | None = None) -> None:
        super().__init__(("127.0.0.1", 0), _Request)
        self.hangs_at = hangs_at
        self.hung = threading.Event()
        self.fails = False
        self.lock = threading.Lock()
        self.asked = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def environment(self) -> dict[str, str]:
        """Variables with which a process reaches the models at :data:`MODELS`."""
        names = ("http_proxy", "HTTP_PROXY")
        return dict.fromkeys(names, self.url) | {"no_proxy": "127.0.0.1,localhost", "NO_PROXY": "127.0.0.1,localhost"}

    def is_to_hang(self) -> bool:
        with self.lock:
            self.asked += 1
            return self.hangs_at is not None and self.asked >= self.hangs_at


class _Request(BaseHTTPRequestHandler):
    server: Models

    def do_GET(self) -> None:
        self._send(200, {"agents": [{"name": name, "tasks": ["conversation"]} for name in NAMES]})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if self.path.endswith("/answers"):
            if self.server.fails:
                self._send(500, {"error": {"code": "broken", "message": "the agent is broken"}})
                return
            number = len(body["stimulus"].get("history", ()))
            self._send(200, {"answer": {"messages": [{"text": f"{body['agent']} says {number}"}]}})
            return
        if self.server.is_to_hang():
            self.server.hung.set()
            threading.Event().wait()
        text = _said(body)
        choice: dict[str, Any] = {"index": 0, "finish_reason": "stop"}
        if self.path.endswith("/chat/completions"):
            choice["message"] = {"role": "assistant", "content": text}
        else:
            choice["text"] = text
        usage = {"prompt_tokens": 9, "completion_tokens": 9, "total_tokens": 18}
        self._send(200, {"id": "1", "created": 1, "model": body["model"], "choices": [choice], "usage": usage})

    def _send(self, status: int, value: Any) -> None:
        data = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *arguments: Any) -> None:
        """Nothing is logged."""


def _said(body: Mapping[str, Any]) -> str:
    drawn = random.Random(hashlib.sha256(str(body.get("seed")).encode()).digest())
    if "response_format" in body:  # a judge's
        return json.dumps({"reason": "it sounds so", "verdict": drawn.choice(["human", "machine"])})
    if body.get("max_tokens", 99) <= 10:  # a single word
        return drawn.choice(WORDS)
    return " ".join(drawn.choices(WORDS, k=7)) + "."


@contextmanager
def models(hangs_at: int | None = None) -> Iterator[Models]:
    server = Models(hangs_at)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()


class Visitor:
    """A participant's browser: it keeps the cookie of its study."""

    def __init__(self, port: int, cookie: str | None = None) -> None:
        self.port = port
        self.headers = {"content-type": "application/json", "origin": f"http://127.0.0.1:{port}"}
        if cookie is not None:
            self.headers["cookie"] = cookie

    def post(self, path: str, **sent: Any) -> Any:
        """The reply's JSON; raises AssertionError for any other status than 200."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request("POST", path, json.dumps(sent), self.headers)
            reply = connection.getresponse()
            data = reply.read()
        finally:
            connection.close()
        assert reply.status == 200, (path, sent, reply.status, data)
        if (cookie := reply.getheader("set-cookie")) is not None:
            self.headers["cookie"] = cookie.partition(";")[0]
        return json.loads(data)

    def answer(self, view: Mapping[str, Any], said: Mapping[str, Any]) -> Any:
        """Answer the step of a view; returns the next view."""
        return self.post("/answer", step=view["step"], answer=said)["next"]

    def go(self, view: Mapping[str, Any], until: Callable[[Mapping[str, Any]], bool] = lambda view: False) -> Any:
        """Answer steps, as a page does, until a view for which ``until`` is true, or one that needs other people."""
        while view["kind"] in PAGES and not until(view):
            following = self.answer(view, PAGES[view["kind"]](view))
            assert following["step"] != view["step"], following
            view = following
        return view


def _trial(view: Mapping[str, Any]) -> dict[str, Any]:
    speakers = len(view.get("speakers", "x"))
    said = {"verdicts": [["human", "machine"][view["step"] % 2]] * speakers, "rt": 4900.5, "key": True}
    return said | ({"sexes": ["female"] * speakers} if view.get("sex") else {})


def _asked(view: Mapping[str, Any]) -> dict[str, Any]:
    if "cue" not in view:
        return {"answer": f"someone put box number {view['step']} upon that table", "rt": 9000.0}
    chance = random.Random(f"{view['list']} {view['cue']}")
    return {"answer": chance.choice(WORDS), "rt": 1200.0}


ABOUT = {
    "age": "21-25",
    "gender": "female",
    "country": "Iceland",
    "native_language": "yes",
    "engaging": "7",
    "comments": "fine",
}
PAGES: Mapping[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {
    "consent": lambda view: {"agree": True},
    "questions": lambda view: {name: ABOUT[name] for name in view["fields"] if name in ABOUT},
    "instructions": lambda view: {},
    "break": lambda view: {},
    "trial": _trial,
    "ask": _asked,
    "after": lambda view: {name: ABOUT[name] for name in view["fields"] if name in ABOUT},
}
"""What is answered to each kind of step."""


class Served:
    """A study's server: its process, and a port."""

    def __init__(self, process: subprocess.Popen[bytes], port: int) -> None:
        self.process = process
        self.port = port

    def visitor(self, cookie: str | None = None) -> Visitor:
        return Visitor(self.port, cookie)

    def kill(self) -> None:
        """End the process at once, as a loss of power does."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()


@contextmanager
def served(study: Path) -> Iterator[Served]:
    """``turinglike study serve``; ended in order when the block is left, unless it was killed."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "serving.cli", "study", "serve", str(study), "--port", str(port), "-q"]
    log = study.parent / f"{study.name}.log"
    with log.open("wb") as file:
        process = subprocess.Popen(command, stdout=file, stderr=file)
    try:
        until = time.monotonic() + 120
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except OSError:
                assert process.poll() is None, log.read_text()
                assert time.monotonic() < until, log.read_text()
                time.sleep(0.02)
        yield Served(process, port)
    finally:
        if process.poll() is None:
            process.terminate()
        process.wait(60)
        log.unlink()


def changed(study: Path, **values: Any) -> None:
    """Change lines of ``study.toml``, the first of each key, which must be there."""
    path = study / "study.toml"
    text = path.read_text()
    for name, value in values.items():
        line = f"{name} = {json.dumps(value)}".replace("\\", r"\\")
        text, number = re.subn(rf"^{name} = .*$", line, text, count=1, flags=re.M)
        assert number == 1, (name, number)
    path.write_text(text)


def codes(study: Path) -> None:
    """Empty the list of an interrogation's codes but for two."""
    path = study / "study.toml"
    path.write_text(
        re.sub(r"^codes = \[.*?^\]$", 'codes = ["how they wrote", "a feeling"]', path.read_text(), flags=re.M | re.S)
    )


def meet(first: Visitor, second: Visitor) -> list[Any]:
    """Two who wait for each other in the lobby of conversations; returns what each sees."""
    with ThreadPoolExecutor(2) as pool:
        waiting = [pool.submit(each.post, "/talk", after=-1) for each in (first, second)]
        return [each.result() for each in waiting]


def converse(people: tuple[Visitor, Visitor], most: int = 100) -> None:
    """Write in turn until the conversation is over, or until it has ``most`` messages."""
    while True:
        for visitor in people:
            view = visitor.post("/talk", after=-1)
            number = len(view["messages"])
            if view["state"] != "open" or number >= most:
                return
            if view["my_turn"]:
                said = visitor.post("/say", turn=number, text=f"message {number}, they say")
                assert said == {"why": None}, said


def say_on(visitor: Visitor) -> None:
    """Write a burst to a machine that answers at once, until the conversation is over."""
    until = time.monotonic() + 60
    while time.monotonic() < until:
        view = visitor.post("/talk", after=-1)
        if view["state"] != "open":
            return
        number = sum(message["speaker"] == view["mine"] for message in view["messages"])
        said = visitor.post("/say", turn=number, text=f"message {number}")
        assert said["why"] in (None, "talk_over"), said  # over, if the machine wrote the last message meanwhile
        time.sleep(0.2)
    raise AssertionError(view)


def take_part(visitors: Mapping[str, Visitor], stop: Callable[[Any], bool] = lambda view: False) -> dict[str, Any]:
    """Do what is awaited in an online test until all see its end, or until one sees what ``stop`` waits for; returns
    what each sees."""
    seen: dict[str, Any] = {}
    until = time.monotonic() + 60
    while time.monotonic() < until:
        for name, visitor in visitors.items():
            view = visitor.post("/test", version="")
            seen[name] = view
            if stop(view):
                return seen
            if view["state"] == "open" and view.get("act") in ("ready", "ask", "answer", "judge"):
                said = {"test": view["test"], "act": view["act"], "turn": view.get("turn", 0), "human": 1}
                said |= {"text": f"{name} at {view.get('turn')}", "reason": "so", "confidence": 0.75}
                assert visitor.post("/act", **said, codes=["a feeling"]) == {"why": None}
        if all(view["state"] == "over" for view in seen.values()):
            return seen
        time.sleep(0.05)
    raise AssertionError(seen)


def turinglike(*arguments: object, exits: int = 0, environment: Mapping[str, str] | None = None) -> str:
    """Run a command as a process of its own; returns its stdout. Raises AssertionError for another exit code."""
    command = [sys.executable, "-m", "serving.cli", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | dict(environment or {}))
    assert done.returncode == exits, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout
