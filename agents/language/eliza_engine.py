"""Keywords, decomposition and reassembly: the machinery of Weizenbaum's ELIZA.

After J. Weizenbaum, "ELIZA: a computer program for the study of natural language communication between man and
machine", CACM 9(1), 1966. A message is cut into clauses. Words are substituted before anything is matched (a
contraction becomes words, "my" becomes "your"), so that patterns are written in the answerer's words. Keywords found
in a clause are ranked; the first decomposition rule of a keyword that fits takes the clause apart, and one of its
reassembly rules, taken in turn, puts a reply together.

In a decomposition pattern "0" stands for any number of words, another numeral for just so many, "(a|b)" for one word of
these, "/class" for one word of a class; elements are numbered from 1, and "(3)" in a reassembly rule is what the third
one matched. "=word" goes on with another keyword's rules, "newkey" with the next keyword.

Nothing here keeps a state: whoever asks says in what order the rules of a list are to be tried. Time is linear in a
message's length: patterns are matched without backtracking, and of one clause the first :data:`CLAUSE_WORDS` words.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

CLAUSE_WORDS = 60
CLAUSES = 50  # of a message's clauses, the last ones are read
QUOTED_WORDS = 10  # a longer component is not said again
GOTOS = 4  # links followed in a row; a script that goes round in a circle ends
_TOKEN = re.compile(r"(?P<word>[^\W_]+(?:'[^\W_]+)*)|(?P<stop>[.,;:!?…()\n—。、？！，]+)")
_SLOT = re.compile(r"\((\d+)\)")
_ELEMENT = re.compile(r"\(([^)]*)\)|(\S+)")


def words(text: str) -> list[str]:
    """The words of a text in lower case, apostrophes made straight."""
    return [match["word"] for match in _TOKEN.finditer(_straight(text).casefold()) if match["word"]]


def _straight(text: str) -> str:
    return text.replace("’", "'")


@dataclass(frozen=True, slots=True)
class Clause:
    """What stands between two stops: ``heard``, the words after contractions are written out, in lower case, and
    ``turned``, the same words seen from the other side. ``asked``: a question mark follows, or it begins as a question
    does."""

    heard: tuple[str, ...]
    turned: tuple[str, ...]
    asked: bool = False


class Pattern:
    """A decomposition rule's left side."""

    def __init__(self, text: str, classes: Mapping[str, frozenset[str]]) -> None:
        self.text = text
        # One entry an element: None for any number of words, a count, or the words that may stand there.
        self.elements: list[int | frozenset[str] | None] = []
        for listed, plain in _ELEMENT.findall(text):
            if listed:
                self.elements.append(frozenset(listed.split("|")))
            elif plain.startswith("/"):
                self.elements.append(classes[plain[1:]])
            elif plain.isdigit():
                self.elements.append(int(plain) or None)
            else:
                self.elements.append(frozenset([plain]))
        # What stands between the zeros, one block more than there are zeros; the outer ones may be empty.
        self._blocks: list[list[int | frozenset[str]]] = [[]]
        for element in self.elements:
            if element is None:
                self._blocks.append([])
            else:
                self._blocks[-1].append(element)

    def match(self, said: Sequence[str]) -> list[tuple[str, ...]] | None:
        """The words that each element matched, or None. "0" takes as few words as it can, from the left, and the last
        elements are fixed at the end: with no "0" inside a block of elements, that finds a match if there is one."""
        lower = [word.casefold() for word in said]
        spans: list[tuple[int, int]] = []
        at, last = 0, len(self._blocks) - 1
        for number, block in enumerate(self._blocks):
            length = sum(element if isinstance(element, int) else 1 for element in block)
            if number == 0:
                start = 0
            elif number == last:
                start = len(said) - length
            else:
                start = next((p for p in range(at, len(said) - length + 1) if _fits(block, lower, p)), -1)
            if start < at or not _fits(block, lower, start):
                return None
            if number:
                spans.append((at, start))
            at = start
            for element in block:
                size = element if isinstance(element, int) else 1
                spans.append((at, at + size))
                at += size
        return [tuple(said[start:end]) for start, end in spans] if at == len(said) else None


def _fits(block: Sequence[int | frozenset[str]], said: Sequence[str], at: int) -> bool:
    for element in block:
        if isinstance(element, int):
            at += element
        else:
            if at >= len(said) or said[at] not in element:
                return False
            at += 1
    return at <= len(said)


