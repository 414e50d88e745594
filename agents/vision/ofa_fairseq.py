"""What OFA has of fairseq: the file of weights, the dictionary, and how a text ends."""

import re
from collections import OrderedDict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from transformers import GenerationConfig, LogitsProcessor, RobertaTokenizer

from agents.errors import UnavailableError, short_text
from agents.models import random_weights, weight_files
from agents.models.loading import load_pretrained
from agents.vision.beams import BeamSums
from agents.vision.ofa_network import RESNET_BLOCKS, OFAConfig, OFAModel
from agents.vision.weights import INERT, Inert, assign, layers_of

CPU = torch.device("cpu")
"""Where a file is read."""
Weights = Mapping[str, Tensor]
"""Tensors by name."""

RENAMED = (
    (".encoder_attn_layer_norm.", ".cross_attn_layer_norm."),
    (".encoder_attn.", ".cross_attn."),
    (".cross_attn_ln.", ".cross_attn_mid_layer_norm."),
    (".self_attn_ln.", ".self_attn_mid_layer_norm."),
    (".attn_ln.", ".self_attn_mid_layer_norm."),
    (".ffn_layernorm.", ".ffn_layer_norm."),
)
"""fairseq's names of what the model here calls otherwise, as the authors' branch of transformers does."""
UNUSED = re.compile(
    r"decoder\.(embed_image_positions|image_pos_ln|code_layernorm_embedding|image_rel_pos_table_list)\..*"
    r"|decoder\.image_position_idx|(en|de)coder\.(version|token_rp_bucket|image_rp_bucket)|classification_heads\..*"
    r"|decoder\.(embed_tokens|output_projection)\.weight"
)
"""What only making images, training or classifying needs, tables that are computed here, and copies of the
embedding."""
EMBEDDING = "encoder.embed_tokens.weight"
"""The embedding of tokens."""
CODES = 8192
"""Tokens of image codes, after those of the vocabulary."""
BINS = 1000
"""Tokens of coordinates, after those."""
OWN_TOKENS = CODES + BINS
"""All tokens that are no words."""


def load_ofa(path: Path, device: torch.device = CPU, dtype: torch.dtype = torch.float32) -> OFAModel:
    """The model on ``device`` in ``dtype``, its sizes read from the shapes of its weights; a folder of
    :func:`random_weights.make_folder` gives random weights. Raises UnavailableError for another architecture."""
    if random_weights.is_made(path):
        return load_pretrained(OFAModel, path, device, dtype)  # type: ignore[no-any-return]
    path = weight_files.weights_file(path)
    weights = _read_weights(path)
    config = _infer_config(weights, path)
    with torch.device("meta"):
        model: OFAModel = OFAModel(config)
    kept = {name: value for name, value in weights.items() if not UNUSED.fullmatch(name)}
    assign(model, kept, path)
    model.generation_config = GenerationConfig.from_model_config(config)
    moved: OFAModel = model.to(device, dtype)
    return moved


def _empty(*_: object) -> OrderedDict[object, object]:
    return OrderedDict()


def _read_weights(path: Path) -> dict[str, Tensor]:
    try:
        named = torch.serialization.get_unsafe_globals_in_checkpoint(path)
    except (ValueError, RuntimeError, OSError, EOFError) as error:  # of torch's older form, or damaged
        raise UnavailableError(f"{path} cannot be read: {short_text(error)}") from None
    allowed: list[Any] = [(Inert, name) for name in named if INERT.fullmatch(name)]
    allowed += [(_empty, "collections.defaultdict")]
    with torch.serialization.safe_globals(allowed):
        weights = weight_files.read_torch(path).get("model")
    if not isinstance(weights, Mapping) or not all(isinstance(value, Tensor) for value in weights.values()):
        raise UnavailableError(f"{path} has no tensors by name under 'model', as a checkpoint of fairseq has")
    renamed = {}
    for name, value in weights.items():
        theirs, ours = next((pair for pair in RENAMED if pair[0] in name), ("", ""))
        renamed[name.replace(theirs, ours)] = value
    return renamed


