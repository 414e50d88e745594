"""What every answer passes before a judge sees it, whoever gave it.

The papers post-process people's words as machines' (2022, S6.1.2; 2025, Methods, L812-818 and L847-849): nouns in the
singular, verbs in their base form, no typos, no stop words, no words under three letters, none too like the cue. Our
own agents keep these rules when they answer. People write as they like: without the same rules for them, a judge who
says "machine" to every base form is right, and what was tested is our own making. The function is
:func:`agents.language.words.rules.judge`, which changes nothing the second time.

Colours are compared in one spelling. A colour beyond the eleven words that people were offered stays, and is told: an
agent such as ``mmcq`` can never say it.
"""

from collections import Counter
from collections.abc import Sequence

from agents.language.words.rules import RuleSettings, judge
from agents.vision.colors import WORDS as COLORS
from serving.runs.row_problems import count, shown

PEOPLE = "people"
EXAMPLES = 4  # words that a sentence shows
HALF = 0.5  # of people's words: if the rules drop more, they are hardly English


class SameRules:
    """Applies the rules to answers, and counts by whom what they changed. ``as_written``: they change nothing."""

    def __init__(self, *, as_written: bool = False) -> None:
        self.as_written = as_written
        self._settings = RuleSettings()
        self._answers: Counter[str] = Counter()
        self._changed: dict[str, Counter[tuple[str, str]]] = {}
        self._dropped: dict[str, Counter[tuple[str, str]]] = {}
        self._colors: dict[str, Counter[str]] = {}

    def word(self, written: str, cue: str, who: str) -> str:
        """The word that judges see of an answer to ``cue`` by ``who`` (:data:`PEOPLE` or an agent); "" where the rules
        drop it."""
        plain = written.strip().lower()
        if self.as_written or not plain:
            return plain
        self._answers[who] += 1
        judged = judge(written, cue, self._settings)
        if judged.rule is not None:
            self._dropped.setdefault(who, Counter())[plain, judged.rule] += 1
            return ""
        if judged.word != plain:
            self._changed.setdefault(who, Counter())[plain, judged.word] += 1
        return judged.word

    def color(self, written: str, who: str) -> str:
        """The colour word that judges see; ``grey`` is spelled ``gray``, as the eleven words are."""
        plain = " ".join(written.lower().split())
        if not self.as_written:
            plain = plain.replace("grey", "gray")
        if plain and plain not in COLORS:
            self._colors.setdefault(who, Counter())[plain] += 1
        return plain

    def sentences(self) -> list[str]:
        """What the rules did, by whom, for the summary of a command."""
        lines = []
        for who in sorted(self._answers, key=lambda name: (name != PEOPLE, name)):
            changed = self._changed.get(who, Counter())
            dropped = self._dropped.get(who, Counter())
            line = f"words by the papers' rules: of {count(self._answers[who], 'answer')} of {who} "
            line += f"{changed.total():,} changed{_examples([f'{old} to {new}' for old, new in changed])}, "
            line += f"{dropped.total():,} left out{_examples([f'{word}: {rule}' for word, rule in dropped])}"
            lines.append(line)
        dropped_of_people = self._dropped.get(PEOPLE, Counter()).total()
        if dropped_of_people > HALF * self._answers[PEOPLE]:
            lines.append(
                "more than half of people's words are left out: the rules are for English; --as-written takes words as "
                "they were written"
            )
        for who, colors in sorted(self._colors.items()):
            lines.append(
                f"colours beyond the eleven words, which an agent such as mmcq cannot say: {colors.total():,} of {who}"
                f"{_examples(list(colors))}"
            )
        return lines

    def summary(self) -> dict[str, object]:
        """The same for the file about a trial set."""
        people_and_agents = sorted({*self._answers, *self._colors})
        return {
            "as_written": self.as_written,
            "rules": self._settings.model_dump(mode="json"),
            "by": {
                who: {
                    "words": self._answers[who],
                    "changed": self._changed.get(who, Counter()).total(),
                    "left_out": self._dropped.get(who, Counter()).total(),
                    "other_colors": self._colors.get(who, Counter()).total(),
                }
                for who in people_and_agents
            },
        }


def _examples(texts: Sequence[str]) -> str:
    if not texts:
        return ""
    more = ", …" if len(texts) > EXAMPLES else ""
    return f" ({', '.join(shown(text) for text in texts[:EXAMPLES])}{more})"
