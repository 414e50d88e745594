"""Random weights: a published architecture at its real size, from a JSON file in ``agents/models/random``.

No token that ends a text is drawn."""

from __future__ import annotations

import itertools
import json
import math
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agents.errors import UnavailableError
from agents.models import weight_files

if TYPE_CHECKING:
    import torch
    from tokenizers import Tokenizer
    from transformers import PreTrainedTokenizerFast

RANDOM = "random"
"""The setting ``checkpoint`` that asks for random weights, alone or before ":" and a published name."""
SPACE = "Ġ"  # a space, as byte-level tokenizers write it
DESCRIBED = Path(__file__).parent / "random"
"""The folder with a JSON file for each published architecture."""
NORMS = {"weight": 1.0, "bias": 0.0, "running_mean": 0.0, "running_var": 1.0}  # what frozen norms keep as buffers


@dataclass(frozen=True, slots=True)
class Architecture:
    """A published architecture without its weights."""

    kind: str
    """The ``model_type`` of its configuration."""
    parameters: int
    """Weights."""
    files: Mapping[str, Any]
    """The content of its JSON files, by their names; "clip/config.json" stands in a folder for a part."""
    tokenizer: str | None = None
    """The tokenizer's name in ``tokenizers.json``; None: it has none."""
    tokenizer_part: str = ""
    """The part in whose folder the tokenizer stands; "": it stands beside the model's own files."""
    bare_tokenizer: bool = False
    """Whether the tokenizer is ``vocab.json`` and ``merges.txt`` alone, as OFA's dictionary is."""


def published_name(checkpoint: str) -> str:
    """The published checkpoint that stands after "random:", or ""."""
    return checkpoint.removeprefix(RANDOM).removeprefix(":").removeprefix("./")


def architectures() -> dict[str, Architecture]:
    """Every architecture that is described here, by the name of its published checkpoint."""
    files = [file for file in sorted(DESCRIBED.glob("*.json")) if file.stem != "tokenizers"]
    return {file.stem.replace("--", "/"): Architecture(**json.loads(file.read_text("utf-8"))) for file in files}


def architecture(checkpoint: str, kinds: Sequence[str] = ()) -> Architecture:
    """What a setting ``checkpoint`` such as "random:owner/name" asks for. Raises UnavailableError for one that is not
    described here, or whose kind is none of ``kinds``."""
    name = published_name(checkpoint)
    fitting = {published: made for published, made in architectures().items() if not kinds or made.kind in kinds}
    if name in fitting:
        return fitting[name]
    what = f"no architecture of {name} is known here" if name else f"{checkpoint} does not say of which checkpoint"
    choice = f": set AGENT.checkpoint={RANDOM}:NAME (--set), with {' or '.join(fitting)}" if fitting else ""
    raise UnavailableError(f"random weights: {what}{choice}")


def make_folder(made: Architecture) -> tempfile.TemporaryDirectory[str]:
    """A temporary folder of transformers' form with everything but weights; it goes with the object, or the process.
    A model of several parts has a folder for each of the others in it."""
    temporary = tempfile.TemporaryDirectory(prefix="turinglike-random-", ignore_cleanup_errors=True)
    folder = Path(temporary.name)
    for name, content in made.files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(json.dumps(content))
    if made.tokenizer is not None:
        part = folder / made.tokenizer_part
        part.mkdir(exist_ok=True)
        description = json.loads((DESCRIBED / "tokenizers.json").read_text("utf-8"))[made.tokenizer]
        if made.bare_tokenizer:
            _make_bpe(description).model.save(str(part))
        else:
            make_tokenizer(description).save_pretrained(part)
    for part in (folder, *filter(Path.is_dir, folder.iterdir())):
        (part / weight_files.MARKER).touch()
    return temporary


def is_made(folder: Path) -> bool:
    """Whether it comes from :func:`make_folder`."""
    files = {path.name for path in folder.iterdir()} if folder.is_dir() else set()
    return weight_files.MARKER in files and not any(name.endswith(weight_files.WEIGHT_SUFFIXES) for name in files)


def load_random(cls: Any, folder: Path, device: torch.device, dtype: torch.dtype) -> Any:
    """The model of a folder of :func:`make_folder` with drawn weights, in evaluation mode and without gradients. The
    same folder and device give the same weights."""
    from transformers import AutoConfig, GenerationConfig

    is_auto = hasattr(cls, "from_config")
    config = (AutoConfig if is_auto else cls.config_class).from_pretrained(folder, local_files_only=True)
    make_model = cls.from_config if is_auto else cls._from_config
    model = draw(lambda: make_model(config, dtype=dtype), device, dtype)
    if (folder / "generation_config.json").exists():
        model.generation_config = GenerationConfig.from_pretrained(folder, local_files_only=True)
    return model


