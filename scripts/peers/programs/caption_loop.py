"""Captions by transformers in a plain loop: ``caption_loop.py FAMILY FOLDER SET OUT OPTIONS``, OPTIONS as JSON.

The pictures of SET are read, prepared and captioned batch by batch. With ``"cache": false`` GIT runs without its cache:
with it, transformers numbers the positions of GIT's text behind those of the picture.
"""

import json
import sys
from pathlib import Path
from typing import Any

from timed import Times, read, write

times = Times()


def main(family: str, folder: str, source: str, out: str, told: str) -> None:
    options: dict[str, Any] = json.loads(told)
    with times.part("loading"):
        import torch
        from PIL import Image
        from transformers import AutoImageProcessor, AutoTokenizer, BlipForConditionalGeneration, GitForCausalLM

        processor = AutoImageProcessor.from_pretrained(folder, backend=options["backend"])
        tokenizer = AutoTokenizer.from_pretrained(folder)
        classes = {"git": GitForCausalLM, "blip": BlipForConditionalGeneration}
        model = classes[family].from_pretrained(folder, dtype=torch.float32).eval()
        text = model.config if family == "git" else model.config.text_config
        prompt = [text.bos_token_id, *tokenizer(options["prompt"], add_special_tokens=False).input_ids]
    end = text.eos_token_id if family == "git" else text.sep_token_id
    search = {"num_beams": options["beams"], "length_penalty": options["length_penalty"], "do_sample": False}
    limits = {"max_length": options["max_tokens"], "min_length": options["min_tokens"]}
    pictures = Path(source).parent
    rows = read(source)

    def captions(batch: list[dict[str, Any]]) -> list[str]:
        images = []
        for row in batch:
            with Image.open(pictures / row["image"]) as picture:
                images.append(picture.convert("RGB"))
        pixels = processor(images=images, return_tensors="pt")["pixel_values"]
        ids = torch.tensor([prompt] * len(batch))
        with torch.inference_mode():
            if family == "git":
                ends = {"eos_token_id": end, "pad_token_id": text.pad_token_id, "use_cache": options["cache"]}
                generated = model.generate(pixel_values=pixels, input_ids=ids, **ends, **search, **limits)
            else:
                # BLIP's own generate takes the prompt with [SEP] behind it, and leaves that out.
                ids = torch.cat([ids, torch.full((len(batch), 1), end)], dim=1)
                generated = model.generate(pixel_values=pixels, input_ids=ids, **search, **limits)
        texts = []
        for tokens in generated[:, len(prompt) :].tolist():
            kept = tokens[: tokens.index(end)] if end in tokens else tokens
            kept = [token for token in kept if token not in tokenizer.all_special_ids]
            texts.append(" ".join(tokenizer.decode(kept).split()))
        return texts

    with times.part("captions"):
        for begin in range(0, len(rows), options["batch"]):
            batch = rows[begin : begin + options["batch"]]
            texts = captions(batch)
            write(out, [{"id": row["id"], "text": text} for row, text in zip(batch, texts, strict=True)])
    times.tell()


if __name__ == "__main__":
    main(*sys.argv[1:])
