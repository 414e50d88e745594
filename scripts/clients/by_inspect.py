"""Inspect: `openai-api/` and `openai/`."""

import os

from calls import FIRST, FOLDER, KEY, REPLY, SEED, SEEDED, URL, attempt, same
from inspect_ai import Task, eval
from inspect_ai.dataset import Sample
from inspect_ai.model import get_model
from inspect_ai.scorer import exact
from inspect_ai.solver import generate

os.environ |= {"TL_BASE_URL": URL, "TL_API_KEY": KEY, "INSPECT_LOG_DIR": FOLDER, "INSPECT_DISPLAY": "none"}


def evaluated(model, **options):
    task = Task(dataset=[Sample(input=FIRST, target=REPLY)], solver=generate(), scorer=exact())
    (log,) = eval(task, model=model, **options)
    if log.status != "success":
        raise RuntimeError(log.error.message)
    return log.samples[0].output.completion


def two_choices():
    (log,) = eval(Task(dataset=[Sample(input=FIRST)]), model="openai-api/tl/eliza", num_choices=2)
    if len(log.samples[0].output.choices) != 2:
        raise ValueError(f"{len(log.samples[0].output.choices)} choices")
    return log.samples[0].output.completion


def openai(**arguments):
    return get_model("openai/eliza", base_url=URL, api_key=KEY, **arguments)


attempt("openai-api/", lambda: evaluated("openai-api/tl/eliza"))
attempt(
    "seed, options",
    lambda: same(lambda: evaluated("openai-api/tl/eliza", seed=SEED, temperature=1.0, max_tokens=50)),
    sends=SEEDED,
)
attempt("num_choices=2", two_choices)
attempt("openai/ (it asks /v1/responses)", lambda: evaluated(openai()))
attempt("openai/ responses_api=False", lambda: evaluated(openai(responses_api=False)))
