"""The plain loops that transformers' and torchvision's documentation shows, beside captioners and detectors.

The files are opened with Pillow, a batch after the other is prepared by the model's own processor (of the agent's
backend, so that the pixels are the same) and handed to ``generate`` or to the model, with the agent's weights, type and
decoding. Nothing is done beside the device meanwhile, and a beam search encodes an image once for each beam, where
transformers does so. Texts of random weights are made to have the length that the agent's have.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from agents.contract import Agent
from agents.stimuli import Stimulus
from serving.bench.peer_job import Job, Send, loop

Answer = Callable[[list[Any]], object]
CAPTIONERS = {
    "agents.vision.git:GitAgent",
    "agents.vision.blip:BlipAgent",
    "agents.vision.blip2:Blip2Agent",
    "agents.vision.llava_next:LlavaNextAgent",
}
DETR = "agents.vision.detr:DetrAgent"
TORCHVISION = "agents.vision.torchvision_maskrcnn:TorchvisionMaskRCNNAgent"


def kind(agent: Agent[Any]) -> str | None:
    """Which library's plain loop does the work of an agent: "transformers", "torchvision", or None."""
    name = _name(agent)
    if name in CAPTIONERS or name == DETR:
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
    make = {DETR: _detr, TORCHVISION: _torchvision}.get(_name(agent), _captioner)
    answer = make(agent, device, job.measured.random_weights)

    def answer_files(batch: Sequence[Stimulus]) -> None:
        from PIL import Image

        pictures = []
        for stimulus in batch:
            [image] = stimulus.images()
            assert image.path is not None
            with Image.open(image.path) as opened:
                pictures.append(opened.convert("RGB"))
        with torch.inference_mode():
            answer(pictures)
        if device.type == "cuda":
            torch.cuda.synchronize(device)

    send(loop(answer_files, job.shown(), job.batch_size, job.seconds))


def _captioner(agent: Any, device: Any, random_weights: bool) -> Answer:
    import transformers

    from agents.loading import dtype_for, load_pretrained

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
        config = model.config
        start = {
            "GitForCausalLM": [tokenizer.cls_token_id],
            "BlipForConditionalGeneration": [tokenizer.cls_token_id],
        }.get(agent.model_class)
        tokens = tokenizer(asked, add_special_tokens=False).input_ids
        if start is None:  # BLIP-2 reads the image as so many tokens
            start = [config.image_token_index] * config.num_query_tokens + [config.text_config.bos_token_id]
        elif agent.model_class == "BlipForConditionalGeneration":
            tokens = [*tokens, tokenizer.sep_token_id]  # its generate takes the last one off
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

    from agents.loading import load_pretrained

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
