"""The base of captioners whose checkpoint stands beside two others: CLIP's image tower and a language model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

from agents import checkpoints, hub
from agents.errors import UnavailableError
from agents.stimuli import CaptionStimulus, Stimulus
from agents.vision.caption_settings import C
from agents.vision.captioner import CaptionAgent, Prepared, check_shape


class ClipCaptioner(CaptionAgent[C]):
    """The settings ``checkpoint``, ``clip`` and ``language_model`` name the three.

    ``source`` says where the checkpoint is to be had, if it is on no hub. ``language_needs`` and ``language_types``
    are of the language model what ``needs`` and ``model_types`` are of a checkpoint.
    """

    parts = ("checkpoint", "clip", "language_model")
    source: ClassVar[str | None] = None
    language_needs: ClassVar[tuple[str, ...]] = ("config.json", checkpoints.TOKENIZER)
    language_types: ClassVar[tuple[str, ...]]

    def checkpoint(self) -> tuple[str | None, str | None]:
        """The checkpoint's name; its revision and those of the two others."""
        if self.random:
            return super().checkpoint()
        (name, revision), *others = (checkpoints.identity(*self._named(part)) for part in self.parts)
        return name, " ".join([str(revision), *(f"{other}@{at}" for other, at in others)])

    def weight_paths(self) -> Sequence[Path]:
        own, *others = (checkpoints.find(*self._named(part)) for part in self.parts)
        return [checkpoints.weights_file(own), *others]

    def missing(self) -> str | None:
        if self.random or self.missing_packages() is not None:
            return super().missing()
        for part in self.parts:
            try:
                found = checkpoints.find(*self._named(part))
            except UnavailableError as error:
                how = f"run `turinglike fetch {self.name}` where there is a network"
                if part == "checkpoint" and self.source is not None:
                    how = self.source
                return f"{error}: {how}, or give a local copy with --set {self.name}.{part}=PATH"
        wrong = checkpoints.problem(found, self.language_needs, self.language_types)
        return None if wrong is None else f"{found} {wrong}"

    def fetch(self) -> Sequence[checkpoints.Download]:
        if self.random:
            return ()
        try:  # what no hub has, before anything is downloaded
            own = hub.fetch(*self._named("checkpoint"))
        except UnavailableError as error:
            if self.source is None:
                raise
            raise UnavailableError(f"{error}: {self.source}; then --set {self.name}.checkpoint=PATH") from None
        return [own, *(hub.fetch(*self._named(part)) for part in self.parts[1:])]

    def provenance(self) -> dict[str, Any]:
        found = self.random or any(map(checkpoints.random_weights, self.weight_paths()))
        return {**super().provenance(), **({"random_weights": True} if found else {})}

    def prepare(self, stimulus: Stimulus) -> Prepared:
        assert isinstance(stimulus, CaptionStimulus)
        pixels = stimulus.image.decode()
        check_shape(pixels)
        return {"pixel_values": self._images(pixels)}

    def _named(self, part: str) -> tuple[str, str | None]:
        """Name and asked revision of a part; the other two are at their pinned commit, or what was fetched last."""
        return getattr(self.settings, part), self.settings.revision if part == "checkpoint" else None
