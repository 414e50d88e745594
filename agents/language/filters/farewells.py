"""Early exit: a speaker takes leave, or the conversation ends, before it has its messages. Farewells are English."""

from __future__ import annotations

import re
from collections.abc import Sequence

from agents.language.filters.texts import quoted, sentences

_FIRST = (
    r"(?:(?:ok|okay|k|well|alright|all right|right|so|anyway|anyways|and|but|then|haha|hehe|lol|thanks|thank you|cool"
    r"|great|sorry|oh|yeah|yes|yep|sure|nice|hey|aww?|now|fine|i hope you|hope you|i'll|we'll|will|i guess)\W+)*"
)
_LATER = r"(?:later|soon|around|then|tomorrow|tonight|again|next (?:time|week)|another time|some other time)"
_END = r"(?=\s*(?:$|[^\w\s']))"
_PLEASANT = (
    r"(?:so |really |very |been |such )?(?:a )?(?:great|nice|good|lovely|fun|pleasure|wonderful|pleasant|awesome)"
)
_AWAY = r"(?:go|run|leave|be going|get going|be off|head out|head off|sign off|log off|hang up)(?: now| soon)?"
_GONE = (
    r"(?=\s*(?:$|[^\w\s?'-]|-\s|(?:bye|goodbye|it was|thanks|sorry)\b"
    rf"|see (?:you|ya|u|y'all)\b|talk (?:(?:to|with) (?:you|u|ya)\b|{_LATER})))"
)
# At the start of a sentence, after words such as "ok" and "well".
_OPENS = re.compile(
    _FIRST + r"(?:"
    rf"(?:good[ -]?)?bye+(?:[ -]?bye+)?(?: for now| my friend| \w+)?{_END}"
    rf"|(?:farewell|good ?night)(?: my friend| \w+)?{_END}"
    rf"|(?:so long|take care(?: of yourself)?|(?:until|till) next time|ttyl|cya|gtg|g2g){_END}"
    rf"|(?:see|catch) (?:you|ya|u|y'all)(?: all)?(?: {_LATER}){{0,2}}{_END}"
    rf"|(?:talk|speak|chat|write)(?: (?:to|with) (?:you|u|ya))? {_LATER}{_END}"
    r"|have a (?:very |really )?(?:great|good|nice|lovely|wonderful) (?:day|night|evening|afternoon|weekend|one|rest)\b"
    rf"|{_PLEASANT} (?:talking|chatting|speaking) (?:to|with) (?:you|u|ya)\b"
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
        rf"\bit(?: was|'s| has|'s been| has been)(?: been)? {_PLEASANT} "
        r"(?:talking|chatting|speaking|meeting|to talk|to chat|to meet)(?: (?:to|with))? (?:you|u|ya)\b"
    ),
    re.compile(rf"\b(?:end|finish|leave|stop) (?:this|our|the) (?:conversation|chat)(?: here| now)?{_GONE}"),
    re.compile(rf"[^\w\s'\"“‘-]\s*(?:good)?bye(?: for now)?{_END}"),
]


def farewell(text: str) -> str | None:
    """The words with which a speaker takes leave in a message, or None."""
    for sentence in sentences(text):
        plain = " ".join(sentence.casefold().replace("’", "'").split())
        if (opening := _OPENS.match(plain)) is not None:
            return opening.group()
        for pattern in _WITHIN:
            if (match := pattern.search(plain)) is not None:
                return match.group()
    return None


def early_exit(texts: Sequence[str], last: int, total: int, first: int = 0) -> dict[int, str]:
    """The messages from ``first`` on with a farewell before the ``last`` ones of the ``total`` that are planned, by
    their place from 0."""
    return {
        i: f"{quoted(said)}, {total - i - 1} messages before the end"
        for i in range(first, min(len(texts), total - last))
        if (said := farewell(texts[i])) is not None
    }
