"""Chat histories of people, made of what messengers export."""

from __future__ import annotations

import argparse

from serving.command_line import Commands, path


def register(commands: Commands) -> None:
    """Add the command ``history``."""
    history = commands.add(
        "history",
        _history,
        "a messenger's export as the chat history of a person, for an agent that writes as the person does",
        commands.as_json,
        example="_chat.txt --person Ann -o ann.jsonl",
    )
    history.add_argument("files", nargs="+", type=path, metavar="FILE", help="of WhatsApp, Telegram, or a history")
    history.add_argument("--person", required=True, metavar="NAME", help="whose it is: the name, or Telegram's from_id")
    history.add_argument("-o", "--out", required=True, type=path, metavar="OUT.jsonl", help="the history")
    history.add_argument(
        "--dates", choices=("dmy", "mdy", "ymd"), help="how dates stand in WhatsApp's, if they do not say"
    )
    history.add_argument("--show-dropped", action="store_true", help="list each message that is left out, and why")
    history.add_argument("--force", action="store_true", help="replace what is at --out")


def _history(options: argparse.Namespace) -> int:
    from serving.histories.command import history

    return history(options)
