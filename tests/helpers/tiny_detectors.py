"""Detectors with random weights of the real architectures, whose heads are scaled so that they find different things.

Untrained heads say nearly the same of every box. ``spread`` moves a head's outputs apart on two photographs, which
leaves boxes with scores from 0 to 1 and several classes.
"""

import json
import pickle
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import nn

from agents.answers import ObjectAnswer
from agents.contract import Agent, Draw, Reply
from agents.stimuli import ObjectStimulus, parse_row

EXAMPLES = Path(__file__).parents[2] / "examples" / "images"
ZOO_CONFIG = "COCO-InstanceSegmentation/mask_rcnn_R_50_FPN_3x.yaml"
DEVIATIONS = (2.0, 0.3, 2.0, 0.5)  # of a Mask R-CNN's four heads
# edges in pixels that keep the tests quick
SHORT = 64
LONG = 96


def stimulus(path: Path) -> ObjectStimulus:
    row = json.dumps({"id": path.name, "task": "object_detection", "image": path.name})
    parsed = parse_row(row, root=path.parent)
    assert isinstance(parsed, ObjectStimulus)
    return parsed


def photographs() -> list[ObjectStimulus]:
    """Of several sizes, two of a size, and a grey picture."""
    names = ("coffee.png", "china.jpg", "rocket.jpg", "chelsea.png", "flower.jpg", "camera.png")
    return [stimulus(EXAMPLES / name) for name in names]


def answers(agent: Agent[Any], shown: Sequence[ObjectStimulus]) -> list[ObjectAnswer]:
    assert agent.missing() is None
    agent.open()
    agent.load("cpu")
    replies = agent.respond([agent.prepare(each) for each in shown], [Draw(1)] * len(shown))
    assert all(isinstance(reply, Reply) for reply in replies), replies
    return [reply.answer for reply in replies]  # type: ignore[misc]


@torch.no_grad()
def spread(run: Callable[[], Any], *layers: tuple[nn.Conv2d | nn.Linear, float]) -> None:
    """Scale and centre, to a deviation each, what ``layers`` put out while ``run`` runs, for each channel."""
    for layer, deviation in layers:
        seen: list[torch.Tensor] = []
        axis = 1 if isinstance(layer, nn.Conv2d) else -1
        hook = layer.register_forward_hook(
            lambda module, inputs, out, axis=axis, seen=seen: seen.append(out.movedim(axis, -1).flatten(0, -2))
        )
        run()
        hook.remove()
        values = torch.cat(seen)
        mean = values.mean(0)
        scale = deviation / (values - mean).std()
        layer.weight.mul_(scale)
        assert layer.bias is not None
        layer.bias.copy_((layer.bias - mean) * scale)


def _two() -> list[torch.Tensor]:
    pictures = [
        Image.open(EXAMPLES / name).convert("RGB").resize((SHORT, SHORT)) for name in ("china.jpg", "coffee.png")
    ]
    return [torch.from_numpy(np.array(picture)).permute(2, 0, 1).float() for picture in pictures]


def torchvision_model() -> nn.Module:
    """The whole Mask R-CNN, masks included, as torchvision builds it."""
    from torchvision.models import detection

    torch.manual_seed(0)
    few = {"min_size": SHORT, "max_size": LONG, "rpn_post_nms_top_n_test": 50}
    model = detection.maskrcnn_resnet50_fpn(weights=None, weights_backbone=None, **few).eval()
    images = [picture / 255 for picture in _two()]
    model.roi_heads.mask_roi_pool, pool = None, model.roi_heads.mask_roi_pool
    heads = model.rpn.head
    boxes = model.roi_heads.box_predictor
    layers = heads.cls_logits, heads.bbox_pred, boxes.cls_score, boxes.bbox_pred
    spread(lambda: model(images), *zip(layers, DEVIATIONS, strict=True))
    model.roi_heads.mask_roi_pool = pool
    return model


def detectron2_config() -> Any:
    """The zoo's config as it is, masks included, on the CPU and for small images."""
    import detectron2
    from detectron2.config import get_cfg

    config = get_cfg()
    config.merge_from_file(str(Path(detectron2.__file__).parent / "model_zoo" / "configs" / ZOO_CONFIG))
    config.MODEL.WEIGHTS = ""
    config.MODEL.DEVICE = "cpu"
    config.INPUT.MIN_SIZE_TEST = SHORT
    config.INPUT.MAX_SIZE_TEST = LONG
    return config


def detectron2_model() -> nn.Module:
    """The zoo's Mask R-CNN, masks included."""
    from detectron2.modeling import build_model

    config = detectron2_config()
    config.MODEL.RPN.POST_NMS_TOPK_TEST = 50
    torch.manual_seed(0)
    model = build_model(config).eval()
    images = _two()
    heads = model.proposal_generator.rpn_head
    boxes = model.roi_heads.box_predictor
    layers = heads.objectness_logits, heads.anchor_deltas, boxes.cls_score, boxes.bbox_pred
    spread(lambda: model([{"image": image} for image in images]), *zip(layers, DEVIATIONS, strict=True))
    return model


def zoo_pickle(model: nn.Module, path: Path) -> Path:
    """The model's weights in the form of the zoo's files."""
    arrays = {name: value.numpy() for name, value in model.state_dict().items()}
    path.write_bytes(pickle.dumps({"model": arrays, "__author__": "test"}, protocol=3))
    return path


def detr(folder: Path) -> Path:
    """A DETR of two layers with its processor, in a folder."""
    import transformers

    labels = {number: f"thing {number}" if number % 7 else "N/A" for number in range(30)}
    backbone = {"embedding_size": 16, "hidden_sizes": [16, 16, 32, 32], "depths": [1, 1, 1, 1]}
    torch.manual_seed(0)
    model = transformers.DetrForObjectDetection(
        transformers.DetrConfig(
            backbone_config={"model_type": "resnet", "out_features": ["stage4"], **backbone},
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
    images = torch.stack(_two()) / 127 - 1
    spread(
        lambda: model(pixel_values=images), (model.class_labels_classifier, 2.0), (model.bbox_predictor.layers[-1], 1.0)
    )
    model.save_pretrained(folder)
    transformers.DetrImageProcessorPil(size={"shortest_edge": SHORT, "longest_edge": LONG}).save_pretrained(folder)
    (folder / "RANDOM_WEIGHTS").touch()
    return folder
