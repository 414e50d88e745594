"""OFA's network (Wang et al. 2022, arXiv 2202.03052), with NormFormer's layers (Shleifer et al. 2021, arXiv
2110.09456), by the names of the authors' branch of transformers.

In shapes B is the batch, D the width, q queries, k keys, n states, S states of the source, L tokens of text.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torchvision.models.resnet import Bottleneck, ResNet
from transformers import Cache, EncoderDecoderCache, GenerationMixin, PreTrainedConfig, PreTrainedModel
from transformers.modeling_outputs import Seq2SeqLMOutput
from transformers.utils.generic import ModelOutput

RESNET_BLOCKS = {"resnet50": (3, 4, 6), "resnet101": (3, 4, 23), "resnet152": (3, 8, 36)}
"""Blocks in the three stages of the image embedding; the usual networks' fourth stage is left out."""
IMAGE_CHANNELS = 1024
"""Channels of the third stage of any of them."""
SCALE_FACTOR = 2
"""Attention has two addends, content and position; "attn_scale_factor" of the published files."""
LOG_REACH = 1024
"""The distance at which the last token bucket ends, whatever the number of positions."""


class OFAConfig(PreTrainedConfig):
    """The network's sizes, by the names of the published config.json (table 1)."""

    model_type: ClassVar[str] = "ofa"
    keys_to_ignore_at_inference: ClassVar[list[str]] = ["past_key_values"]
    attribute_map: ClassVar[dict[str, str]] = {
        "hidden_size": "d_model",
        "num_attention_heads": "encoder_attention_heads",
        "num_hidden_layers": "encoder_layers",
    }

    vocab_size: int = 59457
    """Tokens, with image codes and coordinates."""
    d_model: int = 512
    """The width of a state."""
    encoder_layers: int = 4
    """Layers of the encoder."""
    encoder_ffn_dim: int = 2048
    """Units between an encoder layer's linear maps."""
    encoder_attention_heads: int = 8
    """Heads of the encoder's attention."""
    decoder_layers: int = 4
    """Layers of the decoder."""
    decoder_ffn_dim: int = 2048
    """Units between a decoder layer's linear maps."""
    decoder_attention_heads: int = 8
    """Heads of the decoder's attention."""
    max_position_embeddings: int = 1024
    """Positions of texts."""
    resnet_type: str = "resnet101"
    """The image embedding, a key of :data:`RESNET_BLOCKS`."""
    token_bucket_size: int = 256
    """Half of the buckets of relative positions of tokens."""
    image_bucket_size: int = 42
    """The side of the grid of image positions."""
    use_cache: bool = True
    """Whether keys and values are kept."""
    pad_token_id: int = 1
    """The token that fills a text up."""
    bos_token_id: int = 0
    """The token that begins a text."""
    eos_token_id: int = 2
    """The token that ends a text."""
    decoder_start_token_id: int = 0
    """The token that the decoder begins with."""
    is_encoder_decoder: bool = True
    """What transformers must know of the architecture."""
    tie_word_embeddings: bool = False
    """The one matrix stands in the model once, so that there is nothing to tie."""


class ImageEmbedding(ResNet):
    """The first three stages of a ResNet; ``kind`` is a key of :data:`RESNET_BLOCKS`."""

    def __init__(self, kind: str) -> None:
        super().__init__(Bottleneck, [*RESNET_BLOCKS[kind], 1])
        del self.layer4, self.avgpool, self.fc

    def forward(self, images: Tensor) -> Tensor:
        """Images [B, 3, H, W] to a feature map [B, 1024, H / 16, W / 16], sides rounded up."""
        stem = self.maxpool(self.relu(self.bn1(self.conv1(images))))
        return self.layer3(self.layer2(self.layer1(stem)))  # type: ignore[no-any-return]


def token_buckets(queries: Tensor, keys: Tensor, size: int) -> Tensor:
    """The bucket [q, k] of each relative position, from 0: a bucket for each distance up to half of ``size``, beyond
    that on a logarithmic scale."""
    relative = queries[:, None] - keys[None, :]
    middle = size // 2
    distance = torch.where(relative.abs() < middle, middle - 1, relative.abs())
    steps = torch.log(distance / middle) / math.log((LOG_REACH - 1) / middle) * (middle - 1)
    far = (torch.ceil(steps).to(torch.int64) + middle) * torch.sign(relative)
    return torch.where(distance <= middle, relative, far) + size - 1


def image_positions(height: int, width: int, size: int, device: torch.device | None = None) -> Tensor:
    """The positions [height * width], from 1, of a grid's patches by rows, in the grid of ``size`` x ``size`` that has
    embeddings."""
    rows = torch.arange(height, device=device)
    columns = torch.arange(width, device=device)
    return (rows[:, None] * size + columns[None, :]).flatten() + 1


def image_buckets(positions: Tensor, size: int) -> Tensor:
    """The bucket [n, n] of each pair of image ``positions`` [n]: one for each offset in rows and columns."""
    rows = (positions - 1) // size
    columns = (positions - 1) % size
    down = rows[:, None] - rows[None, :] + size - 1
    right = columns[:, None] - columns[None, :] + size - 1
    return down * (2 * size - 1) + right


