"""OpenAI's older completions, with the unchanged ``openai`` package."""

from typing import Any

import openai
import pytest

from agents.contract import derive_seed
from serving.http.completion_requests import ONE_TEXT
from tests.helpers import served_here
from tests.helpers.served_here import here

PATH = "/v1/completions"
TOLD: dict[str, Any] = {"model": "null", "seed": 7, "extra_body": {"stimulus": {"id": "talk"}}}


def said(sample: int = 0) -> str:
    """What the no-op agent says to the only message of a chat."""
    return f"B says {derive_seed(7, 'null', 'talk', sample, 1, 0):x}."


@pytest.mark.parametrize("prompt", ["I like tea.", ["I like tea."]])
def test_a_prompt_is_the_only_message_of_a_chat(prompt: Any) -> None:
    async def work(found: served_here.Here) -> None:
        made = await found.openai().completions.create(
            prompt=prompt, n=2, temperature=0.1, max_tokens=1, best_of=1, echo=False, suffix="", **TOLD
        )
        assert [choice.text for choice in made.choices] == [said(0), said(1)]
        assert [choice.finish_reason for choice in made.choices] == ["stop", "stop"]
        assert (made.object, made.usage.total_tokens if made.usage else None) == ("text_completion", 0)
        assert set(made.turinglike["ignored"]) == {"temperature", "max_tokens"}
        assert made.turinglike["records"][0]["task"] == "conversation"

    here(work)


def test_a_prompt_is_a_cue_for_an_agent_that_associates() -> None:
    async def work(found: served_here.Here) -> None:
        service = found.service
        service._declared["null"] = service.declared("null").replace(tasks=("word_association",))
        made = await found.openai().completions.create(prompt="tea", **TOLD)
        assert made.choices[0].text == f"{derive_seed(7, 'null', 'talk', 0, None, 0):x}"

    here(work)


def test_a_stream_is_the_answer_in_pieces_and_ends_before_a_stop() -> None:
    async def work(found: served_here.Here) -> None:
        made = found.openai().completions
        told = {**TOLD, "prompt": "I like tea.", "stream": True}
        chunks = [one async for one in await made.create(n=2, stream_options={"include_usage": True}, **told)]
        assert chunks.pop().usage.total_tokens == 0
        for index in range(2):
            pieces = [one.choices[0] for one in chunks if one.choices[0].index == index]
            assert "".join(one.text for one in pieces) == said(index)
            assert sum(bool(one.text) for one in pieces) == 3  # words
            assert [one.finish_reason for one in pieces] == [None] * (len(pieces) - 1) + ["stop"]
        assert {one.object for one in chunks} == {"text_completion"}
        cut = [one async for one in await made.create(stop=[said()[5:9], "nowhere"], **told)]
        assert "".join(one.choices[0].text for one in cut) == said()[:5]

    here(work)


@pytest.mark.parametrize(
    ("told", "status", "param", "why"),
    [
        ({"prompt": ["a", "b"]}, 422, "prompt", ONE_TEXT),
        ({"prompt": [1, 2]}, 422, "prompt", ONE_TEXT),
        ({"prompt": []}, 422, "prompt", ONE_TEXT),
        ({"prompt": " "}, 400, "prompt", "nothing to answer"),
        ({"prompt": "x", "echo": True}, 400, "echo", "no part of its answer"),
        ({"prompt": "x", "suffix": "y"}, 400, "suffix", "nothing between two texts"),
        ({"prompt": "x", "best_of": 3}, 400, "best_of", "no log probabilities"),
        ({"prompt": "x", "logprobs": 0}, 400, "logprobs", "no log probabilities"),
        ({"prompt": "x", "logprobs": 5}, 400, "logprobs", "no log probabilities"),
        ({"prompt": "x", "extra_body": {"modalities": ["audio"]}}, 400, "modalities", "plain text only"),
    ],
)
def test_what_would_change_the_answer_is_refused(told: dict[str, Any], status: int, param: str, why: str) -> None:
    async def work(found: served_here.Here) -> None:
        with pytest.raises(openai.APIStatusError) as caught:
            await found.openai().completions.create(model="null", **told)
        assert (caught.value.status_code, caught.value.param) == (status, param)
        assert why in str(caught.value)

    here(work)
