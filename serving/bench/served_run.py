"""One server that is measured: ``turinglike serve --out`` in a process of its own, asked over several connections."""

import asyncio
import base64
import contextlib
import os
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path
from typing import Any

import orjson
import psutil

from agents.contract import Agent
from agents.errors import AgentStoppedError
from serving.bench.progress import Progress, progress_of
from serving.bench.record_window import RecordWindow, read_window
from serving.bench.run_results import Repeat, Shares
from serving.bench.set_bench import SetBench
from serving.bench.usage import Sampler
from serving.http.bodies import IMAGES
from serving.runs.run import Run

HOST = "127.0.0.1"
BODIES = 256 * 1024**2  # bytes of different bodies that are kept; then they come again
QUEUE = 256  # of the server, unless there are more connections
PATIENCE = 60.0  # seconds that the server may take to end


@dataclass(slots=True)
class ServedRun:
    """One server, asked for a while."""

    bench: SetBench
    """What is measured."""
    name: str
    """The agent's name."""
    agent: Agent[Any]
    """The agent, not loaded."""
    rows: list[bytes]
    """The stimuli as JSON."""
    replicas: int
    """Its workers."""
    folder: Path
    """Gets the server's run folder, and what it prints."""
    _started: float = field(init=False, default=0.0)
    _answering: float = field(init=False, default=0.0)
    _ended: float = field(init=False, default=0.0)
    _client_s: float = field(init=False, default=0.0)
    _sampler: Sampler = field(init=False)

    def measure(self) -> RecordWindow | None:
        """Start the server, ask it, end it, and read what it kept; None where that is too little. Raises
        AgentStoppedError where the server does not answer."""
        out = self.folder / "kept"
        statuses: Counter[int] = Counter()
        with self._server(out) as (process, port):
            watched = _listening(process, port)
            self._sampler = Sampler(watched, process)
            with self._sampler.running():
                self._answering = time.time()
                cpu = time.process_time()
                asyncio.run(self._ask(port, statuses))
                self._ended = time.time()
                self._client_s = time.process_time() - cpu
        others = {status: number for status, number in statuses.items() if status != 200}
        if others:
            told = ", ".join(f"{number} times HTTP {status}" for status, number in sorted(others.items()))
            raise AgentStoppedError(f"the server did not answer all: {told}")
        return read_window(Run(out).records_path(self.name), self._answering, self._ended)

    @contextlib.contextmanager
    def _server(self, out: Path) -> Iterator[tuple[psutil.Process, int]]:
        """The running server and its port, once its agent is loaded."""
        bench = self.bench
        with socket.socket() as free:
            free.bind((HOST, 0))
            port = int(free.getsockname()[1])
        # -P: a folder `agents` where the user works is no package of ours.
        command = [sys.executable, "-P", "-m", "serving.cli", "serve", "--agents", self.name, "--port", str(port)]
        command += ["--out", str(out), "--replicas", str(self.replicas), "--device", bench.device, "--quiet"]
        command += ["--queue", str(max(QUEUE, bench.connections or 0)), *bench.arguments]
        if bench.batch_size is not None:
            command += ["--batch-size", str(bench.batch_size)]
        environment = {name: value for name, value in os.environ.items() if name != "TURINGLIKE_API_KEY"}
        self._started = time.time()
        with (self.folder / "log").open("w+b") as log:
            process = subprocess.Popen(command, stdout=log, stderr=log, env=environment)
            try:
                while not asyncio.run(_is_ready(port)):
                    if process.poll() is not None:
                        log.seek(0)
                        lines = log.read().decode("utf-8", "replace").strip().splitlines()
                        raise AgentStoppedError(f"the server ended: {lines[-1] if lines else process.returncode}")
                    time.sleep(0.1)
                yield psutil.Process(process.pid), port
            finally:
                process.terminate()
                try:
                    process.wait(PATIENCE)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()

    async def _ask(self, port: int, statuses: Counter[int]) -> None:
        """Keep all connections busy for the seconds of a run; counts the statuses."""
        bodies = cycle(_bodies(self.name, self.rows))
        end = time.monotonic() + self.bench.seconds

        async def keep_asking() -> None:
            async with _connection(port) as (reader, writer):
                while time.monotonic() < end:
                    statuses[await _post(reader, writer, next(bodies))] += 1

        await asyncio.gather(*(keep_asking() for _ in range(self.bench.connections or 1)))

    def more_needed(self) -> int:
        """A server is asked as long as it is to be measured: never more than once."""
        return 1

    def progress(self) -> Progress:
        """How far the server came, where that was too little."""
        run = Run(self.folder / "kept")
        seconds = self._ended - self._answering
        return progress_of(run.records_path(self.name), run.journal_path(self.name), self.rows, seconds)

    def gpus_in_use(self, window: RecordWindow) -> int:
        """GPUs in use by all workers."""
        return self.replicas * self.agent.declaration().devices if window.device.startswith("cuda") else 0

    def as_repeat(self, window: RecordWindow) -> Repeat:
        """What was measured."""
        declared = self.agent.declaration()
        passed = self._ended - self._answering
        if declared.batches_by_itself:
            busy = window.responding_s * window.rate_s / declared.max_in_flight
        else:
            busy = window.calling_s * window.rate_s / self.replicas
        usage = self._sampler.between(self._answering, self._ended)
        threads = max(1, (os.cpu_count() or 1) // self.replicas) * self.replicas
        shares = Shares(
            workers={self.name: [min(1.0, busy)]},
            preparing=min(1.0, window.preparing_s * window.rate_s / threads),
            writing=None,
            process=usage.process,
            cores=usage.cores,
            run_cores=usage.run_cores,
            gpus=[*usage.gpus],
            client=self._client_s / passed,
        )
        return Repeat.of(window, shares, usage, self._answering - self._started)


def _listening(root: psutil.Process, port: int) -> psutil.Process:
    """The process of ``root`` and its children that listens on ``port``: the command may stand beside its server."""
    for process in (root, *root.children(recursive=True)):
        with contextlib.suppress(psutil.Error):
            for connection in process.net_connections("tcp"):
                if connection.status == psutil.CONN_LISTEN and connection.laddr.port == port:
                    return process
    return root


def _bodies(name: str, rows: list[bytes]) -> list[bytes]:
    """Requests for the rows, with their pictures in base64, as many as :data:`BODIES` holds."""
    requests = []
    total = 0
    for row in rows:
        stimulus = orjson.loads(row)
        images = {}
        for field_name in IMAGES:
            if field_name in stimulus:
                images[field_name] = base64.b64encode(Path(stimulus.pop(field_name)).read_bytes()).decode()
        body = orjson.dumps({"agent": name, "stimulus": stimulus, "images": images})
        head = f"POST /answers HTTP/1.1\r\nhost: {HOST}\r\ncontent-type: application/json\r\n"
        requests.append(f"{head}content-length: {len(body)}\r\n\r\n".encode() + body)
        total += len(body)
        if total > BODIES:
            break
    return requests


@contextlib.asynccontextmanager
async def _connection(port: int) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """An open connection, which is closed with the block, also after an error."""
    reader, writer = await asyncio.open_connection(HOST, port)
    try:
        yield reader, writer
    finally:
        writer.close()
        with contextlib.suppress(OSError):  # the server has closed it already
            await writer.wait_closed()


async def _post(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, request: bytes) -> int:
    """Send a request, and read the whole response; returns its status."""
    writer.write(request)
    head = await reader.readuntil(b"\r\n\r\n")
    status_line, *headers = head.lower().split(b"\r\n")
    length = next(int(header.partition(b":")[2]) for header in headers if header.startswith(b"content-length:"))
    await reader.readexactly(length)
    return int(status_line.split()[1])


async def _is_ready(port: int) -> bool:
    try:
        async with _connection(port) as (reader, writer):
            status = await _post(reader, writer, f"GET /ready HTTP/1.1\r\nhost: {HOST}\r\n\r\n".encode())
    except (OSError, asyncio.IncompleteReadError):
        return False
    return status == 200
