"""OFA (Wang et al. 2022): an image and an instruction in, text out. Inference only.

The modules are named as the weights of the published transformers-style checkpoints are; what those hold for making
images (code positions, the decoder's image tables) has no place here. :class:`OFAModel` generates with transformers'
own ``generate`` ::

    encoded = model.encode(input_ids, pixel_values)
    model.generate(encoder_outputs=encoded, num_beams=5, max_new_tokens=17)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from transformers import Cache, EncoderDecoderCache, GenerationMixin, LogitsProcessor, PreTrainedModel
from transformers.modeling_outputs import Seq2SeqLMOutput
from transformers.utils.generic import ModelOutput

from agents.vision.models.beams import continued
from agents.vision.models.ofa_layers import (
    IMAGE_CHANNELS,
    DecoderLayer,
    EncoderLayer,
    ImageEmbedding,
    OFAConfig,
    Source,
    bucket_bias,
    image_buckets,
    image_positions,
    position_bias,
    token_buckets,
)


@dataclass
class OFAEncoderOutput(ModelOutput):
    """``last_hidden_state`` [B, S, D], S = patches + tokens, is what ``generate`` repeats for beams.

    The decoder attends to ``source``, which is no tensor and stays one row per image. ``generate`` changes what it is
    given: give it what :meth:`rows` makes where the images are to be used again.
    """

    last_hidden_state: Tensor | None = None
    source: Source | None = None

    def rows(self, chosen: list[int] | Tensor) -> OFAEncoderOutput:
        """The rows of ``chosen``, each any number of times."""
        assert self.source is not None
        states = self.source.states[chosen]
        return OFAEncoderOutput(states, Source(states, self.source.positions))


def _tables(layers: int, buckets: int, heads: int) -> nn.ModuleList:
    """One table [buckets, heads] of learned relative positions per layer."""
    return nn.ModuleList(nn.Embedding(buckets, heads) for _ in range(layers))


class OFAEncoder(nn.Module):
    """Embeds image patches and instruction, in this order, and lets them attend to each other."""

    main_input_name = "input_ids"

    def __init__(self, config: OFAConfig) -> None:
        super().__init__()
        self.config = config
        width, heads, count = config.d_model, config.encoder_attention_heads, config.encoder_layers
        self.embed_tokens = nn.Embedding(config.vocab_size, width)
        self.layernorm_embedding = nn.LayerNorm(width)
        self.type_embedding = nn.Embedding(2, width)  # 0: text, 1: image
        self.embed_images = ImageEmbedding(config.resnet_type)
        self.image_proj = nn.Linear(IMAGE_CHANNELS, width)
        self.patch_layernorm_embedding = nn.LayerNorm(width)
        self.embed_positions = nn.Embedding(config.max_position_embeddings + 2, width)
        self.embed_image_positions = nn.Embedding(config.image_bucket_size**2 + 1, width)
        self.pos_ln = nn.LayerNorm(width)
        self.image_pos_ln = nn.LayerNorm(width)
        self.pos_q_linear = nn.Linear(width, width)
        self.pos_k_linear = nn.Linear(width, width)
        self.layers = nn.ModuleList(EncoderLayer(width, heads, config.encoder_ffn_dim) for _ in range(count))
        self.layer_norm = nn.LayerNorm(width)
        self.token_rel_pos_table_list = _tables(count, 2 * config.token_bucket_size - 1, heads)
        self.image_rel_pos_table_list = _tables(count, (2 * config.image_bucket_size - 1) ** 2 + 3, heads)

    def forward(self, input_ids: Tensor, pixel_values: Tensor, **_: Any) -> OFAEncoderOutput:
        """``input_ids`` [B, L], none of them padding; ``pixel_values`` [B, 3, H, W], within -1 and 1.

        Other arguments are those that ``generate`` hands to every encoder; none has a meaning here. Raises ValueError
        if the image has more patches than there are positions.
        """
        config = self.config
        patches = self.embed_images(pixel_values)
        height, width = patches.shape[-2:]
        if max(height, width) > config.image_bucket_size:
            raise ValueError(
                f"an image of {height} x {width} patches; the model has positions for "
                f"{config.image_bucket_size} x {config.image_bucket_size}"
            )
        grid = image_positions(height, width, config.image_bucket_size, input_ids.device)
        text = torch.arange(input_ids.shape[1], device=input_ids.device)
        tokens = self.embed_tokens(input_ids) + self.type_embedding.weight[0]
        images = self.image_proj(patches.flatten(2).transpose(1, 2)) + self.type_embedding.weight[1]
        states = torch.cat([self.patch_layernorm_embedding(images), self.layernorm_embedding(tokens)], 1)
        at_image, at_text = self.embed_image_positions(grid)[None], self.embed_positions(text)[None]
        positions = torch.cat([self.image_pos_ln(at_image), self.pos_ln(at_text)], 1)

        everywhere = position_bias(
            self.pos_q_linear(positions), self.pos_k_linear(positions), config.encoder_attention_heads
        )
        image_offsets = image_buckets(grid, config.image_bucket_size)
        token_offsets = token_buckets(text, text, config.token_bucket_size)
        tables = (self.image_rel_pos_table_list, self.token_rel_pos_table_list)
        for layer, image_table, token_table in zip(self.layers, *tables, strict=True):
            bias = everywhere.clone()
            bias[:, :, : len(grid), : len(grid)] += bucket_bias(image_table, image_offsets)
            bias[:, :, len(grid) :, len(grid) :] += bucket_bias(token_table, token_offsets)
            states = layer(states, bias)
        states = self.layer_norm(states)
        return OFAEncoderOutput(states, Source(states, positions))


class OFADecoder(nn.Module):
    """Attends to the tokens so far and to the encoder's states."""

    def __init__(self, config: OFAConfig) -> None:
        super().__init__()
        self.config = config
        width, heads, inner = config.d_model, config.decoder_attention_heads, config.decoder_ffn_dim
        count = config.decoder_layers
        self.layernorm_embedding = nn.LayerNorm(width)
        self.embed_positions = nn.Embedding(config.max_position_embeddings + 2, width)
        self.pos_ln = nn.LayerNorm(width)
        self.self_pos_q_linear = nn.Linear(width, width)
        self.self_pos_k_linear = nn.Linear(width, width)
        self.cross_pos_q_linear = nn.Linear(width, width)
        self.cross_pos_k_linear = nn.Linear(width, width)
        self.layers = nn.ModuleList(DecoderLayer(width, heads, inner, layer) for layer in range(count))
        self.layer_norm = nn.LayerNorm(width)
        self.token_rel_pos_table_list = _tables(count, 2 * config.token_bucket_size - 1, heads)

    def forward(self, embedded: Tensor, source: Source, cache: Cache | None) -> Tensor:
        """``embedded``: embeddings of the tokens that are not in ``cache``, [B, q, D] -> states [B, q, D]."""
        config, heads = self.config, self.config.decoder_attention_heads
        own_cache = cache.self_attention_cache if isinstance(cache, EncoderDecoderCache) else cache
        past = 0 if own_cache is None else own_cache.get_seq_length()
        steps = torch.arange(past + embedded.shape[1], device=embedded.device)
        at = self.pos_ln(self.embed_positions(steps)[None])
        now = at[:, past:]
        everywhere = position_bias(self.self_pos_q_linear(now), self.self_pos_k_linear(at), heads)
        if source.position_keys is None:
            source.position_keys = self.cross_pos_k_linear(source.positions)
        across = position_bias(self.cross_pos_q_linear(now), source.position_keys, heads)
        if now.shape[1] > 1:  # a single step's bias broadcasts
            across = across.repeat(1, 1, len(embedded) // len(source.states), 1)
        future = steps[None, :] > steps[past:, None]
        buckets = token_buckets(steps[past:], steps, config.token_bucket_size)
        states = self.layernorm_embedding(embedded)
        for layer, table in zip(self.layers, self.token_rel_pos_table_list, strict=True):
            bias = everywhere + bucket_bias(table, buckets)
            bias = bias.masked_fill(future, torch.finfo(bias.dtype).min)
            states = layer.decode(states, bias, source, across, own_cache)  # type: ignore[operator]
        normed: Tensor = self.layer_norm(states)
        return normed


class OFAModel(PreTrainedModel, GenerationMixin):
    """The whole model. Input and output embeddings are one matrix, ``encoder.embed_tokens``."""

    config_class = OFAConfig
    base_model_prefix = "model"
    main_input_name = "input_ids"
    _supports_sdpa = True
    config: OFAConfig

    def __init__(self, config: OFAConfig) -> None:
        super().__init__(config)
        self.encoder = OFAEncoder(config)
        self.decoder = OFADecoder(config)
        PreTrainedModel.post_init(self)

    def get_encoder(self, modality: str | None = None) -> OFAEncoder:
        return self.encoder

    def get_decoder(self) -> OFADecoder:
        return self.decoder

    def get_input_embeddings(self) -> nn.Embedding:
        return self.encoder.embed_tokens

    def encode(self, input_ids: Tensor, pixel_values: Tensor) -> OFAEncoderOutput:
        """What ``generate`` takes as ``encoder_outputs``: the images are embedded once, whatever follows."""
        encoded: OFAEncoderOutput = self.encoder(input_ids, pixel_values)
        return encoded

    def forward(
        self,
        input_ids: Tensor | None = None,
        pixel_values: Tensor | None = None,
        decoder_input_ids: Tensor | None = None,
        encoder_outputs: OFAEncoderOutput | None = None,
        past_key_values: Cache | None = None,
        use_cache: bool | None = None,
        return_dict: bool | None = None,
    ) -> Seq2SeqLMOutput:
        """Logits [B, q, vocabulary] for each of ``decoder_input_ids`` [B, q], the tokens that are not in the cache.

        Either ``encoder_outputs`` or ``input_ids`` and ``pixel_values`` are given. ``use_cache`` and ``return_dict``
        are what ``generate`` says to every model: a cache is used if there is one, the output is never a tuple.
        """
        if encoder_outputs is None:
            assert input_ids is not None
            assert pixel_values is not None
            encoder_outputs = self.encode(input_ids, pixel_values)
        assert decoder_input_ids is not None
        embedding = self.encoder.embed_tokens
        assert encoder_outputs.source is not None
        states = self.decoder(embedding(decoder_input_ids), encoder_outputs.source, past_key_values)
        logits: Any = nn.functional.linear(states, embedding.weight)
        kept: Any = past_key_values
        seen: Any = encoder_outputs.last_hidden_state
        return Seq2SeqLMOutput(logits=logits, past_key_values=kept, encoder_last_hidden_state=seen)


class FairseqEnd(LogitsProcessor):
    """fairseq's rules for a text's end and its padding (models/sequence_generator.py), in place.

    Padding is never said; the end not before ``least`` tokens; and after ``most`` tokens, if there is such a limit, the
    end is all that may follow, with the probability that the model gives it. There transformers lets beams that ran
    into the limit compete with those that ended, or counts a forced end as certain.

    In a search of several ``beams`` texts keep the places that they have. Where more end at one step than places are
    left, the likeliest of that step take them; transformers would keep the best of all.
    """

    def __init__(self, least: int, most: int | None, end: int, pad: int, beams: int = 1) -> None:
        self.least = least
        self.most = most
        self.end = end
        self.pad = pad
        self.beams = beams
        self._start: int | None = None
        self._tokens: Tensor  # of the last step's beams, their sums, and their continuations' scores
        self._sums: Tensor
        self._scores: Tensor
        self._ended: Tensor  # of each row, how many texts

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        """``input_ids`` [rows, length], of which what the first call saw is the prompt; ``scores`` [rows, tokens]."""
        if first := self._start is None:
            self._start = input_ids.shape[1]
        said = input_ids.shape[1] - (self._start or 0)
        scores[:, self.pad] = -torch.inf
        if said < self.least:
            scores[:, self.end] = -torch.inf
        if self.most is not None and said >= self.most:
            end = scores[:, self.end].clone()
            scores.fill_(-torch.inf)
            scores[:, self.end] = end
        if self.beams > 1:
            self._keep_places(input_ids, scores, first)
        return scores

    def _keep_places(self, input_ids: Tensor, scores: Tensor, first: bool) -> None:
        """Take the end from beams for whose text no place is left."""
        if first:
            sums = scores.new_full((len(input_ids),), -1e9)  # as transformers begins: one beam goes on
            sums[:: self.beams] = 0
            self._ended = torch.zeros(len(input_ids) // self.beams, dtype=torch.long, device=scores.device)
        else:
            parent = continued(self._tokens, input_ids, self.beams)
            sums = self._sums[parent] + self._scores[parent, input_ids[:, -1]]
        candidates = (scores + sums[:, None]).unflatten(0, (-1, self.beams)).flatten(1)
        best = candidates.topk(self.beams).indices
        ends = (best % scores.shape[1] == self.end) & candidates.gather(1, best).isfinite()
        places = (self.beams - self._ended)[:, None]
        late = ends & (ends.cumsum(1) > places) & (places > 0)
        barred = torch.zeros_like(best).scatter_add_(1, best // scores.shape[1], late.long()).flatten() > 0
        scores[:, self.end] = scores[:, self.end].masked_fill(barred, -torch.inf)
        self._ended += (ends & ~late).sum(1)
        self._tokens, self._sums, self._scores = input_ids, sums, scores
