"""Catch trials: answers that no attentive judge takes for a person's (2025 paper, Table S3)."""

import hashlib
import random
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import Any, Literal

from pydantic import Field

from agents.answers import COLORS, CaptionAnswer, ColorAnswer, ObjectAnswer, ScanpathAnswer, TurnAnswer, WordAnswer
from agents.attention.scanpath_files import FRAME, OTHER_IMAGE, Scanpath, read_scanpaths
from agents.contract import MIB, Agent, Declaration, Draw, Reply, derive_seed
from agents.contract import Settings as BaseSettings
from agents.errors import AnswerError, UnavailableError
from agents.stimuli import (
    TASKS,
    AttentionStimulus,
    CaptionStimulus,
    ColorStimulus,
    ConversationStimulus,
    ObjectStimulus,
    Stimulus,
    WordStimulus,
)
from agents.vision import colors
from agents.vision.captions import flags

SYMBOLS = "#*&^%@!+=$~"
"""What a senseless message is made of."""
UNSEEN = (
    "with",
    "about",
    "between",
    "every",
    "because",
    "yesterday",
    "quickly",
    "often",
    "perhaps",
    "although",
    "until",
    "seldom",
    "whether",
    "tomorrow",
    "rather",
)
"""Ordinary words that are no colours, and name nothing that a picture could show."""
WORDS = (
    *UNSEEN,
    "table",
    "dog",
    "window",
    "paper",
    "bottle",
    "music",
    "garden",
    "pencil",
    "market",
    "mountain",
    "engine",
    "letter",
    "kitchen",
    "river",
    "pocket",
    "shoulder",
    "ladder",
    "winter",
    "doctor",
    "ticket",
)
"""Ordinary words that are no colours."""
GROUPS = ("origin", "age", "size", "price", "use", "season", "shape", "popularity", "difficulty", "place of storage")
"""What a senseless list is ordered by."""
ITEMS = (
    "common",
    "rare",
    "regional",
    "traditional",
    "experimental",
    "imported",
    "seasonal",
    "historical",
    "formal",
    "everyday",
    "commercial",
    "handmade",
    "portable",
    "miniature",
    "ceremonial",
    "standard",
    "reversible",
    "temporary",
)
"""What such a list has."""
CatchInput = tuple[Stimulus, tuple[int, int]]
"""A stimulus, with its picture's frame (width, height) in pixels."""


