"""The paragraphs of a page, as a reader sees them: no tags, no comments, no scripts; ``<br>`` is a new line."""

from html.parser import HTMLParser

HIDDEN = frozenset({"script", "style"})


def paragraphs(page: str) -> list[str]:
    """The texts of all ``<p>`` in the HTML of a page, in order. A paragraph ends with ``</p>``, with the next ``<p>``
    or with the page."""
    parser = _Paragraphs()
    parser.feed(page)
    parser.close()
    return ["".join(parts) for parts in parser.found]


class _Paragraphs(HTMLParser):
    """References such as ``&amp;`` become their characters, which is the base class's default."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[list[str]] = []
        self._is_inside = False
        self._hidden = 0

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag == "p":
            self.found.append([])
            self._is_inside = True
        elif tag == "br":
            self._add("\n")
        elif tag in HIDDEN:
            self._hidden += 1

    def handle_endtag(self, tag: str) -> None:
        if tag == "p":
            self._is_inside = False
        elif tag in HIDDEN and self._hidden:
            self._hidden -= 1

    def handle_data(self, data: str) -> None:
        self._add(data)

    def _add(self, text: str) -> None:
        if self._is_inside and not self._hidden:
            self.found[-1].append(text)
