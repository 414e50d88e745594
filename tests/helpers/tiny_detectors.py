"""Detectors with random weights of the real architectures, whose heads are scaled so that they find different things.

Untrained heads say nearly the same of every box. ``spread`` moves a head's outputs apart on two photographs, which
leaves boxes with scores from 0 to 1 and several classes: answers that could differ.
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import nn

from agents.stimuli import ObjectStimulus, parse_row

EXAMPLES = Path(__file__).parents[2] / "examples" / "images"
ZOO_CONFIG = "COCO-InstanceSegmentation/mask_rcnn_R_50_FPN_3x.yaml"
SHORT, LONG = 64, 96  # edges in pixels that keep the tests quick


def stimulus(path: Path) -> ObjectStimulus:
    row = json.dumps({"id": path.name, "task": "object_detection", "image": path.name})
    found = parse_row(row, root=path.parent)
    assert isinstance(found, ObjectStimulus)
    return found


def photographs(folder: Path) -> list[ObjectStimulus]:
    """Eight pictures: several sizes, two of one size, a grey one, one turned by EXIF, one with alpha."""
    names = ["coffee.png", "china.jpg", "rocket.jpg", "chelsea.png", "flower.jpg", "camera.png"]
    turned = Image.open(EXAMPLES / "china.jpg").convert("RGB").crop((0, 0, 400, 300))
    exif = Image.Exif()
    exif[0x0112] = 6
    turned.save(folder / "turned.jpg", exif=exif)
    clear = Image.open(EXAMPLES / "coffee.png").convert("RGBA").crop((100, 50, 500, 350))
    clear.putalpha(Image.linear_gradient("L").resize(clear.size))
    clear.save(folder / "clear.png")
    return [stimulus(EXAMPLES / name) for name in names] + [
        stimulus(folder / "turned.jpg"),
        stimulus(folder / "clear.png"),
    ]


def rgb(shown: ObjectStimulus) -> np.ndarray:
    return shown.image.decode()


@torch.no_grad()
def spread(layer: nn.Conv2d | nn.Linear, run: Callable[[], Any], deviation: float) -> None:
    """Scale and centre what ``layer`` puts out while ``run`` runs, over all places but for each channel."""
    seen: list[torch.Tensor] = []
    channels = 1 if isinstance(layer, nn.Conv2d) else -1
    hook = layer.register_forward_hook(lambda module, given, out: seen.append(out.movedim(channels, -1).flatten(0, -2)))
    run()
    hook.remove()
    values = torch.cat(seen)
    mean = values.mean(0)
    scale = deviation / (values - mean).std()
    layer.weight.mul_(scale)
    layer.bias.copy_((layer.bias - mean) * scale)


def _two(shape: int) -> list[torch.Tensor]:
    pictures = [
        Image.open(EXAMPLES / name).convert("RGB").resize((shape, shape)) for name in ("china.jpg", "coffee.png")
    ]
    return [torch.from_numpy(np.array(picture)).permute(2, 0, 1).float() for picture in pictures]


def torchvision_model(variant: str = "v1", seed: int = 0) -> nn.Module:
    """The whole Mask R-CNN, masks included, as torchvision builds it."""
    from torchvision.models import detection

    build = detection.maskrcnn_resnet50_fpn if variant == "v1" else detection.maskrcnn_resnet50_fpn_v2
    torch.manual_seed(seed)
    few = {"min_size": SHORT, "max_size": LONG, "rpn_post_nms_top_n_test": 50}
    model = build(weights=None, weights_backbone=None, **few).eval()
    images = [picture / 255 for picture in _two(SHORT)]

    def run() -> None:
        model(images)

    model.roi_heads.mask_roi_pool, pool = None, model.roi_heads.mask_roi_pool
    spread(model.rpn.head.cls_logits, run, 2.0)
    spread(model.rpn.head.bbox_pred, run, 0.3)
    spread(model.roi_heads.box_predictor.cls_score, run, 2.0)
    spread(model.roi_heads.box_predictor.bbox_pred, run, 0.5)
    model.roi_heads.mask_roi_pool = pool
    return model


def detectron2_config(config: str = ZOO_CONFIG, short: int = SHORT, long: int = LONG) -> Any:
    """The zoo's config as it is, masks included, on the CPU and for small images."""
    import detectron2
    from detectron2.config import get_cfg

    found = get_cfg()
    found.merge_from_file(str(Path(detectron2.__file__).parent / "model_zoo" / "configs" / config))
    found.MODEL.WEIGHTS, found.MODEL.DEVICE = "", "cpu"
    found.INPUT.MIN_SIZE_TEST, found.INPUT.MAX_SIZE_TEST = short, long
    return found