class CatchAgent(Agent["CatchAgent.Settings"]):
    """Gives answers that no person gives.

    - a caption of one word, a colour that is none, an object that is not there
    - the cue itself, a single point or another image's scanpath, senseless messages

    All is drawn from the seed; what must stay the same in a conversation is drawn from the stimulus and the sample.
    """

    class Settings(BaseSettings):
        """Which of the papers' catch trials are made."""

        repeats: int = Field(4, ge=2, le=100)
        """How often the word of a caption stands there."""
        scanpath: Literal["point", "other_image"] = "point"
        """point: the same point all the time; other_image: a scanpath of another image, from the file scanpaths."""
        scanpaths: Path | None = None
        """For other_image: records (.jsonl), imported too, or a published fv.json (of a ground truth, people's)."""
        fixations: int = Field(15, ge=1, le=10_000)
        """How often the point is fixated, where the stimulus does not say max_fixations."""
        conversation: Literal["drawn", "repeat", "no_prompt", "list"] = "drawn"
        """The same message every time, "Please enter a valid prompt.", long lists, or any of the three, drawn."""
        items: int = Field(6, ge=2, le=18)
        """How many items each group of a list has."""

    declares = Declaration(
        tasks=TASKS,
        memory=128 * MIB,
        batch_size=256,
        parallel=False,
    )
    _others: Sequence[Scanpath] = ()

    def missing(self) -> str | None:
        """Says that no file of scanpaths is named, where one is needed."""
        path = self.settings.scanpaths
        if self.settings.scanpath == "point" or (path is not None and path.is_file()):
            return None
        return (
            f"{self.name}.scanpath is other_image: name a file of scanpaths by the setting {self.name}.scanpaths=FILE "
            "(--set)"
        )

    def open(self) -> None:
        """Read the scanpaths of other images. Raises UnavailableError."""
        if (missing := self.missing()) is not None:
            raise UnavailableError(missing)
        if self.settings.scanpath == "other_image" and self.settings.scanpaths is not None:
            self._others = read_scanpaths(self.settings.scanpaths)

    def provenance(self) -> dict[str, Any]:
        """The hash of the file of scanpaths."""
        path = self.settings.scanpaths
        if self.settings.scanpath == "point" or path is None:
            return {}
        return {"scanpaths_sha256": hashlib.sha256(path.read_bytes()).hexdigest()}

    def prepare(self, stimulus: Stimulus) -> CatchInput:
        """The stimulus with its frame. Raises ImageError."""
        if not isinstance(stimulus, AttentionStimulus):
            return stimulus, FRAME
        header = stimulus.image.header()
        return stimulus, (header.width, header.height)

    def respond(self, batch: Sequence[CatchInput], draws: Sequence[Draw]) -> Sequence[Reply | Exception]:
        """An answer for each stimulus, or the error ``no_absent_object`` or ``no_other_image``."""
        replies: list[Reply | Exception] = []
        for prepared, draw in zip(batch, draws, strict=True):
            try:
                replies.append(self._reply(*prepared, draw))
            except AnswerError as error:
                replies.append(error)
        return replies

    def _reply(self, stimulus: Stimulus, frame: tuple[int, int], draw: Draw) -> Reply:
        noise = random.Random(draw.seed)
        if isinstance(stimulus, CaptionStimulus):
            text = " ".join([noise.choice(WORDS)] * self.settings.repeats)
            return Reply(CaptionAnswer(text=text, flags=flags(text)))
        if isinstance(stimulus, ColorStimulus):
            return Reply(ColorAnswer(color=noise.choice([*filter(_is_no_color, _absent(stimulus))] or UNSEEN)))
        if isinstance(stimulus, ObjectStimulus):
            if not (absent := _absent(stimulus)):
                raise AnswerError("no_absent_object", "a catch trial needs an object that is not there: give `absent`")
            return Reply(ObjectAnswer(labels=[noise.choice(absent)] * 3))
        if isinstance(stimulus, WordStimulus):
            return Reply(WordAnswer(word=stimulus.cue))
        if isinstance(stimulus, AttentionStimulus):
            return self._scanpath(stimulus, frame, noise)
        assert isinstance(stimulus, ConversationStimulus)
        return self._turn(stimulus, draw, noise)

    def _scanpath(self, stimulus: AttentionStimulus, frame: tuple[int, int], noise: random.Random) -> Reply:
        width, height = frame
        if self.settings.scanpath == "point":
            point = [noise.randrange(width), noise.randrange(height)]
            count = stimulus.max_fixations or self.settings.fixations
            return Reply(_path([point] * count, frame, "point"))
        names = (stimulus.id, stimulus.benchmark_id, stimulus.source_id, stimulus.image.name)
        names_here = {bare for name in names if name for bare in _bare(name)}
        others = [other for other in self._others if names_here.isdisjoint(_bare(other.stimulus))]
        points = None
        while others and points is None:
            other = noise.choice(others)
            points = other.on_another(frame)
            others.remove(other)
        if points is None:
            why = f"{self.settings.scanpaths} holds no scanpath of another image that would lie on this one"
            raise AnswerError("no_other_image", why)
        path = _path(points[: stimulus.max_fixations], frame, OTHER_IMAGE)
        return Reply(path, {"stimulus": other.stimulus, "whose": other.whose})

    def _turn(self, stimulus: ConversationStimulus, draw: Draw, noise: random.Random) -> Reply:
        lasting = random.Random(derive_seed(0, self.name, stimulus.id, draw.sample, None, 0))
        drawn = lasting.choice(["list", "no_prompt", "repeat"])
        kind = drawn if self.settings.conversation == "drawn" else self.settings.conversation
        text = "Please enter a valid prompt."
        if kind == "repeat":
            text = "".join(lasting.choices(SYMBOLS, k=lasting.randint(5, 12)))
        elif kind == "list":
            topic = stimulus.topic or "such things"
            lines = [f"Preferences concerning {topic} depend on many factors. They can be categorized as follows:"]
            for group in noise.sample(GROUPS, 4):
                lines += ["", f"By {group}:"]
                lines += [f"- {item} {topic}" for item in noise.sample(ITEMS, self.settings.items)]
            text = "\n".join(lines)
        return Reply(TurnAnswer(text=text), {"kind": kind})


def _bare(name: str) -> tuple[str, str]:
    # With and without what may be an ending: the ground truth has img001.jpg where a set may have img001.
    path = PurePosixPath(name.replace("\\", "/"))
    return path.name, path.stem


def _absent(stimulus: ColorStimulus | ObjectStimulus) -> list[str]:
    present = {word.strip().lower() for word in stimulus.present or ()}
    return [word for word in stimulus.absent or () if word.strip().lower() not in present]


def _is_no_color(word: str) -> bool:
    return word.replace(" ", "").lower() not in {*COLORS, *colors.CSS3, *colors.ALIASES}


def _path(points: Sequence[Sequence[float]], frame: tuple[int, int], selection: str) -> ScanpathAnswer:
    fixations: list[list[float | int]] = [[round(x, 3), round(y, 3)] for x, y in points]
    return ScanpathAnswer(fixations=fixations, frame=list(frame), stop="end", forced_first=False, selection=selection)
