"""How a reply to a cue word is read: which of its words is the answer. The papers' way is not published.

A reply is read by its likeliest reading first: a single word; words in quotation marks; what follows "is" or "comes to
mind"; short sentences. The first acceptable word of the first reading that has any is the answer. The words of the
question, such as "associate", are no answers in readings of several words.

What breaks: the order of readings decides. A pattern that is put first takes answers from all later ones, of every
model and of people, whose words are read here too (:func:`read_word`). The data of
tests/agents/language/words/test_replies.py are replies of real models; a pattern needs a reply that it reads, and must
leave all the others as they are. Every repetition in a pattern has a limit, as a model may write anything.
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from agents.answers import Skipped, WordAnswer
from agents.contract import Finding
from agents.language.words.rules import CUE, RuleSettings, apply_rules, is_stop_word, letters
from agents.stimuli import WordStimulus

MOST = 10
"""How many acceptable words, and how many skipped ones, stand in the record."""
LONGEST = 20_000
"""Characters of a reply that are read."""
ANSWERING = 1_000
"""Characters of a reply, after a model's thoughts, that may hold the answer."""
WORDS = Path(__file__).parent / "data" / "reply_words.txt"
"""Lists of words that tell what a sentence is about: of the question, of the form of replies, of the cue."""
PROMPT = "prompt_word"
"""The rule that drops words of the question, whatever the settings."""

_APOLOGY = re.compile(
    r"\W*(?:unfortunately,? )?(?:(?:i['’]?m|i am) (?:very |so |really )?(?:sorry|unable|afraid|not able)|sorry\b|"
    r"my apologies|i (?:can['’]?t|cannot|can not|do not|don['’]?t|won['’]?t|will not) (?:\w+ ){0,2}"
    r"(?:see|view|assist|help|identify|analy[sz]e|provide|process|access|describe|determine|answer|predict|have)\b|"
    r"as an ai\b|(?:there is )?no image\b|please (?:provide|upload|share|attach)\b)",
    re.IGNORECASE,
)
_NO_ANSWER = re.compile(
    r"[\W_]*(?:no idea|not sure|no word|nothing (?:comes|springs)|none (?:comes|of)|n/a)\b", re.IGNORECASE
)
_MARKS = re.compile(r"[*_`#\"“”„‟«»]+|(?<!\w)['‘’‚‹›]|['‘’‚‹›](?!\w)")
_ARTICLES = frozenset(("a", "an", "the"))
_WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")

