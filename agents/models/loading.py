"""Models from local files, executing nothing that a file holds; how a GPU computes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agents.errors import UnavailableError, short_text
from agents.models import model_folders, plain_files, random_weights, weight_files

if TYPE_CHECKING:
    import torch


def use_full_float32(kind: str) -> None:
    """Keep float32 in products and convolutions on a GPU (``kind`` "cuda"), where torch may take TF32 with 10 bits.
    Batches are their single stimuli only in full float32."""
    import torch

    if kind == "cuda":
        torch.set_float32_matmul_precision("highest")
        torch.backends.cudnn.allow_tf32 = False


def gpu_provenance() -> dict[str, Any]:
    """The GPU of this process, as records name it: its name, CUDA's version, the arithmetic, and the kernels of
    attention that torch may choose from."""
    import torch

    kernels = {
        "flash": torch.backends.cuda.flash_sdp_enabled(),
        "efficient": torch.backends.cuda.mem_efficient_sdp_enabled(),
        "cudnn": torch.backends.cuda.cudnn_sdp_enabled(),
        "math": torch.backends.cuda.math_sdp_enabled(),
    }
    return {
        "gpu": torch.cuda.get_device_name(0),
        "cuda": torch.version.cuda,
        "float32": torch.get_float32_matmul_precision(),
        "tf32_convolutions": torch.backends.cudnn.allow_tf32,
        "sdpa": [name for name, is_enabled in kernels.items() if is_enabled],
    }


def dtype_for(precision: str, device: torch.device, folder: Path) -> torch.dtype:
    """The type of weights for a setting ``precision``. "auto" is fp32 on a CPU; on a GPU it is fp16 where
    ``config.json`` says so, else bf16."""
    import torch

    if precision != "auto":
        return {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}[precision]
    if device.type != "cuda":
        return torch.float32
    config = model_folders.read_object(folder / "config.json")
    return torch.float16 if "float16" in (config.get("dtype"), config.get("torch_dtype")) else torch.bfloat16


def missing_quantizer(folder: Path) -> str | None:
    """What a checkpoint's quantised weights need that is not here, in transformers' words; or None."""
    quantization = model_folders.read_object(folder / "config.json").get("quantization_config")
    if not quantization:
        return None
    if not isinstance(quantization, dict):
        return f"{folder} has a config.json whose quantization_config is no object"
    from transformers.quantizers.auto import AutoHfQuantizer

    try:
        with _silence():
            quantizer = AutoHfQuantizer.from_config(quantization, pre_quantized=True)
            with suppress(ValueError, RuntimeError):  # of a GPU, which a worker may have
                quantizer.validate_environment(device_map={"": "cpu"}, weights_only=True)
    except Exception as error:  # a package that is not here, or values that no quantizer has
        return f"{folder} has weights quantised by {quantization.get('quant_method')}: {short_text(error)}"
    return None


def unusable_template(folder: Path) -> str | None:
    """Why no prompt can be made of a chat, as far as is known without the tokenizer's library; or None."""
    try:
        template, tokens = chat_template(folder)
    except Exception as error:  # values of other types than a tokenizer has
        return f"the chat template of {folder} cannot be read: {short_text(error)}"
    if not template:  # an empty file has none, too
        return no_template(folder)
    for name in re.findall(r"\b\w+_token\b", template):  # some of the tokenizer's class, which alone knows them
        tokens.setdefault(name, "")
    given = {**tokens, "date_string": "26 Jul 2024", "enable_thinking": False, "thinking": False}
    chats = [[{"role": "user", "content": content}] for content in ("Hi", [{"type": "text", "text": "Hi"}])]
    if any(plain_files.renders(template, chat, given) for chat in chats):
        return None
    from transformers.utils.chat_template_utils import render_jinja_template

    why = None
    for chat in chats:
        try:
            render_jinja_template([chat], chat_template=template, add_generation_prompt=True, **given)
        except Exception as error:  # whatever the program in a template raises
            # Of the try with a text: an error about lists may hide what the template itself says.
            why = why or f"the chat template of {folder} refuses every chat: {short_text(error)}"
        else:
            return None
    return why


def chat_template(folder: Path) -> tuple[str | None, dict[str, str]]:
    """The template, in Jinja, by which the tokenizer or processor of a folder makes a prompt of a chat, or None; and
    the tokens that it may name, such as ``bos_token``. Raises OSError."""
    tokenizer_config = model_folders.read_object(folder / "tokenizer_config.json")
    others = (model_folders.read_object(folder / name) for name in ("processor_config.json", "chat_template.json"))
    template = next(filter(None, (file.get("chat_template") for file in (tokenizer_config, *others))), None)
    if isinstance(template, list):  # several, by name
        template = {named["name"]: named["template"] for named in template}.get("default")
    if (file := folder / "chat_template.jinja").is_file():
        template = file.read_text(encoding="utf-8")
    tokens = {}
    for name, token in tokenizer_config.items():
        if name.endswith("_token") and token:
            tokens[name] = str(dict(token)["content"]) if isinstance(token, dict) else token
    return template, tokens


