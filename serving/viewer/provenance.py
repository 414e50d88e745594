"""Where a run's answers come from, for pages: its set, its seed, and its agents with checkpoints and settings."""

from collections.abc import Mapping
from typing import Any

from agents import catalogue
from agents.catalogue.named_models import HERE, SERVERS
from agents.errors import InputError
from serving.files.words import count
from serving.pages.task_names import TASK_NAMES
from serving.runs.run import Run

IN_PAPER = {"compared": "the papers' agent", "variant": "a variant of the papers' agent", "no": "not in the papers"}


def about_run(folder: Run) -> dict[str, Any]:
    """A run's provenance: under "rows" pairs (name, text), under "agents" a dictionary for each agent: its name, its
    badges (text, colour), its summaries ("about"), "rows" of its own, and "more" as JSON."""
    meta = folder.meta
    stimuli = meta.get("set") or {}
    rows = [
        ("run", str(meta.get("run"))),
        ("folder", folder.path.resolve().name),
        ("made", f"{meta.get('created', 'unknown')} by Turinglike {meta.get('turinglike', 'unknown')}"),
        ("seed", str(meta.get("seed"))),
        ("samples per stimulus", str(meta.get("samples", 1))),
    ]
    if stimuli:
        number = stimuli.get("count")
        number_from = f"{count(number, 'stimulus', 'stimuli')} from " if isinstance(number, int) else ""
        rows.append(("set", f"{number_from}{stimuli.get('source')}, SHA-256 {stimuli.get('sha256')}"))
    return {"rows": rows, "agents": [_agent(name, agent) for name, agent in (meta.get("agents") or {}).items()]}


def _agent(name: str, agent: Mapping[str, Any]) -> dict[str, Any]:
    badges = []
    summaries = []
    if agent.get("kind") == "control":
        badges.append(("control: odd by design", "warn"))
    if has_random_weights(agent):
        badges.append(("RANDOM WEIGHTS", "alert"))
    for part in dict.fromkeys(name.split("~")):
        try:
            entry = catalogue.get(part)
        except InputError:
            is_named = part.partition("-")[0] in (*HERE, *SERVERS)
            badges.append(("a model by its name" if is_named else f"{part[:80]} is not in this catalogue", ""))
            continue
        badges.append((IN_PAPER[entry.in_paper], "good" if entry.in_paper == "compared" else ""))
        summaries.append(f"{entry.summary} ({entry.source})")
    tasks = agent["task"] if isinstance(agent.get("task"), list) else [agent.get("task")]
    versions = agent.get("versions")
    members = (agent.get("members") or {name: agent}).values()
    sources = [(member.get("checkpoint"), member.get("revision")) for member in members]
    checkpoints = dict.fromkeys(
        f"{path} at {revision}" if revision else str(path) for path, revision in sources if path
    )
    rows = [
        ("task", ", ".join(TASK_NAMES.get(str(task), str(task)) for task in tasks)),
        ("checkpoint", "; ".join(checkpoints) or "none"),
        ("digest", str(agent.get("digest"))),
    ]
    if agent.get("samples", 1) != 1:
        rows.append(("samples", str(agent.get("samples"))))
    if versions and isinstance(versions, dict):
        rows.append(("versions", ", ".join(f"{package} {version}" for package, version in versions.items())))
    more = {part: agent[part] for part in ("settings", "provenance") if agent.get(part)}
    return {"name": name, "badges": [*dict.fromkeys(badges)], "about": summaries, "rows": rows, "more": more}


def has_random_weights(agent: Mapping[str, Any]) -> bool:
    """Whether an agent of ``run.json`` answered with random weights, which only measure a machine."""
    for part in (agent.get("provenance"), agent.get("settings")):
        if isinstance(part, dict) and (part.get("random_weights") is True or part.get("weights") == "random"):
            return True
    return False