# The most words of a sentence that are an answer as they stand.
_PLAIN = 4
_LINES = [line.partition(": ") for line in WORDS.read_text("utf-8").splitlines() if not line.startswith("#")]
_LISTS = {kind: frozenset(words.split()) for kind, _, words in _LINES}
_FORM, _ORDINARY, _NOUNS, _ONWARDS, _ABOUT = map(_LISTS.__getitem__, ("form", "ordinary", "nouns", "onwards", "about"))
_PHRASES = _FORM | _LISTS["phrases"]
_QUESTION = _PHRASES | _ORDINARY | _LISTS["question"]
_OPENER = re.compile(
    r"[\W_]*(?:(?:(?:sure(?: thing)?|of course|certainly|absolutely|definitely|okay|ok|alright|all right|h+m+|um+|"
    r"uh+|oh|ah|yes|yeah|yep|well|no problem|got it|understood|let me (?:think|see)|let's see|"
    r"here (?:you go|it is|goes)|(?:happy|glad) to help|i'd be (?:happy|glad) to(?: help)?|my pleasure)\b"
    r"\s*(?:[!.,:;…—–-]+|$))|"
    r"(?:(?:great|good|nice|interesting|fun|excellent|thanks|thank you|hi|hello|hey)\b(?: \w+){0,2}\s*!))\s*",
    re.IGNORECASE,
)
_ASIDE = re.compile(r",?\s*\bof course\b", re.IGNORECASE)
_THOUGHTS = re.compile(r"<think(?:ing)?>.*?(?:</think(?:ing)?>|$)", re.IGNORECASE | re.DOTALL)
_TAGGED = re.compile(r"<(\w{1,20})>(.{0,200}?)</\1>", re.DOTALL)
# The question once more.
_ECHO = re.compile(
    r"name (?:a|one) word (?:that )?you associate with [^.?\n]*[.?]?|"
    r"please (?:complete|provide|answer|give)\b[^.:\n]*[.:]?",
    re.IGNORECASE,
)
_ITEM = re.compile(r"(?:(?:^|(?<=\s))\(?\d{1,2}[.)]|^\s*[-*+•‣–])\s+", re.MULTILINE)
_CUE = re.compile(r"\bcue\s*:|\n\s*(?:cue|guess)\s*$", re.IGNORECASE)  # the last was cut
_GUESS = re.compile(r"\bguess\s*:", re.IGNORECASE)
_SENTENCE = re.compile(r"(?<=[.!?…])[\"'”’»)\]*_]*\s+|\n+")
# A word, or a few, set off by quotation marks, brackets or Markdown.
_SET_OFF = re.compile(
    r"[\"“”„«]([^\"“”„«»\n]{1,40})[\"“”»]|(?<!\w)['‘‚‹]([^'‘’\n]{1,40})['’›](?!\w)|\*{1,3}([^*\n]{1,40})\*{1,3}|"
    r"(?<!\w)_{1,2}([^_\n]{1,40})_{1,2}(?!\w)|`([^`\n]{1,40})`|\[([^\]\n]{1,40})\]|\{([^{}\n]{1,40})\}|<([^<>/\n]{3,40})>"
)
_LABEL = re.compile(r"\s*(?:[:=→⇒]|[-=–—]+>|\s[-–—]+\s)\s*")
_LEADS_TO = re.compile(
    r"\b(?:(?:would|could|might|may|must|will|can) be|(?:is|was|be)|(?<=\w)'(?:s|d be|ll be)|say(?: that)?|"
    r"think(?:ing)? (?:of|about)|believe(?: that)?|go(?:es|ing)?(?: well)? with|choose|pick|suggest|answer with|"
    r"i(?:'d| would)? guess|how about|what about|"
    r"remind(?:s|ed)? me of|associat\w*(?: \S+){0,4}? with|(?:related|connected|linked) to)\b[,:]?",
    re.IGNORECASE,
)
_COMES_TO_MIND = re.compile(
    r"\b(?:immediately )?(?:comes?|springs?|pops?) (?:in)?to (?:my |the )?mind\b", re.IGNORECASE
)
_PAUSE = re.compile(r"[,;:.!?…()\[\]/|—–]|\s-+\s|\b(?:because|since|as|which|that|when|who|but|due)\b", re.IGNORECASE)


def is_apology(text: str) -> bool:
    """Whether a reply begins as an apology or a refusal: "I'm sorry, …", "I cannot see …"."""
    return _APOLOGY.match(text.replace("*", "")) is not None


def unmarked(text: str) -> str:
    """The text without quotation marks and Markdown's marks; apostrophes within words stay."""
    return _MARKS.sub("", text)


def word_answer(stimulus: WordStimulus, text: str, rules: RuleSettings, *, cut: bool = False) -> WordAnswer:
    """The first acceptable word of a reply, or "", with the acceptable words after it and the skipped ones before it.
    ``cut``: the reply ended at its limit of tokens, so that its last word may be half of one."""
    candidates: list[str] = []
    skipped: list[Skipped] = []
    for reading in _readings(text, stimulus.cue, cut):
        for word in reading:
            judged = apply_rules(word, stimulus.cue, rules)
            rule = CUE if letters(word) == letters(stimulus.cue) else judged.rule
            question = _QUESTION if len(reading) > 2 else _QUESTION - _ORDINARY
            if rule is None and len(reading) > 1 and letters(word) in question:
                rule = PROMPT
            if rule is None:
                candidates.append(judged.word)
            elif not candidates:
                skipped.append(Skipped(word=word, rule=rule))
        if candidates:
            break
    candidates = list(dict.fromkeys(candidates))[:MOST]
    return WordAnswer(word=candidates[0] if candidates else "", candidates=candidates, skipped=skipped[:MOST])


