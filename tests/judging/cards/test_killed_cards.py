"""A card that is killed again and again goes on, and asks nothing twice whose answer was on disk."""

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from judging.cards.card import read_card
from serving.runs.run import Run
from tests.judging.cards.test_pools import manifest

KILLS = 10
CUES = (
    *("king", "moon", "salt", "tree", "door", "fish", "hand", "lamp", "milk", "nose", "ring", "ship"),
    *(
        "snow",
        "star",
        "tooth",
        "wheel",
        "winter",
        "cheese",
        "doctor",
        "farmer",
        "finger",
        "hammer",
        "mountain",
        "queen",
    ),
)
ANSWER_S = 0.15  # a request takes so long
IN_FLIGHT = 2  # requests of one agent at the same time


class Recorder(ThreadingHTTPServer):
    """A server with OpenAI's interface that records what it was asked."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Request)
        self.asked: Counter[str] = Counter()
        self.lock = threading.Lock()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1"


class _Request(BaseHTTPRequestHandler):
    server: Recorder

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        prompt = json.dumps([body["model"], body["messages"], body.get("seed")])
        with self.server.lock:
            self.server.asked[prompt] += 1
        time.sleep(ANSWER_S)
        drawn = random.Random(prompt)
        text = drawn.choice(("house", "river", "bread", "window", "garden", "horse"))
        if body["model"] == "judge":
            text = json.dumps({"reason": "so it sounds", "verdict": drawn.choice(["human", "machine"])})
        choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}
        usage = {"prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 12}
        reply: dict[str, Any] = {"id": "1", "created": 1, "model": body["model"], "choices": [choice], "usage": usage}
        data = json.dumps(reply).encode()
        try:
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)
        except (BrokenPipeError, ConnectionResetError):
            return  # who asked was killed

    def log_message(self, format: str, *arguments: Any) -> None:
        """Nothing is logged."""


@contextmanager
def recorder() -> Iterator[Recorder]:
    server = Recorder()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()


def on_disk(folder: Path) -> int:
    """How many answers and verdicts of models there are."""
    number = 0
    for run, name in (("answers", "openai-tiny"), ("openai-tiny/verdicts", "llm-judge-openai")):
        path = folder / run
        if (path / "run.json").is_file() and name in (opened := Run(path)).agents():
            number += sum(1 for _ in opened.latest(name))
    return number


@pytest.mark.slow
def test_a_card_is_killed_ten_times_and_asks_nothing_twice(tmp_path: Path) -> None:
    pool = manifest(tmp_path / "pool")
    drawn = random.Random(4)
    words = ("table", "chair", "water", "spoon", "cloud", "stone", "apple", "mouse")
    rows = [f"{cue},p{person},{drawn.choice(words)}" for cue in CUES for person in range(3)]
    (pool / "words.csv").write_text("cue,subject,response\n" + "\n".join(rows) + "\n")
    card = tmp_path / "card"
    with recorder() as server, (tmp_path / "said.txt").open("wb") as said:
        command = [sys.executable, "-m", "serving.cli", "test", "openai:tiny", "--people", str(pool), "--task", "word"]
        command += ["--judges", "llm-judge-openai", "--here", "--out", str(card)]
        for name in ("openai:tiny", "llm-judge-openai"):
            command += ["--set", f"{name}.base_url={server.url}", "--set", f"{name}.concurrency={IN_FLIGHT}"]
        command += ["--set", "llm-judge-openai.model=judge"]
        environment = {**os.environ, "OPENAI_API_KEY": "nobodys"}
        killed = 0
        chance = random.Random(11)
        for _ in range(4 * KILLS):
            if killed == KILLS:
                break
            process = subprocess.Popen(command, env=environment, stdout=said, stderr=said, start_new_session=True)
            try:
                process.wait(chance.uniform(1.0, 12.0))  # while a step is imported, asks, writes or has just ended
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                killed += 1
            else:
                assert process.returncode == 0, (tmp_path / "said.txt").read_text()
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        total = server.asked.total()
        lost = total - on_disk(card)
    assert killed == KILLS
    print(f"{killed} kills; {total} requests for {on_disk(card)} answers and verdicts; {lost} were under way at a kill")
    # A request whose answer was under way at a kill is asked again; those that were written are not.
    assert 0 <= lost <= killed * IN_FLIGHT * 2
    assert max(server.asked.values()) <= 1 + killed
    read = read_card((card / "card.json").read_bytes(), "card.json")
    [agent] = read.agents
    [result] = agent.tasks
    assert result.usage.ok + result.usage.rejected == len(CUES)
    assert {judge.judge for judge in result.judges} == {"llm-judge-openai"}
    assert result.usage.tokens is not None
    asked_before = server.asked.total()
    assert asked_before == total
