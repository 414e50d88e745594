"""The transformation of lengths: answers are cut to a common distribution of lengths."""

from __future__ import annotations

import random
from collections.abc import Sequence

from agents.word_boundaries import counted_words
from judging.tells.matching import matched, matched_to
from judging.tells.seen import SeenAnswer, end_mark, without_end_mark
from judging.tells.transformation import PARTICIPANTS, Owner, Planted, Target, Transformation, refuse_unless


class Length(Transformation):
    """Texts are cut to words, objects to labels, scanpaths to fixations; what is kept are the first ones."""

    name = "length"
    tasks = ("object_detection", "attention_prediction", "image_captioning", "word_association", "conversation")
    takes = "length: words, labels or fixations are cut at the end until the groups are samples of one distribution"
    keeps = "the first words, labels or fixations, their order, and the marks at the end of a text"
    measures = "words (of a conversation per message), labels or fixations"
    plants = "participants' length at about the answer's rank, where the answer is longer"
    plant_tasks = tasks
    is_matched = True

    def measure(self, seen: SeenAnswer) -> float:
        """The number of words, of a conversation their mean per message; of labels; of fixations."""
        lengths = _lengths(seen)
        return sum(lengths) / len(lengths) if lengths else 0.0

    def take_away(self, seen: SeenAnswer, target: Target) -> SeenAnswer:
        """The first parts, as many as ``target`` says: one number, or of a conversation one for each message."""
        if seen.answer.fixations is not None:
            return seen.with_fixations(seen.fixations()[: int(target[0])])
        if seen.answer.labels is not None:
            return seen.with_labels(seen.labels()[: int(target[0])])
        texts = [cut(text, int(number)) for text, number in zip(seen.texts(), target, strict=True)]
        return seen.with_texts(texts)

    def check(self, before: SeenAnswer, after: SeenAnswer) -> None:
        """What is kept must be the first parts."""
        fixations = after.fixations()
        labels = after.labels()
        is_kept = before.fixations()[: len(fixations)] == fixations and before.labels()[: len(labels)] == labels
        refuse_unless(is_kept, self.name, before.answer, after.answer)
        if before.answer.labels is not None:
            return
        for first, second in zip(before.texts(), after.texts(), strict=True):
            kept = without_end_mark(second)
            ends = {len(without_end_mark(first[:end])) for _, end in counted_words(first)}
            is_kept = first.startswith(kept) and (len(kept) in ends or first == second)
            refuse_unless(is_kept, self.name, first, second)

    def targets(self, answers: Sequence[SeenAnswer], owners: Sequence[Owner], chance: random.Random) -> list[Target]:
        """Matched by rank among the groups of a block; of conversations each message by itself."""
        return self._targets(answers, owners, chance, is_planted=False)

    def plant_all(
        self, answers: Sequence[SeenAnswer], owners: Sequence[Owner], chance: random.Random
    ) -> tuple[list[Planted], list[Target]]:
        """Machines' answers cut to participants' lengths at their ranks; shorter ones stay, and are not reached."""
        targets = self._targets(answers, owners, chance, is_planted=True)
        planted = []
        for seen, owner, target in zip(answers, owners, targets, strict=True):
            if owner.group == PARTICIPANTS:
                planted.append(Planted(seen, True))
                continue
            after = self.take_away(seen, target)
            self.check(seen, after)
            is_reached = all(own >= wanted for own, wanted in zip(_lengths(seen), target, strict=True))
            planted.append(Planted(after, is_reached))
        return planted, targets

    def _targets(
        self, answers: Sequence[SeenAnswer], owners: Sequence[Owner], chance: random.Random, *, is_planted: bool
    ) -> list[Target]:
        of_answers = [_lengths(seen) for seen in answers]
        values = [length for lengths in of_answers for length in lengths]
        of_parts = [owner for owner, lengths in zip(owners, of_answers, strict=True) for _ in lengths]
        groups = [owner.group for owner in of_parts]
        blocks = [owner.block for owner in of_parts]
        if is_planted:
            found = iter(matched_to(values, groups, blocks, PARTICIPANTS, chance))
        else:
            found = iter(matched(values, groups, blocks, chance))
        return [tuple(next(found) for _ in lengths) for lengths in of_answers]


def cut(text: str, number: int) -> str:
    """The first ``number`` words of a text, with the marks at its end: "A dog runs." of "A dog runs, and jumps."."""
    spans = counted_words(text)
    if len(spans) <= number:
        return text
    kept = text[: spans[number - 1][1]]
    bare = without_end_mark(kept)
    has_end = end_mark(kept) != "" or bare == kept
    return f"{bare}{end_mark(text)}" if has_end and not _is_marks(kept, spans[number - 1]) else kept


def _is_marks(text: str, span: tuple[int, int]) -> bool:
    """Whether a word is of marks alone."""
    return without_end_mark(f"x{text[slice(*span)]}") == "x"


def _lengths(seen: SeenAnswer) -> list[float]:
    if seen.answer.fixations is not None:
        return [float(len(seen.fixations()))]
    if seen.answer.labels is not None:
        return [float(len(seen.labels()))]
    return [float(len(counted_words(text))) for text in seen.texts()]