def draw(make_module: Callable[[], Any], device: torch.device, dtype: torch.dtype) -> Any:
    """The module that ``make_module`` gives, with drawn weights, in evaluation mode and without gradients. It is made
    on ``device`` and in ``dtype``, so that no copy of it stands elsewhere."""
    import torch
    from transformers.initialization import no_init_weights

    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        with device, no_init_weights():
            module = make_module()
    finally:
        torch.set_default_dtype(before)
    if hasattr(module, "tie_weights"):  # a part of the initialisation that is left out
        module.tie_weights()
    fill(module)
    return module.eval().requires_grad_(False)


def fill(module: torch.nn.Module) -> None:
    """Draw the weights of a module in place, from a fixed seed: matrices are normal with a deviation that makes outputs
    as large as inputs, norms are 1, biases 0."""
    import torch

    generators: dict[torch.device, torch.Generator] = {}
    with torch.no_grad():
        for name, weight in module.named_parameters():
            if weight.ndim >= 2 and not name.endswith("bias"):
                if weight.device not in generators and weight.device.type != "meta":
                    generators[weight.device] = torch.Generator(weight.device).manual_seed(0)
                inputs = math.prod(weight.shape[1:]) if weight.ndim == 4 else weight.shape[-1]
                weight.normal_(0.0, inputs**-0.5, generator=generators.get(weight.device))
            elif name.endswith("bias"):
                weight.zero_()
            elif weight.numel() > 1:  # a single number has its value from its constructor
                weight.fill_(1.0)
        for name, kept in module.named_buffers():
            value = NORMS.get(name.rpartition(".")[2])
            if value is not None and kept.ndim == 1:
                kept.fill_(value)


def make_tokenizer(description: Mapping[str, Any]) -> PreTrainedTokenizerFast:
    """A tokenizer with the size and the special tokens of a published one. Its other tokens are bytes, and English
    words of wordfreq with their beginnings, so that texts have about as many tokens."""
    from transformers import PreTrainedTokenizerFast

    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=_make_bpe(description),
        clean_up_tokenization_spaces=False,
        **{f"{name}_token": description.get(name) for name in ("bos", "eos", "pad", "unk")},
    )
    tokenizer.chat_template = description.get("template")
    return tokenizer


def _make_bpe(description: Mapping[str, Any]) -> Tokenizer:
    """``size`` in tokens; ``special`` by id, ordinary ``pieces``, ``reserved`` ids; ``begins``: with ``bos``."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, processors

    special = {number: f"<|reserved_{number}|>" for number in range(*description.get("reserved", (0,)))}
    special |= {int(number): token for number, token in description["special"].items()}
    fixed = special | {int(number): token for number, token in description.get("pieces", {}).items()}
    tokens = {token: number for number, token in fixed.items()}
    free = (number for number in range(description["size"]) if number not in fixed)
    for byte in sorted(set(pre_tokenizers.ByteLevel.alphabet()) - tokens.keys()):
        tokens[byte] = next(free)
    merges = list(itertools.islice(_merges(), description["size"] - len(tokens)))
    tokens |= {"".join(merge): number for merge, number in zip(merges, free, strict=True)}

    bpe = Tokenizer(models.BPE(tokens, merges))
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=description.get("prefix_space", False))
    bpe.decoder = decoders.ByteLevel()
    bpe.add_special_tokens([AddedToken(special[number], normalized=False) for number in sorted(special)])
    if description.get("begins"):
        begin = description["bos"]
        bpe.post_processor = processors.TemplateProcessing(
            single=f"{begin} $A", special_tokens=[(begin, tokens[begin])]
        )
    return bpe


def _merges() -> Iterator[tuple[str, str]]:
    """All begin with the space, so that merges are unambiguous."""
    from wordfreq import top_n_list

    parts = {SPACE}
    for word in top_n_list("en", 1 << 20):
        if not (word.isascii() and word.isalpha()):
            continue
        for written in (word, word.capitalize()):
            for end in range(len(written)):
                before = SPACE + written[:end]
                letter = written[end]
                if before + letter not in parts:
                    parts.add(before + letter)
                    yield before, letter
