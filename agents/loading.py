"""How a model of transformers is loaded: from a local folder, whole, executing nothing that it holds."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agents import checkpoints, random_weights
from agents.errors import UnavailableError

if TYPE_CHECKING:
    import torch


def dtype_for(precision: str, device: torch.device) -> torch.dtype:
    """The type in which a model computes: that of the setting ``precision``, "auto", "fp32", "bf16" or "fp16"."""
    import torch

    if precision == "auto":
        return torch.bfloat16 if device.type == "cuda" else torch.float32
    return {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}[precision]


def load_pretrained(cls: Any, folder: Path, device: torch.device, dtype: torch.dtype) -> Any:
    """A model of transformers from a local folder, in evaluation mode on ``device``.

    Raises UnavailableError, with one sentence, if the folder cannot be read, would have to execute code to be read, or
    lacks weights of the architecture, which transformers itself would draw at random; they are drawn only for a folder
    that was made for that (see :mod:`agents.random_weights`).
    """
    import pickle

    from safetensors import SafetensorError

    if random_weights.is_made(folder):
        with _silence():
            return random_weights.load(cls, folder, device, dtype)
    try:
        with _silence():
            model, about = cls.from_pretrained(
                folder,
                dtype=dtype,
                device_map={"": str(device)} if device.type == "cuda" else None,
                output_loading_info=True,
                ignore_mismatched_sizes=True,  # to be named below, with what else is wrong
                trust_remote_code=False,
                local_files_only=True,
                weights_only=True,
            )
    except pickle.UnpicklingError as error:
        raise checkpoints.not_executed(folder, error) from None
    except (OSError, EOFError, ValueError, RuntimeError, LookupError, TypeError, SafetensorError) as error:
        text = " ".join(str(error).split()) or type(error).__name__
        raise UnavailableError(f"{folder} cannot be loaded as {cls.__name__}: {text[:300]}") from None
    wrong = [f"{name} {list(found)} for {list(wanted)}" for name, found, wanted in about["mismatched_keys"]]
    checkpoints.check_names(folder, list(about["missing_keys"]), reshaped=wrong)
    return model.eval()


def load_part(cls: Any, folder: Path, what: str, **options: Any) -> Any:
    """A tokenizer or processor of transformers (``what`` says which) from a local folder. Raises UnavailableError."""
    try:
        with _silence():
            return cls.from_pretrained(folder, trust_remote_code=False, local_files_only=True, **options)
    except Exception as error:  # damaged JSON, unknown classes and bad values raise a dozen types
        text = " ".join(str(error).split()) or type(error).__name__
        raise UnavailableError(f"the {what} in {folder} cannot be loaded: {text[:200]}") from None


@contextmanager
def _silence() -> Iterator[None]:
    """Without transformers' progress bars and reports: what matters of them becomes an error here."""
    from transformers.utils import logging

    bars, level = logging.is_progress_bar_enabled(), logging.get_verbosity()
    logging.disable_progress_bar()
    logging.set_verbosity_error()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()
