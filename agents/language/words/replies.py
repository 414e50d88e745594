"""How the reply of a language model to a cue word is read: which word it gives, and which it may not give.

How the papers read replies is not published. What models do say is taken: a bare word, a sentence, Markdown, the prompt
once more.
"""

from __future__ import annotations

import re

from agents.answers import Skipped, WordAnswer
from agents.contract import Verdict
from agents.language.words.rules import CUE, RuleSettings, judge, letters
from agents.stimuli import WordStimulus

MOST = 10  # acceptable words of a reply that are in the record
LONGEST = 20_000  # characters of a reply that are looked at

_APOLOGY = re.compile(
    r"\W*(?:unfortunately,? )?(?:(?:i['’]?m|i am) (?:very |so |really )?(?:sorry|unable|afraid|not able)|sorry\b|"
    r"my apologies|i (?:can['’]?t|cannot|can not|do not|don['’]?t|won['’]?t|will not) (?:\w+ ){0,2}"
    r"(?:see|view|assist|help|identify|analy[sz]e|provide|process|access|describe|determine|answer|predict|have)\b|"
    r"as an ai\b|(?:there is )?no image\b|please (?:provide|upload|share|attach)\b)",
    re.IGNORECASE,
)
_MARKS = re.compile(r"[*_`#\"“”]+|(?<!\w)['‘’]|['‘’](?!\w)")
_ARTICLES = frozenset(("a", "an", "the"))
_WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")
_SAYS = re.compile(r"\b(?:is|would be|might be|comes to mind is)\b|[:=→]|->", re.IGNORECASE)


def is_apology(text: str) -> bool:
    """Whether a reply begins as models begin that do not answer: "I'm sorry, …". A mere "Sorrow" is no apology."""
    return _APOLOGY.match(text.replace("*", "")) is not None


def unmarked(text: str) -> str:
    """The text without quotation marks and the marks of Markdown."""
    return _MARKS.sub("", text)


def words_said(text: str, cue: str) -> list[str]:
    """The words that a reply may mean, in small letters, each once, in their order; none for an apology.

    In a sentence those after "is" or a colon, if there are any beside the cue and articles. A repeated prompt
    ("Cue: …; Guess: …") is passed over.
    """
    if is_apology(text):
        return []
    said = unmarked(text[:LONGEST].rpartition("Guess:")[2])
    own = {word.lower() for word in _WORD.findall(cue)} | _ARTICLES
    parts = [[word.lower() for word in _WORD.findall(part)] for part in (_SAYS.split(said, maxsplit=1)[-1], said)]
    meant = next((part for part in parts if not own.issuperset(part)), parts[1])
    return list(dict.fromkeys(word for word in meant if word not in _ARTICLES))


def word_answer(stimulus: WordStimulus, text: str, rules: RuleSettings) -> WordAnswer:
    """The first word of a reply that is not the cue and keeps the rules, with those passed over before it and the
    acceptable ones after it; its ``word`` is "" if there is none."""
    candidates: list[str] = []
    skipped: list[Skipped] = []
    for word in words_said(text, stimulus.cue):
        judged = judge(word, stimulus.cue, rules)
        rule = CUE if letters(word) == letters(stimulus.cue) else judged.rule
        if rule is None:
            candidates.append(judged.word)
        elif not candidates:
            skipped.append(Skipped(word=word, rule=rule))
    candidates = list(dict.fromkeys(candidates))[:MOST]
    return WordAnswer(word=candidates[0] if candidates else "", candidates=candidates, skipped=skipped[:MOST])


def no_word(answer: WordAnswer, text: str) -> Verdict | None:
    """The filter of replies without an acceptable word; it says what was passed over."""
    if answer.word:
        return None
    passed_over = ", ".join(f"{one.word} ({one.rule})" for one in answer.skipped)
    return Verdict("no_word", True, f"{text[:200]} [{passed_over}]" if passed_over else text[:200])
