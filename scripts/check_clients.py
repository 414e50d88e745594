"""Which clients of OpenAI's interface can talk with agents: each one unchanged, as its registry has it, with its own
defaults, against `turinglike serve`. Each call is judged by its content: eliza's and mmcq's answers must be, letter for
letter, those that a plain request gets, and the pieces of a stream must add up to the whole.

A call works; or the server refuses it in a sentence, which the client must show; or it FAILS. Prints a line per call,
and a table in Markdown. Exits 1 if a call fails, if one is refused that should work, or the other way round.

    python scripts/check_clients.py --folder clients

Needs uv, Node 20 with npm, Chromium, and the registries of both. What is installed stays in the folder (about 6 GiB); a
second run takes some minutes. `requests.jsonl` there has what each client sent.
"""

import argparse
import base64
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from clients.tap import Asked, Tap

ROOT = Path(__file__).resolve().parent.parent
PROGRAMS = Path(__file__).resolve().parent / "clients"
SAID = ("I like books about the sea.", "My mother reads them too.")
PICTURE = ROOT / "examples" / "images" / "china.jpg"
START_S = 600
LONGEST_S = 1800  # of all calls of a client
WORKS = "works"
REFUSED = "refused"
FAILS = "FAILS"


@dataclass(frozen=True)
class Client:
    """A program of scripts/clients and what it needs: of PyPI, or of npm if it is JavaScript."""

    name: str
    program: str
    packages: tuple[str, ...]

    @property
    def is_python(self) -> bool:
        return self.program.endswith(".py")


CLIENTS = (
    Client("Open WebUI", "by_open_webui.py", ("open-webui==0.12.4", "playwright==1.65.2")),
    Client("@ai-sdk/openai-compatible", "by_ai_sdk_compatible.mjs", ("ai@6.0.326", "@ai-sdk/openai-compatible@2.0.92")),
    Client("@ai-sdk/openai", "by_ai_sdk_openai.mjs", ("ai@6.0.326", "@ai-sdk/openai@3.0.141")),
    Client("openai (JavaScript)", "by_openai_node.mjs", ("openai@6.49.0",)),
    Client("openai (Python)", "by_openai.py", ("openai==3.57.0",)),
    Client(
        "LangChain (JavaScript)",
        "by_langchain_js.mjs",
        ("@langchain/openai@1.5.8", "langchain@1.5.14", "@langchain/core@1.4.0"),
    ),
    Client("LangChain (Python)", "by_langchain.py", ("langchain-openai==1.7.4", "langchain==1.5.2")),
    Client("LlamaIndex", "by_llamaindex.py", ("llama-index-llms-openai-like==0.8.1",)),
    Client("dspy", "by_dspy.py", ("dspy==3.4.1",)),
    Client("instructor", "by_instructor.py", ("instructor==1.17.0",)),
    Client("pydantic-ai", "by_pydantic_ai.py", ("pydantic-ai==2.62.0",)),
    Client("litellm", "by_litellm.py", ("litellm==1.110.2",)),
    Client("llm", "by_llm.py", ("llm==0.36",)),
    Client("promptfoo", "by_promptfoo.mjs", ("promptfoo@0.121.20",)),
    Client("Inspect", "by_inspect.py", ("inspect-ai==0.3.285", "openai==3.57.0")),
    Client("lm-eval", "by_lm_eval.py", ("lm-eval[api]==0.4.13",)),
)


@dataclass(frozen=True)
class Outcome:
    """How a call of a client ended; ``is_right`` as it should have."""

    call: str
    result: str
    what: str
    is_right: bool


def main() -> int:
    parser = argparse.ArgumentParser(description="Clients of OpenAI's interface, unchanged.", allow_abbrev=False)
    parser.add_argument("--folder", type=Path, help="where the clients are installed, and stay (default: temporary)")
    parser.add_argument("--clients", metavar="A,B", help="only the programs whose names hold one of these")
    options = parser.parse_args()
    wanted = options.clients.split(",") if options.clients else [""]
    clients = [client for client in CLIENTS if any(part in client.program for part in wanted)]
    if not clients:
        parser.error(f"--clients {options.clients}: the programs are {', '.join(c.program for c in CLIENTS)}")
    for command in ("uv", "npm"):
        if shutil.which(command) is None:
            parser.error(f"{command} is missing")
    with tempfile.TemporaryDirectory(prefix="turinglike-clients-") as temporary:
        folder = (options.folder or Path(temporary)).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        outcomes = check_all(clients, folder)
    wrong = [outcome for each in outcomes.values() for outcome in each if not outcome.is_right]
    calls = sum(map(len, outcomes.values()))
    print(markdown(outcomes))
    print(f"\n{calls} calls of {len(outcomes)} clients; {len(wrong)} not as they should be")
    return 1 if wrong else 0


