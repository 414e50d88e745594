"""OpenAI's embeddings by the unchanged ``openai`` client: the vectors of tiny models, as others compute them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import openai
import pytest
import served_here
import tiny_embeddings
import tiny_language
import torch
from served_here import here
from transformers import AutoTokenizer, GPT2Model

TEXTS = ["tea", "the dog and the woman", "Tea", "tea"]


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    root = tmp_path_factory.mktemp("embeddings")
    made = {
        "minilm": tiny_embeddings.sentence_bert(root / "bert"),
        "gpt2-embedding": tiny_language.gpt2(root / "gpt2"),
    }
    return {name: {"checkpoint": str(folder), "vocabulary": 50} for name, folder in made.items()} | {"null": {}}


def by_sentence_transformers(folder: str, texts: Sequence[str]) -> Any:
    library = pytest.importorskip("sentence_transformers")
    return library.SentenceTransformer(folder, device="cpu").encode(list(texts))


def by_gpt2s_rows(folder: str, texts: Sequence[str]) -> Any:
    """The mean row of each text after a space, in the capitals that have the fewest tokens."""
    tokenizer, rows = AutoTokenizer.from_pretrained(folder), GPT2Model.from_pretrained(folder).wte.weight.detach()
    forms = [[tokenizer.encode(f" {one}") for one in (text.lower(), text.title(), text.upper())] for text in texts]
    return np.stack([rows[torch.tensor(min(one, key=len))].mean(dim=0).numpy() for one in forms])


@pytest.mark.parametrize(("name", "own"), [("minilm", by_sentence_transformers), ("gpt2-embedding", by_gpt2s_rows)])
def test_a_vector_is_the_models_own(name: str, own: Any, settings: dict[str, Any], tmp_path: Path) -> None:
    wanted = own(settings[name]["checkpoint"], TEXTS)

    async def work(found: served_here.Here) -> None:
        create = found.openai().embeddings.create
        size = wanted.shape[1]
        # without a form the client asks for base64 and decodes it
        for more in ({}, {"encoding_format": "float"}, {"dimensions": size}):
            answer = await create(model=name, input=TEXTS, **more)  # type: ignore[call-overload]
            assert [one.index for one in answer.data] == [0, 1, 2, 3]
            assert np.allclose([one.embedding for one in answer.data], wanted, atol=1e-5)
        alone = await create(model=name, input=TEXTS[1], encoding_format="float")
        assert np.allclose(alone.data[0].embedding, wanted[1], atol=1e-5)
        with pytest.raises(openai.UnprocessableEntityError) as caught:
            await create(model=name, input="tea", dimensions=size - 1)
        assert caught.value.param == "dimensions"
        word = await found.openai().chat.completions.create(model=name, messages=[{"role": "user", "content": "tea"}])
        assert word.choices[0].message.content
        assert found.service.waiting()[name] == 0

    here(work, {name: settings[name]}, queue=2, out=tmp_path / "run")
    assert len((tmp_path / "run" / "records" / f"{name}.jsonl").read_text().splitlines()) == 1  # the word's


def test_what_has_no_vector_is_refused(settings: dict[str, Any]) -> None:
    async def work(found: served_here.Here) -> None:
        async def refused(**asked: Any) -> tuple[int, str]:
            status, body = await found.post("/v1/embeddings", asked)
            return status, body["error"]["message"]

        assert await refused(model="null", input="tea") == (
            422, "agent null has no vectors; of those served have some: gpt2-embedding"
        )  # fmt: skip
        assert (await refused(model="nobody", input="tea"))[0] == 404
        name = "gpt2-embedding"
        for wrong in ("", "  ", "x" * 201, [], [[1, 2]], ["tea", ""]):
            assert (await refused(model=name, input=wrong))[0] == 422
        assert (await refused(model=name, input="tea", encoding_format="int8"))[0] == 422
        found.service.options.deadline = 0
        assert (await refused(model=name, input=["tea", "sun"]))[0] == 504

    here(work, {name: settings[name] for name in ("null", "gpt2-embedding")})
