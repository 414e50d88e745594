"""OFA restated plainly, from the names of its weights: float64, a row at a time, no cache, no masks; and fairseq's beam
search."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import tiny_ofa
import torch
import torch.nn.functional as F
from torch import Tensor

from agents.vision.ofa_network import OFAModel

BOS, PAD, END = 0, 1, 2


class Plain:
    """OFA from the weights of a transformers-style file, in float64, one row at a time."""

    def __init__(self, weights: dict[str, Tensor], heads: tuple[int, int], side: int, buckets: int) -> None:
        self.w = {name: values.double() for name, values in weights.items() if values.is_floating_point()}
        self.heads = dict(zip(("encoder", "decoder"), heads, strict=True))
        self.side = side
        self.buckets = buckets

    def linear(self, name: str, x: Tensor) -> Tensor:
        return x @ self.w[f"{name}.weight"].T + self.w[f"{name}.bias"]

    def norm(self, name: str, x: Tensor) -> Tensor:
        x = x - x.mean(-1, keepdim=True)
        x = x / (x.pow(2).mean(-1, keepdim=True) + 1e-5).sqrt()
        return x * self.w[f"{name}.weight"] + self.w[f"{name}.bias"]

    def batch_norm(self, name: str, x: Tensor) -> Tensor:
        def each(part: str) -> Tensor:
            return self.w[f"{name}.{part}"][:, None, None]

        return (x - each("running_mean")) / (each("running_var") + 1e-5).sqrt() * each("weight") + each("bias")

    def resnet(self, pixels: Tensor) -> Tensor:
        root = "encoder.embed_images"
        x = F.conv2d(pixels, self.w[f"{root}.conv1.weight"], stride=2, padding=3)
        x = F.max_pool2d(self.batch_norm(f"{root}.bn1", x).clamp(min=0), 3, 2, 1)
        for stage, blocks in enumerate((3, 4, 6), 1):
            for block in range(blocks):
                name, step = f"{root}.layer{stage}.{block}", 2 if stage > 1 and block == 0 else 1
                y = self.batch_norm(f"{name}.bn1", F.conv2d(x, self.w[f"{name}.conv1.weight"])).clamp(min=0)
                y = F.conv2d(y, self.w[f"{name}.conv2.weight"], stride=step, padding=1)
                y = F.conv2d(self.batch_norm(f"{name}.bn2", y).clamp(min=0), self.w[f"{name}.conv3.weight"])
                if block == 0:
                    x = F.conv2d(x, self.w[f"{name}.downsample.0.weight"], stride=step)
                    x = self.batch_norm(f"{name}.downsample.1", x)
                x = (x + self.batch_norm(f"{name}.bn3", y)).clamp(min=0)
        return x

    def split(self, x: Tensor, heads: int) -> Tensor:
        return x.view(len(x), heads, -1)

    def attend(self, name: str, x: Tensor, seen: Tensor, bias: Tensor) -> Tensor:
        """One row: [q, D] and [k, D] -> [q, D]; ``bias`` [heads, q, k]."""
        heads = len(bias)
        q, k, v = (
            self.split(self.linear(f"{name}.{part}_proj", y), heads)
            for part, y in zip("qkv", (x, seen, seen), strict=True)
        )
        scores = torch.einsum("qhd,khd->hqk", q, k) / math.sqrt(2 * q.shape[2]) + bias
        mixed = torch.einsum("hqk,khd,h->qhd", scores.softmax(2), v, self.w[f"{name}.c_attn"])
        return self.linear(f"{name}.out_proj", mixed.flatten(1))

    def feed(self, name: str, x: Tensor) -> Tensor:
        y = F.gelu(self.linear(f"{name}.fc1", self.norm(f"{name}.final_layer_norm", x)))
        return x + self.linear(f"{name}.fc2", self.norm(f"{name}.ffn_layer_norm", y))

    def products(self, half: str, kind: str, x: Tensor, y: Tensor) -> Tensor:
        heads = self.heads[half]
        q = self.split(self.linear(f"{half}.{kind}q_linear", x), heads)
        k = self.split(self.linear(f"{half}.{kind}k_linear", y), heads)
        return torch.einsum("qhd,khd->hqk", q, k) / math.sqrt(2 * q.shape[2])

    def token_bias(self, half: str, layer: int, length: int) -> Tensor:
        table = self.w[f"{half}.token_rel_pos_table_list.{layer}.weight"]
        return torch.stack(
            [torch.stack([table[token_bucket(i - j, self.buckets)] for j in range(length)]) for i in range(length)]
        ).permute(2, 0, 1)

    def encode(self, ids: Sequence[int], pixels: Tensor) -> tuple[Tensor, Tensor]:
        patches = self.resnet(pixels[None].double())[0]
        height, width = patches.shape[1:]
        places = [(row, column) for row in range(height) for column in range(width)]
        x = torch.stack([patches[:, row, column] for row, column in places])
        kinds = self.w["encoder.type_embedding.weight"]
        x = self.norm("encoder.patch_layernorm_embedding", self.linear("encoder.image_proj", x) + kinds[1])
        text = self.w["encoder.embed_tokens.weight"][list(ids)] + kinds[0]
        x = torch.cat([x, self.norm("encoder.layernorm_embedding", text)])
        at = self.w["encoder.embed_image_positions.weight"][[row * self.side + column + 1 for row, column in places]]
        positions = torch.cat(
            [
                self.norm("encoder.image_pos_ln", at),
                self.norm("encoder.pos_ln", self.w["encoder.embed_positions.weight"][: len(ids)]),
            ]
        )
        everywhere = self.products("encoder", "pos_", positions, positions)
        n, span = len(places), 2 * self.side - 1
        for layer in range(3):
            table = self.w[f"encoder.image_rel_pos_table_list.{layer}.weight"]
            bias = everywhere.clone()
            for i, (row, column) in enumerate(places):
                for j, (other_row, other_column) in enumerate(places):
                    down, right = row - other_row + self.side - 1, column - other_column + self.side - 1
                    bias[:, i, j] += table[down * span + right]
            bias[:, n:, n:] += self.token_bias("encoder", layer, len(ids))
            name = f"encoder.layers.{layer}"
            normed = self.norm(f"{name}.self_attn_layer_norm", x)
            attended = self.attend(f"{name}.self_attn", normed, normed, bias)
            x = self.feed(name, x + self.norm(f"{name}.self_attn_mid_layer_norm", attended))
        return self.norm("encoder.layer_norm", x), positions

    def decode(self, tokens: Sequence[int], source: tuple[Tensor, Tensor]) -> Tensor:
        states, positions = source
        embedding = self.w["encoder.embed_tokens.weight"]
        x = self.norm("decoder.layernorm_embedding", embedding[list(tokens)])
        at = self.norm("decoder.pos_ln", self.w["decoder.embed_positions.weight"][: len(tokens)])
        everywhere = self.products("decoder", "self_pos_", at, at)
        across = self.products("decoder", "cross_pos_", at, positions)
        future = torch.full((len(tokens), len(tokens)), -torch.inf, dtype=torch.float64).triu(1)
        for layer in range(2):
            name = f"decoder.layers.{layer}"
            bias = everywhere + self.token_bias("decoder", layer, len(tokens)) + future
            normed = self.norm(f"{name}.self_attn_layer_norm", x)
            attended = self.attend(f"{name}.self_attn", normed, normed, bias)
            x = x + self.norm(f"{name}.self_attn_mid_layer_norm", attended)
            normed = self.norm(f"{name}.cross_attn_layer_norm", x)
            attended = self.attend(f"{name}.cross_attn", normed, states, across)
            x = self.feed(name, x + self.norm(f"{name}.cross_attn_mid_layer_norm", attended))
        return self.norm("decoder.layer_norm", x) @ embedding.T


def token_bucket(distance: int, size: int) -> int:
    """Own buckets up to half of ``size``, then logarithmic ones up to a distance of 1023, on either side of the
    middle."""
    half = size // 2
    if abs(distance) > half:
        steps = math.ceil(math.log(abs(distance) / half) / math.log(1023 / half) * (half - 1))
        distance = int(math.copysign(half + steps, distance))
    return distance + size - 1


def plain(model: OFAModel) -> Plain:
    size = model.config
    heads = size.encoder_attention_heads, size.decoder_attention_heads
    return Plain(tiny_ofa.published(model), heads, size.image_bucket_size, size.token_bucket_size)


def plain_beams(
    next_logits: Callable[[tuple[int, ...]], Tensor],
    beams: int,
    most: int,
    ngram: int,
    temperature: float = 1.0,
    penalty: float = 1.0,
) -> list[tuple[float, tuple[int, ...]]]:
    """Beam search as fairseq does it: ends count among the best ``beams`` candidates, logits are divided by the
    temperature and a score by its length to the power ``penalty``, a sentence of ``most`` tokens can only end, and the
    search ends with ``beams`` sentences, the likeliest first where more end at once."""
    live: list[tuple[float, tuple[int, ...]]] = [(0.0, ())]
    done: list[tuple[float, tuple[int, ...]]] = []
    for step in range(most + 1):
        found = []
        for score, said in live:
            logits = (next_logits((BOS, *said)) / temperature).log_softmax(0)
            logits[PAD] = -math.inf
            if step == 0:
                logits[END] = -math.inf
            whole = (BOS, *said)
            for start in range(len(whole) - ngram + 1):
                if len(whole) >= ngram and whole[start : start + ngram - 1] == whole[len(whole) - ngram + 1 :]:
                    logits[whole[start + ngram - 1]] = -math.inf
            if step == most:
                kept = logits[END].item()
                logits[:] = -math.inf
                logits[END] = kept
            values, tokens = logits.topk(2 * beams)
            found += [
                (score + value, (*said, token))
                for value, token in zip(values.tolist(), tokens.tolist(), strict=True)
                if value > -math.inf
            ]
        best = sorted(found, reverse=True)[: 2 * beams]
        ended = [(score / len(said) ** penalty, said) for score, said in best[:beams] if said[-1] == END]
        done += ended[: beams - len(done)]
        live = [one for one in best if one[1][-1] != END][:beams]
        if len(done) >= beams:
            break
    return sorted(done, reverse=True)