def check_all(clients: Sequence[Client], folder: Path) -> dict[Client, list[Outcome]]:
    for client in clients:  # before the server starts: an installation may take all of a small machine
        install(client, place(client, folder))
    outcomes = {}
    with serving(folder) as port, (folder / "requests.jsonl").open("w", encoding="utf-8") as log:
        given = reference(port)
        for client in clients:
            outcomes[client] = check(client, place(client, folder), port, given, log)
    return outcomes


def place(client: Client, folder: Path) -> Path:
    return folder / client.program.partition(".")[0]


def install(client: Client, folder: Path) -> None:
    """Installs the client unless its folder has these versions."""
    done = folder / "installed.txt"
    wanted = " ".join(client.packages)
    if done.exists() and done.read_text() == wanted:
        return
    print(f"installing {wanted}", file=sys.stderr, flush=True)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    if client.is_python:
        subprocess.run(["uv", "venv", "-q", "--python", "3.11", folder / "venv"], check=True)
        python = folder / "venv" / "bin" / "python"
        subprocess.run(["uv", "pip", "install", "-q", "--python", python, *client.packages], check=True)
    else:
        # zod describes the structures that are asked for.
        call = ["npm", "install", "--no-fund", "--no-audit", "--loglevel=error", *client.packages, "zod@4.6.7"]
        subprocess.run(call, cwd=folder, check=True)
    done.write_text(wanted)


@contextmanager
def serving(folder: Path) -> Iterator[int]:
    """The port of a server of its own."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    call = [sys.executable, "-m", "serving.cli", "serve", "--agents", "eliza,mmcq", "--port", str(port)]
    log = folder / "serve.log"
    with log.open("wb") as file, subprocess.Popen(call, cwd=ROOT, stdout=file, stderr=file) as server:
        try:
            end = time.monotonic() + START_S
            while not is_ready(port):
                if server.poll() is not None or time.monotonic() > end:
                    raise SystemExit(f"the server does not start; see {log}")
                time.sleep(0.5)
            yield port
        finally:
            server.terminate()


def is_ready(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/ready", timeout=5) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False


def reference(port: int) -> dict[str, Any]:
    """What clients are told to say, and what plain requests without a client get for it."""

    def ask(model: str, *contents: Any) -> str:
        messages = [{"role": ("user", "assistant")[i % 2], "content": text} for i, text in enumerate(contents)]
        body = json.dumps({"model": model, "messages": messages}).encode()
        headers = {"Content-Type": "application/json"}
        asked = urllib.request.Request(f"http://127.0.0.1:{port}/v1/chat/completions", body, headers)
        with urllib.request.urlopen(asked, timeout=120) as answer:
            return str(json.load(answer)["choices"][0]["message"]["content"])

    picture = base64.b64encode(PICTURE.read_bytes()).decode()
    image = {"type": "image_url", "image_url": {"url": f"data:image/jpeg;base64,{picture}"}}
    first = ask("eliza", SAID[0])
    replies = [first, ask("eliza", SAID[0], first, SAID[1])]
    return {"said": SAID, "replies": replies, "picture": picture, "color": ask("mmcq", [image])}


def check(client: Client, folder: Path, port: int, given: dict[str, Any], log: Any) -> list[Outcome]:
    """Runs the client's program and judges each of its calls."""
    own = folder / "own"
    own.mkdir(exist_ok=True)
    outcomes: list[Outcome] = []

    def ended(told: dict[str, Any], asked: Sequence[Asked]) -> None:
        outcomes.append(judged(told, asked))
        note(client, outcomes[-1], asked, log)

    with Tap(port, ended) as tap:
        address = f"http://127.0.0.1:{tap.port}"
        (folder / "given.json").write_text(
            json.dumps({"url": f"{address}/v1", "ended": f"{address}/ended", "folder": str(own), **given})
        )
        if code := run(client, folder, own):
            what = f"the program ended with {code}; see {folder / 'stderr.txt'}"
            outcomes.append(Outcome("the end", FAILS, what, False))
            note(client, outcomes[-1], tap.asked, log)
    return outcomes


