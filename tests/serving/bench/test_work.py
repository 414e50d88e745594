"""Operations and bytes of one call of ``respond``, against what a pencil says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
import torch

from agents import catalogue
from agents.answers import WordAnswer
from agents.contract import Agent, Draw, Reply, Settings
from agents.stimuli import parse_row
from serving.bench import work

LAYERS, WIDTH, HEADS, VOCABULARY = 2, 32, 4, 64


class Texts(Agent[Settings]):
    """Continues tokens with GPT-2, greedily, by a fixed number."""

    tasks = ("word_association",)
    Settings = Settings
    new = 5

    def load(self, device: str) -> None:
        from transformers import GPT2Config, GPT2LMHeadModel

        config = GPT2Config(
            vocab_size=VOCABULARY, n_positions=64, n_embd=WIDTH, n_layer=LAYERS, n_head=HEADS, eos_token_id=None
        )
        self.model = GPT2LMHeadModel(config).eval()

    def respond(self, batch: Sequence[Any], draws: Sequence[Draw]) -> Sequence[Reply | Exception]:
        with torch.inference_mode():
            said = self.model.generate(torch.tensor(batch), max_new_tokens=self.new, do_sample=False, pad_token_id=0)
        assert said.shape[1] == len(batch[0]) + self.new
        return [Reply(WordAnswer(word=str(row))) for row in said.tolist()]


class Pictures(Agent[Settings]):
    """A small VGG: convolutions of 3 x 3 that keep the size, a pool, a linear layer."""

    tasks = ("color_estimation",)
    Settings = Settings

    def load(self, device: str) -> None:
        layers = torch.nn
        self.model = layers.Sequential(
            layers.Conv2d(3, 8, 3, padding=1), layers.ReLU(), layers.MaxPool2d(2),
            layers.Conv2d(8, 16, 3, padding=1), layers.ReLU(), layers.Flatten(), layers.Linear(16 * 8 * 8, 10),
        )  # fmt: skip

    def respond(self, batch: Sequence[Any], draws: Sequence[Draw]) -> Sequence[Reply | Exception]:
        with torch.no_grad():
            return [Reply(WordAnswer(word=str(row))) for row in self.model(torch.stack(list(batch))).tolist()]


@pytest.mark.parametrize(("batch", "length", "new"), [(1, 7, 1), (3, 7, 5)])
def test_operations_and_bytes_of_a_gpt2(batch: int, length: int, new: int) -> None:
    agent = Texts(Settings(), "texts")
    agent.load("cpu")
    agent.new = new
    found = work.of(agent, [list(range(length))] * batch, [Draw(1)] * batch)

    # (texts a row of the head, tokens that are new, tokens that are looked at) of each pass: the first takes the prompt
    passes = [(length, length)] + [(1, length + step) for step in range(1, new)]
    operations = 0
    for fresh, seen in passes:
        matrices = 2 * 12 * WIDTH**2 * fresh  # queries, keys and values 3, the way out 1, the perceptron 4 + 4
        attention = 2 * 2 * fresh * seen * WIDTH  # scores, and their sum of values
        operations += batch * (LAYERS * (matrices + attention) + 2 * WIDTH * VOCABULARY)
    assert found.flops == operations

    layer = 12 * WIDTH**2 + 9 * WIDTH + 4 * WIDTH  # matrices, their biases, two layer norms
    weights = LAYERS * layer + 2 * WIDTH + VOCABULARY * WIDTH  # the last norm, the head
    looked_up = sum(2 * batch * fresh * WIDTH for fresh, _ in passes)  # tokens and positions
    assert found.bytes == 4 * (len(passes) * weights + looked_up)


def test_operations_and_bytes_of_a_vgg() -> None:
    agent = Pictures(Settings(), "pictures")
    agent.load("cpu")
    found = work.of(agent, [torch.zeros(3, 16, 16)] * 4, [Draw(1)] * 4)
    convolutions = 2 * 9 * (3 * 8 * 16 * 16 + 8 * 16 * 8 * 8)
    assert found.flops == 4 * (convolutions + 2 * 1024 * 10)
    assert found.precision == "float32"
    agent.model.to(torch.bfloat16)
    assert work.of(agent, [torch.zeros(3, 16, 16, dtype=torch.bfloat16)], [Draw(1)]).precision == "bfloat16"
    assert found.bytes == 4 * (9 * 3 * 8 + 8 + 9 * 8 * 16 + 16 + 1024 * 10 + 10)


def test_a_weight_that_is_expanded_is_read_once() -> None:
    class Shifted(Pictures):
        def load(self, device: str) -> None:
            self.shift = torch.nn.Parameter(torch.ones(8))

        def respond(self, batch: Sequence[Any], draws: Sequence[Draw]) -> Sequence[Reply | Exception]:
            with torch.no_grad():
                return list(torch.stack(list(batch)) + self.shift.expand(len(batch), 8))

    agent = Shifted(Settings(), "shifted")
    agent.load("cpu")
    assert work.of(agent, [torch.zeros(8)] * 5, [Draw(1)] * 5) == work.Work(None, 32, None)


def test_a_parameter_may_be_what_a_module_is_given() -> None:
    class Queries(Pictures):
        def load(self, device: str) -> None:
            self.queries = torch.nn.Parameter(torch.ones(1, 4, 8))
            self.model = torch.nn.Linear(8, 2, bias=False)

        def respond(self, batch: Sequence[Any], draws: Sequence[Draw]) -> Sequence[Reply | Exception]:
            with torch.inference_mode():
                return list(self.model(self.queries.expand(len(batch), -1, -1)))

    agent = Queries(Settings(), "queries")
    agent.load("cpu")
    found = work.of(agent, [None] * 3, [Draw(1)] * 3)
    assert found.flops == 2 * 3 * 4 * 8 * 2
    assert found.bytes == 4 * (4 * 8 + 8 * 2)


def test_an_agent_without_torch_has_no_figures() -> None:
    agent = catalogue.get("null").make()
    agent.open()
    agent.load("cpu")
    prepared = agent.prepare(parse_row('{"id": "a", "task": "word_association", "cue": "hot"}'))
    assert work.of(agent, [prepared], [Draw(1)]) == work.Work(None, None, None)
