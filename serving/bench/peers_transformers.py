"""The plain loops that transformers' and torchvision's documentation shows, beside captioners, detectors, and models
that write.

The files are opened with Pillow, a batch after the other is prepared by the model's own processor (of the agent's
backend, so that the pixels are the same) and handed to ``generate`` or to the model, with the agent's weights, type and
decoding; what a model that writes is told are the agent's own tokens. Nothing is done beside the device meanwhile, and
a beam search encodes an image once for each beam, where transformers does so. Texts of random weights are made to have
the length that the agent's have.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from agents.contract import Agent
from agents.stimuli import Stimulus
from serving.bench.loop import draw_for
from serving.bench.peer_job import Job, Send, loop

if TYPE_CHECKING:
    from agents.language.engines.request import Sampling
    from agents.language.engines.transformers import Beams

Answer = Callable[[list[Any]], object]
CAPTIONERS = {
    "agents.vision.git:GitAgent",
    "agents.vision.blip:BlipAgent",
    "agents.vision.blip2:Blip2Agent",
    "agents.vision.llava_next:LlavaNextAgent",
}
TEXTS = {
    "agents.language.completion:CompletionAgent",
    "agents.language.chat:ChatAgent",
    "agents.language.dialogpt:DialoGPTAgent",
    "agents.language.blenderbot:BlenderbotAgent",
}
DETR = "agents.vision.detr:DetrAgent"
TORCHVISION = "agents.vision.torchvision_maskrcnn:TorchvisionMaskRCNNAgent"


def kind(agent: Agent[Any]) -> str | None:
    """Which library's plain loop does the work of an agent: "transformers", "torchvision", or None."""
    name = _name(agent)
    if name in CAPTIONERS or name == DETR or (name in TEXTS and not agent.continuous()):
        return "transformers"
    return "torchvision" if name == TORCHVISION else None


def _name(agent: Agent[Any]) -> str:
    cls = type(agent)
    return f"{cls.__module__}:{cls.__qualname__}"


def run(send: Send, job: Job) -> None:
    """Sends stimuli per second; in a process of its own."""
    import torch

    agent = job.agent()
    agent.open()
    device = torch.device(job.measured.device)
    if is_text := _name(agent) in TEXTS:
        answer = _texts(agent, device)
    else:
        make = {DETR: _detr, TORCHVISION: _torchvision}.get(_name(agent), _captioner)
        answer = make(agent, device, job.measured.random_weights)

    def answer_batch(batch: Sequence[Stimulus]) -> None:
        with torch.inference_mode():
            answer(list(batch) if is_text else _pictures(batch))
        if device.type == "cuda":
            torch.cuda.synchronize(device)

    send(loop(answer_batch, job.shown(), job.batch_size, job.seconds))


def _pictures(batch: Sequence[Stimulus]) -> list[Any]:
    from PIL import Image

    found = []
    for stimulus in batch:
        [image] = stimulus.images()
        assert image.path is not None
        with Image.open(image.path) as opened:
            found.append(opened.convert("RGB"))
    return found


def _texts(agent: Any, device: Any) -> Answer:
    """Answers conversations and cues: the tokens that the agent asks its engine, padded to the longest of the batch."""
    import transformers

    from agents.pretrained import dtype_for, load_pretrained

    engine = agent._engine
    kind = "AutoModelForSeq2SeqLM" if engine._encodes else "AutoModelForCausalLM"
    dtype = dtype_for(agent.settings.precision, device)
    model = load_pretrained(getattr(transformers, kind), agent.folder(), device, dtype)
    engine._size = size = model.get_input_embeddings().weight.shape[0]
    tokenizer = engine._tokenizer
    tokenizer.padding_side = "right" if engine._encodes else "left"
    if tokenizer.pad_token is None or tokenizer.pad_token_id >= size:
        tokenizer.pad_token = tokenizer.eos_token
    own = model.generation_config
    ends = engine._end_tokens(own.eos_token_id)
    tokens_of_its_own = {
        "bos_token_id": own.bos_token_id,
        "eos_token_id": ends,
        "pad_token_id": tokenizer.pad_token_id,
        "decoder_start_token_id": own.decoder_start_token_id,
    }
    if engine._beams is not None and engine._beams.forced_end:
        tokens_of_its_own["forced_eos_token_id"] = ends
    model.generation_config = transformers.GenerationConfig()

    def answer(batch: list[Any]) -> object:
        asked = [agent._asked(stimulus, draw_for(agent, stimulus)).asked for stimulus in batch]
        tokens = {"input_ids": [engine._fitted(one) for one in asked]}
        given = tokenizer.pad(tokens, return_tensors="pt").to(device)
        stops = sorted({stop for one in asked for stop in one.sampling.stops if stop})
        config = transformers.GenerationConfig(**tokens_of_its_own, **_text_options(asked[0].sampling, engine._beams))
        stopping = {"stop_strings": stops, "tokenizer": tokenizer} if stops else {}
        said = model.generate(**given, **stopping, generation_config=config)
        start = 1 if engine._encodes else given["input_ids"].shape[1]
        return tokenizer.batch_decode(said[:, start:], skip_special_tokens=True)

    return answer


