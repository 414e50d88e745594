"""Pages from templates of Jinja. A value in ``{{ }}`` is escaped, and printed for people (:func:`printed`)."""

import base64
import re
from collections.abc import Sequence
from functools import cache
from hashlib import sha256
from importlib import resources
from pathlib import Path
from typing import Any

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

STATIC = Path(__file__).with_name("static")
LONGEST_TEXT = 5_000  # characters of a text that a page shows
LINK = re.compile(r'<link rel="stylesheet" href="static/([\w.]+)">|<script(?: defer)? src="static/([\w.]+)"></script>')
ICON = '<link rel="icon" href="static/icon.svg" type="image/svg+xml">\n'
# Control characters, and those that turn round the letters of all that follows (U+202A to U+202E, U+2066 to U+2069).
_UNPRINTABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]")


def render(package: str, name: str, **values: Any) -> str:
    """The HTML of the template ``name`` in the folder ``templates`` of ``package``, or of ``serving.pages``. Raises
    jinja2.UndefinedError for a name in the template that ``values`` lack."""
    return _environment(package).get_template(name).render(values)


@cache
def _environment(package: str) -> Environment:
    loader = ChoiceLoader([PackageLoader(package), PackageLoader("serving.pages")])
    environment = Environment(
        loader=loader,
        autoescape=True,
        undefined=StrictUndefined,
        finalize=printed,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["with_code"] = with_code
    environment.globals["style"] = Markup(
        resources.files("serving.pages").joinpath("static", "style.css").read_text("utf-8")
    )
    return environment


def with_code(text: str) -> Markup:
    """A sentence whose commands, in backticks, are marked as code; all of it is escaped."""
    parts = [
        Markup("<code>{}</code>").format(part) if at % 2 else escape(part) for at, part in enumerate(text.split("`"))
    ]
    return Markup("").join(parts)


def printed(value: Any) -> Any:
    """A value as pages show it: None as a dash, a float with three digits, a text without control characters and cut
    after :data:`LONGEST_TEXT` characters. Other values, and ``Markup``, stay as they are."""
    if value is None:
        return "–"
    if isinstance(value, float):
        return "< 0.0001" if 0 < value < 0.0001 else f"{value:.3g}"
    if isinstance(value, str) and not isinstance(value, Markup):
        text = _UNPRINTABLE.sub("\ufffd", value[:LONGEST_TEXT])
        more = len(value) - LONGEST_TEXT
        return text if more <= 0 else f"{text}… ({more:,} more characters)"
    return value


def with_files_inside(page: str, folders: Sequence[Path]) -> tuple[str, str]:
    """A page whose links to ``static/NAME`` are replaced by the styles and scripts themselves, which are looked for in
    ``folders``, first to last; and the scripts' hashes, for ``script-src`` of the page's content security policy."""
    hashes = []

    def inside(link: re.Match[str]) -> str:
        name = link[1] or link[2]
        text = next(folder / name for folder in folders if (folder / name).is_file()).read_text("utf-8")
        if link[1]:
            return f"<style>{text}</style>"
        hashes.append(f"'sha256-{base64.b64encode(sha256(text.encode()).digest()).decode()}'")
        return f"<script>{text}</script>"

    return LINK.sub(inside, page).replace(ICON, ""), " ".join(hashes)
