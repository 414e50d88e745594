"""The filters: pure functions of texts and thresholds, linear in the length of the text.

The first look at one message alone: each says what it found in it, or None. Disclosures and farewells are English
ones. The last ones take all messages and return findings by the index of the message in which they came true.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Sequence
from itertools import groupby
from typing import NamedTuple

from agents.language.filters.texts import key, labels, quoted, sentences, words

# What a message may consist of and still say nothing: dots, dashes, quotation marks, asterisks.
_SAYS_NOTHING = frozenset(".…·•。．｡-‐‑‒–—―_~*`'\"‘’“”«»,;|/\\\u115f\u1160\u2800\u3164")
_INVISIBLE = frozenset({"Cc", "Cf", "Cs", "Zs", "Zl", "Zp"})
_LONGEST_LOOP = 20

_MARKED = re.compile(r"\s{0,20}(?:[-*+•‣◦▪–—·]|\(?\d{1,3}[.):]|\(?[A-Za-z][.)])\s{1,20}\S")
_INLINE_NUMBER = re.compile(r"(?<!\S)\(?(\d{1,2})[.)](?!\S)")
_BETWEEN_ITEMS = re.compile(r"[,;、，；]")
_ITEM_WORDS = 3

ROLES = ("assistant", "user", "system", "human", "AI", "chatbot", "bot")
_TEMPLATE = re.compile(
    r"<\|[\w ]{1,40}\|>|\[/?(?:INST|SYS)\]|<</?SYS>>|</?s>|^#{2,4} ?(?:instruction|response|input)s?\b:?",
    re.IGNORECASE | re.MULTILINE,
)

# "[your name]", "<name>", "{topic}", "[insert city here]".
_PLACEHOLDER = re.compile(
    r"[\[{<]{1,2}\s?(?:(?:insert|enter|add|your|my|user'?s?|friend'?s?|partner'?s?|the|other|first|last|full)"
    r"[ _-]){0,4}(?:name|username|user|age|topic|persona|friend|city|place|location|country|date|time|job|hobby"
    r"|number|message)(?:[ _-]here)?\s?[\]}>]{1,2}|[\[{<](?:insert|enter|your)[ _-][^\[\]{}<>\n]{1,40}[\]}>]",
    re.IGNORECASE,
)

_KINDS = r"(?:large |small |virtual |digital |conversational |generative |helpful |computer |trained |humble |simple )"
_AI = (
    r"(?:(?:ai|a\.i\.|artificial intelligence)(?:[ -](?:powered|based|driven))?"
    r"(?: (?:language )?(?:model|assistant|system|program|chat ?bot|bot|agent|entity|software|tool|being|companion))?"
    r"|language (?:model|ai)|llm|chat ?bot|(?:virtual|digital) assistant|machine[ -]learning model|neural network)"
)
_MACHINE = rf"(?:{_AI}|bot|robot|machine|computer|computer program|program)"
# What may come after: nothing that makes a person of it, as in "an AI researcher", "a machine operator".
_THEN = (
    r"(?=\s*(?:$|[^\w\s-]|-\s|(?:and|so|but|i|i'm|im|that|which|who|with|without|created|developed|trained|designed|made"
    r"|built|programmed|powered|like|not|here|named|called|after|too|myself|lol|haha|my|we|it)\b))"
)
_HOW = r"(?:just |only |merely |actually |simply |really |still |in fact |basically |not (?:a )?human,? (?:but )?)*"
_MAKERS = r"(?:openai|open ai|anthropic|google|meta|microsoft|mistral|alibaba|deepseek|facebook)"
_DISCLOSURES = [
    re.compile(rf"\b(?:i am|i'm|im|being) {_HOW}an? {_KINDS}*{_MACHINE}{_THEN}"),
    re.compile(rf"\b(?:i am|i'm|im|my name is) \w+, an? {_KINDS}*{_AI}{_THEN}"),
    re.compile(rf"\bas an? {_KINDS}*(?:{_AI}{_THEN}|{_MACHINE}(?=,? i\b))"),
    re.compile(rf"\bi(?: am|'m| was| have been|'ve been) (?:created|developed|trained|designed|built) by {_MAKERS}\b"),
    re.compile(r"\b(?:i am|i'm|im|my name is) (?:chat ?gpt|gpt-?\d|llama|blenderbot|qwen|deepseek)\b"),
    re.compile(r"\bmy (?:training data|knowledge cut-?off)\b"),
    re.compile(
        r"\bi (?:do not|don't|dont|cannot|can't) (?:have|hold|possess|form) (?:any )?personal "
        r"(?:experiences?|opinions?|beliefs?|preferences?|feelings?|emotions?)\b"
    ),
    re.compile(r"\b(?:i am|i'm|im) not (?:a )?(?:human|real person)(?: being)?(?=\s*(?:$|[^\w\s]|(?:so|but|i|and)\b))"),
]
# Somebody else's words, or a supposition: "do you think I'm a bot", "if I'm an AI".
_SUPPOSED = re.compile(r"(?:\bif|\blike|\bwhether|\bsays?|\byou(?: [\w']+){1,3}|\bwish|\bthat) ?$")


# Farewells. What may stand before one in its clause: "ok", "well", "you too".
_FILLERS = (
    r"(?:(?:ok|okay|k|well|alright|all right|right|so|anyways?|and|but|then|haha|hehe|lol|thanks|thank you|cool|great"
    r"|sorry|oh|yeah|yes|yep|sure|nice|hey|aww?|now|fine|likewise|same (?:here|to you)|you too|too|also|by the way|btw"
    r"|i hope you|hope you|i'll|we'll|will|i guess)\W+){0,6}"
)
# Where a clause begins. After a word alone it must be one that joins what was said to a farewell.
_CLAUSE = re.compile(r"^|[^\w\s']+\s*|\b(?:anyways?|well|so|but|and|lol|here|too|agree|thanks|btw)\s+")
_LATER = r"(?:later|soon|around|then|tomorrow|tonight|again|next (?:time|week)|another time|some other time)"
_END = r"(?=\s*(?:$|[^\w\s']))"
_YOU = r"(?:you|u|ya|y'all|youse)"
_ADJECTIVE = (
    r"(?:great|nice|good|lovely|fun|pleasure|wonderful|pleasant|awesome|cool|amazing|interesting|delightful|enjoyable)"
)
_PLEASANT = rf"(?:(?:so|really|very|been|such|super|quite) ){{0,2}}(?:a )?{_ADJECTIVE}(?: and {_ADJECTIVE})?"
_TALKING = r"(?:talking|chatting|speaking|conversing)"
# To whom, or nothing more but "today", "as well".
_TO_YOU = (
    rf"(?: (?:to|with) {_YOU}\b|(?: (?:today|tonight|this (?:morning|evening)|here|now|again|too|as well|though"
    rf"|by the way|about this))*{_END})"
)
_CHAT = r"(?:chat+s?|convo|conversation)"
_DAY = r"(?:day|night|evening|afternoon|morning|weekend|holidays?|one|rest)"
_WISH = rf"(?:an? )?(?:(?:very|really|super|most) )?{_ADJECTIVE} {_DAY}\b"
_AWAY = (
    r"(?:go|run|leave|be going|get going|be off|take off|head out|head off|sign off|log off|hang up"
    r"|say (?:good ?bye|good ?night|bye))(?: now| soon)?"
)
_GONE = (
    r"(?=\s*(?:$|[^\w\s?'-]|-\s|(?:bye|goodbye|it was|thanks|sorry)\b"
    rf"|see (?:you|ya|u|y'all)\b|talk (?:(?:to|with) (?:you|u|ya)\b|{_LATER})))"
)
# At the start of a clause.
_OPENS = re.compile(
    _FILLERS + r"(?:"
    rf"(?:good[ -]?)?bye+(?:[ -]?bye+)?(?: for now| my friend| (?!weeks?\b)\w+)?{_END}"
    rf"|(?:farewell|good ?night)(?: my friend| (?!tours?\b|sleep\b)\w+)?{_END}"
    rf"|(?:so long|(?:until|till) next time|ttyl|cya|(?:i )?(?:gtg|g2g)){_END}"
    rf"|take care(?: of yourself| now| then| (?:my )?friend)?(?:{_END}|(?= and (?:have|thanks|{_ADJECTIVE})\b))"
    rf"|(?:see|catch) {_YOU}(?: all)?(?: {_LATER}){{0,2}}{_END}"
    rf"|(?:talk|speak|chat|write)(?: (?:to|with|at) {_YOU})? {_LATER}{_END}"
    rf"|(?:you )?(?:also )?have {_WISH}"
    rf"|enjoy (?:the rest of )?(?:your|the) (?:(?!own\b)\w+ )?{_DAY}{_TO_YOU}"
    rf"|{_PLEASANT} {_TALKING}{_TO_YOU}"
    rf"|(?:(?:really|very) )?{_ADJECTIVE} (?:{_CHAT}|talk) with {_YOU}\b"
    rf"|(?:thanks|thank you|thx)(?: so much| very much| a lot| again){{0,2}} for (?:(?:the|this|our|your|such a|a) )?"
    rf"(?:{_ADJECTIVE} )?(?:{_CHAT}|chatting|talking|talk|(?<=your )time)(?: (?:to|with) me)?{_TO_YOU}"
    rf"|(?:gotta|got to|have to|need to) {_AWAY}{_GONE}"
    r")"
)
# Anywhere in a sentence.
_WITHIN = [
    re.compile(
        r"\b(?:i|i've|i'd|we|we've)(?: really| probably| do)? "
        r"(?:(?:have|got|need|ought)(?: got)? to|gotta|should|must|had better|better|'d better)(?: really| probably)? "
        rf"{_AWAY}{_GONE}"
    ),
    re.compile(
        rf"\b(?:i'm|i am) (?:leaving|(?:signing|logging|heading) (?:off|out)|(?:off|going) to bed)(?: now)?{_GONE}"
    ),
    re.compile(
        rf"\b(?:it(?: was| is|'s| has|s)|that was)(?:(?: also)? been)? {_PLEASANT} "
        rf"(?:{_TALKING}|meeting|to talk|to chat|to meet){_TO_YOU}"
    ),
    re.compile(
        rf"\b(?:it (?:was|has been)|it'?s been|had) (?:such )?an? (?:(?:really|very) )?{_ADJECTIVE} {_CHAT}{_TO_YOU}"
    ),
    re.compile(
        rf"\b(?:had|have had) (?:a )?(?:(?:really|very|so much|lots of) )?{_ADJECTIVE}(?: time)? {_TALKING}{_TO_YOU}"
    ),
    re.compile(
        rf"\bi(?:'?ve| have)?(?: really| also| very much)? enjoyed "
        rf"(?:{_TALKING}|(?:the|this|our|my|your) (?:{_ADJECTIVE} )?{_CHAT}){_TO_YOU}"
    ),
    re.compile(rf"\bhope (?:that )?{_YOU}(?: all)?(?: too| also)? have {_WISH}"),
    re.compile(rf"\b(?:end|finish|leave|stop) (?:this|our|the) (?:conversation|chat)(?: here| now)?{_GONE}"),
    re.compile(
        rf"(?:[^\w\s'\"“‘-]|\b(?:too|you|{_CHAT}|chatting|all|day|night|evening|weekend|then|thanks|later|care))"
        rf"\s*(?:good ?)?bye(?: for now)?{_END}"
    ),
]


def empty(text: str, characters: int) -> str | None:
    """Fewer than ``characters`` that say anything: spaces, invisible ones, dots ("..."), dashes and quotation marks do
    not; "?" and ":)" do."""
    said = 0
    for character in text:
        if character not in _SAYS_NOTHING and unicodedata.category(character) not in _INVISIBLE:
            said += 1
        if said >= characters:
            return None
    return "no text" if not text.strip() else quoted(text)


def too_short(text: str, least: int) -> str | None:
    """Fewer than ``least`` words."""
    return f"{_count(count)}, of at least {least}" if (count := len(words(text))) < least else None


def too_long(text: str, most: int) -> str | None:
    """More than ``most`` words."""
    return f"{_count(count)}, of at most {most}" if (count := len(words(text))) > most else None


def word_loop(text: str, times: int) -> str | None:
    """One word, or the same up to 20 words, at least ``times`` in a row."""
    said = words(text)
    numbers: dict[str, int] = {}
    codes = [numbers.setdefault(word, len(numbers)) for word in said]
    for length in range(1, min(_LONGEST_LOOP, len(codes) // times) + 1):
        start = 0
        for same, run in groupby(a == b for a, b in zip(codes, codes[length:], strict=False)):
            equal = sum(1 for _ in run)
            if same and equal >= length * (times - 1):
                phrase = " ".join(said[start : start + length])
                return f"{quoted(phrase)} {equal // length + 1} times in a row"
            start += equal
    return None


def list_like(text: str, lines: int, items: int) -> str | None:
    """A list: at least ``lines`` lines that begin with a bullet or a number, or as many without a full stop after a
    line that ends in a colon, or numbers 1, 2, 3 ... up to ``lines`` within the text; or at least ``items`` things of
    up to three words in a row between commas."""
    marked = sum(1 for line in text.splitlines() if _MARKED.match(line))
    if marked >= lines:
        return f"{marked} lines with bullets or numbers"
    if (most := _lines_after_colon(text)) >= lines:
        return f"{most} items on lines of their own"
    counted = 0
    for number in _INLINE_NUMBER.finditer(text):
        counted += int(number.group(1)) == counted + 1
    if counted >= lines:
        return f"items numbered from 1 to {counted}"
    if (named := max(map(_items, sentences(text)), default=0)) >= items:
        return f"{named} things named in a row"
    return None


def other_speaker(text: str, others: Collection[str], times: int) -> str | None:
    """The label of another speaker ("Alice:"), at least ``times``: the message goes on with the other's turn."""
    found = labels(text, others)
    return f"“{found[0]}:” {_times(len(found))}" if len(found) >= times else None


