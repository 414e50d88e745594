"""LLaVA-NeXT (Liu et al. 2024), as in kreimanlab/TuringTest, MiscellaneousCode/LLaVa_*.py.

A colour or three objects are the majority of five runs. The instructions for captions are also those of the universal
agents.
"""

from __future__ import annotations

import json
import math
import random
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BeforeValidator, Field

from agents.answers import COLORS, ColorAnswer, ObjectAnswer
from agents.contract import GIB, Declaration, Draw, Reply
from agents.errors import AnswerError
from agents.models.loading import load_part
from agents.stimuli import Stimulus, Task
from agents.vision.captioner import CaptionAgent, CaptionRow
from agents.vision.captions import CaptionSettings
from agents.vision.picture_replies import COLOR, OBJECTS, unparsable
from agents.vision.pixels import ProcessorInput
from agents.word_boundaries import count_words

if TYPE_CHECKING:
    from torch import Tensor

INSTRUCTIONS = (  # indented, as in the program
    "Describe all the important parts of the scene with a complete sentence or a cohesive fragment.\n"
    "    The description should contain at most {words} words, at least 6 words.\n"
    "    Avoid making spelling errors in the description.\n"
    "    Do not describe unimportant details.\n"
    "    Do not use any special characters like !, #, $, etc.\n"
    "    Do not start the sentence with \u2018\u2018There is\u2019\u2019 or \u2018\u2018There are\u2019\u2019.\n"
    "    Do not write your descriptions as \u2018\u2018An image containing ...\u2019\u2019, "
    "\u2018\u2018A photo of ...\u2019\u2019,  etc.\n"
    "    Do not describe things that might have happened in the future or past.\n"
    "    Do not use proper names for people.\n"
    "    Do not describe what a person in the image might say."
)
"""The instructions for a caption, with the program's spaces and quotation marks; {words} is the most words."""
QUESTIONS: dict[Task, str] = {"color_estimation": COLOR, "object_detection": OBJECTS}
"""The questions for the other tasks."""
TEMPLATE = "[INST] <image>\n{prompt} [/INST]"
"""Mistral's form of a chat, for checkpoints without a chat template."""


def _read_lengths(value: object) -> object:
    if not isinstance(value, str):
        return value
    try:
        rows = [json.loads(line) for line in Path(value).read_text(encoding="utf-8").splitlines()]
        texts = [row["answer"]["text"] for row in rows if (row["task"], row["kind"]) == ("image_captioning", "human")]
        return [length for length in (count_words(text) for text in texts) if length]
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise ValueError(f"{value} is no file of records: {type(error).__name__}: {error}") from None


Lengths = Annotated[
    tuple[Annotated[int, Field(ge=1, le=1000)], ...],
    BeforeValidator(_read_lengths, json_schema_input_type=tuple[int, ...] | str),
    Field(min_length=1),
]
"""Lengths in words: numbers, or a file of records from which those of people's captions are read."""
CAPTION_LENGTHS: Lengths = (8, 9, 9, 10, 10, 10, 11, 11, 12, 13, 14, 16)
"""Lengths of COCO's captions, in words."""


