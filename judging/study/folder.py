"""A study's folder, to be read while its server runs or after: how it stands, and what it exports."""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

from judging.study.design.settings import read_settings
from judging.study.kinds import material_of
from judging.study.log.files import EXPORTS, append, read_exports, read_personal
from judging.study.log.state import read_state
from judging.study.results.export import export
from judging.study.results.status import status_of
from serving.files.timestamps import now


@dataclass(frozen=True, slots=True)
class Exported:
    """What an export wrote to the folder ``path``; may stand where a path is wanted.

    ``number`` counts the verdicts, or answers of participants, that it holds; with 0 there is ``participants.csv``
    alone, which says who is paid. ``left_out`` says which meetings of live tests were void, and is empty without any.
    """

    path: Path
    number: int
    left_out: str

    def __fspath__(self) -> str:
        return str(self.path)


class Study:
    """A study's folder, to be read; nothing is served, and its judges notice nothing.

    >>> study = Study("study")
    >>> study.status()["verdicts"]
    >>> verdicts = study.export("verdicts")
    >>> score(verdicts).sentences()

    Raises InputError where the folder has no readable ``study.toml``."""

    def __init__(self, path: str | PathLike[str]) -> None:
        self.path = Path(path)
        """The folder, which `turinglike study new` has made."""
        self.settings = read_settings(self.path)
        """The choices of ``study.toml``."""

    def status(self) -> dict[str, Any]:
        """What `turinglike study status --json` prints: judges, verdicts, exclusions by rule, agents so far.

        Raises InputError where trials or key have changed."""
        state = read_state(self.path)
        status = status_of(state, material_of(self.path), read_personal(self.path))
        status["exports"] = [past for past in read_exports(self.path) if past["deleted"]]
        return status

    def export(self, out: str | PathLike[str], *, personal: bool = False, force: bool = False) -> Exported:
        """Write verdicts or answers to ``out`` as a run folder, which :func:`judging.score` reads.

        ``personal`` adds panels' ids and what people said of themselves; ``force`` replaces an earlier export. The
        study notes where the export lies, so that `turinglike study forget` can name it. Raises InputError and
        StorageError."""
        folder = Path(out)
        number, left_out = export(self.path, material_of(self.path), folder, personal=personal, force=force)
        append(self.path / EXPORTS, [{"at": now(), "out": str(folder.resolve())}])
        return Exported(folder, number, left_out)
