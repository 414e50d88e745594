"""The base of captioners whose authors published weights in files of their own, beside models of the hub."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from agents.contract import Download
from agents.errors import UnavailableError
from agents.models import checkpoints, hub, model_folders, weight_files
from agents.models.loading import load_part
from agents.vision.captioner import CaptionAgent
from agents.vision.captions import C
from agents.vision.pixels import ClipPixels


class PartsCaptioner(CaptionAgent[C]):
    """A captioner of several parts."""

    parts: ClassVar[tuple[str, ...]] = ("checkpoint", "clip", "language_model")
    """The settings that name the parts, the authors' file first."""
    source: ClassVar[str | None] = None
    """Where the authors' file is to be had."""
    last_needs: ClassVar[tuple[str, ...]] = ("config.json", model_folders.TOKENIZER)
    """The files that the last part must have."""
    last_types: ClassVar[tuple[str, ...]] = ()
    """The kinds of model that the last part may be; empty: any."""

    def checkpoint(self) -> tuple[str | None, str | None]:
        """The authors' file's name; its revision, and the other parts with theirs."""
        if self.random:
            return super().checkpoint()
        first, *others = self.parts
        name, revision = checkpoints.identity(*self._named(first))
        parts = [str(revision)]
        for part in others:
            other, of_other = checkpoints.identity(*self._named(part))
            parts.append(f"{other}@{of_other}")
        return name, " ".join(parts)

    def weight_paths(self) -> Sequence[Path]:
        """The files and folders with weights. Raises UnavailableError."""
        folders = [checkpoints.find(*self._named(part)) for part in self.parts]
        return [weight_files.weights_file(folders[0]), *folders[1:]]

    def part_path(self, part: str) -> Path:
        """Where the part lies that a setting names; with random weights in the temporary folder, whatever the setting
        says. Raises UnavailableError."""
        if not self.random:
            return checkpoints.find(*self._named(part))
        return self.folder() if part == self.parts[0] else self.folder() / part

    def missing(self) -> str | None:
        """What the base class says; also the first part that is not here, with how to get it."""
        if self.random or self.declares.missing_package() is not None:
            return super().missing()
        for part in self.parts:
            how = f"run `turinglike fetch {self.name}` where there is a network"
            if part == "checkpoint" and self.source is not None:
                how = self.source
            how = f"{how}, or give a local copy by the setting {self.name}.{part}=PATH (--set)"
            try:
                path = checkpoints.find(*self._named(part))
            except UnavailableError as error:
                return f"{error}: {how}"
        wrong = model_folders.problem(path, self.last_needs, self.last_types)
        return None if wrong is None else f"{path} {wrong}: {how}"

    def fetch(self) -> Sequence[Download]:
        """Download the parts in order, so that what no hub has is told first. Raises UnavailableError."""
        if self.random:
            return ()
        return [hub.fetch(*self._named(part)) for part in self.parts]  # first what no hub has

    def open(self) -> None:
        """Open the preparation for CLIP's tower, and the language model's tokenizer. Raises UnavailableError."""
        from transformers import AutoTokenizer

        from agents.vision.clip_towers import input_size

        self._clip = self.part_path("clip")
        self._gpt = self.part_path("language_model")
        self._pixels = ClipPixels(input_size(self._clip))
        self._tokenizer = load_part(AutoTokenizer, self._gpt, "tokenizer")

    def _named(self, part: str) -> tuple[str, str | None]:
        return getattr(self.settings, part), self.settings.revision if part == "checkpoint" else None