def run(client: Client, folder: Path, own: Path) -> int:
    """Runs the client's program, with nothing of this one's environment that a client could take for its own."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("OPENAI_", "PYTHONPATH"))}
    environment |= {"TURINGLIKE_CHECK": str(folder / "given.json"), "HOME": str(own)}
    if client.is_python:
        call: list[str | Path] = [folder / "venv" / "bin" / "python", PROGRAMS / client.program]
    else:
        for program in PROGRAMS.glob("*.mjs"):  # Node looks for packages beside the program
            shutil.copy(program, folder)
        call = ["node", folder / client.program]
    with (folder / "stderr.txt").open("wb") as errors:
        # `timeout` ends what the program started, too.
        whole: list[str | Path] = ["timeout", str(LONGEST_S), *call]
        return subprocess.run(whole, cwd=folder, env=environment, stdout=errors, stderr=errors, check=False).returncode


def judged(told: dict[str, Any], asked: Sequence[Asked]) -> Outcome:
    """``told`` is the program's word on what came of the requests ``asked``."""
    call = told["call"]
    error = told.get("error")
    expected = told["refused"]
    faults = [request for request in asked if request.status >= 500]
    refusals = [request for request in asked if 400 <= request.status < 500]
    if faults:
        return Outcome(call, FAILS, f"{faults[0].path}: {faults[0].status} {faults[0].message}", False)
    if error is None and "wrong" in told:
        return Outcome(call, FAILS, told["wrong"], False)
    if error is None and (problem := unlike(told, asked)):
        return Outcome(call, FAILS, problem, False)
    if error is None:
        after = f"after {refusals[0].path}: {refusals[0].status}" if refusals else ""
        return Outcome(call, WORKS, after, expected is None)
    if not refusals:
        is_right = expected == "client"
        return Outcome(call, REFUSED if is_right else FAILS, error, is_right)
    last = refusals[-1]
    if plain(last.message) not in plain(error):
        return Outcome(call, FAILS, f"{last.status} {last.message}; the client shows {error}", False)
    return Outcome(call, REFUSED, f"{last.status} {last.message}", expected == last.status)


def unlike(told: dict[str, Any], asked: Sequence[Asked]) -> str:
    """How the questions that reached the server differ from what the program wanted to be asked, or nothing."""
    questions = [json.loads(request.body) for request in asked if request.path.startswith("POST")]
    if told["requests"] not in (None, len(questions)):
        return f"the server was asked {len(questions)} times"
    for name, value in told["sends"].items():
        if any(question.get(name) != value for question in questions):
            return f"a request came without {name} {value}"
    return ""


def plain(text: str) -> str:
    """Letters and digits alone: clients show sentences as JSON, or quoted in other ways."""
    return "".join(filter(str.isalnum, text.encode().decode("unicode_escape", "ignore") if "\\u" in text else text))


def note(client: Client, outcome: Outcome, asked: Sequence[Asked], log: Any) -> None:
    mark = "" if outcome.is_right else "  <-- not as it should be"
    print(f"{client.name}: {outcome.call}: {outcome.result} {outcome.what[:400]}{mark}", flush=True)
    row = {"client": client.name, "call": outcome.call, "result": outcome.result, "asked": [vars(a) for a in asked]}
    log.write(json.dumps(row, ensure_ascii=False) + "\n")
    log.flush()


def markdown(outcomes: dict[Client, list[Outcome]]) -> str:
    lines = ["| client | works | refused, in a sentence | fails |", "|---|---|---|---|"]
    for client, each in outcomes.items():
        cells = []
        for result in (WORKS, REFUSED, FAILS):
            cells.append("; ".join(outcome.call for outcome in each if outcome.result == result))
        versions = ", ".join(client.packages).replace("==", " ")
        lines.append(f"| {client.name} ({versions}) | {' | '.join(cells)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    raise SystemExit(main())
