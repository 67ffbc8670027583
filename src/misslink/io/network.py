"""The way to servers: addresses as people paste them, proxies and certificates."""

from __future__ import annotations

import os
import re
import ssl
from importlib.util import find_spec
from urllib.parse import parse_qsl, urlsplit

from misslink.errors import InputError

_PROXY_VARIABLES = [
    name for kind in ("http", "https", "all") for name in (f"{kind}_proxy", f"{kind}_proxy".upper())
]
_PROXY_SCHEMES = ("http", "https", "socks5", "socks5h")


def check_network_settings() -> None:
    """Check the environment's proxies and certificates: for wrong ones HTTP clients raise tracebacks.

    Raises
    ------
    InputError
        A variable holds what no client takes; the message names it.
    """
    no_proxy = os.environ.get("no_proxy") or os.environ.get("NO_PROXY") or ""
    for name in _PROXY_VARIABLES if "*" not in no_proxy.split(",") else ():
        value = os.environ.get(name, "").strip()
        try:
            parts = urlsplit(value if "://" in value else f"http://{value}")
            is_address = parts.port is None or parts.port > 0
        except ValueError:
            is_address = False
        if value and not (is_address and parts.hostname and parts.scheme in _PROXY_SCHEMES):
            raise InputError(
                f"{name} is not the address of a proxy; write for example http://proxy:3128, or "
                "unset it"
            )
        if value and parts.scheme.startswith("socks") and find_spec("socksio") is None:
            raise InputError(
                f"{name} names a SOCKS proxy, which needs the package socksio: run  "
                "pip install socksio"
            )
    if path := os.environ.get("SSL_CERT_FILE"):
        try:
            ssl.create_default_context(cafile=path)
        except OSError:
            raise InputError(
                f"SSL_CERT_FILE names no readable file of certificates: {path}; correct or unset it"
            ) from None


# What people paste after the base URL; the client adds it.
_PASTED_ENDPOINT = re.compile(r"(/chat)?/(completions|responses|decisions|models|embeddings)/*\Z")


def split_address(url: str) -> tuple[str, dict[str, str]]:
    """Return a base URL without a pasted endpoint and without its query, and the query."""
    base, _, query = url.partition("#")[0].partition("?")
    base = _PASTED_ENDPOINT.sub("", base.rstrip("/"))
    return base, dict(parse_qsl(query, keep_blank_values=True))
