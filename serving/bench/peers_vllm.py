"""vLLM's offline engine beside an agent whose engine is vLLM: the very same tokens in one list to ``LLM.generate``."""

from __future__ import annotations

import itertools
import time
from typing import Any

from agents.contract import Agent
from agents.errors import AnswerError
from serving.bench.loop import draw_for
from serving.bench.peer_job import Job, Send
from serving.bench.steady import WarmUp

AHEAD = 4  # times the calls at once: so many texts are in a list, so that it is hardly ever less than full


def is_one(agent: Agent[Any]) -> bool:
    """Whether the agent's engine is vLLM, which is then installed: or the agent could not have been measured."""
    return getattr(agent.settings, "engine", None) == "vllm"


def run(send: Send, job: Job) -> None:
    """Sends texts per second; in a process of its own. The list is so long that its end matters little."""
    import os

    os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")
    os.environ.setdefault("VLLM_NO_USAGE_STATS", "1")
    from vllm import LLM

    from agents.language.engines.vllm_sampling import sampling_params

    agent: Any = job.agent()
    agent.open()
    engine = agent._engine
    model = LLM(**{**engine._arguments(job.measured.device), "max_num_seqs": job.batch_size})
    texts: list[Any] = []
    parameters: list[Any] = []
    for stimulus in job.shown():
        draw = draw_for(agent, stimulus)
        try:
            asked = agent._asked(agent.prepare(stimulus), draw).asked
            texts.append({"prompt_token_ids": engine._fitted(asked)})
        except AnswerError:
            continue
        parameters.append(sampling_params(asked.sampling, draw.seed, engine._ends))

    source = itertools.cycle(range(len(texts)))  # other texts each time: what was asked before is kept by the engine

    def generate(count: int) -> float:
        places = list(itertools.islice(source, count))
        began = time.perf_counter()
        model.generate([texts[at] for at in places], [parameters[at] for at in places], use_tqdm=False)
        return time.perf_counter() - began

    warm_up = WarmUp(job.seconds)  # which also tells how many texts there are time for
    while not warm_up.add(generate(job.batch_size)):
        continue
    count = job.batch_size * max(AHEAD, round(job.seconds / warm_up.last))  # whole rounds: they end together
    send(count / generate(count))
