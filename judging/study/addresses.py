"""Whom the address that a browser has opened is for; personal links."""

import secrets
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from judging.study.design.tables import People
from judging.study.log.codes import hashed
from judging.study.log.files import LINKS, append
from judging.study.log.state import Judge
from judging.study.pages.page_answers import read_panel_id
from serving.files.timestamps import now


@dataclass(frozen=True, slots=True)
class OpenedAddress:
    """What an address says about who has opened it.

    People share browsers: the cookie says who was here last, the address who is here now. So an id decides before
    anything else, then a link. An address with neither, as after a reload, leaves the cookie to decide.
    """

    link: str | None = None
    """The SHA-256 of a personal link's token; None for none."""
    panel_id: str | None = None
    """A person's id at a panel; "" where the panel has not filled its parameter in; None for no such parameter."""
    parameters: Mapping[str, str] = field(default_factory=dict)
    """What else is kept, by the parameter."""

    def is_of(self, judge: Judge, panel_id: str) -> bool:
        """Whether the judge, whose id at the panel is ``panel_id`` ("": none), may go on here by their cookie."""
        if self.panel_id:
            return self.panel_id == panel_id
        if self.link is not None:
            return self.link == judge.link
        return self.panel_id is None or not panel_id

    @property
    def is_personal(self) -> bool:
        """Whether the address is for one person, by a panel's id or a link."""
        return bool(self.panel_id) or self.link is not None


def read_address(
    settings: People,
    links: Collection[str],
    link: str | None,
    panel_id: str | None,
    parameters: Mapping[str, str | None],
) -> OpenedAddress:
    """The address by what a page found in it: a ``link``'s token, a panel's id, and other ``parameters``.

    ``links`` are the hashes of the links that were made. An unknown link is nobody's where people enter by links, and
    means nothing elsewhere. Raises Refused for what no id can be.
    """
    token = hashed(link) if link else None
    sent = {name: read_panel_id(parameters.get(name), name) for name in settings.parameters}
    return OpenedAddress(
        link=token if settings.entry == "links" or token in links else None,
        panel_id=read_panel_id(panel_id, settings.worker) if settings.worker and panel_id is not None else None,
        parameters={name: value for name, value in sent.items() if value},
    )


def new_links(folder: Path, number: int) -> list[str]:
    """The tokens of new personal links of the study in ``folder``, which keeps their hashes. Raises StorageError."""
    tokens = [secrets.token_urlsafe(16) for _ in range(number)]
    append(folder / LINKS, [{"link": hashed(token), "at": now()} for token in tokens])
    return tokens
