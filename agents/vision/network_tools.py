"""What several networks share."""

import pickle
import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor, nn
from torchvision import transforms

from agents.errors import UnavailableError
from agents.models import checkpoints
from agents.vision.captioner import Prepared, check_shape

CLIP_MEAN = (0.48145466, 0.4578275, 0.40821073)
CLIP_DEVIATION = (0.26862954, 0.26130258, 0.27577711)
COUNTER = "num_batches_tracked"  # over how many batches a norm's averages were taken: of no use, and not in every file
# What programs of torch and fairseq pickle beside weights and words. Each is replaced by :class:`Inert`.
INERT = re.compile(
    r"argparse\.Namespace|omegaconf\.[\w.]+|fairseq\.[\w.]+|typing\.Any|pathlib\.\w*Path|_codecs\.encode"
    r"|numpy\.(_?core\.multiarray\.(scalar|_reconstruct)|dtype|ndarray)"
    r"|(__builtin__|builtins)\.(bool|bytes|dict|float|int|list|object|set|str|tuple)"
)


class ClipPixels:
    """The middle square at ``size`` x ``size`` pixels as by OpenAI's ``clip.load``; ``squeezed``: all of the image."""

    def __init__(
        self,
        size: int,
        mean: Sequence[float] = CLIP_MEAN,
        deviation: Sequence[float] = CLIP_DEVIATION,
        *,
        squeezed: bool = False,
    ) -> None:
        self.squeezed = squeezed
        resize = transforms.Resize((size, size) if squeezed else size, transforms.InterpolationMode.BICUBIC)
        normalise = transforms.Normalize(mean, deviation)
        self._transform = transforms.Compose([resize, transforms.CenterCrop(size), transforms.ToTensor(), normalise])

    def __call__(self, pixels: NDArray[np.uint8]) -> Prepared:
        if not self.squeezed:
            check_shape(pixels)
        return {"pixel_values": self._transform(Image.fromarray(pixels))}


class Inert:
    """Stands for any object of a training program."""

    def __init__(self, *_: object, **__: object) -> None:
        pass

    def __setstate__(self, state: object) -> None:
        pass


def read_pickle(path: Path, allowed: Collection[str] = (), inert: re.Pattern[str] | None = None) -> Any:
    """Imports only ``allowed``; ``inert`` becomes :class:`Inert`. Raises UnavailableError for anything else."""

    class Unpickler(pickle.Unpickler):
        def find_class(self, module: str, name: str) -> Any:
            full = f"{module}.{name}"
            if inert is not None and inert.fullmatch(full):
                return Inert
            if full not in allowed:
                raise UnavailableError(f"{path} asks for {full}, of which there is no need; nothing was executed")
            return super().find_class(module, name)

    try:
        with path.open("rb") as file:
            return Unpickler(file, encoding="latin1").load()
    except UnavailableError:
        raise
    except Exception as error:  # a damaged pickle raises a dozen types
        raise UnavailableError(f"{path} cannot be read: {checkpoints.short_text(error)}") from None


def layers_of(names: Collection[str], prefix: str) -> int:
    return len({name[len(prefix) :].split(".")[0] for name in names if name.startswith(prefix)})


def assign(module: nn.Module, weights: Mapping[str, Tensor], path: Path, prefix: str = "") -> None:
    """Give ``module`` the float32 weights under ``prefix``. Raises UnavailableError if names or shapes differ."""
    needed = {name: value for name, value in module.state_dict().items() if not name.endswith(COUNTER)}
    weights = {name: value for name, value in weights.items() if not name.endswith(COUNTER)}
    checkpoints.check_names(
        path,
        missing=[prefix + name for name in needed if name not in weights],
        unexpected=[prefix + name for name in weights if name not in needed],
        reshaped=[
            f"{prefix}{name} {list(weights[name].shape)} for {list(value.shape)}"
            for name, value in needed.items()
            if name in weights and weights[name].shape != value.shape
        ],
    )
    # Copied: as they are mapped from the file their places in memory are odd, and so would be the rounding of sums.
    state = {name: value.to(torch.float32, copy=True) for name, value in weights.items()}
    counters = {name: torch.zeros((), dtype=torch.int64) for name in module.state_dict() if name.endswith(COUNTER)}
    module.load_state_dict(state | counters, assign=True)
    module.requires_grad_(False).eval()


def attention(query: Tensor, key: Tensor, value: Tensor, heads: int) -> Tensor:
    """[batch, n, width] to keys and values [batch, m, width]: [batch, n, width]."""
    parts = [part.unflatten(-1, (heads, -1)).transpose(1, 2) for part in (query, key, value)]
    return nn.functional.scaled_dot_product_attention(*parts).transpose(1, 2).flatten(2)


class BeamSums:
    """The log-probability of each beam of a search."""

    def __init__(self, beams: int) -> None:
        self._beams = beams
        self._tokens: Tensor | None = None  # of the last step's beams, and their continuations' scores
        self._totals: Tensor
        self._scores: Tensor

    def before(self, input_ids: Tensor) -> Tensor | None:
        """[rows * beams] for ``input_ids`` [rows * beams, step]; None before the first step."""
        if self._tokens is None:
            return None
        begun = input_ids[:, :-1].unflatten(0, (-1, self._beams))
        same = (begun[:, :, None] == self._tokens.unflatten(0, (-1, self._beams))[:, None]).all(dim=-1)
        first = torch.arange(0, len(input_ids), self._beams, device=input_ids.device)
        continued = (same.int().argmax(dim=-1) + first[:, None]).flatten()
        return self._totals[continued] + self._scores[continued, input_ids[:, -1]]

    def keep(self, input_ids: Tensor, totals: Tensor, scores: Tensor) -> None:
        self._tokens = input_ids
        self._totals = totals
        self._scores = scores
