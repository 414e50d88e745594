"""Pages of text and figures from Jinja2 templates: one file each, in which nothing runs and nothing is loaded."""

from __future__ import annotations

import re
from functools import cache
from importlib import resources
from typing import Any

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

LIMIT = 5_000  # characters of one text that are shown
_UNPRINTABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")


def render(package: str, name: str, **values: Any) -> str:
    """The template ``name`` of ``package``, which may extend and import those of ``serving.web``."""
    return _environment(package).get_template(name).render(values)


@cache
def _environment(package: str) -> Environment:
    loader = ChoiceLoader([PackageLoader(package), PackageLoader("serving.web")])
    environment = Environment(
        loader=loader,
        autoescape=True,
        undefined=StrictUndefined,
        finalize=printed,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals["style"] = Markup(
        resources.files("serving.web").joinpath("static", "style.css").read_text("utf-8")
    )
    return environment


def printed(value: Any) -> Any:
    """A value as pages show it: None as a dash, floats to three digits, long texts cut, control characters replaced."""
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:.3g}"
    if isinstance(value, str) and not isinstance(value, Markup):
        text = _UNPRINTABLE.sub("\ufffd", value[:LIMIT])
        return text if len(value) <= LIMIT else f"{text}… ({len(value) - LIMIT:,} more characters)"
    return value