class LlavaNextAgent(CaptionAgent["LlavaNextAgent.Settings"]):
    """Captions, colours and objects by LLaVA-NeXT. Texts are padded on the left: on a CPU those of similar length, on a
    GPU all."""

    class Settings(CaptionSettings):
        """What is asked, how often, and how long a caption may be."""

        prompt: str = INSTRUCTIONS
        """The instructions; {words} stands for the drawn number of words."""
        lengths: Lengths = CAPTION_LENGTHS
        """Lengths in words, from which the number is drawn: COCO's, others, or a file of people's records."""
        least_words: int = Field(10, ge=1, le=1000)
        """A smaller drawn length is raised to this."""
        runs: int = Field(5, ge=1, le=100)
        """How many runs a colour or objects have; what most of them say is the answer."""

    declares = Declaration(
        tasks=("image_captioning", "color_estimation", "object_detection"),
        memory=32 * GIB,  # 7.6 thousand million weights in fp32
        device_memory=24 * GIB,
        batch_size=8,
    )
    model_class = "LlavaNextForConditionalGeneration"
    model_types = ("llava_next",)

    def open(self) -> None:
        """As the base class does; also open the processor, as only it knows how many tokens an image takes. Raises
        UnavailableError."""
        from transformers import LlavaNextProcessor

        super().open()
        # Only it knows how many tokens an image takes.
        parts = {"image_processor": self._images, "tokenizer": self._tokenizer}
        self._processor = load_part(LlavaNextProcessor, self.folder(), "processor", **parts)

    def prepare(self, stimulus: Stimulus) -> ProcessorInput:
        """The image's tensors, with the number of its tokens, the stimulus's id and the task. Raises ImageError,
        AnswerError."""
        prepared = super().prepare(stimulus)
        marks = self._processor.replace_image_token({name: [value] for name, value in prepared.items()}, 0)
        length = len(marks) // len(self._processor.image_token)
        return {**prepared, "length": length, "id": stimulus.id, "task": stimulus.task}

    def _group_key(self, prepared: ProcessorInput) -> tuple[int, ...]:
        # Of lengths within a quarter of each other, at most a fifth is padding.
        return () if self._device.type == "cuda" else (int(math.log(prepared["length"], 1.25)),)

    def _row(self, image: int, prepared: ProcessorInput, draw: Draw) -> CaptionRow:
        row = super()._row(image, prepared, draw)
        if question := QUESTIONS.get(prepared["task"]):
            return replace(row, prompt=question)
        if "{words}" not in row.prompt:
            return row
        sample = draw.sample if self._drawn else 0  # beams of all ranks answer the same prompt
        limit = max(drawn_length(self.settings.lengths, prepared["id"], sample), self.settings.least_words)
        return replace(row, prompt=row.prompt.replace("{words}", str(limit)), limit=limit)

    def _describe(
        self, distinct: Sequence[ProcessorInput], features: Any, items: Sequence[ProcessorInput], draws: Sequence[Draw]
    ) -> list[Reply | Exception]:
        replies = super()._describe(distinct, features, items, draws)
        places = [place for place, item in enumerate(items) if item["task"] in QUESTIONS]
        runs = [[replies[place] for place in places]]
        for run in range(1, self.settings.runs if places else 1):
            again = [replace(draws[place], seed=run_seed(draws[place].seed, run)) for place in places]
            runs.append(super()._describe(distinct, features, [items[place] for place in places], again))
        for place, *answers in zip(places, *runs, strict=True):
            failed = [reply for reply in answers if isinstance(reply, Exception)]
            replies[place] = failed[0] if failed else self._majority(items[place]["task"], answers)
        return replies

    def _majority(self, task: Task, runs: Sequence[Any]) -> Reply | Exception:
        texts = [reply.answer.text for reply in runs]
        is_color = task == "color_estimation"
        try:
            answer = majority_color(texts) if is_color else majority_objects(texts)
        except AnswerError as error:
            if not self.random:  # whose texts nobody judges
                return error
            answer = ColorAnswer(color=texts[0]) if is_color else ObjectAnswer(labels=texts[:1])
        return Reply(answer, {"runs": texts})

    def _load_model(self, folder: Path) -> Any:
        model = super()._load_model(folder)
        tokenizer = self._tokenizer
        self._use_tokens(model, start=tokenizer.bos_token_id, end=tokenizer.eos_token_id, pad=tokenizer.pad_token_id)
        return model

    def _encode(self, images: Sequence[ProcessorInput]) -> list[Tensor]:
        import torch

        alike: dict[int, list[int]] = {}
        for index, image in enumerate(images):
            alike.setdefault(len(image["pixel_values"]), []).append(index)
        features: dict[int, Tensor] = {}
        for indices in alike.values():
            group = [images[index] for index in indices]
            sizes = torch.stack([torch.as_tensor(image["image_sizes"]) for image in group])
            encoded = self._model.model.get_image_features(self._stack(group), sizes, return_dict=True)
            features.update(zip(indices, encoded.pooler_output, strict=True))
        return [features[index] for index in range(len(images))]

    def _generate(self, features: list[Tensor], rows: Sequence[CaptionRow], options: dict[str, Any]) -> tuple[Any, int]:
        from agents.models.padding import padded, ready_masks

        image = self._model.config.image_token_index
        prompts = []
        starts = []
        for row in rows:
            # The complete text: what stands around the image is not tokenized as it would be alone.
            tokens = self._tokenizer(self._with_template(row.prompt))["input_ids"]
            starts.append(tokens.index(image))
            prompts.append([*tokens[: starts[-1]], *[image] * len(features[row.image]), *tokens[starts[-1] + 1 :]])
        ids, mask, is_padded = padded(prompts, self._pad, self._device)
        embedded = self._model.get_input_embeddings()(ids)
        for text, row, start, prompt in zip(embedded, rows, starts, prompts, strict=True):
            tiles = features[row.image].to(self._dtype)
            text[len(text) - len(prompt) + start :][: len(tiles)] = tiles
        # The prompt's tokens too, as transformers does: rules such as that on repeated n-grams look at them.
        with ready_masks(self._model, padded=is_padded):
            generated = self._model.generate(input_ids=ids, inputs_embeds=embedded, attention_mask=mask, **options)
        return generated, ids.shape[1]

    def _with_template(self, prompt: str) -> str:
        if not self._processor.chat_template:
            return TEMPLATE.format(prompt=prompt)
        message = {"role": "user", "content": [{"type": "image"}, {"type": "text", "text": prompt}]}
        text: str = self._processor.apply_chat_template([message], add_generation_prompt=True, tokenize=False)
        return text.removeprefix(self._tokenizer.bos_token or "")

    def _clean(self, text: str) -> str:
        return text


def majority_color(texts: Sequence[str]) -> ColorAnswer:
    """The word that most ``texts`` are, compared by letters alone. Raises AnswerError if it is no colour word."""
    [(word, _)] = Counter(_lower_letters(text) for text in texts).most_common(1)
    if word not in COLORS:
        raise unparsable(" / ".join(texts), "colour")
    return ColorAnswer(color=word)


def majority_objects(texts: Sequence[str]) -> ObjectAnswer:
    """The three parts between commas that come most often in ``texts``. Raises AnswerError if there is none."""
    labels = Counter(filter(None, (_lower_letters(part) for text in texts for part in text.split(","))))
    if not labels:
        raise unparsable(" / ".join(texts), "objects")
    return ObjectAnswer(labels=[label for label, _ in labels.most_common(3)])


def _lower_letters(text: str) -> str:
    return re.sub(r"[^a-zA-Z]", "", text).lower()


def run_seed(seed: int, run: int) -> int:
    """The seed of a run after the first, of 53 bits, drawn from the first run's."""
    return random.Random(f"run {seed} {run}").getrandbits(53)


def drawn_length(lengths: Lengths, stimulus: str, sample: int) -> int:
    """The most words of a caption, drawn from ``lengths`` by the stimulus and the sample: the same at every
    attempt."""
    return random.Random(f"words {stimulus} {sample}").choice(lengths)
