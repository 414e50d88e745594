"""The base class of all agents."""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence
from typing import Any, ClassVar, Generic

from agents.declaration import Declaration, stated
from agents.draws import Draw
from agents.replies import Reply
from agents.settings import S, Settings
from agents.stimuli import Stimulus


class Agent(ABC, Generic[S]):
    """A participant: a model, a service, a person's stand-in, or a judge.

    A subclass sets ``declares`` and ``Settings``, and overrides of six verbs those that it needs: :meth:`missing`,
    :meth:`open`, :meth:`load`, :meth:`prepare`, :meth:`respond`, :meth:`close`. Nearly all override ``prepare`` and
    ``respond`` alone. What only some agents can do is in :mod:`agents.capabilities`.

    The runner makes an agent, asks :meth:`missing`, and calls :meth:`open` and :meth:`load` once each. Then it calls
    :meth:`prepare` from several threads, and :meth:`respond` from one thread at a time.
    """

    declares: ClassVar[Declaration] = Declaration()
    """What the class declares. A class states what differs from its bases, and has the whole after its definition."""
    Settings: ClassVar[type[Settings]] = Settings
    """The class of its settings; by default one without any."""
    settings: S
    """The settings of this object; they never change."""
    name: str
    """Its name in records and on the command line."""
    typed: str = ""
    """What commands call it, where that is not its name, as ``hf:org/model``."""
    _stated: ClassVar[dict[str, Any]] = {}

    def __init_subclass__(cls, **keywords: Any) -> None:
        """Complete ``declares`` by what the bases state. A class that has ``respond_one`` and says nothing of
        ``max_in_flight`` is asked for one answer at a time."""
        super().__init_subclass__(**keywords)
        cls._stated = stated(vars(cls))
        fields: dict[str, Any] = {"max_in_flight": 1} if hasattr(cls, "respond_one") else {}
        for base in reversed(cls.__mro__):
            fields |= vars(base).get("_stated", {})
        cls.declares = Declaration(**fields)

    def __init__(self, settings: S, name: str) -> None:
        """Keep both. Load nothing here: agents are made to be listed, too."""
        self.settings = settings
        self.name = name

    def declaration(self) -> Declaration:
        """What this object declares with its settings; the runner reads this. Where settings decide, override it::

        def declaration(self) -> Declaration:
            return super().declaration().replace(attempts=self.settings.attempts)
        """
        fields = stated(vars(self))
        return self.declares.replace(**fields) if fields else self.declares

    def missing(self) -> str | None:
        """A sentence on what this machine lacks to run the agent and how to get it, or None."""
        return self.declaration().missing_package()

    def open(self) -> None:
        """Load processors and tables on the CPU, but no model. Raises UnavailableError."""

    def load(self, device: str) -> None:
        """Load the model onto ``device``, "cpu" or "cuda:0". Raises UnavailableError."""

    def prepare(self, stimulus: Stimulus) -> Any:
        """The CPU's part of an answer, such as decoding a picture; whatever it returns is given to :meth:`respond`.
        Several threads call it at once; it uses only what :meth:`open` made. Raises AnswerError for a stimulus that
        cannot be answered."""
        return stimulus

    def respond(self, batch: Sequence[Any], draws: Sequence[Draw]) -> Sequence[Reply | Exception]:
        """A reply for each prepared stimulus of ``batch``, in order; ``draws`` are as many. An exception in an item's
        place fails that item alone. Where the call raises one, the runner tries the halves of the batch."""
        raise TypeError(f"{type(self).__name__} answers one at a time; call respond_one")

    def close(self) -> None:
        """Release what was loaded."""
