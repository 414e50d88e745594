"""Labels in texts of any script; farewells and disclosures in English.

The patterns were written against real conversations of people and models. Each alternative stands for phrases that
occur; the tests have phrases that must and that must not match.
"""

import re
from collections.abc import Collection

from agents.sentence_boundaries import sentences
from agents.word_boundaries import words

_QUOTED = 60

# Disclosures.
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
# Farewells. What may stand before a farewell in its clause: "ok", "well", "you too".
_FILLERS = (
    r"(?:(?:ok|okay|k|well|alright|all right|right|so|anyways?|and|but|then|haha|hehe|lol|thanks|thank you|cool|great"
    r"|sorry|oh|yeah|yes|yep|sure|nice|hey|aww?|now|fine|likewise|same (?:here|to you)|you too|too|also|by the way|btw"
    r"|i hope you|hope you|i'll|we'll|will|i guess)\W+){0,6}"
)
# Where a clause begins. After a word alone it must be a word that joins a farewell to the clause before.
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


def key(text: str) -> str:
    """What equal texts share: their words in small letters, or without words their other characters."""
    return " ".join(words(text)) or " ".join(text.split())


def labels(text: str, names: Collection[str]) -> list[str]:
    """The ``names`` that label a line or a sentence, in order: "**alice**: hi" has Alice's."""
    spelt = {name.casefold().strip(): name for name in names if name.strip()}
    if not spelt:
        return []
    either = "|".join(re.escape(name) for name in sorted(spelt, key=len, reverse=True))
    label = re.compile(rf"[*_\"“>\[(]{{0,3}}({either})[*_\])]{{0,3}}\s{{0,2}}[:：]", re.IGNORECASE)
    return [
        spelt.get(match.group(1).casefold(), match.group(1))
        for sentence in sentences(text)
        if (match := label.match(sentence)) is not None
    ]


def quoted_beginning(text: str) -> str:
    """A text's beginning on one line, in quotation marks, of at most 60 characters."""
    line = " ".join(text[: 4 * _QUOTED].split())
    return f"“{line}”" if len(line) <= _QUOTED and len(text) <= 4 * _QUOTED else f"“{line[:_QUOTED].rstrip()}…”"


def disclosures(text: str) -> list[str]:
    """The words in which a machine says what it is, one for each sentence that does: "as an ai". Questions and
    suppositions are none."""
    pieces = (_disclosure(_plain(sentence)) for sentence in sentences(text))
    return [piece for piece in pieces if piece is not None]


def farewell(text: str) -> str | None:
    """The words of the first farewell ("see you later"), or None."""
    for sentence in sentences(text):
        plain = _plain(sentence)
        for clause in _CLAUSE.finditer(plain):
            if (opening := _OPENS.match(plain, clause.end())) is not None:
                return opening.group()
        for pattern in _WITHIN:
            if (match := pattern.search(plain)) is not None:
                return match.group()
    return None


def _plain(sentence: str) -> str:
    return " ".join(sentence.casefold().replace("’", "'").split())


def _disclosure(plain: str) -> str | None:
    for pattern in _DISCLOSURES:
        for match in pattern.finditer(plain):
            is_question = plain[match.end() :].lstrip("\"'”’) ").startswith("?")
            if not is_question and _SUPPOSED.search(plain[max(0, match.start() - 60) : match.start()]) is None:
                return match.group()
    return None
