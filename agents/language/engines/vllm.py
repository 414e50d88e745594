"""The engine of vLLM: a server that this process starts on a Unix socket, watches and ends.

In bfloat16 and float16 a draw may depend on the rest of the batch.
"""

from __future__ import annotations

import base64
import io
import json
import os
import re
import select
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from agents.contract import GIB, NO_ANSWER, Settings
from agents.errors import SECRET, AnswerError, EngineDeadError, UnavailableError
from agents.images import Image
from agents.language.engines import guardian
from agents.language.engines.chat_template import DATE
from agents.language.engines.local import LocalEngine
from agents.language.engines.server_replies import reason
from agents.language.engines.text_request import GeneratedText, TextRequest, settled
from agents.models.loading import dtype_for, load_part

if TYPE_CHECKING:
    import datetime

    import httpx

SEEDS = 1 << 63
"""vLLM takes seeds of torch's generators, and no negative number: seeds are taken modulo this."""
ENDS_WITHIN = 60.0
"""Seconds in which killed processes must be gone."""
LONGEST = 45
"""The longest name, in characters, of the folder of temporary files; a socket's path has at most 107."""
CPU_TOKENS = 8192
"""Tokens of prompts in a step, on the CPU."""
AS_WRITTEN = "{{ messages[0]['content'][-1]['text'] }}"
"""The server's chat template: it writes the text as it is, since the prompt is rendered here."""
ENVIRONMENT = {
    "VLLM_NO_USAGE_STATS": "1",  # it would report each engine to its makers
    "HF_HUB_OFFLINE": "1",  # the model is a local folder
    "VLLM_HOST_IP": "127.0.0.1",  # where its processes of several GPUs meet
}
"""Variables of the server's environment: it reports no use to its makers, looks up nothing on the hub, and meets its
own processes on this machine."""
NOT_INSTALLED = "there is no command vllm in this environment or on the PATH: pip install 'turinglike[vllm]'"
"""What is told where there is no vLLM."""
ERROR = re.compile(r"(?:\([\w-]+ pid=\d+\) )?(?:ERROR [^\]]*\] )?(?:\w+\.)*\w*(?:Error|Exception): (.+)")
"""An exception's line in the server's log, after a traceback that names its kind."""
MISSED = ("Engine core initialization failed", "EngineCore encountered", "Executor failed", "WorkerProc initialization")
"""Errors of processes that miss another one. That one says why it ended, unless it was killed."""
KILLED = "a process ended without an error, as when the system kills it for want of memory"
"""What is told where no error stands in the log."""


class VLLMSettings(Settings):
    """How vLLM runs a model."""

    tensor_parallel: int = Field(1, ge=1, le=64)
    """Over how many GPUs each layer is spread at least; a model that is too large for them gets more."""
    sequences: int = Field(256, ge=1, le=4096, json_schema_extra=NO_ANSWER)
    """How many texts are generated at once."""
    positions: int = Field(8192, ge=32, le=10_000_000)
    """The most tokens of a prompt and its reply together, where the model has positions for more."""
    cache_gib: float = Field(8.0, gt=0, le=2048, json_schema_extra=NO_ANSWER)
    """Memory beside the model's for the keys and values of the texts at hand, in GiB, on the GPU or the CPU."""
    load_format: Literal["auto", "dummy"] = "auto"
    """What the weights are: the checkpoint's, or random numbers (dummy), to measure speed."""
    enforce_eager: bool = False
    """Whether nothing is compiled and no CUDA graph is recorded: it loads sooner and is slower afterwards."""

    def cache(self) -> int:
        """Bytes for keys and values."""
        return int(self.cache_gib * GIB)


def vllm_program() -> str | None:
    """The path of vLLM's command in this environment, or else on the search path; None if there is none."""
    here = Path(sys.executable).with_name("vllm")
    return str(here) if here.exists() else shutil.which("vllm")


