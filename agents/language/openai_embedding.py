"""Word association by embeddings from a server, as the papers' GPT-3 embedding (its davinci model is no longer served).

The vocabulary is embedded when the agent is first loaded, 1,024 words a request, and kept (``words.embedding_cache``),
as a server may want money for it; after that each new cue is a request.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from pydantic import Field

from agents.contract import MIB
from agents.errors import AnswerError, UnavailableError
from agents.language.embedding_agent import EmbeddingAgent, EmbeddingSettings
from agents.language.engines.openai import OpenAIEngine
from agents.language.engines.openai_settings import ServerSettings
from agents.language.words import embedding_cache

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class OpenAIEmbeddingAgent(EmbeddingAgent["OpenAIEmbeddingAgent.Settings"]):
    """The nearest word by the vectors that a server gives for single words."""

    class Settings(EmbeddingSettings, ServerSettings):
        """As for every embedding, and the server."""

        model: str = Field("text-embedding-3-small", min_length=1)
        """The model's name at the server."""

    memory = 768 * MIB
    settings: Settings

    def __init__(self, settings: Settings, name: str) -> None:
        super().__init__(settings, name)
        self._engine = OpenAIEngine(settings)

    def environment(self) -> tuple[str, ...]:
        return (self.settings.key_variable,)

    def checkpoint(self) -> tuple[str | None, str | None]:
        return self.settings.model, None

    def missing(self) -> str | None:
        return self._engine.missing() or super().missing()

    def provenance(self) -> dict[str, Any]:
        return {**super().provenance(), **self._engine.provenance()}

    def load_model(self, device: str) -> None:
        missing = self._engine.missing()
        if missing is not None:
            raise UnavailableError(missing)

    def vocabulary_vectors(self) -> tuple[Sequence[str], NDArray[np.floating]]:
        about = {"base_url": self.settings.base_url, "model": self.settings.model}
        try:
            return self._words, embedding_cache.embedded(self._words, about, self._embed, embedding_cache.SERVED)
        except AnswerError as error:
            raise UnavailableError(f"the vocabulary cannot be embedded: {error}") from None

    def cue_vectors(self, cues: Sequence[str]) -> Sequence[NDArray[np.floating] | AnswerError]:
        try:
            return list(self._embed(cues))
        except AnswerError as error:
            return [error] * len(cues)

    def _embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """The vectors [texts, dimensions], by a loop of its own in a thread of its own: one may be running in this."""
        import numpy as np

        with ThreadPoolExecutor(1) as thread:
            found = thread.submit(asyncio.run, self._asked(texts)).result()
        return np.array(found, np.float32)

    async def _asked(self, texts: Sequence[str]) -> list[list[float]]:
        try:
            return await self._engine.embed(texts)
        finally:
            await self._engine.aclose()
