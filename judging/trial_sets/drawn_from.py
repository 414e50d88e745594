"""Whether the answers that a trial set was drawn from have changed since: a note beside the set, and who reads it.

Trials keep the answers that they show. So nothing is wrong with verdicts on them when a corrected table is imported
later, but they are about the old answers, and nobody would notice.
"""

import hashlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from agents.errors import InputError
from serving.runs.run import Run

AT_ONCE = 1 << 20
"""Bytes that are read at a time."""


def digests_of_answers(folders: Sequence[Path], agents: Collection[str] | None) -> list[dict[str, Any]]:
    """What is noted of run folders: where each lies, its id, and the SHA-256 of each file of records, by its name.

    ``agents`` are those whose answers become trials, None: all. Files of others are left out. Raises InputError for
    what is no run folder.
    """
    noted = []
    for folder in folders:
        run = Run(folder)
        names = run.imports()
        names += [name for name in run.agents() if agents is None or not {name, *name.split("~")}.isdisjoint(agents)]
        digests = {name: _digest(run.records_path(name)) for name in names}
        noted.append({"folder": str(folder.resolve()), "run": run.meta["run"], "sha256": digests})
    return noted


def changed_answers(notes: Mapping[str, Any], trials: str) -> Iterator[str]:
    """A sentence for each run folder whose answers are no longer those that ``trials`` were drawn from.

    ``notes`` are those of the trial set. Nothing is said of folders that are not where they were, of sets of older
    versions, and of answers that came in files of their own: these are no part of the trials.
    """
    for noted in notes.get("drawn_from", ()):
        try:
            run = Run(noted["folder"])
        except InputError:
            continue
        if run.meta["run"] != noted["run"]:
            continue
        changed = [name for name, digest in noted["sha256"].items() if _digest(run.records_path(name)) != digest]
        if changed:
            whose = ["people" if name == "humans" else name for name in changed]
            yield (
                f"the answers in {noted['folder']} have changed since {trials} was drawn from them ({', '.join(whose)})"
                ": trials, verdicts and scores are of the older answers. `turinglike trials` draws new ones"
            )


def _digest(path: Path) -> str | None:
    """The SHA-256 of a file; None where there is none."""
    digest = hashlib.sha256()
    try:
        with path.open("rb") as file:
            while data := file.read(AT_ONCE):
                digest.update(data)
    except FileNotFoundError:
        return None
    return digest.hexdigest()
