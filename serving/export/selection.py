"""Which records an export is about."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import orjson

from agents.errors import InputError
from serving.runs.run import Run

SCHEMA = "turinglike.export/1"
MALFORMED = (KeyError, TypeError, ValueError, AttributeError, ZeroDivisionError)  # what an answer of no form makes

Record = dict[str, Any]
Row = dict[str, Any]


class Selection:
    """The records of a run that an export is about, and a count of those it leaves out."""

    def __init__(
        self,
        folder: Run,
        sample: int | None,
        include_rejected: bool,
        include_control: bool,
        allow_missing: bool = False,
    ) -> None:
        self.folder = folder
        self.sample = sample
        self.include_rejected = include_rejected
        self.include_control = include_control
        self.allow_missing = allow_missing
        self.taken: Counter[str] = Counter()
        self.left_out: Counter[str] = Counter()

    def uncounted(self) -> Selection:
        """The same selection, to look through what this one will give."""
        return Selection(self.folder, self.sample, self.include_rejected, self.include_control)

    def machines(self) -> list[str]:
        """The agents to export: those that have begun, controls only if asked for."""
        entries = self.folder.meta["agents"]
        names = dict.fromkeys([*entries, *self.folder.agents()])
        return [
            name for name in names if self.include_control or entries.get(name, {}).get("kind", "machine") != "control"
        ]

    def tasks(self, name: str) -> list[str]:
        """The tasks of an agent, as ``run.json`` has them; a pair that a server kept is not there, and converses."""
        entry = self.folder.meta["agents"].get(name, {"task": ["conversation"] if "~" in name else []})
        return list(entry["task"])

    def records(self, name: str, answers_to: str | None = None) -> Iterator[dict[str, Any]]:
        """The selected records of an agent or an import, failed ones too; or only answers to the task given."""
        for record in self.folder.latest(name):
            if self.sample is not None and record["sample"] != self.sample:
                continue
            if answers_to is not None and record["task"] != answers_to:
                continue
            if record["kind"] == "control" and not self.include_control:
                self.left_out["control"] += 1
            elif record["status"] == "rejected" and not self.include_rejected:
                self.left_out["rejected"] += 1
            elif answers_to is not None and (record["status"] == "failed" or record["answer"] is None):
                self.left_out["failed"] += 1
            else:
                self.taken[record["agent"]] += 1
                yield record

    def leave_out(self, record: dict[str, Any], why: str) -> None:
        """Not to export a record after all that :meth:`records` gave; ``why`` is for the summary."""
        self.taken[record["agent"]] -= 1
        self.left_out[why] += 1

    def everything(self) -> Iterator[dict[str, Any]]:
        """The selected records of all agents and imports."""
        for name in [*self.folder.agents(), *self.folder.imports()]:
            yield from self.records(name)

    def sidecar(self, form: str, notes: dict[str, Any]) -> bytes:
        """What a reader of the export must know, as JSON."""
        meta = self.folder.meta
        agents = {name: meta["agents"][name] for name in meta["agents"] if self.taken[name]}
        about = {
            "schema": SCHEMA,
            "format": form,
            "run": meta["run"],
            "turinglike": meta.get("turinglike"),
            "seed": meta.get("seed"),
            "sample": "all" if self.sample is None else self.sample,
            "set": meta.get("set"),
            "agents": agents,
            "records": dict(+self.taken),
            "left_out": dict(self.left_out),
            **notes,
        }
        return orjson.dumps(about, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)

    def left_out_told(self) -> str:
        """What was left out, as the end of a sentence; empty if nothing was."""
        options = {"rejected": " (--include-rejected)", "control": " (--include-control)"}
        return "".join(f"; {number:,} {what} left out{options.get(what, '')}" for what, number in self.left_out.items())


def misfit(record: Record, field: str, reason: str) -> InputError:
    """The error for a record whose ``field`` cannot be exported."""
    return InputError(f"{record['agent']}, stimulus {record['stimulus']!r}: {field}: {reason}")
