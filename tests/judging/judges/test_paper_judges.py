"""The papers' classifiers, by presets of the catalogue, beside plain transformers, torchvision and scikit-learn."""

import csv
import json
import re
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import load_file
from sklearn.ensemble import RandomForestClassifier
from sklearn.svm import SVC
from torchvision.models import ResNet18_Weights, resnet18
from transformers import AutoModel, AutoTokenizer

from agents import catalogue
from judging.trial_sets.trial_set import key_path, read_trial_key
from serving.cli import main
from tests.helpers import in_process, misbehaving_server, tiny_embeddings, tiny_language

VECTORS = ("word2vec", "gpt2-embedding", "openai-embedding")
WORDS = ["moon", "sun", "sea", "tree", "bird", "stone", "wind", "rain", "fire", "leaf", "road", "wolf", "snow", "star"]


@pytest.fixture(scope="module")
def words(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Trials of words of people and two machines, word2vec's binary file, which lacks a word, and a tiny GPT-2."""
    folder = tmp_path_factory.mktemp("words")
    chance = np.random.default_rng(0)
    cues = ["dog", "heavy", "take", "puppy", "river", "green", "house", "fast", "music", "cold", "bread", "king"]
    truth = {
        cue: [
            {
                "response": str(chance.choice(WORDS[3:] if who == "human" else WORDS[:10])),
                "groundtruth": who,
                f"{who}_groundtruth": name,
            }
            for who, name in [("human", "01"), ("human", "02"), ("machine", "alpha"), ("machine", "beta")]
        ]
        for cue in cues
    }
    (folder / "word.json").write_text(json.dumps(truth))
    known = [*WORDS[1:], *cues]
    packed = [word.encode() + b" " + struct.pack("<5f", *chance.normal(size=5)) for word in known]
    (folder / "vectors.bin").write_bytes(f"{len(known)} 5\n".encode() + b"".join(packed))
    tiny_language.gpt2(folder / "gpt2")
    assert main(["import", str(folder / "word.json"), "--out", str(folder / "published")]) == 0
    assert main(["trials", str(folder / "published"), "--out", str(folder / "T")]) == 0
    return folder


def plain_vectors(folder: Path) -> dict[str, dict[str, np.ndarray]]:
    """By embedding the vectors of all its words, read by hand."""
    trials = [json.loads(line) for line in (folder / "T" / "trials.jsonl").read_text().splitlines()]
    texts = {trial["cue"] for trial in trials} | {trial["answer"]["word"] for trial in trials}
    content = (folder / "vectors.bin").read_bytes().partition(b"\n")[2]
    file = {}
    while content:
        word, _, content = content.partition(b" ")
        file[word.decode()] = np.frombuffer(content[:20], "<f4").astype(float)
        content = content[20:]
    rows = load_file(folder / "gpt2" / "model.safetensors")["transformer.wte.weight"].double().numpy()
    tokenizer = AutoTokenizer.from_pretrained(folder / "gpt2")
    forms = (str.lower, str.title, str.upper)
    tokens = {text: min((tokenizer.encode(f" {form(text)}") for form in forms), key=len) for text in texts}
    return {
        "word2vec": file,
        "gpt2-embedding": {text: rows[tokens[text]].mean(axis=0) for text in texts},
        "openai-embedding": {text: np.array(misbehaving_server.vector(text), float) for text in texts},
    }


def test_words_are_judged_by_three_kinds_of_vectors_whose_verdicts_are_pooled(
    words: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_process.without_ray(monkeypatch)
    trials = [json.loads(line) for line in (words / "T" / "trials.jsonl").read_text().splitlines()]
    key = read_trial_key(key_path(words / "T"))
    with misbehaving_server.running() as server:
        chosen = {
            "word2vec.checkpoint": words / "vectors.bin",
            "gpt2-embedding.checkpoint": words / "gpt2",
            "openai-embedding.base_url": server.url,
        }
        given = [part for name, value in chosen.items() for part in ("--set", f"svm-paper-text.vectors.{name}={value}")]
        judge = ["judge", str(words / "T"), "--judges", "svm-paper-text", "--set", "svm-paper-text.partitions=2"]
        assert main([*judge, *given, "--out", str(tmp_path / "V")]) == 0
    assert len(server.requests) == 1  # all texts in one
    assert main(["score", str(tmp_path / "V"), "--out", str(tmp_path / "S"), "--by", "embedding,partition"]) == 0
    with (tmp_path / "S" / "verdicts.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    right = []
    for embedding, vectors in plain_vectors(words).items():
        asked = [trial for trial in trials if {trial["cue"], trial["answer"]["word"]} <= vectors.keys()]
        assert (len(asked) < len(trials)) == (embedding == "word2vec")
        features = np.array([(vectors[trial["answer"]["word"]] - vectors[trial["cue"]]) ** 2 for trial in asked])
        truth = np.array([key[trial["id"]]["truth"] == "machine" for trial in asked])
        cues = np.array([trial["cue"] for trial in asked])
        for partition in ("0", "1"):
            judged = {
                row["trial"]: row for row in rows if (row["embedding"], row["partition"]) == (embedding, partition)
            }
            assert judged.keys() == {trial["id"] for trial in asked}
            folds = np.array([int(judged[trial["id"]]["fold"]) for trial in asked])
            for fold in set(folds):
                test = folds == fold
                assert not set(cues[test]) & set(cues[~test])
                if truth[~test].sum() * 2 != (~test).sum():
                    continue  # as many are drawn
                margins = SVC(kernel="linear").fit(features[~test], truth[~test]).decision_function(features[test])
                ours = [float(judged[trial["id"]]["margin"]) for trial, one in zip(asked, test, strict=True) if one]
                assert ours == pytest.approx(margins, abs=1e-3)
        right += [row["verdict"] == row["truth"] for row in rows if row["embedding"] == embedding]
    with (tmp_path / "S" / "by.csv").open(newline="") as file:
        by = {(row["column"], row["value"], row["agent"]) for row in csv.DictReader(file)}
    assert {("embedding", name, "all") for name in VECTORS} | {("partition", at, "all") for at in "01"} <= by
    with (tmp_path / "S" / "ledger.csv").open(newline="") as file:
        [row] = csv.DictReader(file)
    assert float(row["accuracy"]) == pytest.approx(np.mean(right))


@pytest.mark.parametrize(
    ("lacks", "match"),
    [
        ({"word2vec": {}}, r"GoogleNews.*no such file.*the setting svm-paper-text\.vectors\.word2vec\.checkpoint=PATH"),
        (
            {"gpt2-embedding": {}},
            "openai-community/gpt2.* is not on this machine: run `turinglike fetch gpt2-embedding`",
        ),
        ({"openai-embedding": {}}, "OPENAI_API_KEY holds no key"),
        ({"eliza": {}}, "svm-paper-text.words: eliza does not go by vectors of words"),
        ({}, "google-bert/bert-base-uncased.* is not on this machine: run `turinglike fetch svm-paper-text`"),
    ],
)
def test_what_is_missing_is_refused_before_a_trial_is_judged(
    words: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    lacks: Any,
    match: str,
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    chosen = ["--set", f"svm-paper-text.words={json.dumps([*lacks])}"]
    assert main(["judge", str(words / "T"), "--judges", "svm-paper-text", *chosen, "--out", str(tmp_path / "V")]) != 0
    assert re.search(match, " ".join(capsys.readouterr().err.split()))
    assert not (tmp_path / "V" / "records").exists()


@pytest.mark.parametrize(
    ("name", "asked"),
    [("svm-paper-text", "color_estimation"), ("forest", "color_estimation"), ("svm-paper-text", "object_detection")],
)
def test_colours_and_objects_are_judged_by_bert_and_resnet18(tmp_path: Path, name: str, asked: Any) -> None:
    bert = tiny_embeddings.sentence_bert(tmp_path / "bert", normalised=False)
    chance = np.random.default_rng(0)
    (tmp_path / "bert" / "modules.json").unlink()  # BERT's own folder has none
    torch.manual_seed(0)
    net = resnet18(weights=None).eval()
    torch.save(net.state_dict(), tmp_path / "resnet18.pth")
    net.fc = torch.nn.Identity()
    tokenizer = AutoTokenizer.from_pretrained(bert)
    encoder = AutoModel.from_pretrained(bert).eval()
    trials = []
    keys = []
    rows = []
    for at in range(40):
        if at % 2 == 0:
            picture = Image.fromarray(chance.integers(0, 255, (40, 40, 3), dtype=np.uint8))
            picture.save(tmp_path / f"{at // 2}.png")
        truth = ("human", "machine")[at % 2]
        said = [str(chance.choice(["red", "blue", "man", "dog"])) for _ in "123"]
        answer = {"color": said[0]} if asked == "color_estimation" else {"labels": said}
        trial = {"id": f"t{at}", "asked": asked, "shown": f"s{at // 2}", "answer": answer, "image": f"{at // 2}.png"}
        trials.append(trial)
        keys.append({"truth": truth, "agent": truth, "catch": False, "repeat_of": None, "said": "", "asked": asked})
        text = said[0] if asked == "color_estimation" else ", ".join(said)
        with torch.no_grad():
            words = encoder(**tokenizer(text, return_tensors="pt")).last_hidden_state[0, 0].numpy()
            pixels = ResNet18_Weights.IMAGENET1K_V1.transforms()(Image.open(tmp_path / f"{at // 2}.png"))
            seen = net(pixels[None])[0].numpy() if asked == "color_estimation" else []
        rows.append(np.concatenate([seen, words]))
    (tmp_path / "trials.jsonl").write_text("".join(json.dumps(trial) + "\n" for trial in trials))
    judge: Any = catalogue.entries()[name].make(
        {
            "checkpoint": str(bert),
            "picture_weights": str(tmp_path / "resnet18.pth"),
            "trials": tmp_path / "trials.jsonl",
        }
    )
    assert judge.missing() is None
    inputs = judge.extract(asked, trials, "cpu")
    assert inputs[""].rows == pytest.approx(np.array(rows), abs=1e-4)
    result = judge.judge_trials(trials, keys, inputs)
    folds = np.array([result[trial["id"]]["fold"] for trial in trials])
    truth = np.arange(40) % 2 == 1
    for fold in range(10):
        train = inputs[""].rows[folds != fold]
        test = inputs[""].rows[folds == fold]
        model: Any = RandomForestClassifier(random_state=0) if name == "forest" else SVC(kernel="linear")
        model.fit(train, truth[folds != fold])
        margins = model.predict_proba(test)[:, 1] - 0.5 if name == "forest" else model.decision_function(test)
        ours = [result[f"t{at}"]["margin"] for at in np.flatnonzero(folds == fold)]
        assert ours == pytest.approx(margins, abs=1e-6)
