"""SCST's FC model (Rennie et al. 2017, arXiv 1612.00563, section 2), which is "newfc" in
ruotianluo/self-critical.pytorch."""

from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torchvision.models.resnet import Bottleneck, ResNet
from transformers import Cache, GenerationMixin, PreTrainedConfig, PreTrainedModel, PreTrainedTokenizerFast
from transformers.modeling_outputs import CausalLMOutputWithPast

from agents.errors import UnavailableError
from agents.models import weight_files
from agents.vision.weights import INERT, assign, layers_of, read_pickle

MEAN = (0.485, 0.456, 0.406)
"""Means of red, green and blue, from 0 to 1, as torchvision's."""
DEVIATION = (0.229, 0.224, 0.225)
"""Standard deviations of the three."""
END = 0
"""The token that begins a text, ends it and pads it."""
END_WORD = "<end>"
"""How that token is written."""
UNKNOWN_WORD = "UNK"
"""The word for words that were too rare in training."""


class SCSTConfig(PreTrainedConfig):
    """The network's sizes."""

    model_type: ClassVar[str] = "scst"
    keys_to_ignore_at_inference: ClassVar[list[str]] = ["past_key_values"]

    vocab_size: int = 9488
    """Words, and a place for the end."""
    embedding_size: int = 512
    """The width of a word's embedding."""
    hidden_size: int = 512
    """The width of the LSTM."""
    blocks: tuple[int, ...] = (3, 4, 23, 3)
    """Blocks of the ResNet's four stages."""
    bos_token_id: int = END
    """The token that begins a text."""
    eos_token_id: int = END
    """The token that ends a text."""
    pad_token_id: int = END
    """The token that fills a text up."""