class VLLMEngine(LocalEngine):
    """A model in ``device_memory`` bytes of each GPU, or on the CPU beside the settings' cache."""

    sees = True

    def __init__(
        self,
        folder: Path,
        settings: VLLMSettings,
        *,
        device_memory: int,
        precision: str = "auto",
        date: datetime.date = DATE,
    ) -> None:
        super().__init__(folder, positions=settings.positions, date=date)
        self._settings = settings
        self._device_memory = device_memory
        self._precision = precision
        self._guardian: subprocess.Popen[bytes] | None = None
        self._client: httpx.AsyncClient | None = None

    def open(self, *, chat: bool = False) -> None:
        """As the base class does; also read which tokens end a text, and the size of the vocabulary. Raises
        UnavailableError."""
        from transformers import GenerationConfig

        super().open(chat=chat)
        if (self.folder / "generation_config.json").exists():
            stored = load_part(GenerationConfig, self.folder, "generation_config.json")
        else:
            stored = GenerationConfig.from_model_config(self._config)
        self._ends = self._end_tokens(stored.eos_token_id)
        self._size = int(self._config.get_text_config().vocab_size)

    def load(self, device: str) -> None:
        """Start the server and wait until it listens. Raises UnavailableError with the server's own last error.

        Its folder may be entered by this user alone, as whoever reaches the socket may use the server.
        """
        import httpx

        program = vllm_program()
        if program is None:
            raise UnavailableError(NOT_INSTALLED)
        if device not in ("cpu", "cuda", "cuda:0"):
            raise UnavailableError(f"vLLM runs on the first GPU or the CPU, not on {device}")
        base = tempfile.gettempdir()
        # Only this user may enter: whoever reaches the sockets may use the server.
        place = Path(tempfile.mkdtemp(prefix="turinglike-", dir=base if len(base) <= LONGEST else "/tmp"))
        self._socket = place / "socket"
        served = [program, "serve", str(self.folder), "--uds", str(self._socket), *self.arguments(device)]
        self._guardian = subprocess.Popen(
            [sys.executable, "-I", guardian.__file__, str(place), *served],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=_environment(device, place),
            start_new_session=True,  # beyond signals to this process's group
        )
        try:
            while not _listens(self._socket):
                if self._has_ended(within=0.1):
                    raise UnavailableError(f"vLLM cannot load {self.folder}: {self._last_words()}")
            with httpx.Client(transport=httpx.HTTPTransport(uds=str(self._socket)), base_url="http://vllm") as client:
                self._version = str(client.get("/version").json()["version"])
        except BaseException:
            self.close()
            raise

    def arguments(self, device: str) -> list[str]:
        """The server's arguments: every choice that can change a text, and how much memory it may take."""
        import torch

        self._dtype = str(dtype_for(self._precision, torch.device(device), self.folder)).removeprefix("torch.")
        settings = self._settings
        positions = self._positions or self._settings.positions
        options = {
            "dtype": self._dtype,
            "max-model-len": positions,
            "max-num-seqs": settings.sequences,
            "tensor-parallel-size": settings.tensor_parallel,
            "load-format": settings.load_format,
            "generation-config": "vllm",  # nothing of the checkpoint's generation_config.json
            "seed": 0,  # for dummy weights
            "chat-template": AS_WRITTEN,
            "chat-template-content-format": "openai",
            "mm-processor-cache-gb": 0,  # memory that nobody declares
        }
        flags = ["--disable-log-stats", "--disable-uvicorn-access-log"]
        if settings.enforce_eager:
            flags.append("--enforce-eager")
        if device == "cpu":
            options["kv-cache-memory-bytes"] = settings.cache()
            # After a part of a prompt vLLM rewinds a request's generator, which the CPU's cannot do: the whole
            # engine would die of the first prompt that it splits.
            options["max-num-batched-tokens"] = max(positions, CPU_TOKENS)
            flags.append("--no-enable-chunked-prefill")
        else:
            options["gpu-memory-utilization"] = self._device_memory / torch.cuda.get_device_properties(0).total_memory
        return [f"--{name}={value}" for name, value in options.items()] + flags

    async def generate(self, request: TextRequest, seed: int) -> GeneratedText:
        """The text for a request. Raises AnswerError, and EngineDeadError once a process of vLLM has died."""
        prompt = self.fitted_tokens(request)
        sampling = request.sampling
        say = request.say
        begun = "" if request.schema is not None else self._begun(prompt)  # a schema leaves no room for reasoning
        tokens: list[int] = []
        finish = None

        def hear(choice: Mapping[str, Any]) -> None:
            nonlocal finish
            tokens.extend(choice.get("token_ids") or ())
            finish = choice["finish_reason"] or finish
            if say is not None:
                text, _ = self._settled(begun, self._without_end(tokens))
                end = sampling.stop_in(text)
                say(settled(text, sampling.stops) if end is None else text[:end])

        path, options = self._prompt(request, prompt)
        await self._post(path, options | self._options(request, seed), hear)
        if finish not in ("stop", "length"):
            raise AnswerError("no_text", f"vLLM ended the text early: {finish}")
        is_full = finish == "length"
        return self._generated(self._without_end(tokens), begun, sampling, len(prompt), is_full=is_full)

    def _options(self, request: TextRequest, seed: int) -> dict[str, Any]:
        """How the server draws the text; every choice is sent, so that none of its defaults counts."""
        sampling = request.sampling
        options: dict[str, Any] = {
            "temperature": sampling.temperature,
            "top_p": sampling.top_p,
            "top_k": sampling.top_k,
            "frequency_penalty": sampling.frequency_penalty,
            "presence_penalty": sampling.presence_penalty,
            "seed": seed % SEEDS,
            "max_tokens": sampling.limit,
            "min_tokens": min(sampling.min_tokens, sampling.max_tokens),
            "stop": sampling.unconditional_stops(),
            "stop_token_ids": self._ends,
            "return_token_ids": True,
            "stream": request.say is not None,
        }
        if request.schema is not None:
            options["structured_outputs"] = {"json": dict(request.schema)}
        return options

    def _prompt(self, request: TextRequest, prompt: Sequence[int]) -> tuple[str, dict[str, Any]]:
        if self._reader is None or not request.pictures():
            return "/v1/completions", {"prompt": prompt}
        self._reader.forget()
        text = self._chat_text(request)
        pictures = [{"type": "image_url", "image_url": {"url": _data_url(data)}} for data in request.pictures()]
        message = {"role": "user", "content": [*pictures, {"type": "text", "text": text}]}
        special = self._reader.adds_special_tokens(text)
        return "/v1/chat/completions", {"messages": [message], "add_special_tokens": special}

    async def _post(self, path: str, options: Mapping[str, Any], hear: Callable[[Mapping[str, Any]], None]) -> None:
        """``hear`` gets each part of the reply. Raises AnswerError, EngineDeadError, and RuntimeError for the rest."""
        import httpx

        if self._client is None:
            # A kept connection may be closed from the other end when the next request takes it.
            limits = httpx.Limits(max_connections=None, max_keepalive_connections=0)
            transport = httpx.AsyncHTTPTransport(uds=str(self._socket), limits=limits)
            self._client = httpx.AsyncClient(transport=transport, base_url="http://vllm", timeout=None)
        problem = None
        try:
            async with self._client.stream("POST", path, json=options) as response:
                async for line in response.aiter_lines():
                    if (start := line.find("{")) >= 0:
                        part = json.loads(line[start:])
                        for choice in part.get("choices", ()):
                            hear(choice)
                        problem = part if "error" in part else problem
                if response.status_code == 400:
                    raise AnswerError("bad_prompt", f"vLLM refuses this request: {reason(problem)}")
            if response.is_success and problem is None:
                return
            (await self._client.get("/health")).raise_for_status()
        except httpx.HTTPError as error:
            raise EngineDeadError(f"vLLM has ended: {self._last_words()}") from error
        raise RuntimeError(f"vLLM answers {response.status_code}: {reason(problem)}")

    def _without_end(self, tokens: Sequence[int]) -> list[int]:
        return list(tokens[:-1] if tokens and tokens[-1] in self._ends else tokens)

    def provenance(self) -> dict[str, Any]:
        """vLLM's version, the architecture, the type of numbers, and what is not usual."""
        provenance = {
            "engine": "vllm",
            "vllm": self._version,
            "model": (self._config.architectures or [self._config.model_type])[0],
            "tokenizer": type(self._tokenizer).__name__,
            "dtype": self._dtype,
            "positions": self._positions,
        }
        if self._settings.tensor_parallel > 1:
            provenance["tensor_parallel"] = self._settings.tensor_parallel
        if self._settings.load_format == "dummy":
            provenance["random_weights"] = True
        return provenance

    async def aclose(self) -> None:
        """Close the connections to the server."""
        client = self._client
        self._client = None
        if client is not None:
            await client.aclose()

    def close(self) -> None:
        """End vLLM's processes. Raises UnavailableError if a process stays."""
        if self._guardian is None:
            return
        with self._guardian as process:
            assert process.stdin is not None
            process.stdin.close()
            has_ended = self._has_ended(ENDS_WITHIN)
            self._guardian = None
        if not has_ended:
            raise UnavailableError(f"processes of vLLM do not end within {ENDS_WITHIN:g} s")

    def _has_ended(self, within: float) -> bool:
        """Whether no process is left; waits for it up to ``within`` seconds."""
        assert self._guardian is not None
        assert self._guardian.stdout is not None
        return bool(select.select([self._guardian.stdout], [], [], within)[0])

    def _last_words(self) -> str:
        """Why it ended: its log's first error, or that a process was killed."""
        lines = self._socket.with_name("log").read_text(errors="replace").split("\n")
        for line, following in pairwise(lines):
            if (error := ERROR.match(line)) and not error[1].startswith(MISSED):
                more = following.rpartition("] ")[2].strip() if "validation error" in line else ""
                message, is_advised, _ = f"{error[1]} {more}".strip().partition("Try increasing `gpu_memory")
                advice = "Raise vllm.cache_gib or lower vllm.positions" if is_advised else ""
                return message[:300] + advice
        last = "".join(lines[-2:])
        return last[:300] if "error:" in last else KILLED


def _environment(device: str, place: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not SECRET.search(name)}
    target = {"VLLM_TARGET_DEVICE": "cpu"} if device == "cpu" else {}
    return {**kept, **ENVIRONMENT, **target, "VLLM_RPC_BASE_PATH": str(place)}


def _listens(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as probe:
        return probe.connect_ex(str(path)) == 0


def _data_url(picture: bytes) -> str:
    """As this program decodes it."""
    from PIL import Image as PILImage

    content = io.BytesIO()
    PILImage.fromarray(Image("picture", data=picture).decode()).save(content, "PNG")
    return f"data:image/png;base64,{base64.b64encode(content.getvalue()).decode()}"
