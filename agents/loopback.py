"""Requests to this machine itself: they must not go by a proxy, which would read what people and agents say."""

import ipaddress
from typing import Any
from urllib.parse import urlsplit


def is_loopback(url: str) -> bool:
    """Whether an address is one of this machine's own."""
    host = urlsplit(url).hostname or ""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host == "localhost"  # names below it may be looked up elsewhere
    mapped = getattr(address, "ipv4_mapped", None)
    return bool((mapped or address).is_loopback)


def client_options(url: str) -> dict[str, Any]:
    """What an HTTP client (httpx's or httpx2's) for ``url`` is made with. The client of a loopback address asks no
    proxy, whatever the environment names; any other goes by the environment."""
    return {"mounts": {"http://": None, "https://": None}} if is_loopback(url) else {}
