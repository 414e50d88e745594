"""Other programs that do the same, beside an agent: as many stimuli per second as they answer, and how ours compares.

Each runs in a process of its own with the same weights and the same stimuli, on the same device, through its documented
interface, and only where it is installed. Texts are as long as the agent's were on average, so that neither does less.
docs/bench.md says which peer does what.
"""

from __future__ import annotations

import asyncio
import importlib.util
import itertools
import logging
import math
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import orjson

from agents.contract import Agent, Reply
from agents.errors import AgentStoppedError
from agents.loading import dtype_for, load_pretrained
from agents.stimuli import ConversationStimulus, Stimulus, parse_row
from serving.bench import child_process
from serving.bench.bare import ROUNDS, WARM_UP_ROUNDS, Setup, Window, draw_for, measure_once
from serving.bench.results import Measured, Peer
from serving.scheduling import machine
from serving.scheduling.cluster import Cluster

PROMPTS = {"llava_next": "<image>\n{}"}  # of captioners; the others begin without
MOST_ROWS, MOST_BLOCKS = 20_000, 200  # of Ray Data's set
AHEAD = 4  # times the calls at once: so many texts are in vLLM's list, so that it is hardly ever less than full
Program = Callable[[child_process.Send, Setup, Measured, int], None]  # sends stimuli per second, if it does such work


def programs(agent: Agent[Any]) -> dict[str, Program]:
    """The peers of an agent that are installed here, by name."""
    if agent.continuous():
        return {"vllm": vllm} if getattr(agent.settings, "engine", None) == "vllm" else {}
    found: dict[str, Program] = {}
    if hasattr(agent, "folder") and importlib.util.find_spec("transformers") is not None:
        found["transformers"] = transformers
    if all(importlib.util.find_spec(name) is not None for name in ("ray", "pandas", "pyarrow")):
        found["ray-data"] = ray_data
    return found


def measure(one: Measured, setup: Setup, name: str, program: Program) -> Iterator[Peer]:
    """Measure a peer at the agent's best batch size, and a plain loop one stimulus at a time, too, if the agent was
    measured so. Nothing, if it has nothing that does this work. Raises AgentStoppedError."""
    best = one.at_best().batch_size
    for size in dict.fromkeys((1, best) if name == "transformers" and one.at(1) else (best,)):
        if (theirs := child_process.figure(program, setup, one, size)) is None:
            return
        if name == "ray-data":
            ours = next((whole.stimuli_s for whole in one.end_to_end if whole.replicas == 1), None)
        else:
            ours = child_process.figure(measure_once, setup, size)
        if ours is not None:
            yield Peer(name, size, theirs, ours, ours / theirs)


def tokens(one: Measured) -> int | None:
    """How many tokens the agent's texts have on average, if it tells."""
    size = one.at_best()
    return None if size.tokens_s is None else max(1, round(size.tokens_s / size.stimuli_s))


def prompt(agent: Agent[Any], stimulus: Stimulus, tokenizer: Any) -> str:
    """What a model that writes is told of a stimulus: the agent's instructions and the history as plain text."""
    if isinstance(stimulus, ConversationStimulus):
        told = agent.instructions(stimulus, draw_for(agent, stimulus))
        text = "\n".join([*([told] if told else []), *(f"{one.speaker}: {one.text}" for one in stimulus.history)])
    else:
        text = f"{getattr(stimulus, 'cue', '')}:"
    if tokenizer.chat_template is None:
        return text
    messages = [{"role": "user", "content": text}]
    return str(tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True))


