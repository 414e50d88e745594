"""Random weights: the architecture of a published checkpoint at its real size, without the checkpoint.

An agent whose setting ``checkpoint`` is "random" is measured before any weights are there. Its architecture is a line
of a table (:mod:`agents.vision.architectures`, :mod:`agents.language.architectures`), of which a folder is made that
has all that a checkpoint's has but the weights. These are drawn where the model runs, in its type, and are the same
every time and on every device: a fixed sequence of normal numbers, repeated, each matrix from another place in it on.
Its length is a prime, so that no two rows of a matrix are alike.

What such a model says is noise. Its texts all have the same length, the largest that the settings allow: no token that
ends or pads a text is ever taken. Nothing is rejected and asked for again.
"""

from __future__ import annotations

import importlib
import json
import math
import shutil
import tempfile
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agents import checkpoints
from agents.errors import UnavailableError
from agents.made_tokenizer import Tokens, make, make_inner

if TYPE_CHECKING:
    import torch
    from torch import Tensor

RANDOM = "random"
SEQUENCE = 1_048_583  # the least prime above 2^20
NORMS = {"weight": 1.0, "bias": 0.0, "running_mean": 0.0, "running_var": 1.0}  # what frozen norms keep as buffers
CONFIG, GENERATION, IMAGES = "config.json", "generation_config.json", "preprocessor_config.json"


@dataclass(frozen=True, slots=True)
class Architecture:
    """A published model, without its weights.

    ``kind`` is the model_type of its config.json, ``parameters`` how many weights it has, ``fields`` what differs from
    the defaults of its configuration: transformers' for its kind, or ``config`` ("module:Class"). ``model`` is the
    class that a checkpoint names, for engines that ask the checkpoint. ``tokens``: its tokenizer; with ``bare_tokens``
    the dictionary alone is written, as vocab.json and merges.txt. ``images`` are the class of its image processor and
    what differs from its defaults, ``generation`` is what its generation_config.json says of tokens, ``files`` are
    further files of JSON by name.
    """

    kind: str
    parameters: int
    fields: Mapping[str, Any] = field(default_factory=dict)
    config: str | None = None
    model: str | None = None
    tokens: Tokens | None = None
    bare_tokens: bool = False
    images: tuple[str, Mapping[str, Any]] | None = None
    generation: Mapping[str, Any] = field(default_factory=dict)
    files: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def make_config(self) -> Any:
        """Its configuration, an object of transformers."""
        from transformers import AutoConfig

        if self.config is None:
            config = AutoConfig.for_model(self.kind, **self.fields)
        else:
            module, _, name = self.config.partition(":")
            config = getattr(importlib.import_module(module), name)(**self.fields)
        config.architectures = None if self.model is None else [self.model]
        return config

    def write(self, folder: Path) -> None:
        """Fill ``folder`` with what a checkpoint has beside its weights, and the mark of random ones."""
        import transformers

        self.make_config().save_pretrained(folder)
        if self.generation:
            transformers.GenerationConfig(**self.generation).save_pretrained(folder)
        if self.tokens is not None and self.bare_tokens:
            make_inner(self.tokens).model.save(str(folder))
        elif self.tokens is not None:
            make(self.tokens).save_pretrained(folder)
        if self.images is not None:
            name, fields = self.images
            said = getattr(transformers, name)(**fields).to_dict()
            (folder / IMAGES).write_text(json.dumps(said))
        for file, values in self.files.items():
            (folder / file).write_text(json.dumps(values))
        (folder / checkpoints.MARKER).touch()


def asked(checkpoint: str) -> bool:
    """Whether a setting ``checkpoint`` asks for random weights: "random", or "random:" and a published checkpoint."""
    return checkpoint == RANDOM or checkpoint.startswith(f"{RANDOM}:")


def spelled(published: str) -> str:
    """The setting that asks for the architecture of the checkpoint ``published``."""
    return f"{RANDOM}:{published}"


def published(checkpoint: str) -> str:
    """Of which checkpoint a setting for random weights asks the architecture; "" if it does not say."""
    return checkpoint.removeprefix(RANDOM).removeprefix(":").removeprefix("./")


@cache
def known() -> Mapping[str, Architecture]:
    """All architectures by their published checkpoints."""
    from agents.language import architectures as language
    from agents.vision import architectures as vision

    return {**vision.ARCHITECTURES, **language.ARCHITECTURES}


