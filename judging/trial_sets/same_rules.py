"""What every answer passes before a judge sees it, whoever gave it.

The papers post-process people's words as machines' (2022, S6.1.2; 2025, Methods, L812-818 and L847-849): nouns in the
singular, verbs in their base form, no typos, no stop words, no words under three letters, none too like the cue. Our
own agents keep these rules when they answer, and their replies are read. "the water" becomes the word "water", "teal"
the colour blue, and "a dog and a cat" two objects. People write as they like. If their answers were not
read alike, "the water" of a machine would stand beside "thewater" of a person, and judges would recognise our reading.

So every answer passes the reader of machines' replies here, once. On what a machine said already it changes nothing:
the readers give back what they have read. Labels of detectors, which have boxes, are no replies and stay.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from agents.answers import COLORS, ObjectAnswer, is_blank
from agents.attention.painting import SHOWN
from agents.color_words import COLOR_LANGUAGES, OTHER, language_of_colors
from agents.contract import is_installed
from agents.errors import AnswerError
from agents.language.words.replies import read_word
from agents.language.words.rules import RuleSettings
from agents.language.words.vocabulary import is_spelled_right
from agents.stimuli import Asked
from agents.vision.picture_replies import read_caption, read_color, read_objects
from serving.files.words import count, shown

ANSWERING_PEOPLE = "people"
LABELS = 3  # that judges see
EXAMPLES = 4  # answers that a sentence shows
FEWEST = 4  # different words that say something of their language
HALF = 0.5  # of people's words: if the rules drop more, they are hardly English
NAMES: dict[Asked, str] = {
    "word_association": "words by the papers' rules",
    "color_estimation": "colours, read by the rules for replies",
    "object_detection": "objects, read by the rules for replies",
    "image_captioning": "captions, read by the rules for replies",
    "attention_prediction": "scanpaths (judges see the first 15 fixations)",
}
P = TypeVar("P")
GREY = re.compile(r"grey(?=\b|ish)")


@dataclass(slots=True)
class RuleTally:
    """What the rules did with the answers of one agent, or of people, to one task."""

    answers: int = 0
    """How many answers the rules read, whatever became of them."""
    changed: Counter[str] = field(default_factory=Counter)
    """How often each change was made, such as "dogs to dog"."""
    left_out: Counter[str] = field(default_factory=Counter)
    """How often each answer was dropped, with the rule that it breaks."""


class SameRules:
    """Applies the rules to answers, and counts by whom what they changed. ``as_written``: they change nothing."""

    def __init__(self, *, as_written: bool = False) -> None:
        self.as_written = as_written
        self._settings = RuleSettings()
        self._tallies: dict[tuple[Asked, str], RuleTally] = {}
        self._colors: dict[str, Counter[str]] = {}
        self._said: dict[Asked, Counter[str]] = {}

    def word(self, written: str, cue: str, who: str) -> str:
        """The word that judges see of an answer to ``cue``; "" where the rules drop it.

        ``who`` has answered: :data:`ANSWERING_PEOPLE` or an agent."""
        plain = _in_a_line(written)
        self._note("word_association", who, [plain])
        if self.as_written or not plain:
            return plain
        word, rule = read_word(written, cue, self._settings)
        return self._told("word_association", who, plain, word, rule or "")

    def color(self, written: str, who: str) -> str:
        """The colour that judges see: one of the eleven words wherever it can be read; other words stay, and are told.
        ``grey`` is spelled ``gray``, as the eleven words are."""
        plain = _in_a_line(written)
        self._note("color_estimation", who, [plain])
        read = plain
        if not self.as_written:
            try:
                read = read_color(written)[0]
            except AnswerError:
                read = GREY.sub("gray", plain)
            read = self._told("color_estimation", who, plain, read)
        if read and read not in COLORS:
            self._colors.setdefault(who, Counter())[read] += 1
        return read

    def labels(self, answer: ObjectAnswer, who: str) -> list[str]:
        """The first three objects that judges see; [] where there are none."""
        written = [label for label in map(_in_a_line, answer.labels) if label][:LABELS]
        self._note("object_detection", who, written)
        if self.as_written or answer.boxes is not None or not written:
            return written
        try:
            read = read_objects(", ".join(answer.labels), LABELS)
        except AnswerError:
            read = []
        self._told("object_detection", who, ", ".join(written), ", ".join(read), "no objects")
        return read

    def caption(self, written: str, who: str) -> str:
        """The caption that judges see, in a line, without marks around it; "" where there is none."""
        plain = " ".join(written.split())
        if is_blank(plain):
            return ""
        if self.as_written:
            return plain
        try:
            read = read_caption(written)
        except AnswerError:
            read = ""
        return self._told("image_captioning", who, plain, read, "no caption")

    def path(self, fixations: Sequence[P], who: str) -> Sequence[P]:
        """The fixations that judges see: those of the clip, also for judges who get numbers. Papers: 2025, L1294."""
        seen = fixations[:SHOWN]
        self._told("attention_prediction", who, f"{len(fixations)} fixations", f"{len(seen)} fixations")
        return seen

    def _told(self, task: Asked, who: str, written: str, read: str, reason: str = "") -> str:
        tally = self._tallies.setdefault((task, who), RuleTally())
        tally.answers += 1
        if not read:
            tally.left_out[f"{written}: {reason}"] += 1
        elif read != written:
            tally.changed[f"{written} to {read}"] += 1
        return read

    def _note(self, task: Asked, who: str, texts: Sequence[str]) -> None:
        if who == ANSWERING_PEOPLE:
            self._said.setdefault(task, Counter()).update(text for text in texts if text)

    def languages(self) -> dict[str, str]:
        """The language of people's answers by task, where it is not English: a key of
        :data:`agents.color_words.COLOR_LANGUAGES`, or ``OTHER`` where nobody knows which."""
        found: dict[str, str] = {}
        for task, said in self._said.items():
            language = language_of_colors(said) if task == "color_estimation" else _other_language(said)
            if language is not None:
                found[task] = language
        return found

    def sentences(self) -> list[str]:
        """What the rules did, by whom, for the summary of a command: always of words, of other tasks where something
        changed."""
        lines = []
        for task, name in NAMES.items():
            tallies = {who: tally for (of_task, who), tally in self._tallies.items() if of_task == task}
            has_news = any(tally.changed or tally.left_out for tally in tallies.values())
            if task != "word_association" and not has_news:
                continue
            for who in sorted(tallies, key=lambda name: (name != ANSWERING_PEOPLE, name)):
                tally = tallies[who]
                changed = f"{tally.changed.total():,} changed{_examples(list(tally.changed))}"
                left_out = f"{tally.left_out.total():,} left out{_examples(list(tally.left_out))}"
                lines.append(f"{name}: {count(tally.answers, 'answer')} from {who}, {changed}, {left_out}")
        people = self._tallies.get(("word_association", ANSWERING_PEOPLE), RuleTally())
        if people.left_out.total() > HALF * people.answers:
            lines.append(
                "more than half of people's words are left out. The rules are for English; as_written (--as-written) "
                "shows words as they were written"
            )
        for who, colors in sorted(self._colors.items()):
            lines.append(
                f"colours beyond the eleven words (an agent such as mmcq cannot say them): {colors.total():,} from "
                f"{who}{_examples(list(colors))}"
            )
        lines += language_sentences(self.languages())
        return lines

    def summary(self) -> dict[str, object]:
        """The same for the file about a trial set: by task and by whom."""
        by_task: dict[str, dict[str, dict[str, int]]] = {}
        for (task, who), tally in self._tallies.items():
            numbers = {
                "answers": tally.answers,
                "changed": tally.changed.total(),
                "left_out": tally.left_out.total(),
            }
            by_task.setdefault(task, {})[who] = numbers
        colors = {who: of_person.total() for who, of_person in self._colors.items()}
        rules = self._settings.model_dump(mode="json")
        said = {"as_written": self.as_written, "rules": rules, "by": by_task, "other_colors": colors}
        languages = self.languages()
        return {**said, "languages": languages} if languages else said


def language_sentences(languages: Mapping[str, str]) -> list[str]:
    """A sentence for each task in which people answered in another language than machines; ``languages`` are those of
    :meth:`SameRules.languages`."""
    lines = []
    for task, language in sorted(languages.items()):
        what = {"color_estimation": "colours", "object_detection": "objects"}.get(task, "words")
        looks = f"look {COLOR_LANGUAGES[language]}" if language in COLOR_LANGUAGES else "are hardly English"
        way_out = ""
        if task == "color_estimation":
            way_out = f". `turinglike import --color-words {language}` reads them as the English words"
        lines.append(
            f"people's {what} {looks}, and machines answer in English: who tells them apart may do so by the language "
            f"alone{way_out}"
        )
    return lines


def _other_language(said: Counter[str]) -> str | None:
    """``OTHER`` where more than half of the different words are not English; None also without the package that
    knows."""
    if not is_installed("wordfreq"):
        return None
    different = {word for text in said for word in text.split()}
    other = [word for word in different if not is_spelled_right(word)]
    return OTHER if len(different) >= FEWEST and len(other) > HALF * len(different) else None


def _in_a_line(text: str) -> str:
    return "" if is_blank(text) else " ".join(text.lower().split())


def _examples(texts: Sequence[str]) -> str:
    if not texts:
        return ""
    more = ", …" if len(texts) > EXAMPLES else ""
    return f" ({', '.join(shown(text) for text in texts[:EXAMPLES])}{more})"