def transformers(send: child_process.Send, setup: Setup, one: Measured, size: int) -> None:
    """Sends the stimuli per second of a plain loop, or nothing if transformers has no such model."""
    import torch
    import transformers as library

    agent: Any = setup.agent()
    folder = agent.folder()
    try:
        config = library.AutoConfig.from_pretrained(folder, local_files_only=True)
    except (ValueError, OSError):  # a family that transformers does not know
        return
    if one.task == "image_captioning":
        kind, known = "ImageTextToText", library.MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING
    elif one.task == "object_detection":
        kind, known = "ObjectDetection", library.MODEL_FOR_OBJECT_DETECTION_MAPPING
    elif config.is_encoder_decoder:
        kind, known = "Seq2SeqLM", library.MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING
    else:
        kind, known = "CausalLM", library.MODEL_FOR_CAUSAL_LM_MAPPING
    if type(config) not in known:
        return
    device = torch.device(setup.device)
    precision = getattr(agent.settings, "precision", "fp32")
    if kind == "ObjectDetection" and precision == "auto":  # fp32 for detectors
        precision = "fp32"
    dtype = dtype_for(precision, device, folder)
    model = load_pretrained(getattr(library, f"AutoModelFor{kind}"), folder, device, dtype)
    answer, source = plain_loop(agent, folder, model, one), itertools.cycle(setup.shown())
    window = Window(setup.seconds, time.perf_counter())
    while not window.over:
        with torch.inference_mode():
            answer(list(itertools.islice(source, size)))
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        window.add(time.perf_counter())
    send(size * (window.rate() or 0.0))


def plain_loop(agent: Any, folder: Path, model: Any, one: Measured) -> Callable[[list[Stimulus]], object]:
    """What answers a batch with the checkpoint's own processor and the agent's beams."""
    from PIL import Image
    from transformers import AutoProcessor

    processor = AutoProcessor.from_pretrained(folder, local_files_only=True)
    if one.task == "object_detection":
        options: dict[str, Any] = {}
    else:
        count = tokens(one) or agent.settings.max_tokens
        beams = getattr(agent.settings, "beams", 1)
        options = {"do_sample": False, "num_beams": beams, "min_new_tokens": count, "max_new_tokens": count}
    if is_text := one.task in ("conversation", "word_association"):
        processor.padding_side = "right" if model.config.is_encoder_decoder else "left"
        processor.truncation_side = "left"
        processor.pad_token = processor.pad_token or processor.eos_token
        options["pad_token_id"] = processor.pad_token_id
    room = getattr(model.config, "max_position_embeddings", 1 << 20) - options.get("max_new_tokens", 0)

    def answer(batch: list[Stimulus]) -> object:
        paths = [image.path for stimulus in batch for image in stimulus.images() if image.path is not None]
        pictures = [Image.open(path).convert("RGB") for path in paths]
        if is_text:
            asked = [prompt(agent, stimulus, processor) for stimulus in batch]
            given = processor(asked, padding=True, truncation=True, max_length=room, return_tensors="pt")
        elif start := PROMPTS.get(model.config.model_type):
            asked = [start.format(agent.settings.prompt)] * len(batch)
            given = processor(images=pictures, text=asked, padding=True, return_tensors="pt")
        else:
            given = processor(images=pictures, return_tensors="pt")
        moved = {name: value.to(model.device) for name, value in given.items()}
        inputs = {name: value.to(model.dtype) if value.is_floating_point() else value for name, value in moved.items()}
        if one.task != "object_detection":
            return processor.batch_decode(model.generate(**inputs, **options), skip_special_tokens=True)
        sizes = [(picture.height, picture.width) for picture in pictures]
        threshold = agent.settings.threshold
        return processor.post_process_object_detection(model(**inputs), threshold=threshold, target_sizes=sizes)

    return answer