def architecture(checkpoint: str, kinds: Sequence[str] = ()) -> Architecture:
    """What a setting for random weights asks for. Raises UnavailableError, also if it is none of the ``kinds``."""
    name = published(checkpoint)
    fitting = {known_name: one for known_name, one in known().items() if not kinds or one.kind in kinds}
    if name in fitting:
        return fitting[name]
    what = f"no architecture of {name} is known here" if name else f"{checkpoint} does not say of which checkpoint"
    choice = f": --set AGENT.checkpoint={RANDOM}:NAME, with {' or '.join(sorted(fitting))}" if fitting else ""
    raise UnavailableError(f"random weights: {what}{choice}")


class MadeFolder:
    """A new folder ``path`` for an architecture among the machine's temporary ones. It goes with :meth:`remove`, with
    this object, or with the process."""

    def __init__(self, one: Architecture) -> None:
        """Raises UnavailableError."""
        self.path = Path(tempfile.mkdtemp(prefix="turinglike-random-"))
        self._remove = weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)
        one.write(self.path)

    def remove(self) -> None:
        self._remove()


def is_made(folder: Path) -> bool:
    """Whether the folder is a :class:`MadeFolder`'s: it says that its weights are random, and has none."""
    files = {path.name for path in folder.iterdir()} if folder.is_dir() else set()
    return checkpoints.MARKER in files and not any(name.endswith(checkpoints.FILES) for name in files)


# models


def load(cls: Any, folder: Path, device: torch.device, dtype: torch.dtype) -> Any:
    """The model ``cls`` of transformers that a :class:`MadeFolder` says, in evaluation mode on ``device``."""
    from transformers import AutoConfig, GenerationConfig

    is_auto = hasattr(cls, "from_config")
    config = (AutoConfig if is_auto else cls.config_class).from_pretrained(folder, local_files_only=True)
    make_model = cls.from_config if is_auto else cls._from_config
    model = build(lambda: make_model(config, dtype=dtype), device, dtype)
    if (folder / GENERATION).exists():
        model.generation_config = GenerationConfig.from_pretrained(folder, local_files_only=True)
    return model


def build(make_module: Callable[[], Any], device: torch.device, dtype: torch.dtype) -> Any:
    """What ``make_module`` makes, with drawn weights, in evaluation mode; on ``device`` and in ``dtype`` from the
    beginning, so that it is there once."""
    import torch
    from transformers.initialization import no_init_weights

    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        with device, no_init_weights():
            module = make_module()
    finally:
        torch.set_default_dtype(before)
    if hasattr(module, "tie_weights"):  # which is a part of the drawing that is left out
        module.tie_weights()
    fill(module)
    return module.eval()


def fill(module: torch.nn.Module) -> None:
    """Draw the weights of ``module``, where they are and in their type.

    A matrix has the deviation with which its outputs are as large as its inputs; scales of norms are 1, biases 0.
    """
    import torch

    place = 0
    sequences: dict[tuple[torch.device, torch.dtype], Tensor] = {}
    with torch.no_grad():
        for name, weight in module.named_parameters():
            if name.endswith("bias"):
                weight.zero_()
                continue
            if weight.ndim < 2:
                if weight.numel() > 1:  # what is one number has its value from its constructor
                    weight.fill_(1.0)
                continue
            kind = (weight.device, weight.dtype)
            if kind not in sequences:
                sequences[kind] = _sequence().to(*kind)
            inputs = math.prod(weight.shape[1:]) if weight.ndim == 4 else weight.shape[-1]
            _repeat(weight, sequences[kind] * inputs**-0.5, place % SEQUENCE)
            place += weight.numel()
        for name, kept in module.named_buffers():
            value = NORMS.get(name.rpartition(".")[2])
            if value is not None and kept.ndim == 1:
                kept.fill_(value)


def _sequence() -> Tensor:
    import torch

    return torch.randn(SEQUENCE, generator=torch.Generator().manual_seed(0))


def _repeat(weight: Tensor, sequence: Tensor, start: int) -> None:
    """Fill ``weight`` with ``sequence`` from ``start`` on, again and again."""
    flat = weight.view(-1)
    first = min(len(sequence) - start, len(flat))
    flat[:first] = sequence[start : start + first]
    whole = (len(flat) - first) // len(sequence)
    last = first + whole * len(sequence)
    flat[first:last].view(whole, len(sequence))[:] = sequence
    flat[last:] = sequence[: len(flat) - last]