def read_word(text: str, cue: str, rules: RuleSettings) -> tuple[str, str | None]:
    """(word, None) for anybody's answer to ``cue``, read as replies are; ("", rule) where a rule dropped it."""
    # Not checked: a cue of an import, or of an invalid row, may be longer than a stimulus allows.
    stimulus = WordStimulus.model_construct(id="cue", task="word_association", cue=cue, meta={}, examples=[])
    answer = word_answer(stimulus, text, rules)
    if answer.word:
        return answer.word, None
    if answer.skipped:
        return "", answer.skipped[0].rule
    return "", apply_rules(text, cue, rules).rule or "no_word"


def no_word(answer: WordAnswer, text: str) -> Finding | None:
    """The filter that rejects replies without an acceptable word; it names the skipped words with their rules."""
    if answer.word:
        return None
    skipped = ", ".join(f"{entry.word} ({entry.rule})" for entry in answer.skipped)
    return Finding("no_word", True, f"{text[:200]} [{skipped}]" if skipped else text[:200])


def _readings(text: str, cue: str, cut: bool) -> Iterator[list[str]]:
    text = text[:LONGEST].replace("’", "'").replace("ʼ", "'")
    alone = _words(unmarked(text))
    if len(alone) > 1 and (is_apology(text) or _NO_ANSWER.match(text)):
        return  # a single word, such as "Sorry" to the cue "regret", is an answer
    text = _TAGGED.sub(r"\2", _THOUGHTS.sub("", text).strip()[:ANSWERING])
    bare = _words(unmarked(text))
    if len(bare) == 1 and not (":" in text and bare[0] in _QUESTION):  # whatever the word
        yield bare
        return
    cues = {letters(word) for word in _WORD.findall(cue)} | {letters(cue)}
    for part in _guesses(_ECHO.sub("\n", text), cue):
        part = _ITEM.sub("\n", part)
        for _ in range(3):
            opener = _OPENER.match(part)
            if opener is not None and _words(unmarked(part[opener.end() :])):
                part = part[opener.end() :]
        sentences = [sentence for sentence in _SENTENCE.split(_ASIDE.sub("", part)) if sentence and sentence.strip()]
        for index, sentence in enumerate(sentences):
            is_cut = cut and index == len(sentences) - 1 and part.endswith(sentence)
            for reading in _in_sentence(sentence, cues, is_cut):
                if reading:
                    yield list(dict.fromkeys(reading))


def _guesses(text: str, cue: str) -> list[str]:
    spelt = r"\s+".join(map(re.escape, cue.split()))
    marks = r"[\s\"'“”*\[\]]*"
    again = list(re.finditer(rf"\bcue\s*:{marks}{spelt}\b{marks}[;,.]?\s*(?:guess\s*:)?", text, re.IGNORECASE))
    if again:
        text = text[again[-1].end() :]
    text = _CUE.split(text, maxsplit=1)[0]
    return _GUESS.split(text)


def _in_sentence(sentence: str, cues: set[str], is_cut: bool) -> Iterator[list[str]]:
    for match in _SET_OFF.finditer(sentence):
        inner = _words(next(filter(None, match.groups())))
        is_key = ":" in match[0] or sentence[match.end() :].lstrip().startswith(":")
        if 1 <= len(inner) <= 2 and not is_key and not _is_question(inner, cues):
            yield inner
    plain = unmarked(sentence)
    label = _LABEL.search(plain)
    if label is not None:
        left = plain[: label.start()]
        named = _words(left)
        if not named or cues & set(map(letters, named)) or _QUESTION & set(named) or len(left.strip()) == 1:
            yield from _in_clause(plain[label.end() :], cues, is_cut)
            return
        if len(named) == 1:  # an entry of a dictionary: "Butter: a spread"
            yield named
            return
        if len(named) > 2:
            return
    yield from _in_clause(plain, cues, is_cut)