def vllm(send: child_process.Send, setup: Setup, one: Measured, size: int) -> None:
    """Sends texts per second of vLLM's offline engine. The list is so long that its end matters little."""
    os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")
    os.environ.setdefault("VLLM_NO_USAGE_STATS", "1")
    import torch
    from transformers import AutoConfig
    from vllm import LLM, SamplingParams

    agent: Any = setup.agent()
    chosen = agent.settings.vllm
    about = AutoConfig.from_pretrained(agent.folder(), local_files_only=True)
    computed = dtype_for(agent.settings.precision, torch.device(setup.device), agent.folder())
    dtype: Any = str(computed).removeprefix("torch.")
    model = LLM(
        model=str(agent.folder()),
        dtype=dtype,
        max_num_seqs=size,
        max_model_len=min(chosen.positions, getattr(about, "max_position_embeddings", chosen.positions)),
        tensor_parallel_size=chosen.tensor_parallel,
        load_format="dummy" if one.random_weights else chosen.load_format,
        enforce_eager=chosen.enforce_eager,
        kv_cache_memory_bytes=chosen.cache(),
    )
    tokenizer = model.get_tokenizer()
    asked = itertools.cycle([prompt(agent, stimulus, tokenizer) for stimulus in setup.shown()])
    count = tokens(one) or agent.settings.max_tokens
    parameters = SamplingParams(temperature=1.0, max_tokens=count, ignore_eos=True)

    def generate(number: int) -> float:
        prompts = list(itertools.islice(asked, number))  # others each time: the engine keeps what was asked before
        began = time.perf_counter()
        model.generate(prompts, parameters, use_tqdm=False)
        return time.perf_counter() - began

    generate(size)
    number = size * max(AHEAD, round(setup.seconds / generate(size)))  # whole rounds: they end together
    send(number / generate(number))


class Answerer:
    """The agent in an actor of Ray Data's."""

    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        self.agent = setup.agent()
        self.agent.open()
        self.agent.load(setup.device)

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        if self.setup.device == "cpu" and (torch := sys.modules.get("torch")) is not None:
            # as many as our worker has; Ray lets an actor have one
            torch.set_num_threads(machine.cores() if self.agent.parallel else 1)
        shown = [parse_row(row, root=self.setup.source.parent) for row in batch["row"]]
        prepared = [self.agent.prepare(stimulus) for stimulus in shown]
        replies = self.agent.respond(prepared, [draw_for(self.agent, stimulus) for stimulus in shown])
        answers = [one.answer.model_dump_json() if isinstance(one, Reply) else "null" for one in replies]
        return {"id": [stimulus.id for stimulus in shown], "answer": answers, "at": [time.time()] * len(answers)}


def ray_data(send: child_process.Send, setup: Setup, one: Measured, size: int) -> None:
    """Sends the stimuli per second of Ray Data. Raises AgentStoppedError if these are too few to tell."""
    cluster = Cluster()
    asyncio.run(cluster.start())
    try:
        import ray.data

        logging.getLogger("ray.data").setLevel(logging.ERROR)
        warnings.filterwarnings("ignore", "`ray_remote_args` is deprecated")  # nothing that a user could change
        ray.data.DataContext.get_current().enable_progress_bars = False
        blocks, count = plan(size, setup.seconds, one.at_best().stimuli_s)
        lines = itertools.cycle(setup.source.read_text().splitlines())
        rows = [{"row": line} for line in itertools.islice(lines, count)]
        answered = ray.data.from_items(rows, override_num_blocks=blocks).map_batches(
            Answerer,
            fn_constructor_args=(setup,),
            batch_size=size,
            compute=ray.data.ActorPoolStrategy(size=1),
            num_gpus=0 if setup.device == "cpu" else 1,
            max_restarts=0,  # otherwise Ray warns that they would fail
        )
        with TemporaryDirectory(prefix="turinglike-ray-data-") as folder:
            answered.write_json(folder)
            written = [line for path in Path(folder).glob("*.json") for line in path.read_bytes().splitlines()]
    finally:
        asyncio.run(cluster.stop())
    ends = sorted(orjson.loads(line)["at"] for line in written)
    window = Window(setup.seconds, ends[0], size)
    for end in ends:
        window.add(end)
    if (found := window.rate()) is None:
        raise AgentStoppedError("Ray Data answered everything during its warm-up")
    send(found)


def plan(size: int, seconds: float, rate: float) -> tuple[int, int]:
    """How many blocks, and rows in all of them, an agent of that ``rate`` is given to be at work for long enough: each
    of whole batches, because Ray Data makes a small batch of what a block has left."""
    least = WARM_UP_ROUNDS + ROUNDS + 1
    batches = max(least, min(least + math.ceil(1.5 * seconds * rate / size), MOST_ROWS // size))
    blocks = min(MOST_BLOCKS, batches)
    return blocks, blocks * math.ceil(batches / blocks) * size
