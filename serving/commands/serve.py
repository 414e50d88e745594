"""``turinglike serve``: checks all options and agents before it listens, then serves until a signal."""

from __future__ import annotations

import argparse
import os
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agents.catalogue.selection import checked_agents, read_names, resolve
from agents.errors import InputError, UnavailableError
from serving.commands.command_line import from_options
from serving.generation.prompt_check import BEGUN_BY_THE_AGENT, BEGUN_BY_THE_OTHER, check_served, reads
from serving.runs.run_json import run_entry
from serving.scheduling import interrupts, machine

if TYPE_CHECKING:
    from agents.contract import Agent
    from serving.http.monitoring import ServerLog

KEY = "TURINGLIKE_API_KEY"  # the environment variable that holds the key
# the length of a key, in characters
SHORTEST = 16
LONGEST = 4096


def serve(options: argparse.Namespace) -> int:
    """Serve until a signal; returns 0. Raises TuringlikeError for wrong options and agents, and before a port is taken;
    Interrupted for a signal that ends it."""
    try:
        import uvloop

        from serving.http.guard import LOOPBACK, Rules
        from serving.http.kept_records import kept_records
        from serving.http.monitoring import ServerLog
        from serving.http.server import bound_sockets, check_key
        from serving.http.server import serve as run
        from serving.http.service import ServeOptions
    except ImportError as error:
        raise UnavailableError(f"serving needs more packages ({error}): pip install 'turinglike[serve]'") from None
    names = read_names("--agents", options.agents, "served")
    check_host_names(options.allow_host)
    key = read_api_key(options.key_file)
    check_key(options.host, key)
    machine.check_device(options.device, options.address)
    selection = resolve(names, options.settings, options.config)
    entries = selection.entries
    agents = checked_agents(entries, selection.settings)
    log = ServerLog(options.quiet, options.verbose, options.log_format)
    log.start()
    serve_options = from_options(ServeOptions, options, entries=entries, settings=selection.settings)
    hosts = LOOPBACK | {name.lower() for name in options.allow_host}
    if options.host not in ("0.0.0.0", "::"):
        hosts |= {options.host.lower()}
    rules = Rules(frozenset(hosts), key)
    for name in agents:
        check_chats(name, entries[name].make(selection.settings.get(name)), log)
    with ExitStack() as stack:
        sockets = stack.enter_context(bound_sockets(options.host, options.port))
        kept = None
        if options.out is not None:
            entries_of_run = {name: run_entry([(entries[name], agent)]) for name, agent in agents.items()}
            kept = stack.enter_context(
                kept_records(options.out, options.seed, entries_of_run, options.accept_changed_code)
            )
        interrupts.run(
            lambda take_signals: run(serve_options, agents, sockets, rules, take_signals, log, kept),
            uvloop.new_event_loop,
        )
    return 0


def check_chats(name: str, agent: Agent[Any], log: ServerLog) -> None:
    """Open the agent, without its weights, and say what its chat template refuses of conversations that it begins.
    Raises InputError where it refuses those that a person begins."""
    if "conversation" not in agent.declaration().tasks or not reads(type(agent)) or agent.missing() is not None:
        return
    try:
        agent.open()
    except (UnavailableError, InputError):  # as its worker will say
        return
    if (problem := check_served(agent, BEGUN_BY_THE_OTHER)) is not None:
        raise InputError("the agents cannot be used as asked", [problem])
    if (problem := check_served(agent, BEGUN_BY_THE_AGENT)) is not None:
        log.progress(f"{name} can begin no conversation: {problem.message}")
    agent.close()


def check_host_names(hosts: list[str]) -> None:
    """Raises InputError for a name of ``--allow-host`` with a port, a scheme or a path."""
    for name in hosts:
        if not name or set(name) & set("/@?#[]* ") or (":" in name and name.count(":") < 2):
            raise InputError(f"--allow-host {name}: give the name alone, without http:// and without a port")


def read_api_key(file: Path | None) -> str | None:
    """The key in ``file``, else that of the environment; None where there is neither. Raises InputError for a file that
    cannot be read, and for a key of another form."""
    key = os.environ.get(KEY)
    where = KEY
    if file is not None:
        where = str(file)
        try:
            with file.open("rb") as opened:
                key = opened.read(LONGEST + 1).decode("ascii").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"{where}: cannot be read as a key: {error}") from None
    if key is None:
        return None
    if not SHORTEST <= len(key) <= LONGEST or not key.isascii() or not key.isprintable() or " " in key:
        raise InputError(f"{where}: a key has {SHORTEST} to {LONGEST:,} letters, digits or signs, and no spaces")
    return key