def prompt_echo(text: str, prompt: str, own: Collection[str], run: int) -> str | None:
    """What only the model was to see: ``run`` words in a row that stand in the ``prompt`` too, marks of a chat
    template, a placeholder ("[your name]"), or a label of the speaker's ``own`` names or of a role ("Assistant:")."""
    if (mark := _TEMPLATE.search(text)) is not None:
        return f"“{mark.group()}” of a chat template"
    if (place := _PLACEHOLDER.search(text)) is not None:
        return f"the placeholder “{place.group()}”"
    if found := labels(text, [*own, *ROLES]):
        return f"the label “{found[0]}:”"
    return _echo(words(text), words(prompt), run)


def self_disclosure(text: str, times: int) -> str | None:
    """At least ``times`` sentences in which the speaker says that it is a machine; in English. Questions about it
    ("am I a bot?") are none."""
    found = [shown for sentence in sentences(text) if (shown := _disclosure(sentence)) is not None]
    return quoted(found[0]) if len(found) >= times else None


def farewell(text: str) -> str | None:
    """The words with which a speaker takes leave in a message, or None."""
    for sentence in sentences(text):
        plain = " ".join(sentence.casefold().replace("’", "'").split())
        for clause in _CLAUSE.finditer(plain):
            if (opening := _OPENS.match(plain, clause.end())) is not None:
                return opening.group()
        for pattern in _WITHIN:
            if (match := pattern.search(plain)) is not None:
                return match.group()
    return None


