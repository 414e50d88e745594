"""The kind of a stimulus: what decides which agents are asked it."""

from collections.abc import Iterable, Mapping
from typing import Any

# (task, detail). The detail is the viewing mode of a scanpath, the judged task of a trial, "HM" or "HH" of a
# conversation with people; otherwise None.
Kind = tuple[str, str | None]


def kind_of(row: Mapping[str, Any]) -> Kind:
    """The kind of a stimulus by its fields, parsed or not."""
    task = str(row.get("task"))
    if task == "conversation":
        kind = str(row.get("type", "MM"))
        return task, None if kind == "MM" else kind
    if task == "judgement":
        return task, str(row.get("asked"))
    return task, (str(row.get("mode", "free")) if task == "attention_prediction" else None)


def is_asked(entry: Mapping[str, Any], kind: Kind) -> bool:
    """Whether the agent of an entry of ``run.json`` answers that kind."""
    task, mode = kind
    if task == "conversation":  # of two machines by a pair, with a person by an agent
        return mode == (None if entry.get("members") else "HM") and task in entry.get("task", ())
    return task in entry.get("task", ()) and (mode is None or mode in entry.get("modes", (mode,)))


def tasks_asked(entry: Mapping[str, Any]) -> list[str]:
    """The tasks that an agent answers without a partner, or a pair; ``entry`` is its entry of ``run.json``."""
    return [task for task in entry["task"] if "members" in entry or task != "conversation"]


def named(kinds: Iterable[Kind]) -> str:
    """Kinds for a person: "attention_prediction (search), image_captioning"."""
    return ", ".join(sorted(task if mode is None else f"{task} ({mode})" for task, mode in kinds))
