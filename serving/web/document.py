"""The beginning of a page that is one file and only text: nothing in it runs, and it asks nothing of anybody."""

from __future__ import annotations

from importlib import resources

from serving.runs.display_text import esc

STYLE = resources.files("serving.web").joinpath("static", "style.css").read_text("utf-8")
POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


def head(title: str) -> str:
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="generator" content="Turinglike"><meta name="referrer" content="no-referrer">'
        f'<meta name="robots" content="noindex"><title>{esc(title, 200)}</title><style>{STYLE}</style></head><body>\n'
        '<a class="skip" href="#answers">Skip to the answers</a>\n'
    )