class MeanFeatures(ResNet):
    """Caffe's ResNet, whose last feature map is averaged."""

    def __init__(self, blocks: tuple[int, ...]) -> None:
        super().__init__(Bottleneck, list(blocks))
        del self.avgpool, self.fc
        self.maxpool = nn.MaxPool2d(3, stride=2, ceil_mode=True)
        for stage in (self.layer2, self.layer3, self.layer4):
            stage[0].conv1.stride = (2, 2)
            stage[0].conv2.stride = (1, 1)

    def forward(self, images: Tensor) -> Tensor:
        """Pictures [batch, 3, height, width] to features [batch, 2048]."""
        x = self.maxpool(self.relu(self.bn1(self.conv1(images))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return x.mean(3).mean(2)  # type: ignore[no-any-return]


class LstmState(Cache):
    """The LSTM's hidden state and cell, each [rows, width], in the form of transformers' caches."""

    def __init__(self, hidden: Tensor, cell: Tensor) -> None:
        super().__init__(layers=[])
        self.hidden = hidden
        self.cell = cell

    def reorder_cache(self, beam_idx: Tensor) -> None:
        """Let rows go on from the beams ``beam_idx`` [rows]."""
        self.hidden = self.hidden[beam_idx]
        self.cell = self.cell[beam_idx]


class Decoder(nn.Module):
    """An LSTM whose input is a maximum of two maps instead of a tanh; it reads the image's features before the first
    word."""

    def __init__(self, config: SCSTConfig, features: int) -> None:
        super().__init__()
        inputs = config.embedding_size
        width = config.hidden_size
        self.fc_embed = nn.Linear(features, inputs)
        self.embed = nn.Embedding(config.vocab_size, inputs)
        self._core = nn.ModuleDict({"i2h": nn.Linear(inputs, 5 * width), "h2h": nn.Linear(width, 5 * width)})
        self.logit = nn.Linear(width, config.vocab_size)

    def begin(self, features: Tensor) -> LstmState:
        """The state after the image's ``features`` [rows, 2048]."""
        nothing = features.new_zeros(len(features), self.logit.in_features)
        state = LstmState(nothing, nothing)
        self._step(self.fc_embed(features), state)
        return state

    def forward(self, tokens: Tensor, state: LstmState) -> Tensor:
        """Logits [rows, vocabulary] after a token per row; changes ``state``."""
        self._step(self.embed(tokens), state)
        return self.logit(state.hidden)  # type: ignore[no-any-return]

    def _step(self, x: Tensor, state: LstmState) -> None:
        sums = self._core["i2h"](x) + self._core["h2h"](state.hidden)
        gates, first, second = sums.split([3 * state.hidden.shape[1], *2 * [state.hidden.shape[1]]], dim=1)
        enter, keep, leave = gates.sigmoid().chunk(3, dim=1)
        state.cell = keep * state.cell + enter * torch.max(first, second)
        state.hidden = leave * state.cell.tanh()


class SCSTModel(PreTrainedModel, GenerationMixin):
    """The whole model; ``generate`` takes :meth:`Decoder.begin` as ``past_key_values``."""

    config_class = SCSTConfig
    base_model_prefix = "model"
    main_input_name = "input_ids"
    config: SCSTConfig

    def __init__(self, config: SCSTConfig) -> None:
        super().__init__(config)
        self.resnet = MeanFeatures(config.blocks)
        self.decoder = Decoder(config, 512 * Bottleneck.expansion)
        PreTrainedModel.post_init(self)

    def features(self, pixels: Tensor) -> Tensor:
        """Features [batch, 2048] of pictures [batch, 3, height, width] with numbers from 0 to 255."""
        channels = zip(pixels.float().unbind(1), MEAN, DEVIATION, strict=True)
        normal = torch.stack([(channel / 255 - mean) / deviation for channel, mean, deviation in channels], dim=1)
        return self.resnet(normal.to(self.dtype))  # type: ignore[no-any-return]

    def forward(
        self,
        input_ids: Tensor,
        past_key_values: Any,
        attention_mask: Tensor | None = None,
        use_cache: bool | None = None,
        return_dict: bool | None = None,
    ) -> CausalLMOutputWithPast:
        """Logits [rows, 1, vocabulary] after ``input_ids`` [rows, 1]."""
        logits: Any = self.decoder(input_ids[:, -1], past_key_values)[:, None]
        return CausalLMOutputWithPast(logits=logits, past_key_values=past_key_values)

    def _get_running_beams_for_next_iteration(self, topk_log_probs: Tensor, *others: Any, **named: Any) -> Any:
        """Let ended beams leave their places empty for a step, as in self-critical.pytorch.

        Why so: transformers looks at twice as many candidates as beams, so that others take the places of those that
        ended. The authors look at no more than the beams. What breaks: this is a private step of transformers' beam
        search; a version that renames it would search on in its own way. tests/agents/vision/test_scst.py compares with
        a plain search.
        """
        narrowed = topk_log_probs.clone()
        narrowed[:, named["num_beams"] :] = -torch.inf
        return super()._get_running_beams_for_next_iteration(narrowed, *others, **named)


def load_scst(weights: Path, resnet: Path) -> Any:
    """The model in float32 on the CPU, of the files of weights and of the ResNet's. Raises UnavailableError."""
    decoder = weight_files.read_weights(weights)
    encoder = weight_files.read_weights(resnet)
    needed = ("embed.weight", "_core.h2h.weight")
    weight_files.check_names(weights, [name for name in needed if name not in decoder])
    words, inputs = decoder["embed.weight"].shape
    width = decoder["_core.h2h.weight"].shape[1]
    blocks = tuple(max(layers_of(encoder, f"layer{stage}."), 1) for stage in (1, 2, 3, 4))
    config = SCSTConfig(vocab_size=words, embedding_size=inputs, hidden_size=width, blocks=blocks)
    with torch.device("meta"):
        model: Any = SCSTModel(config)
    assign(model.decoder, decoder, weights)
    assign(model.resnet, {name: value for name, value in encoder.items() if not name.startswith("fc.")}, resnet)
    return model.eval()


def read_words(path: Path) -> list[str]:
    """The words in infos.pkl by number, the end first. Raises UnavailableError."""
    infos = read_pickle(path, inert=INERT)
    vocabulary = infos.get("vocab") if isinstance(infos, dict) else None
    numbered = vocabulary if isinstance(vocabulary, dict) else {}
    words = [numbered.get(str(number)) for number in range(1, len(numbered) + 1)]
    if not words or not all(isinstance(word, str) for word in words):
        raise UnavailableError(f"{path} holds no words by number under 'vocab'")
    return [END_WORD, *map(str, words)]


def frequent_words(count: int) -> list[str]:
    """As many words as :func:`read_words` gives of a model with ``count`` tokens, the end first: English ones by
    frequency, and the unknown word last, as in the published file. They stand in for its words."""
    from wordfreq import top_n_list

    words = [word for word in top_n_list("en", 4 * count) if word.isascii() and word.isalpha()]
    return [END_WORD, *words[: count - 2], UNKNOWN_WORD]


def make_word_tokenizer(words: list[str]) -> PreTrainedTokenizerFast:
    """A tokenizer for which every word is a token."""
    from tokenizers import Tokenizer, models

    numbers = {word: number for number, word in enumerate(words)}
    return PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer(models.WordLevel(numbers, UNKNOWN_WORD)),
        eos_token=END_WORD,
        clean_up_tokenization_spaces=False,
    )
