"""Stand-ins for the objects that training programs leave in their files: read past, never imported, never kept."""

from __future__ import annotations

import re

# What programs of torch and fairseq pickle beside weights and words. Each is replaced by :class:`Inert`.
NAMES = re.compile(
    r"argparse\.Namespace|omegaconf\.[\w.]+|fairseq\.[\w.]+|typing\.Any|pathlib\.\w*Path|_codecs\.encode"
    r"|numpy\.(_?core\.multiarray\.(scalar|_reconstruct)|dtype|ndarray)"
    r"|(__builtin__|builtins)\.(bool|bytes|dict|float|int|list|object|set|str|tuple)"
)


class Inert:
    """Stands for any object of the training program: takes whatever it is given and keeps nothing."""

    def __new__(cls, *_: object, **__: object) -> Inert:
        return super().__new__(cls)

    def __init__(self, *_: object, **__: object) -> None:
        pass

    def __setstate__(self, state: object) -> None:
        pass
