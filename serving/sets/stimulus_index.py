"""``stimuli.index``: what each stimulus of a run was when it was checked.

A run may be continued weeks later, when the set's file has grown and pictures have been touched. The index says, for
each stimulus, a hash of its content (canonical row and bytes of pictures) and a hash of its pictures' names, sizes and
times. Where the second is as before nobody reads the pictures again; where the first has changed the run is refused,
because its answers would be to another stimulus.
"""

import hashlib
from pathlib import Path

import orjson

from agents.errors import IdentityError, Problem
from serving.files.atomic_files import replacing
from serving.files.words import count

HEAD = b"turinglike.index/4"  # the first line of the file
UNREAD = "0" * 16  # in place of a hash of content
NAMED = 10  # changed stimuli that a message names

StimulusKey = tuple[str, str]
"""Task and id."""
IndexEntry = tuple[str, int]
"""The content's hash, or UNREAD; the hash of the files' sizes and times (0 without images)."""
Index = dict[StimulusKey, IndexEntry]
"""By key, in the set's order."""


def sha256_of(index: Index) -> str:
    """A hash over the stimuli sorted by id: order and file format do not matter."""
    pairs = (
        hashlib.sha256(id.encode()).digest()[:8] + bytes.fromhex(content) for (_, id), (content, _) in index.items()
    )
    return hashlib.sha256(b"".join(sorted(pairs))).hexdigest()


def load_index(folder: Path) -> Index | None:
    """The index of a run folder; None where there is none that can be read."""
    try:
        form, _, entries = (folder / "stimuli.index").read_bytes().partition(b"\n")
        if form != HEAD:
            return None
        return {(task, id): (content, signature) for (task, id), (content, signature) in orjson.loads(entries)}
    except (OSError, ValueError, TypeError):
        return None


def save_index(folder: Path, index: Index) -> None:
    """Write the index of a run to ``stimuli.index`` in its ``folder``, over an older one. Raises StorageError."""
    with replacing(folder / "stimuli.index") as file:
        file.write(HEAD + b"\n" + orjson.dumps([*index.items()]))


def carry_over(folder: Path, old: Index, new: Index) -> None:
    """Give stimuli of ``new`` that cannot be read now their entry in ``old``. Raises IdentityError unless ``new`` has
    all others of ``old`` unchanged."""
    problems: list[Problem] = []
    path = str(folder / "stimuli.jsonl")
    for line, (key, (content, signature)) in enumerate(old.items(), start=1):
        now = new.get(key)
        if now is None or (UNREAD not in (content, now[0]) and content != now[0]):
            what = "is missing from the set" if now is None else "has changed since the run began"
            problems.append(Problem(path, line, key[1], what))
        elif now[0] == UNREAD:
            new[key] = content, signature
    if problems:
        changed = count(len(problems), "stimulus", "stimuli")
        raise IdentityError(f"{folder} was made from another set ({changed}); choose another folder", problems[:NAMED])
