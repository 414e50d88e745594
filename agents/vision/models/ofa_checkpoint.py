"""Published OFA checkpoints in both of their forms, and the dictionary of their texts.

*transformers' form*: a folder with config.json and weights, as on the hub (OFA-Sys/ofa-tiny and its sisters).
*fairseq's form*: one .pt file, with tensors under "model" and, beside them, the objects of the training program. Those
are read as inert values and thrown away: nothing of theirs is imported, and a file that names anything else is refused.
All sizes of such a file are those of its tensors; what tensors do not tell is as in every published training script.
"""

from __future__ import annotations

import json
import re
from collections import OrderedDict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torchvision import transforms
from transformers import GenerationConfig, PreTrainedTokenizerFast

from agents import checkpoints
from agents.errors import UnavailableError
from agents.vision.models.inert import NAMES, Inert
from agents.vision.models.ofa import OFAModel
from agents.vision.models.ofa_layers import RESNET_BLOCKS, OFAConfig
from agents.vision.models.weights import assign, layers_of

Weights = Mapping[str, torch.Tensor]

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
)
EMBEDDING = "encoder.embed_tokens.weight"
TIED = ("decoder.embed_tokens.weight", "decoder.output_projection.weight")
# Settings of a config.json that no published checkpoint has otherwise, and that the model here does not know.
FIXED = {
    "activation_function": "gelu",
    "add_type_embedding": True,
    "attn_scale_factor": 2.0,
    "decoder_normalize_before": True,
    "encoder_normalize_before": True,
    "entangle_position_embedding": False,
    "layernorm_embedding": True,
    "normformer": True,
    "patch_layernorm_embedding": True,
    "scale_embedding": False,
    "share_decoder_input_output_embed": True,
}

BOS, PAD, EOS, UNKNOWN, MASK = "<s>", "<pad>", "</s>", "<unk>", "<mask>"
CODES, BINS = 8192, 1000  # tokens of image codes and of coordinates, after those of the vocabulary
OWN_TOKENS = CODES + BINS


def _empty(*_: object) -> OrderedDict[object, object]:
    """Stands for a dictionary with defaults: the reader puts entries into plain dictionaries only."""
    return OrderedDict()


def load(path: Path) -> OFAModel:
    """The model of a checkpoint folder or file, in float32 on the CPU, for inference.

    Raises UnavailableError, naming some weights, if it is not a checkpoint of this architecture.
    """
    if path.is_dir():
        files = [path / name for name in ("model.safetensors", "pytorch_model.bin") if (path / name).is_file()]
        if not files:
            raise UnavailableError(f"{path} lacks model.safetensors or pytorch_model.bin")
        weights, config = checkpoints.read_weights(files[0]), _folder_config(path)
    else:
        weights = fairseq_weights(path)
        config = infer_config(weights, path)
    for name in TIED:  # input and output embeddings are one matrix here, which a file may repeat
        if EMBEDDING in weights and name in weights and not torch.equal(weights[name], weights[EMBEDDING]):
            raise UnavailableError(f"{path}: {name} is not {EMBEDDING}: a variant of OFA that is not known here")
    try:
        with torch.device("meta"):
            model: OFAModel = OFAModel(config)
    except (TypeError, ValueError, RuntimeError, KeyError) as error:
        raise UnavailableError(f"{path}: bad sizes: {' '.join(str(error).split())[:200]}") from None
    found = {name: value for name, value in weights.items() if name not in TIED and not UNUSED.fullmatch(name)}
    assign(model, found, path)
    model.generation_config = GenerationConfig.from_model_config(config)
    return model


def _folder_config(path: Path) -> OFAConfig:
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