def _lines_after_colon(text: str) -> int:
    """The most lines in a row that follow one that ends in a colon and have no end of a sentence themselves."""
    most = count = 0
    within = False
    for line in text.splitlines():
        bare = line.rstrip()
        if not words(bare):
            continue
        if bare.endswith((":", "：")):
            within, count = True, 0
        elif within and not bare.endswith((".", "!", "?", "。", "！", "？")):
            count += 1
            most = max(most, count)
        else:
            within = False
    return most


def _items(sentence: str) -> int:
    """The most things in a row of one to three words between commas; the last may be "a, b and c"."""
    pieces = _BETWEEN_ITEMS.split(sentence)
    if len(pieces) == 1:
        return 1
    most = count = 0
    for piece in pieces:
        count = count + 1 if 1 <= len(words(piece)) <= _ITEM_WORDS else 0
        most = max(most, count)
    return most


def _echo(said: Sequence[str], prompt: Sequence[str], run: int) -> str | None:
    """The first ``run`` words in a row of ``said`` that stand in a row in ``prompt``."""
    shown = {tuple(prompt[i : i + run]) for i in range(len(prompt) - run + 1)}
    for i in range(len(said) - run + 1 if shown else 0):
        if tuple(said[i : i + run]) in shown:
            return f"{quoted(' '.join(said[i : i + run]))} of the prompt"
    return None


