"""Every agent that speaks to a server, against servers of others with a model's folder: vLLM's, transformers', and
llama.cpp's (of the package xllamacpp) with ``--gguf``, where they are installed.

Prints a table of each task's status. Exit code 1: no server answered; 2: wrong usage, or no server is installed.
"""

from __future__ import annotations

import argparse
import socket
import subprocess
import sys
import time
import urllib.request
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

PICTURE = str(Path(__file__).resolve().parent.parent / "examples" / "images" / "coffee.png")
STIMULI: list[dict[str, Any]] = [
    {"task": "color_estimation", "image": PICTURE},
    {"task": "object_detection", "image": PICTURE},
    {"task": "image_captioning", "image": PICTURE},
    {"task": "attention_prediction", "image": PICTURE},
    {"task": "word_association", "cue": "bread"},
    {"task": "conversation", "topic": "jazz", "exchanges": 2},
    {"task": "judgement", "asked": "word_association", "question": "Is this a human's word or a machine's?",
     "cue": "bread", "answer": {"word": "butter"}, "shown": "s1"},
]  # fmt: skip
LLAMA = """import sys, time, xllamacpp
params = xllamacpp.CommonParams()
params.model.path, params.port, params.n_ctx, params.n_parallel = sys.argv[1], int(sys.argv[2]), 8192, 2
server = xllamacpp.Server(params)
time.sleep(1e6)"""
PATIENCE = 600.0  # seconds for a server to start


def commands(folder: Path, gguf: Path | None, port: int) -> dict[str, list[str]]:
    """The command of each server that is installed."""
    programs = Path(sys.executable).parent
    made = {
        "vllm": [str(programs / "vllm"), "serve", str(folder), "--port", str(port), "--enforce-eager"],
        "transformers": [str(programs / "transformers"), "serve", str(folder), "--port", str(port)],
    }
    if gguf is not None:
        made["xllamacpp"] = [sys.executable, "-c", LLAMA, str(gguf), str(port)]
    return {name: command for name, command in made.items() if find_spec(name) is not None}


def statuses(base_url: str, model: str, patience: float) -> dict[tuple[str, str], str]:
    """What becomes of each agent's tasks: a status, or the code of a failure."""
    from agents import catalogue
    from agents.errors import TuringlikeError
    from agents.language.engines.clients import ServerModel
    from agents.language.engines.openai import OpenAIEngine
    from serving import answer

    cells = {}
    for name in catalogue.names():
        agent = catalogue.get(name).load_class()
        if not issubclass(agent, ServerModel) or not issubclass(agent.engine, OpenAIEngine):
            continue
        settings = {"base_url": base_url, "model": model, "key_variable": "", "retries": 1, "patience_s": patience}
        rows = [{"id": "s1", **row} for row in STIMULI if row["task"] in catalogue.get(name).tasks]
        for row in rows:
            who = f"{name}~eliza" if row["task"] == "conversation" else name
            try:
                [record] = answer(who, [row], settings={name: settings})
                cells[name, row["task"]] = record.error.code if record.error else record.status
            except TuringlikeError as error:  # it cannot be loaded
                cells[name, row["task"]] = str(error).rpartition(f"{name}: ")[2][:70]
            print(f"{name} {row['task']}: {cells[name, row['task']]}", file=sys.stderr, flush=True)
    return cells


def await_server(port: int, process: subprocess.Popen[bytes]) -> None:
    """Return once the model is loaded. Raises TimeoutError."""
    deadline = time.monotonic() + PATIENCE
    while process.poll() is None and time.monotonic() < deadline:
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5).close()
            return
        except OSError:
            time.sleep(1)
    raise TimeoutError


def main() -> int:
    parser = argparse.ArgumentParser(description="Agents on servers of others.", allow_abbrev=False)
    parser.add_argument("folder", type=Path, help="a model's folder")
    parser.add_argument("--gguf", type=Path, help="the same model for llama.cpp")
    parser.add_argument("--servers", metavar="A,B", help="only these of vllm, transformers and xllamacpp")
    parser.add_argument("--patience", type=float, default=120.0, metavar="S", help="seconds for an answer (120)")
    options = parser.parse_args()
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    made = commands(options.folder.resolve(), options.gguf, port)
    names = [name for name in made if options.servers is None or name in options.servers.split(",")]
    columns: dict[str, dict[tuple[str, str], str]] = {}
    for name in names:
        process = subprocess.Popen(made[name], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            await_server(port, process)
            columns[name] = statuses(f"http://127.0.0.1:{port}/v1", str(options.folder.resolve()), options.patience)
        except TimeoutError:
            print(f"{name}: does not listen", file=sys.stderr)
        finally:
            process.terminate()
            process.wait(60)
    table = Table("agent", "task", *columns)
    for agent, task in next(iter(columns.values()), {}):
        table.add_row(agent, task, *(cells[agent, task] for cells in columns.values()))
    Console(width=160).print(table)
    return 0 if columns else 1 if names else 2


if __name__ == "__main__":
    sys.exit(main())