def detectron2_model(config: str = ZOO_CONFIG, seed: int = 0) -> nn.Module:
    """A model of the zoo, masks included."""
    from detectron2.modeling import build_model

    about = detectron2_config(config)
    about.MODEL.RPN.POST_NMS_TOPK_TEST = 50
    torch.manual_seed(seed)
    model = build_model(about).eval()
    images = _two(SHORT)

    @torch.no_grad()
    def run() -> None:
        model([{"image": image} for image in images])

    if about.MODEL.META_ARCHITECTURE == "RetinaNet":
        spread(model.head.cls_score, run, 2.0)
        spread(model.head.bbox_pred, run, 0.3)
    else:
        spread(model.proposal_generator.rpn_head.objectness_logits, run, 2.0)
        spread(model.proposal_generator.rpn_head.anchor_deltas, run, 0.3)
        spread(model.roi_heads.box_predictor.cls_score, run, 2.0)
        spread(model.roi_heads.box_predictor.bbox_pred, run, 0.5)
    return model


def zoo_pickle(model: nn.Module, path: Path) -> Path:
    """The model's weights in the form of the zoo's files."""
    arrays = {name: value.numpy() for name, value in model.state_dict().items()}
    path.write_bytes(pickle.dumps({"model": arrays, "__author__": "test"}, protocol=3))
    return path


def detr(folder: Path, timm: bool = False, seed: int = 0) -> Path:
    """A DETR of two layers with its processor, in a folder; ``timm``: with the published config's kind of backbone."""
    import transformers

    labels = {number: f"thing {number}" if number % 7 else "N/A" for number in range(30)}
    backbone: dict[str, Any] = {
        "backbone_config": {
            "model_type": "resnet",
            "embedding_size": 16,
            "hidden_sizes": [16, 16, 32, 32],
            "depths": [1, 1, 1, 1],
            "out_features": ["stage4"],
        }
    }
    torch.manual_seed(seed)
    model = transformers.DetrForObjectDetection(
        transformers.DetrConfig(
            **({"use_timm_backbone": True, "backbone": "resnet10t"} if timm else backbone),
            d_model=32,
            encoder_layers=2,
            decoder_layers=2,
            encoder_ffn_dim=32,
            decoder_ffn_dim=32,
            encoder_attention_heads=4,
            decoder_attention_heads=4,
            num_queries=24,
            id2label=labels,
            label2id={f"thing {number}": number for number in labels},
        )
    ).eval()
    nn.init.normal_(model.model.query_position_embeddings.weight)
    images = torch.stack(_two(SHORT)) / 127 - 1

    @torch.no_grad()
    def run() -> None:
        model(pixel_values=images)

    spread(model.class_labels_classifier, run, 2.0)
    spread(model.bbox_predictor.layers[-1], run, 1.0)
    model.save_pretrained(folder)
    transformers.DetrImageProcessorPil(size={"shortest_edge": SHORT, "longest_edge": LONG}).save_pretrained(folder)
    if timm:  # in the words of the published config.json
        config = json.loads((folder / "config.json").read_text())
        del config["backbone_config"]
        config.update({"use_timm_backbone": True, "backbone": "resnet10t", "use_pretrained_backbone": True})
        (folder / "config.json").write_text(json.dumps(config))
    return folder