def split_heads(states: Tensor, heads: int) -> Tensor:
    """States [B, n, D] by heads: [B, heads, n, D / heads]."""
    return states.view(*states.shape[:2], heads, -1).transpose(1, 2)


def bucket_bias(table: nn.Module, buckets: Tensor) -> Tensor:
    """A ``table``'s values for ``buckets`` [q, k], as what attention adds: [1, heads, q, k]."""
    bias: Tensor = table(buckets)
    return bias.permute(2, 0, 1)[None]


def position_bias(queries: Tensor, keys: Tensor, heads: int) -> Tensor:
    """What attention adds for positions: queries [1, q, D] with keys [1, k, D], [1, heads, q, k]."""
    scale = float(queries.shape[2] / heads * SCALE_FACTOR) ** -0.5
    return torch.matmul(split_heads(queries, heads) * scale, split_heads(keys, heads).transpose(2, 3))


class Attended:
    """What a decoder attends to, each image once: ``states`` [B, S, D] and ``positions`` [1, S, D]. Each layer's keys
    and values are kept here once they are computed, so that all beams of an image share them."""

    def __init__(self, states: Tensor, positions: Tensor) -> None:
        self.states = states
        self.positions = positions
        self.keys: dict[int, tuple[Tensor, Tensor]] = {}
        self.position_keys: Tensor | None = None


@dataclass
class OFAEncoderOutput(ModelOutput):
    """What the encoder made of images and question. ``generate`` changes its arguments: give it :meth:`rows` of this to
    use the images again."""

    last_hidden_state: Tensor | None = None
    """States [B, S, D], as transformers wants to see them."""
    source: Attended | None = None
    """The same as the decoder reads them."""

    def rows(self, images: list[int] | Tensor) -> OFAEncoderOutput:
        """A new output with the states of these ``images``, numbers or a tensor of them."""
        assert self.source is not None
        states = self.source.states[images]
        return OFAEncoderOutput(states, Attended(states, self.source.positions))


