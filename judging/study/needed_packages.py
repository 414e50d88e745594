"""The packages without which a study cannot be served, as they come with an extra of this one."""

from agents.contract import is_installed

SERVING = ("fastapi", "fastapi_offline", "httptools", "prometheus_client", "uvicorn", "uvloop")
"""Packages of the extra ``serve``, by the names that they are imported by."""


def what_serving_lacks() -> str | None:
    """A sentence on what must be installed before `turinglike study serve`; None where nothing lacks."""
    lacking = [name for name in SERVING if not is_installed(name)]
    if not lacking:
        return None
    return f"`turinglike study serve` needs more packages ({', '.join(lacking)}): pip install 'turinglike[serve]'"