def _infer_config(weights: Weights, path: Path) -> OFAConfig:
    def shape(name: str) -> tuple[int, ...]:
        weight_files.check_names(path, [] if name in weights else [name])
        return tuple(weights[name].shape)

    blocks = tuple(layers_of(weights, f"encoder.embed_images.layer{stage}.") for stage in (1, 2, 3))
    kinds = [kind for kind, numbers in RESNET_BLOCKS.items() if numbers == blocks]
    image_offsets = shape("encoder.image_rel_pos_table_list.0.weight")[0]
    vocabulary, width = shape(EMBEDDING)
    if not kinds:
        raise UnavailableError(
            f"{path}: the image embedding has {blocks} blocks, as none of {', '.join(RESNET_BLOCKS)}"
        )
    return OFAConfig(
        vocab_size=vocabulary,
        d_model=width,
        encoder_layers=layers_of(weights, "encoder.layers."),
        encoder_ffn_dim=shape("encoder.layers.0.fc1.weight")[0],
        encoder_attention_heads=shape("encoder.token_rel_pos_table_list.0.weight")[1],
        decoder_layers=layers_of(weights, "decoder.layers."),
        decoder_ffn_dim=shape("decoder.layers.0.fc1.weight")[0],
        decoder_attention_heads=shape("decoder.token_rel_pos_table_list.0.weight")[1],
        max_position_embeddings=shape("encoder.embed_positions.weight")[0] - 2,
        resnet_type=kinds[0],
        token_bucket_size=(shape("encoder.token_rel_pos_table_list.0.weight")[0] + 1) // 2,
        image_bucket_size=(round((image_offsets - 3) ** 0.5) + 1) // 2,
    )


def load_tokenizer(folder: Path) -> Any:
    """Byte-level BPE of vocab.json and merges.txt with OFA's 9192 tokens that are no words. Raises
    UnavailableError."""
    from tokenizers.models import BPE

    try:
        vocabulary, merges = BPE.read_file(str(folder / "vocab.json"), str(folder / "merges.txt"))
        # As entries of the vocabulary and not as added tokens, thousands of which take seconds: no text is encoded to
        # them, and they are decoded as they are written.
        codes = (f"<code_{code}>" for code in range(CODES))
        bins = (f"<bin_{place}>" for place in range(BINS))
        for token in ("<mask>", *codes, *bins):
            vocabulary.setdefault(token, len(vocabulary))
        # The annotation says list[str]; the tokenizer takes the pairs that BPE.read_file gives.
        merged: Any = merges
        return RobertaTokenizer(vocab=vocabulary, merges=merged, clean_up_tokenization_spaces=False)
    except Exception as error:  # the tokenizers library raises nothing narrower
        text = short_text(error)
        raise UnavailableError(f"{folder}: vocab.json or merges.txt is damaged: {text}") from None


class FairseqEnd(LogitsProcessor):
    """Ends texts as fairseq does (models/sequence_generator.py).

    The end is allowed after ``least`` tokens and forced after ``most``. With ``beams``, that many texts of an image may
    end: in a step in which more would, the likeliest take the places that are left, and the others' ends are barred.
    """

    def __init__(self, least: int, most: int | None, end: int, pad: int, beams: int = 1) -> None:
        self.least = least
        self.most = most
        self.end = end
        self.pad = pad
        self.beams = beams
        self._start: int | None = None
        self._sums = BeamSums(beams)
        self._ended: Tensor  # of each row, how many texts

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        """``input_ids`` [rows, length], at first the prompt; ``scores`` [rows, tokens]."""
        if self._start is None:
            self._start = input_ids.shape[1]
        length = input_ids.shape[1] - self._start
        scores[:, self.pad] = -torch.inf
        if length < self.least:
            scores[:, self.end] = -torch.inf
        if self.most is not None and length >= self.most:
            end = scores[:, self.end].clone()
            scores.fill_(-torch.inf)
            scores[:, self.end] = end
        if self.beams > 1:
            self._keep_places(input_ids, scores)
        return scores

    def _keep_places(self, input_ids: Tensor, scores: Tensor) -> None:
        sums = self._sums.before(input_ids)
        if sums is None:
            sums = scores.new_full((len(input_ids),), -1e9)  # as transformers begins: one beam goes on
            sums[:: self.beams] = 0
            self._ended = torch.zeros(len(input_ids) // self.beams, dtype=torch.long, device=scores.device)
        candidates = (scores + sums[:, None]).unflatten(0, (-1, self.beams)).flatten(1)
        best = candidates.topk(self.beams).indices
        ends = (best % scores.shape[1] == self.end) & candidates.gather(1, best).isfinite()
        places = (self.beams - self._ended)[:, None]
        late = ends & (ends.cumsum(1) > places) & (places > 0)
        barred = torch.zeros_like(best).scatter_add_(1, best // scores.shape[1], late.long()).flatten() > 0
        scores[:, self.end] = scores[:, self.end].masked_fill(barred, -torch.inf)
        self._ended += (ends & ~late).sum(1)
        self._sums.keep(input_ids, sums, scores)
