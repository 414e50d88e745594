"""A study's folder, to be read while its server runs or after: how it stands, and what it exports."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import Any

from judging.study.design.settings import read_settings
from judging.study.export import Exported, export
from judging.study.kinds import material_of
from judging.study.results.status import read_status


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

        In studies with agents' messages it asks their server. Raises InputError where trials or key have changed."""
        return read_status(self.path, material_of(self.path))

    def export(self, out: str | PathLike[str], *, personal: bool = False, force: bool = False) -> Exported:
        """Write verdicts or answers to ``out`` as a run folder, which :func:`judging.score` reads.

        ``personal`` adds panels' ids and what people said of themselves; ``force`` replaces an earlier export. The
        study notes where the export lies, so that `turinglike study forget` can name it. Raises InputError and
        StorageError."""
        return export(self.path, material_of(self.path), Path(out), personal=personal, force=force)