def fairseq_weights(path: Path) -> dict[str, torch.Tensor]:
    """The tensors under "model" of fairseq's file, by the names of transformers' form. Raises UnavailableError."""
    try:
        named = torch.serialization.get_unsafe_globals_in_checkpoint(path)
    except (ValueError, RuntimeError, OSError, EOFError) as error:  # of torch's older form, or damaged
        raise UnavailableError(f"{path} cannot be read: {' '.join(str(error).split())[:200]}") from None
    allowed: list[Any] = [(Inert, name) for name in named if NAMES.fullmatch(name)]
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

    blocks = tuple(layers_of(weights, f"encoder.embed_images.layer{stage}.") for stage in (1, 2, 3))
    kinds = [kind for kind, known in RESNET_BLOCKS.items() if known == blocks]
    image_offsets = shape("encoder.image_rel_pos_table_list.0.weight")[0]
    vocabulary, width = shape(EMBEDDING)
    return _config(
        {
            "vocab_size": vocabulary,
            "d_model": width,
            "encoder_layers": layers_of(weights, "encoder.layers."),
            "encoder_ffn_dim": shape("encoder.layers.0.fc1.weight")[0],
            "encoder_attention_heads": shape("encoder.token_rel_pos_table_list.0.weight")[1],
            "decoder_layers": layers_of(weights, "decoder.layers."),
            "decoder_ffn_dim": shape("decoder.layers.0.fc1.weight")[0],
            "decoder_attention_heads": shape("decoder.token_rel_pos_table_list.0.weight")[1],
            "max_position_embeddings": shape("encoder.embed_positions.weight")[0] - 2,
            "resnet_type": kinds[0] if kinds else f"one of {blocks} blocks",
            "token_bucket_size": (shape("encoder.token_rel_pos_table_list.0.weight")[0] + 1) // 2,
            "image_bucket_size": (round((image_offsets - 3) ** 0.5) + 1) // 2,
        },
        path,
    )


class OFAImageProcessor:
    """Images as the reference reads them (data/mm_data/caption_dataset.py): squeezed to a square of ``size`` pixels by
    Pillow's bicubic filter, mean and standard deviation 0.5."""

    def __init__(self, size: int) -> None:
        square = transforms.Resize((size, size), transforms.InterpolationMode.BICUBIC)
        self._transform = transforms.Compose(
            [square, transforms.ToTensor(), transforms.Normalize([0.5] * 3, [0.5] * 3)]
        )

    def __call__(self, pixels: NDArray[np.uint8]) -> torch.Tensor:
        """uint8 [height, width, 3] -> float32 [3, size, size] of -1 to 1."""
        scaled: torch.Tensor = self._transform(Image.fromarray(pixels))
        return scaled


def load_tokenizer(folder: Path) -> PreTrainedTokenizerFast:
    """The byte-level BPE of vocab.json and merges.txt in ``folder``, with OFA's own tokens after it.

    Every size of OFA has the same dictionary: 50265 tokens of BART's, <code_0> to <code_8191>, <bin_0> to <bin_999>.
    A text is encoded between <s> and </s>. Raises UnavailableError if the files are not there or are damaged.
    """
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, processors

    lacking = [name for name in ("vocab.json", "merges.txt") if not (folder / name).is_file()]
    if lacking:
        raise UnavailableError(f"{folder} lacks {' and '.join(lacking)}, the dictionary of OFA's texts")
    try:
        vocabulary, merges = models.BPE.read_file(str(folder / "vocab.json"), str(folder / "merges.txt"))
        named = {token: vocabulary[token] for token in (BOS, PAD, EOS, UNKNOWN)}
        # As entries of the vocabulary and not as added tokens, thousands of which take seconds: no text is encoded to
        # them, and they are decoded as they are written.
        for token in (MASK, *(f"<code_{code}>" for code in range(CODES)), *(f"<bin_{place}>" for place in range(BINS))):
            vocabulary.setdefault(token, len(vocabulary))
        tokenizer = Tokenizer(models.BPE(vocabulary, merges, unk_token=UNKNOWN))
    except KeyError as error:
        raise UnavailableError(f"{folder / 'vocab.json'} has no token {error}") from None
    except Exception as error:  # the tokenizers library raises nothing narrower
        raise UnavailableError(f"{folder}: vocab.json or merges.txt is damaged: {error}") from None
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(token, normalized=False) for token in (*named, MASK)])
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{BOS} $A {EOS}", special_tokens=[(BOS, named[BOS]), (EOS, named[EOS])]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        bos_token=BOS,
        pad_token=PAD,
        eos_token=EOS,
        unk_token=UNKNOWN,
        clean_up_tokenization_spaces=False,
    )