def no_template(folder: Path) -> str:
    """A sentence for a folder without a chat template: what it means, and what to do instead."""
    return (
        f"{folder} has no chat template: the model was not trained to chat; to continue texts, use gpt2-completion "
        f"with the setting gpt2-completion.checkpoint={folder} (--set)"
    )


def load_pretrained(cls: Any, folder: Path, device: torch.device, dtype: torch.dtype, devices: int = 1) -> Any:
    """The model of a folder on ``device``, in evaluation mode and without gradients. ``cls`` is a class of
    transformers; with several ``devices`` its layers are spread over all GPUs that this process sees. Raises
    UnavailableError if the folder cannot be read, needs code of its own, or lacks weights."""
    import pickle

    use_full_float32(device.type)
    if device.type == "cpu":
        from agents.models.shared_keys import share_keys

        share_keys()
    is_random = random_weights.is_made(folder)
    places: Any = {"": str(device)} if device.type == "cuda" else None
    room: dict[int, int] | None = None
    if devices > 1:
        from accelerate.utils import get_max_memory

        if is_random:
            raise UnavailableError(f"random weights are made on one GPU, and {devices} are needed: choose engine=vllm")
        # The host and its disk are no place for layers: each pass would carry them to a GPU again.
        places = "balanced"
        room = {gpu: size for gpu, size in get_max_memory().items() if isinstance(gpu, int)}
    try:
        with _silence():
            if is_random:
                return random_weights.load_random(cls, folder, device, dtype)
            model, loading_info = cls.from_pretrained(
                folder,
                dtype=dtype,
                device_map=places,
                max_memory=room,
                output_loading_info=True,
                ignore_mismatched_sizes=True,  # to be named below, with what else is wrong
                attn_implementation=None,  # transformers' choice: a config.json may name code to be downloaded
                trust_remote_code=False,
                local_files_only=True,
                weights_only=True,
            )
    except pickle.UnpicklingError as error:
        raise weight_files.not_executed(folder, error) from None
    except MemoryError:
        raise
    except Exception as error:  # damaged weights and values that no configuration can have raise a dozen types
        raise UnavailableError(f"{folder} cannot be loaded as {cls.__name__}: {short_text(error)}") from None
    reshaped = [f"{name} {list(stored)} for {list(wanted)}" for name, stored, wanted in loading_info["mismatched_keys"]]
    weight_files.check_names(folder, list(loading_info["missing_keys"]), reshaped=reshaped)
    return model.eval().requires_grad_(False)


@contextmanager
def told_of_values(folder: Path) -> Iterator[None]:
    """While a model of ``folder`` is opened and tried: values in its files that libraries take, and that then mean
    nothing (an end token that is a list of lists), are an UnavailableError. What a device or a process raises stays."""
    try:
        yield
    except (TypeError, ValueError, AttributeError, LookupError, ArithmeticError, RecursionError) as error:
        raise UnavailableError(f"{folder} holds values that do not fit together: {short_text(error)}") from error


def load_part(cls: Any, folder: Path, what: str, **options: Any) -> Any:
    """A tokenizer or processor of a folder, by a class of transformers; ``what`` is its name in an error. Raises
    UnavailableError."""
    try:
        with _silence():
            return cls.from_pretrained(folder, trust_remote_code=False, local_files_only=True, **options)
    except Exception as error:  # damaged JSON, unknown classes and bad values raise a dozen types
        raise UnavailableError(f"the {what} in {folder} cannot be loaded: {short_text(error)}") from None


def load_weights(
    model: torch.nn.Module, weights: Mapping[str, torch.Tensor], path: Path, unused: Sequence[str] = ()
) -> None:
    """Give ``model`` the ``weights`` of the file ``path``, all of them. Names that begin with one of ``unused`` may be
    left over. Raises UnavailableError for missing, unexpected or reshaped weights."""
    kept = {name: value for name, value in weights.items() if not name.startswith(tuple(unused))}
    try:
        wrong = model.load_state_dict(kept, strict=False)
    except RuntimeError as error:  # shapes
        raise UnavailableError(f"{path} is not a checkpoint of this architecture: {short_text(error)}") from None
    weight_files.check_names(path, wrong.missing_keys, wrong.unexpected_keys)


@contextmanager
def _silence() -> Iterator[None]:
    from transformers.utils import logging

    has_bars = logging.is_progress_bar_enabled()
    level = logging.get_verbosity()
    logging.disable_progress_bar()
    logging.set_verbosity_error()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if has_bars:
            logging.enable_progress_bar()