def _text_options(sampling: Sampling, beams: Beams | None) -> dict[str, Any]:
    """What ``generate`` is asked for, where it has a word for it: penalties by frequency and presence it has not."""
    options: dict[str, Any] = {"max_new_tokens": sampling.max_tokens}
    if sampling.min_tokens:
        options["min_new_tokens"] = sampling.min_tokens
    if beams is not None:
        wide = {"length_penalty": beams.length_penalty, "early_stopping": beams.early_stopping}
        return {
            **options,
            "do_sample": False,
            "num_beams": beams.width,
            "no_repeat_ngram_size": beams.no_repeat_ngram or None,
            "encoder_no_repeat_ngram_size": beams.no_repeat_ngram or None,
            **(wide if beams.width > 1 else {}),
        }
    if not sampling.temperature:
        return {**options, "do_sample": False, "num_beams": 1}
    drawn = {"temperature": sampling.temperature, "top_k": sampling.top_k, "top_p": sampling.top_p}
    return {**options, "do_sample": True, "num_beams": 1, **drawn}


def _captioner(agent: Any, device: Any, random_weights: bool) -> Answer:
    import transformers

    from agents.pretrained import dtype_for, load_pretrained

    chosen = agent.settings
    dtype = dtype_for(chosen.precision, device)
    model = load_pretrained(getattr(transformers, agent.model_class), agent.folder(), device, dtype)
    tokenizer, images = agent._tokenizer, agent._images
    if agent.model_class == "LlavaNextForConditionalGeneration":
        asked = agent._asked(agent._row(0, _draw()).prompt)
    else:
        asked = chosen.prompt
    options = _options(chosen, random_weights)

    def inputs(pictures: list[Any]) -> dict[str, Any]:
        count = len(pictures)
        if agent.model_class == "LlavaNextForConditionalGeneration":
            both = {"images": pictures, "text": [asked] * count, "padding": True, "padding_side": "left"}
            return dict(agent._processor(**both, return_tensors="pt"))
        pixels = images(images=pictures, return_tensors="pt").pixel_values
        config, tokens = model.config, tokenizer(asked, add_special_tokens=False).input_ids
        if agent.model_class == "GitForCausalLM":
            start = [config.bos_token_id]
        elif agent.model_class == "BlipForConditionalGeneration":
            start, tokens = [config.text_config.bos_token_id], [*tokens, config.text_config.sep_token_id]
            # its generate takes the last one off
        else:  # BLIP-2 reads the image as so many tokens
            start = [config.image_token_index] * config.num_query_tokens + [config.text_config.bos_token_id]
        return {"pixel_values": pixels, "input_ids": _repeated([*start, *tokens], count)}

    def answer(pictures: list[Any]) -> object:
        moved = {name: _placed(value, device, dtype) for name, value in inputs(pictures).items()}
        return tokenizer.batch_decode(model.generate(**moved, **options), skip_special_tokens=True)

    return answer


def _draw() -> Any:
    from agents.contract import Draw

    return Draw(0)


def _repeated(tokens: list[int], count: int) -> Any:
    import torch

    return torch.tensor([tokens] * count)


def _placed(value: Any, device: Any, dtype: Any) -> Any:
    moved = value.to(device)
    return moved.to(dtype) if moved.is_floating_point() else moved


def _options(chosen: Any, random_weights: bool) -> dict[str, Any]:
    """What ``generate`` is asked for."""
    least, most = ("min_length", "max_length") if chosen.count_prompt else ("min_new_tokens", "max_new_tokens")
    options: dict[str, Any] = {most: chosen.max_tokens}
    if random_weights:
        options[least] = chosen.max_tokens
    elif chosen.min_tokens:
        options[least] = chosen.min_tokens
    if chosen.no_repeat_ngram:
        options["no_repeat_ngram_size"] = chosen.no_repeat_ngram
    if chosen.decoding == "sample" and chosen.temperature:
        drawn = {"temperature": chosen.temperature, "top_k": chosen.top_k, "top_p": chosen.top_p}
        return {**options, "do_sample": True, "num_beams": 1, **drawn}
    if chosen.decoding == "sample" or chosen.beams == 1:
        return {**options, "do_sample": False, "num_beams": 1}
    beams = {"length_penalty": chosen.length_penalty, "early_stopping": chosen.early_stopping}
    return {**options, "do_sample": False, "num_beams": chosen.beams, **beams}


def _detr(agent: Any, device: Any, random_weights: bool) -> Answer:
    import torch
    import transformers

    from agents.pretrained import load_pretrained

    model = load_pretrained(transformers.DetrForObjectDetection, agent.folder(), device, torch.float32)
    processor, threshold = agent._processor, agent.settings.threshold

    def answer(pictures: list[Any]) -> object:
        given = processor(images=pictures, size=agent._size, return_tensors="pt").to(device)
        sizes = [(picture.height, picture.width) for picture in pictures]
        found = processor.post_process_object_detection(model(**given), threshold=threshold, target_sizes=sizes)
        return [{name: value.tolist() for name, value in one.items()} for one in found]

    return answer


def _torchvision(agent: Any, device: Any, random_weights: bool) -> Answer:
    from torchvision.models import detection
    from torchvision.transforms.functional import pil_to_tensor

    chosen = agent.settings
    name = {"v1": "maskrcnn_resnet50_fpn", "v2": "maskrcnn_resnet50_fpn_v2"}[chosen.variant]
    sides = {side: value for side, value in (("min_size", chosen.short_edge), ("max_size", chosen.long_edge)) if value}
    model = getattr(detection, name)(
        weights=None,
        weights_backbone=None,
        num_classes=len(agent.names),
        box_score_thresh=chosen.threshold,
        **sides,
    )
    agent.load(str(device))  # its weights; the masks' are not among them, and are drawn at random
    model.load_state_dict(agent.model.state_dict(), strict=False)
    model.to(device).eval()
    agent.close()

    def answer(pictures: list[Any]) -> object:
        found = model([pil_to_tensor(picture).to(device).float() / 255 for picture in pictures])
        return [(one["labels"].tolist(), one["scores"].tolist(), one["boxes"].tolist()) for one in found]

    return answer
