"""Pages from templates: texts are escaped, and nothing in a page runs."""

from __future__ import annotations

from serving.web.report import LIMIT, printed, render


def test_texts_are_escaped_and_nothing_runs() -> None:
    page = render("serving.web", "document.html", title="</title><script>&\x00")
    assert "<title>&lt;/title&gt;&lt;script&gt;&amp;\ufffd</title>" in page
    assert "<script" not in page
    assert "default-src 'none'" in page


def test_values_as_pages_show_them() -> None:
    assert [printed(value) for value in (None, 0.12345, 7, "x")] == ["–", "0.123", 7, "x"]
    assert printed("x" * (LIMIT + 3)).endswith("x… (3 more characters)")
