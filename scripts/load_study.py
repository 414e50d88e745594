"""Many judges at once in one study, whose server is killed in the middle: nothing that was told as saved may be lost.

::

    python scripts/load_study.py STUDY --judges 500 --kills 3

STUDY is a study of judges, or of online tests, that nobody has begun (`turinglike study new`), with room for so many
(`most`, `wanted`). It is served here, on the loopback; who answers for machines is started beforehand. Judges think for
some seconds, load their page again, open a second tab. In online tests half of all are judges; four in five of their
verdicts are right. Ends with 1 if a verdict, a question or an answer was lost, doubled or is another than was told; the
last line is a JSON object.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

from judging.study.state import EVENTS, read_state

WAIT = 0.3  # seconds before a lost connection is tried again


class Load:
    """The judges, what they were told, and the server."""

    def __init__(self, study: Path, port: int, think: float) -> None:
        self.study, self.port, self.think = study, port, think
        self.told: dict[tuple[str, int], list[str]] = {}  # by session and step
        self.acts: dict[tuple[str, str, str, int], list[str]] = {}  # of online tests, by test, act, session, turn
        self.seconds: list[float] = []
        self.lost_connections = 0
        self.server: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        command = [sys.executable, "-m", "serving.cli", "study", "serve", str(self.study), "--port", str(self.port)]
        self.server = subprocess.Popen([*command, "-q", "--joins-per-minute", "1000000"], stderr=subprocess.DEVNULL)

    async def kill(self, times: int) -> None:
        """Kill the server and start it again, so many times."""
        for _ in range(times):
            await asyncio.sleep(random.uniform(4, 8))
            assert self.server is not None
            self.server.kill()
            self.server.wait()
            self.start()

    async def post(self, path: str, cookies: dict[str, str], said: dict[str, Any]) -> tuple[int, Any, float]:
        """Status, body and seconds of the try that was answered."""
        while True:
            try:
                began = time.perf_counter()
                status, body = await asyncio.wait_for(self._once(path, cookies, said), 40)
                if status < 502 and status != 503:
                    return status, body, time.perf_counter() - began
            except (OSError, EOFError, TimeoutError):
                pass
            self.lost_connections += 1
            await asyncio.sleep(WAIT)

    async def _once(self, path: str, cookies: dict[str, str], said: dict[str, Any]) -> tuple[int, Any]:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            body = json.dumps(said).encode()
            host = f"127.0.0.1:{self.port}"
            cookie = "; ".join(f"{name}={value}" for name, value in cookies.items())
            head = f"POST /{path} HTTP/1.1\r\nhost: {host}\r\norigin: http://{host}\r\nconnection: close\r\n"
            head += f"cookie: {cookie}\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
            writer.write(head.encode() + body)
            lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            headers = [line.partition(": ")[::2] for line in lines[1:]]
            length = next(int(value) for name, value in headers if name.lower() == "content-length")
            for name, value in headers:
                if name.lower() == "set-cookie":
                    cookies.update([tuple(value.partition(";")[0].split("=", 1))])  # type: ignore[list-item]
            return int(lines[0].split()[1]), json.loads(await reader.readexactly(length))
        finally:
            writer.close()

    async def judge(self, number: int) -> None:
        """One judge, from the first page to the last; now and then in two tabs."""
        chance, cookies = random.Random(number), dict[str, str]()
        await asyncio.sleep(chance.uniform(0, 5))
        while await self._tab(cookies, chance):
            if chance.random() < 0.3:
                await asyncio.gather(self._tab(cookies, chance), self._tab(cookies, random.Random(-number)))

    async def _tab(self, cookies: dict[str, str], chance: random.Random) -> bool:
        """A page that is loaded and answered; whether it is left before the end."""
        _, view, _ = await self.post("now", cookies, {"loaded": True})
        if view["kind"] == "welcome":
            status, view, _ = await self.post("join", cookies, {})
            if status != 200:
                raise SystemExit(f"a judge cannot begin: {view['error']['message']}")
        while view["kind"] in ("consent", "questions", "instructions", "trial", "test", "after"):
            answer = {"agree": True} if view["kind"] == "consent" else {}
            if view["kind"] == "trial":
                answer = self._answer(view, chance)
                await asyncio.sleep(chance.expovariate(1 / self.think))
            elif view["kind"] == "test":
                answer = await self._test(cookies, chance)
            said = {"step": view["step"], "list": view["list"], "answer": answer}
            status, reply, took = await self.post("answer", cookies, said)
            if status != 200:  # another tab is further on
                _, view, _ = await self.post("now", cookies, {})
                continue
            if view["kind"] == "trial":
                self.seconds.append(took)
                if reply["new"]:
                    self.told[next(iter(cookies.values())), view["step"]] = answer["verdicts"]
            view = reply["next"]
            if chance.random() < 0.02:
                return True
        return False

    async def _test(self, cookies: dict[str, str], chance: random.Random) -> dict[str, Any]:
        """An online test to its end, with the next one if somebody leaves it; returns the answer to its step."""
        version = ""
        while True:
            status, found, _ = await self.post("test", cookies, {"version": version})
            if status != 200:  # it was ended in another tab
                return {}
            version = found["version"]
            if found["state"] in ("over", "nobody"):
                return {"nobody": True} if found["state"] == "nobody" else {}
            if found["state"] == "void":
                await self.post("act", cookies, {"test": found["test"], "act": "back"})
            elif found["state"] == "open" and found["act"]:
                await asyncio.sleep(chance.expovariate(1 / self.think))
                await self._act(cookies, found, chance)
                if chance.random() < 0.05:
                    await self.post("now", cookies, {"loaded": True})

    async def _act(self, cookies: dict[str, str], found: dict[str, Any], chance: random.Random) -> None:
        said = {"test": found["test"], "act": found["act"], "turn": found["turn"]}
        if found["act"] == "judge":
            of_person = [text.startswith("person ") for text in found["exchanges"][-1]["answers"]]
            is_right = chance.random() < 0.8
            said |= {"human": 1 + (of_person[0] != is_right), "reason": f"reason {chance.random()}"}
        elif found["act"] != "ready":
            said["text"] = f"{'person' if found['act'] == 'answer' else 'question'} {chance.random()}"
        _, reply, took = await self.post("act", cookies, said)
        if reply.get("why", "") is None and found["act"] != "ready":
            self.seconds.append(took)
            key = found["test"], found["act"], next(iter(cookies.values())), found["turn"]
            self.acts.setdefault(key, []).append(said.get("text") or said["reason"])  # of two tabs the first stands

    def _answer(self, view: dict[str, Any], chance: random.Random) -> dict[str, Any]:
        answer: dict[str, Any] = {
            "verdicts": [chance.choice(["human", "machine"]) for _ in view["speakers"]],
            "rt": round(chance.uniform(300, 3000), 1),
        }
        if view["control"]:
            answer["control"] = chance.choice(view["control"]["options"])
        return answer | ({"confidence": 0.5} if view["confidence"] else {}) | ({"reason": ""} if view["reason"] else {})

    def compared(self) -> dict[str, Any]:
        """What was told beside what is on disk."""
        state = read_state(self.study)
        lost = other = 0
        for (token, step), verdicts in self.told.items():
            answers = state.by_session[hashlib.sha256(token.encode()).hexdigest()].answers
            lost += step >= len(answers)
            other += step < len(answers) and answers[step]["verdicts"] != verdicts
        lines = [json.loads(line) for line in (self.study / EVENTS).read_bytes().splitlines()]
        steps = Counter((one["judge"], one["step"]) for one in lines if one["event"] == "step")
        turns: Counter[str] = Counter()
        kept: dict[tuple[str, str, str, int], list[str]] = {}
        for one in lines:
            act = {"test_asked": "ask", "test_answered": "answer", "test_judged": "judge"}.get(one["event"])
            if act is not None:
                turns[one["test"]] += act == "ask"
                said = one["reason"] if act == "judge" else one["text"]
                kept.setdefault((one["test"], act, one["who"], turns[one["test"]]), []).append(said)
        for (test, act, token, turn), told in self.acts.items():
            who = state.by_session[hashlib.sha256(token.encode()).hexdigest()].code
            found = kept.get((test, act, who, turn), [])
            lost += not found
            other += bool(found) and found[0] not in told
        milliseconds = sorted(1000 * one for one in self.seconds)
        return {
            "told": len(self.told) + len(self.acts),
            "tests": {
                name: sum((test.void is not None) == (name == "void") for test in state.tests.by_id.values())
                for name in ("held", "void")
            },
            "lost": lost,
            "other": other,
            "doubled": sum(number > 1 for number in [*steps.values(), *map(len, kept.values())]),
            "lost_connections": self.lost_connections,
            "p50_ms": round(milliseconds[len(milliseconds) // 2], 1),
            "p99_ms": round(milliseconds[int(0.99 * len(milliseconds))], 1),
        }


async def run(load: Load, judges: int, kills: int) -> None:
    """All judges, and the server's deaths."""
    load.start()
    try:
        await asyncio.gather(load.kill(kills), *(load.judge(number) for number in range(1, judges + 1)))
    finally:
        assert load.server is not None
        load.server.send_signal(signal.SIGTERM)
        load.server.wait()


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("study", type=Path)
    parser.add_argument("--judges", type=int, default=500)
    parser.add_argument("--kills", type=int, default=3)
    parser.add_argument("--think", type=float, default=3.0, help="seconds, on average")
    parser.add_argument("--port", type=int, default=8020)
    options = parser.parse_args()
    load = Load(options.study, options.port, options.think)
    asyncio.run(run(load, options.judges, options.kills))
    found = load.compared()
    print(json.dumps(found))
    return int(bool(found["lost"] or found["other"] or found["doubled"]))


if __name__ == "__main__":
    sys.exit(main())