def _disclosure(sentence: str) -> str | None:
    """What in a sentence says that the speaker is a machine."""
    plain = " ".join(sentence.casefold().replace("’", "'").split())
    for pattern in _DISCLOSURES:
        for match in pattern.finditer(plain):
            is_question = plain[match.end() :].lstrip("\"'”’) ").startswith("?")
            if not is_question and _SUPPOSED.search(plain[max(0, match.start() - 60) : match.start()]) is None:
                return match.group()
    return None


def _count(number: int) -> str:
    return "1 word" if number == 1 else f"{number} words"


def _times(number: int) -> str:
    return "once" if number == 1 else f"{number} times"


# in view of the messages before


class Finding(NamedTuple):
    """What was found, and how much of it: times, messages."""

    size: int
    text: str


def repeated_sentence(messages: Sequence[tuple[str, str]], times: int, least: int) -> dict[int, Finding]:
    """A sentence of at least ``least`` words that stands in ``times`` messages of one speaker."""
    said: Counter[tuple[str, str]] = Counter()
    found: dict[int, Finding] = {}
    for i, (speaker, text) in enumerate(messages):
        here: dict[tuple[str, str], str] = {}
        for sentence in sentences(text):
            spoken = words(sentence)
            if len(spoken) >= least:
                here.setdefault((speaker, " ".join(spoken)), sentence)
        said.update(here.keys())
        if here and said[most := max(here, key=said.__getitem__)] >= times:
            found[i] = Finding(said[most], f"{quoted(here[most])} in {said[most]} messages from {speaker}")
    return found