def _in_clause(text: str, cues: set[str], is_cut: bool) -> Iterator[list[str]]:
    """Readings of a clause: what "comes to mind", what stands behind "is" and the like, and the clause itself."""
    if (mind := _COMES_TO_MIND.search(text)) is not None:
        before = _words(text[: mind.start()])
        if 1 <= len(before) <= 2 and not _is_question(before, cues):
            yield before
    for match in _LEADS_TO.finditer(text):
        before = _words(text[: match.start()])
        meant = _PAUSE.split(text[match.end() :], maxsplit=1)[0]
        is_verb = match[0].lower().endswith(("is", "was", "be", "'s"))
        is_named = 1 <= len(before) <= 2 and not _is_question(before, cues) and not _is_about(before)
        if is_verb and is_named and _PHRASES & set(_words(meant)):  # "Butter is a word that …"
            yield before
            return
        is_open = is_cut and match.end() + len(meant) == len(text)  # who knows how it goes on
        if _is_meant(before, meant, cues, is_verb=is_verb, is_open=is_open):
            yield _words(meant)
    yield from _short_clause(text)


def _is_meant(before: Sequence[str], meant: str, cues: set[str], *, is_verb: bool, is_open: bool) -> bool:
    """Whether ``meant``, which stands behind a verb or the like, is an answer: not about the cue, nor half of one."""
    words = _words(meant)
    if not 1 <= len(words) <= 3 or _is_question(words, cues) or any(map(_LEADS_TO.fullmatch, words)):
        return False
    others = [word for word in before if letters(word) not in cues]
    if is_verb and len(others) == len(before) and not _NOUNS & set(before):
        return False
    has_article = _WORD.findall(meant)[0].lower() in _ARTICLES
    if is_open and (has_article or len(words) > 2):
        return False
    # 'The word "bread" is a noun', "is derived from" are about the cue.
    names_cue = is_verb and len(others) < len(before) and others in ([], ["word"], ["term"])
    is_description = bool(others) if has_article else bool(_ONWARDS & set(words[1:2]))
    return not (names_cue and is_description)


def _short_clause(text: str) -> Iterator[list[str]]:
    """A clause of a few words, or of things between commas; else what stands before the first comma, if it is short."""
    words = _words(text)
    if not words or _is_about(words) or (len(words) > 2 and words[0] in _QUESTION - _ORDINARY):
        return
    if len(words) <= _PLAIN and not re.search(r"\b(?:is|was)\b", text, re.IGNORECASE):
        yield words
        return
    parts = [_words(part) for part in re.split(r"[,;/|(—–]|\s-+\s", text)]
    parts = [part for part in parts if part]
    if len(parts) > 2 and all(len(part) <= 2 for part in parts):
        yield [word for part in parts for word in part]
    elif len(parts) > 1 and len(parts[0]) <= 2 and not any(map(is_stop_word, parts[0])):
        yield parts[0]


def _words(text: str) -> list[str]:
    return [word for match in _WORD.findall(text) if (word := match.lower()) not in _ARTICLES]


def _is_about(words: Sequence[str]) -> bool:
    begins, mark, _ = words[0].partition("'")
    return begins in _ABOUT or (mark != "" and is_stop_word(words[0]))


def _is_question(words: Sequence[str], cues: set[str]) -> bool:
    forbidden = _FORM if len(words) == 1 else _PHRASES
    return bool(forbidden & set(words)) or all(letters(word) in cues or is_stop_word(word) for word in words)