class Reassembly:
    """A rule's right side: text with "(n)" in it, or a link ``goto`` to a keyword, or ``newkey``.

    ``trace`` is its longest piece of fixed text as words between spaces: where that was said, the rule was used."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.goto = text[1:] if text.startswith("=") else None
        self.newkey = text == "newkey"
        linked = self.newkey or self.goto is not None
        pieces = [] if linked else [" ".join(words(piece)) for piece in _SLOT.sub("\0", text).split("\0")]
        self.trace = f" {max(pieces, key=len)} " if pieces else ""
        self.slots = [int(number) for number in _SLOT.findall(text)]

    def fill(self, parts: Sequence[tuple[str, ...]]) -> str | None:
        """The text with components put in, or None if one of them is empty or too long to be said again."""
        chosen = {number: parts[number - 1] for number in self.slots}
        if not all(0 < len(part) <= QUOTED_WORDS for part in chosen.values()):
            return None
        return _SLOT.sub(lambda match: " ".join(chosen[int(match[1])]), self.text)


@dataclass(frozen=True, slots=True)
class Rule:
    """A decomposition pattern and its reassembly rules."""

    pattern: Pattern
    replies: tuple[Reassembly, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Keyword:
    """Words that share a rank and rules."""

    rank: int
    rules: tuple[Rule, ...]
    traces: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        said = (reply.trace for rule in self.rules for reply in rule.replies)
        object.__setattr__(self, "traces", tuple(trace for trace in said if trace))


Order = Callable[[Sequence[Reassembly]], Sequence[Reassembly]]


class Engine:
    """One script, ready to be used. ``script`` holds the keywords, ``shared`` the word tables of all scripts."""

    def __init__(self, script: Mapping[str, Any], shared: Mapping[str, Any]) -> None:
        self.classes = {name: frozenset(text.split()) for name, text in shared["classes"].items()}
        self._written_out: dict[str, list[str]] = {key: text.split() for key, text in shared["substitutions"].items()}
        self._turned: dict[str, str] = shared["reflections"]
        self._agreement: dict[str, tuple[str, str]] = {
            key: (near, form) for key, (near, form) in shared["agreement"].items()
        }
        self._subject_after = frozenset(shared["subject_after"].split())
        self._object_after = frozenset(shared["object_after"].split())
        self._subject_before = frozenset(shared["subject_before"].split())
        self._questions = [(frozenset(first.split()), frozenset(then.split())) for first, then in shared["questions"]]
        self.keywords: dict[str, Keyword] = {}
        for entry in script["keywords"]:
            keyword = Keyword(entry["rank"], tuple(self.rule(pattern, texts) for pattern, texts in entry["rules"]))
            self.keywords.update(dict.fromkeys(entry["words"].split(), keyword))

    def rule(self, pattern: str, replies: Sequence[str]) -> Rule:
        """A rule from its text."""
        return Rule(Pattern(pattern, self.classes), tuple(map(Reassembly, replies)))

    def clauses(self, text: str) -> list[Clause]:
        """The clauses of a message that hold a word; "but" parts clauses as a comma does (1966, page 37)."""
        found: list[tuple[list[str], bool]] = []
        current: list[str] = []
        for match in _TOKEN.finditer(_straight(text)):
            if match["word"] and (word := match["word"]).casefold() != "but":
                current.append(word)
            else:
                found.append((current, "?" in match[0] or "？" in match[0]))
                current = []
        found.append((current, False))
        return [self._clause(said, asked) for said, asked in [one for one in found if one[0]][-CLAUSES:]]

    def _clause(self, said: Sequence[str], asked: bool) -> Clause:
        spelt: list[str] = []
        for number, word in enumerate(said[:CLAUSE_WORDS]):
            # A capital that only begins the sentence is not kept; "NASA" and "Paris" further on are.
            plain = word.casefold() if number == 0 and word[1:].islower() else word
            spelt += self._written_out.get(word.casefold(), [plain])
        heard = tuple(word.casefold() for word in spelt)
        asked = asked or any(heard[0] in first and heard[1] in second for first, second in self._questions if heard[1:])
        return Clause(heard, tuple(self._turn(heard, spelt, at) for at in range(len(heard))), asked)

    def _turn(self, heard: Sequence[str], spelt: Sequence[str], at: int) -> str:
        """The word at ``at`` as the other speaker says it."""
        word = heard[at]
        before = heard[at - 1] if at else None
        after = heard[at + 1] if at + 1 < len(heard) else None
        if word == "you":
            subject = before is None or before in self._subject_after or after in self._subject_before
            return "I" if subject and before not in self._object_after else "me"
        if word in self._agreement:
            near, form = self._agreement[word]
            if near in (before, after):
                return form
        return self._turned.get(word, spelt[at])

    def found(self, clause: Clause) -> list[Keyword]:
        """The clause's keywords as the 1966 paper stacks them: one that outranks the top goes on top, any other to the
        bottom."""
        stack: list[Keyword] = []
        for word in clause.heard:
            keyword = self.keywords.get(word)
            if keyword is None or keyword in stack:
                continue
            if stack and keyword.rank > stack[0].rank:
                stack.insert(0, keyword)
            else:
                stack.append(keyword)
        return stack

    def replies(self, clause: Clause, keyword: Keyword, order: Order) -> Iterator[str]:
        """What the keyword's rules say to the clause, the preferred reply first, until a rule says "newkey"."""
        yield from self._replies(clause, keyword, order, GOTOS)

    def _replies(self, clause: Clause, keyword: Keyword, order: Order, links: int) -> Iterator[str]:
        for rule in keyword.rules:
            parts = rule.pattern.match(clause.turned)
            if parts is None:
                continue
            for reply in order(rule.replies):
                if reply.newkey:
                    return
                if reply.goto is not None:
                    if links:
                        yield from self._replies(clause, self.keywords[reply.goto], order, links - 1)
                elif (text := reply.fill(parts)) is not None:
                    yield text