def repeated_block(messages: Sequence[tuple[str, str]], length: int) -> dict[int, Finding]:
    """``length`` messages in a row that all repeat, in their order and by the same speakers, messages before the first
    of them."""
    numbers: dict[tuple[str, str], int] = {}
    codes = [numbers.setdefault((speaker, key(text)), len(numbers)) for speaker, text in messages]
    first_end: dict[tuple[int, ...], int] = {}
    found: dict[int, Finding] = {}
    before, run = -1, 0
    for i in range(length - 1, len(codes)):
        end = first_end.setdefault(tuple(codes[i - length + 1 : i + 1]), i)
        if i - end < length:
            before, run = -1, 0
            continue
        # The block is as long as the messages go on together, up to where it would overlap itself.
        run = min(run + 1, i - end) if before >= 0 and end == before + 1 else length
        before = end
        found[i] = Finding(run, f"{_span(i, run)} as {_span(end, run)}")
    return found


def same_message(messages: Sequence[tuple[str, str]], times: int) -> dict[int, Finding]:
    """A whole message, however short, that its speaker says for the ``times``-th time or more."""
    said: Counter[tuple[str, str]] = Counter()
    found: dict[int, Finding] = {}
    for i, (speaker, text) in enumerate(messages):
        what = (speaker, key(text))
        said[what] += 1
        if said[what] >= times:
            found[i] = Finding(said[what], f"{quoted(text)} {said[what]} times from {speaker}")
    return found


def _span(end: int, length: int) -> str:
    """Messages by their numbers from 1: the ``length`` that end at index ``end``."""
    return f"message {end + 1}" if length == 1 else f"messages {end + 2 - length} to {end + 1}"