class OFAAttention(nn.Module):
    """Attention whose heads have learned factors, as in NormFormer."""

    def __init__(self, width: int, heads: int, layer: int = 0) -> None:
        super().__init__()
        self.heads = heads
        self.layer = layer
        self.scale = float(width // heads * SCALE_FACTOR) ** -0.5
        self.k_proj = nn.Linear(width, width)
        self.v_proj = nn.Linear(width, width)
        self.q_proj = nn.Linear(width, width)
        self.out_proj = nn.Linear(width, width)
        self.c_attn = nn.Parameter(torch.ones(heads))

    def forward(self, states: Tensor, bias: Tensor, cache: Cache | None = None) -> Tensor:
        """Attention of states [B, q, D] to themselves and the ``cache``: [B, q, D]. ``bias`` [1, heads, q, k] is added
        to the logits."""
        key, value = self._keys(states)
        if cache is not None:
            key, value = cache.update(key, value, self.layer)
        return self._mix(split_heads(self.q_proj(states), self.heads), key, value, bias)

    def attend(self, states: Tensor, bias: Tensor, source: Attended) -> Tensor:
        """Attention to the source of n rows per image: states [B x n, q, D] to the same shape. ``bias`` is [1, heads, 1
        or n x q, S]."""
        if self.layer not in source.keys:
            source.keys[self.layer] = self._keys(source.states)
        key, value = source.keys[self.layer]
        queries = self.q_proj(states).unflatten(0, (len(key), -1)).flatten(1, 2)
        mixed = self._mix(split_heads(queries, self.heads), key, value, bias)
        return torch.flatten(mixed.unflatten(1, (-1, states.shape[1])), 0, 1)

    def _keys(self, states: Tensor) -> tuple[Tensor, Tensor]:
        return split_heads(self.k_proj(states), self.heads), split_heads(self.v_proj(states), self.heads)

    def _mix(self, query: Tensor, key: Tensor, value: Tensor, bias: Tensor) -> Tensor:
        mixed = F.scaled_dot_product_attention(query, key, value, attn_mask=bias, scale=self.scale)
        mixed = mixed * self.c_attn[None, :, None, None]
        return self.out_proj(mixed.transpose(1, 2).flatten(2))  # type: ignore[no-any-return]


class EncoderLayer(nn.Module):
    """A layer with NormFormer's norms: before and after its attention, and within its linear maps."""

    def __init__(self, width: int, heads: int, inner: int, layer: int = 0) -> None:
        super().__init__()
        self.fc1 = nn.Linear(width, inner)
        self.fc2 = nn.Linear(inner, width)
        self.ffn_layer_norm = nn.LayerNorm(inner)
        self.final_layer_norm = nn.LayerNorm(width)
        self.self_attn = OFAAttention(width, heads, layer)
        self.self_attn_layer_norm = nn.LayerNorm(width)
        self.self_attn_mid_layer_norm = nn.LayerNorm(width)

    def forward(self, states: Tensor, bias: Tensor) -> Tensor:
        """States [B, n, D] to the same shape; ``bias`` [1, heads, n, n]."""
        return self.feed_forward(self.attend_itself(states, bias))

    def attend_itself(self, states: Tensor, bias: Tensor, cache: Cache | None = None) -> Tensor:
        """States [B, q, D] after attention to themselves and the ``cache``."""
        attended = self.self_attn(self.self_attn_layer_norm(states), bias, cache)
        return states + self.self_attn_mid_layer_norm(attended)  # type: ignore[no-any-return]

    def feed_forward(self, states: Tensor) -> Tensor:
        """States [B, q, D] after the linear maps."""
        inner = F.gelu(self.fc1(self.final_layer_norm(states)))
        return states + self.fc2(self.ffn_layer_norm(inner))  # type: ignore[no-any-return]


class DecoderLayer(EncoderLayer):
    """A layer that also attends to the source."""

    def __init__(self, width: int, heads: int, inner: int, layer: int) -> None:
        super().__init__(width, heads, inner, layer)
        self.cross_attn = OFAAttention(width, heads, layer)
        self.cross_attn_layer_norm = nn.LayerNorm(width)
        self.cross_attn_mid_layer_norm = nn.LayerNorm(width)

    def decode(
        self, states: Tensor, bias: Tensor, source: Attended, source_bias: Tensor, cache: Cache | None
    ) -> Tensor:
        """States [B x n, q, D] to the same shape; ``bias`` is for themselves, ``source_bias`` for the source."""
        states = self.attend_itself(states, bias, cache)
        attended = self.cross_attn.attend(self.cross_attn_layer_norm(states), source_bias, source)
        return self.feed_forward(states + self.cross_attn_mid_layer_norm(attended))


def _tables(layers: int, buckets: int, heads: int) -> nn.ModuleList:
    return nn.ModuleList(nn.Embedding(buckets, heads) for _ in range(layers))


class OFAEncoder(nn.Module):
    """Reads an image's patches and the question together."""

    main_input_name = "input_ids"

    def __init__(self, config: OFAConfig) -> None:
        super().__init__()
        self.config = config
        width = config.d_model
        heads = config.encoder_attention_heads
        count = config.encoder_layers
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

    def forward(self, input_ids: Tensor, pixel_values: Tensor) -> OFAEncoderOutput:
        """Tokens ``input_ids`` [B, L] without padding and ``pixel_values`` [B, 3, H, W] from -1 to 1 to states of
        patches, then tokens."""
        config = self.config
        patches = self.embed_images(pixel_values)
        height, width = patches.shape[-2:]
        grid = image_positions(height, width, config.image_bucket_size, input_ids.device)
        text = torch.arange(input_ids.shape[1], device=input_ids.device)
        tokens = self.embed_tokens(input_ids) + self.type_embedding.weight[0]
        images = self.image_proj(patches.flatten(2).transpose(1, 2)) + self.type_embedding.weight[1]
        states = torch.cat([self.patch_layernorm_embedding(images), self.layernorm_embedding(tokens)], 1)
        at_image = self.embed_image_positions(grid)[None]
        at_text = self.embed_positions(text)[None]
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
        return OFAEncoderOutput(states, Attended(states, positions))


class OFADecoder(nn.Module):
    """Writes a text about the source."""

    def __init__(self, config: OFAConfig) -> None:
        super().__init__()
        self.config = config
        width = config.d_model
        heads = config.decoder_attention_heads
        inner = config.decoder_ffn_dim
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

    def forward(self, embedded: Tensor, source: Attended, cache: Cache | None) -> Tensor:
        """Embeddings [B, q, D] of tokens that are not in the ``cache`` to states [B, q, D]."""
        config = self.config
        heads = self.config.decoder_attention_heads
        kept = cache.self_attention_cache if isinstance(cache, EncoderDecoderCache) else cache
        past = 0 if kept is None else kept.get_seq_length()
        steps = torch.arange(past + embedded.shape[1], device=embedded.device)
        positions = self.pos_ln(self.embed_positions(steps)[None])
        now = positions[:, past:]
        everywhere = position_bias(self.self_pos_q_linear(now), self.self_pos_k_linear(positions), heads)
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
            states = layer.decode(states, bias, source, across, kept)  # type: ignore[operator]
        return self.layer_norm(states)  # type: ignore[no-any-return]


class OFAModel(PreTrainedModel, GenerationMixin):
    """Encoder and decoder, as transformers' ``generate`` wants them."""

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
        """What ``generate`` runs once, before the first token."""
        return self.encoder

    def forward(
        self,
        encoder_outputs: OFAEncoderOutput,
        decoder_input_ids: Tensor,
        past_key_values: Cache | None = None,
        use_cache: bool | None = None,
        return_dict: bool | None = None,
    ) -> Seq2SeqLMOutput:
        """Logits [B, q, vocabulary] after tokens [B, q] that follow the cache's."""
        embedding = self.encoder.embed_tokens
        assert encoder_outputs.source is not None
        states = self.decoder(embedding(decoder_input_ids), encoder_outputs.source, past_key_values)
        logits: Any = F.linear(states, embedding.weight)
        return Seq2SeqLMOutput(logits=logits, past_key_values=past_key_values)
