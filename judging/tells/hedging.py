"""The transformation of hedges."""

from __future__ import annotations

from judging.tells.hedges import AT_BEGINNING, HEDGING_WORDS, WORD, hedged, hedges, without_hedges
from judging.tells.seen import SENTENCES, SeenAnswer
from judging.tells.transformation import Planted, Target, Transformation, refuse_unless, share


class Hedging(Transformation):
    """Hedges go."""

    name = "hedging"
    tasks = SENTENCES
    takes = 'hedges such as "I think" and "maybe", where a sentence is left without them'
    keeps = "all other words, their order"
    measures = "hedges per text"
    plants = "the hedges of a participant's text, before the sentence"
    plant_tasks = SENTENCES

    def measure(self, seen: SeenAnswer) -> float:
        """Hedges per text; a conversation has a text per message."""
        texts = seen.texts()
        return share(sum(len(hedges(text)) for text in texts), len(texts))

    def take_away(self, seen: SeenAnswer, target: Target) -> SeenAnswer:
        """Without hedges."""
        return seen.with_texts([without_hedges(text) for text in seen.texts()])

    def check(self, before: SeenAnswer, after: SeenAnswer) -> None:
        """All words that are in no hedge of the list must be the same, in the same order. Where ``after`` has no hedge,
        it must be ``before`` without some words."""
        for first, second in zip(before.texts(), after.texts(), strict=True):
            of_first = _words(first)
            of_second = _words(second)
            is_kept = _others(of_first) == _others(of_second)
            is_kept = is_kept and (bool(hedges(second)) or _is_part(of_second, of_first))
            refuse_unless(is_kept, self.name, first, second)

    def plant(self, seen: SeenAnswer, donor: SeenAnswer) -> Planted:
        """Each text loses its own hedges and gets one of the donor's text, which are taken in turn. A hedge that cannot
        stand before a sentence, such as "kind of", is not planted."""
        of_donor = [hedges(text) for text in donor.texts()]
        is_reached = True
        texts = []
        for number, text in enumerate(seen.texts()):
            wanted = of_donor[number % len(of_donor)]
            bare = without_hedges(text)
            # "I think" before "so it was" is none.
            fit = [phrase for phrase in wanted if phrase in AT_BEGINNING and hedges(hedged(bare, phrase)) == [phrase]]
            is_reached = is_reached and bool(fit) == bool(wanted)
            texts.append(hedged(bare, fit[0]) if fit and bare else bare)
        return Planted(seen.with_texts(texts), is_reached)


def _words(text: str) -> list[str]:
    return [word.lower().replace("’", "'") for word in WORD.findall(text)]


def _others(words: list[str]) -> list[str]:
    return [word for word in words if word not in HEDGING_WORDS]


def _is_part(short: list[str], long: list[str]) -> bool:
    """Whether ``short`` is ``long`` without some of its words."""
    left = iter(long)
    return all(any(word == other for other in left) for word in short)
