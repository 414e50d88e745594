"""The catalogue's lines of agents that look at an image."""

from __future__ import annotations

from agents.entry import EXACT, VARIANT, Entry

ENTRIES: tuple[Entry, ...] = (
    Entry(
        "mmcq",
        "agents.vision.mmcq:MedianCutAgent",
        ("color_estimation",),
        "modified median cut; nearest CSS3 colour, mapped to eleven words",
        "Leptonica's modified median cut quantisation, as ColorThief does it",
        VARIANT,
    ),
    Entry(
        "mmcq-lab",
        "agents.vision.mmcq:MedianCutAgent",
        ("color_estimation",),
        "modified median cut; nearest of the eleven words by CIELAB distance",
        "Leptonica's modified median cut quantisation; CIELAB 1976",
        settings={"naming": "lab"},
    ),
    *(
        Entry(
            name,
            "agents.vision.git:GitAgent",
            ("image_captioning",),
            f"GIT, {size}, fine-tuned on COCO captions",
            "Wang et al. 2022, arXiv 2205.14100",
            in_paper,
            "MIT",
            settings={
                "checkpoint": f"microsoft/{name}",
                "beams": 4,
                "length_penalty": 0.6,
                "max_tokens": 50,
                "count_prompt": True,
            },
        )
        for name, size, in_paper in (("git-large-coco", "large", EXACT), ("git-base-coco", "base", VARIANT))
    ),
    *(
        Entry(
            f"blip-{size}",
            "agents.vision.blip:BlipAgent",
            ("image_captioning",),
            f"BLIP, {size}, fine-tuned on COCO captions",
            "Li et al. 2022, arXiv 2201.12086",
            in_paper,
            "BSD-3-Clause",
            settings={
                "checkpoint": f"Salesforce/blip-image-captioning-{size}",
                "prompt": "a picture of ",
                "beams": 3,
                "min_tokens": 5,
                "max_tokens": 20,
                "count_prompt": True,
            },
        )
        for size, in_paper in (("large", EXACT), ("base", VARIANT))
    ),
    Entry(
        "blip2-opt-2.7b",
        "agents.vision.blip2:Blip2Agent",
        ("image_captioning",),
        "BLIP-2 with OPT 2.7B",
        "Li et al. 2023, arXiv 2301.12597",
        licence="MIT",
        settings={"checkpoint": "Salesforce/blip2-opt-2.7b", "beams": 5, "max_tokens": 30},
    ),
    Entry(
        "llava-v1.6-mistral-7b",
        "agents.vision.llava_next:LlavaNextAgent",
        ("image_captioning",),
        "LLaVA-NeXT with Mistral 7B, instructed as people were",
        "Liu et al. 2024, LLaVA-NeXT",
        EXACT,
        settings={
            "checkpoint": "llava-hf/llava-v1.6-mistral-7b-hf",
            "decoding": "sample",
            "temperature": 0.2,
            "max_tokens": 512,
            "reject": ["too_few_words", "too_many_words"],
            "attempts": 11,
        },
    ),
    Entry(
        "ofa-huge",
        "agents.vision.ofa:OFAAgent",
        ("image_captioning",),
        "OFA, huge, fine-tuned on COCO captions; fairseq's file by local path",
        "Wang et al. 2022, arXiv 2202.03052",
        EXACT,
        settings={"checkpoint": "./caption_huge_best.pt", "dictionary": "OFA-Sys/ofa-tiny"},
    ),
    *(
        Entry(
            f"ofa-{size}-pretrained",
            "agents.vision.ofa:OFAAgent",
            ("image_captioning",),
            f"OFA, {size}, pretrained only",
            "Wang et al. 2022, arXiv 2202.03052",
            settings={"checkpoint": f"OFA-Sys/ofa-{size}", "image_size": pixels},
        )
        for size, pixels in (("tiny", 256), ("medium", 256), ("base", 384), ("large", 480), ("huge", 480))
    ),
    Entry(
        "clipcap-transformer",
        "agents.vision.clipcap:ClipCapAgent",
        ("image_captioning",),
        "CLIP RN50x4, a transformer mapper, GPT-2 unchanged; local checkpoint",
        "Mokady, Hertz, Bermano 2021, arXiv 2111.09734",
        EXACT,
        "MIT",
        settings={
            "checkpoint": "./transformer_weights.pt",
            "mapper": "transformer",
            "clip": "timm/resnet50x4_clip.openai",
        },
    ),
    Entry(
        "clipcap-mlp",
        "agents.vision.clipcap:ClipCapAgent",
        ("image_captioning",),
        "CLIP ViT-B/32, a perceptron as mapper, GPT-2 tuned; local checkpoint",
        "Mokady, Hertz, Bermano 2021, arXiv 2111.09734",
        VARIANT,
        "MIT",
        settings={"checkpoint": "./coco_weights.pt", "mapper": "mlp", "clip": "openai/clip-vit-base-patch32"},
    ),
    Entry(
        "detectron2-maskrcnn",
        "agents.vision.detectron2_maskrcnn:Detectron2Agent",
        ("object_detection",),
        "Detectron2's Mask R-CNN R50-FPN 3x: labels of the top three boxes",
        "He et al. 2017; Wu et al. 2019, Detectron2",
        EXACT,
        "Apache-2.0; weights CC-BY-SA-3.0",
    ),
    Entry(
        "torchvision-maskrcnn",
        "agents.vision.torchvision_maskrcnn:TorchvisionMaskRCNNAgent",
        ("object_detection",),
        "torchvision's Mask R-CNN R50-FPN: labels of the top three boxes",
        "He et al. 2017; torchvision",
        VARIANT,
        "BSD-3-Clause",
    ),
    Entry(
        "detr-resnet-50",
        "agents.vision.detr:DetrAgent",
        ("object_detection",),
        "DETR with ResNet-50: labels of the top three boxes",
        "Carion et al. 2020, arXiv 2005.12872",
        # The main revision has a backbone of timm's, a package that nothing else here needs.
        settings={"revision": "no_timm"},
    ),
)
