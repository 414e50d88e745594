"""Published OFA checkpoints, in both of their forms.

*transformers' form*: a folder with config.json and weights, as on the hub (OFA-Sys/ofa-tiny and its sisters).
*fairseq's form*: one .pt file, with tensors under "model" and, beside them, the objects of the training program. Those
are read as inert values and thrown away: nothing of theirs is imported, and a file that names anything else is refused.
All sizes of such a file are those of its tensors; what tensors do not tell is as in every published training script
(norms before the layers, positions in the attention alone, attn_scale_factor 2, GELU).
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agents import checkpoints
from agents.errors import UnavailableError
from agents.vision.models.ofa_config import RESNET_BLOCKS, OFAConfig

if TYPE_CHECKING:
    import torch

    from agents.vision.models.ofa import OFAModel

Weights = dict[str, "torch.Tensor"]

# What else a training program of fairseq leaves in its files. Each is replaced, never imported.
INERT = re.compile(
    r"argparse\.Namespace|omegaconf\.[\w.]+|fairseq\.[\w.]+|typing\.Any|pathlib\.\w*Path|_codecs\.encode"
    r"|numpy\.(_?core\.multiarray\.(scalar|_reconstruct)|dtype|ndarray)"
    r"|(__builtin__|builtins)\.(bool|bytes|dict|float|int|list|object|set|str|tuple)"
)
# fairseq's names of what transformers' form calls otherwise.
RENAMED = (
    (".encoder_attn_layer_norm.", ".cross_attn_layer_norm."),
    (".encoder_attn.", ".cross_attn."),
    (".cross_attn_ln.", ".cross_attn_mid_layer_norm."),
    (".self_attn_ln.", ".self_attn_mid_layer_norm."),
    (".attn_ln.", ".self_attn_mid_layer_norm."),
    (".ffn_layernorm.", ".ffn_layer_norm."),
)
# What only making images, training or classifying needs, and tables that are computed here.
UNUSED = re.compile(
    r"decoder\.(embed_image_positions|image_pos_ln|code_layernorm_embedding|image_rel_pos_table_list)\..*"
    r"|decoder\.image_position_idx|(en|de)coder\.(version|token_rp_bucket|image_rp_bucket)|classification_heads\..*"
    r"|.*\.num_batches_tracked"
)
EMBEDDING = "encoder.embed_tokens.weight"
TIED = ("decoder.embed_tokens.weight", "decoder.output_projection.weight")
# Settings of a config.json that no published checkpoint has otherwise, and that the model here does not know.
FIXED = {
    "encoder_normalize_before": True,
    "decoder_normalize_before": True,
    "layernorm_embedding": True,
    "patch_layernorm_embedding": True,
    "add_type_embedding": True,
    "share_decoder_input_output_embed": True,
    "scale_embedding": False,
}


class _Inert:
    """Stands for any object of the training program: takes whatever it is given and keeps nothing."""

    def __new__(cls, *_: object, **__: object) -> _Inert:
        return super().__new__(cls)

    def __init__(self, *_: object, **__: object) -> None:
        pass

    def __setstate__(self, state: object) -> None:
        pass


def _empty(*_: object) -> OrderedDict[object, object]:
    """Stands for a dictionary with defaults: the reader puts entries into plain dictionaries only."""
    return OrderedDict()


def load(path: Path) -> OFAModel:
    """The model of a checkpoint folder or file, in float32 on the CPU, for inference.

    Raises UnavailableError, naming some weights, if it is not a checkpoint of this architecture.
    """
    import torch
    from transformers import GenerationConfig

    from agents.vision.models.ofa import OFAModel

    if path.is_dir():
        weights = _folder_weights(path)
        config = _folder_config(path)
    else:
        weights = fairseq_weights(path)
        config = infer_config(weights, path)
    _check_tied(weights, path)
    model: Any
    try:
        with torch.device("meta"):
            model = OFAModel(config)
    except (TypeError, ValueError, RuntimeError, KeyError) as error:
        raise UnavailableError(f"{path}: bad sizes: {' '.join(str(error).split())[:200]}") from None
    found = {name: value for name, value in weights.items() if name not in TIED and not UNUSED.fullmatch(name)}
    shapes = {name: value.shape for name, value in model.state_dict().items() if not UNUSED.fullmatch(name)}
    checkpoints.check_names(path, sorted(set(shapes) - set(found)), sorted(set(found) - set(shapes)))
    wrong = sorted(name for name, shape in shapes.items() if found[name].shape != shape)
    if wrong:
        name = wrong[0]
        raise UnavailableError(
            f"{path}: {len(wrong)} weights have another shape than the sizes of the model ask for; "
            f"{name} has {list(found[name].shape)} instead of {list(shapes[name])}"
        )
    counters = [name for name in model.state_dict() if name not in shapes]  # of training's batches
    state = {name: torch.zeros((), dtype=torch.int64) for name in counters}
    state |= {name: found[name].to(torch.float32, copy=True) for name in shapes}
    model.load_state_dict(state, assign=True)
    model.generation_config = GenerationConfig.from_model_config(config)
    ready: OFAModel = model.eval()
    return ready


def _folder_weights(path: Path) -> Weights:
    files = [path / name for name in ("model.safetensors", "pytorch_model.bin") if (path / name).is_file()]
    if not files:
        raise UnavailableError(f"{path} lacks model.safetensors or pytorch_model.bin")
    return checkpoints.read_weights(files[0])


def _folder_config(path: Path) -> OFAConfig:
    import json

    try:
        values = json.loads((path / "config.json").read_bytes())
    except (OSError, ValueError) as error:
        raise UnavailableError(f"{path / 'config.json'} cannot be read: {error}") from None
    if not isinstance(values, dict):
        raise UnavailableError(f"{path / 'config.json'} does not hold a model's sizes")
    wrong = [f"{key} = {values[key]}" for key, value in FIXED.items() if values.get(key, value) != value]
    if wrong:
        raise UnavailableError(f"{path}: a variant of OFA that is not known here ({', '.join(wrong)})")
    return _config({**values, "use_cache": True, "tie_word_embeddings": False}, path)


def _config(values: Mapping[str, Any], path: Path) -> OFAConfig:
    kind = values.get("resnet_type", "resnet101")
    if kind not in RESNET_BLOCKS:
        raise UnavailableError(f"{path}: the image embedding is none of {', '.join(RESNET_BLOCKS)}: {kind}")
    return OFAConfig(**values)


def fairseq_weights(path: Path) -> Weights:
    """The tensors under "model" of fairseq's file, by the names of transformers' form. Raises UnavailableError."""
    import torch

    try:
        named = torch.serialization.get_unsafe_globals_in_checkpoint(path)
    except (ValueError, RuntimeError, OSError, EOFError) as error:  # of torch's older form, or damaged
        raise UnavailableError(f"{path} cannot be read: {' '.join(str(error).split())[:200]}") from None
    allowed: list[Any] = [(_Inert, name) for name in named if INERT.fullmatch(name)]
    allowed += [(_empty, "collections.defaultdict")]
    with torch.serialization.safe_globals(allowed):
        found = checkpoints.read_torch(path).get("model")
    if not isinstance(found, Mapping) or not all(isinstance(value, torch.Tensor) for value in found.values()):
        raise UnavailableError(f"{path} has no tensors by name under 'model', as a checkpoint of fairseq has")
    return {_rename(name): value for name, value in found.items()}


def _rename(name: str) -> str:
    for theirs, ours in RENAMED:
        if theirs in name:
            return name.replace(theirs, ours)
    return name


def infer_config(weights: Weights, path: Path) -> OFAConfig:
    """The sizes of a model from the shapes of its weights. Raises UnavailableError if they say nothing."""

    def shape(name: str) -> tuple[int, ...]:
        checkpoints.check_names(path, [name] * (name not in weights))
        return tuple(weights[name].shape)

    def count(prefix: str) -> int:
        found = (re.match(rf"{re.escape(prefix)}\.(\d+)\.", name) for name in weights)
        return len({match[1] for match in found if match})

    blocks = tuple(count(f"encoder.embed_images.layer{stage}") for stage in (1, 2, 3))
    kinds = [kind for kind, known in RESNET_BLOCKS.items() if known == blocks]
    image_buckets = shape("encoder.image_rel_pos_table_list.0.weight")[0]
    vocabulary, width = shape(EMBEDDING)
    return _config(
        {
            "vocab_size": vocabulary,
            "d_model": width,
            "encoder_layers": count("encoder.layers"),
            "encoder_ffn_dim": shape("encoder.layers.0.fc1.weight")[0],
            "encoder_attention_heads": shape("encoder.token_rel_pos_table_list.0.weight")[1],
            "decoder_layers": count("decoder.layers"),
            "decoder_ffn_dim": shape("decoder.layers.0.fc1.weight")[0],
            "decoder_attention_heads": shape("decoder.token_rel_pos_table_list.0.weight")[1],
            "max_position_embeddings": shape("encoder.embed_positions.weight")[0] - 2,
            "resnet_type": kinds[0] if kinds else f"one of {blocks} blocks",
            "token_bucket_size": (shape("encoder.token_rel_pos_table_list.0.weight")[0] + 1) // 2,
            "image_bucket_size": (round((image_buckets - 3) ** 0.5) + 1) // 2,
            "normformer": "encoder.layers.0.ffn_layer_norm.weight" in weights,
            "scale_heads": "encoder.layers.0.self_attn.c_attn" in weights,
            "scale_resids": "encoder.layers.0.w_resid" in weights,
        },
        path,
    )


def _check_tied(weights: Weights, path: Path) -> None:
    """Input and output embeddings are one matrix here; a file may repeat it under three names, but not change it."""
    import torch

    for name in TIED:
        if EMBEDDING in weights and name in weights and not torch.equal(weights[name], weights[EMBEDDING]):
            raise UnavailableError(f"{path}: {name} is not {EMBEDDING}: a variant of OFA that is not known here")
