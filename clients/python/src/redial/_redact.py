"""Removes secrets from what leaves a worker, and hosts from errors, which are stored and read by models. Pure."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable
from typing import Any

_INTERNAL = (
    ".internal", ".local", ".lan", ".corp", ".svc", ".localdomain", ".intranet", ".private", ".home.arpa",
)  # fmt: skip
_WORD = re.compile(r"[A-Za-z0-9._:-]+")
_IPV4 = re.compile(r"(?<![0-9.])(?:\d{1,3}\.){3}\d{1,3}(?::\d+)?(?![0-9.])")


class Redactor:
    """Replaces secrets by `[secret]`."""

    def __init__(self, secrets: Iterable[str]) -> None:
        known = sorted({secret for secret in secrets if secret}, key=len, reverse=True)
        self._pattern = re.compile("|".join(map(re.escape, known))) if known else None

    def text(self, text: str) -> str:
        """A text without secrets."""
        return self._pattern.sub("[secret]", text) if self._pattern else text

    def value(self, value: Any) -> Any:
        """A JSON value without secrets in its texts and names."""
        if self._pattern is None:
            return value
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list):
            return [self.value(one) for one in value]
        if isinstance(value, dict):
            return {self.text(name): self.value(one) for name, one in value.items()}
        return value

    def finds(self, text: str) -> bool:
        """True if a secret is in the text."""
        return bool(self._pattern and self._pattern.search(text))

    def error(self, error: dict[str, Any]) -> dict[str, Any]:
        """A `Failure` of the protocol without secrets, and without hosts but in values that were sent."""
        clean: dict[str, Any] = self.value(error)
        for name in ("message", "diagnostics"):
            if clean.get(name):
                clean[name] = without_hosts(clean[name])
        details = clean.get("details")
        if details:
            clean["details"] = [_detail(detail) for detail in details]
        return clean


def _detail(detail: dict[str, Any]) -> dict[str, Any]:
    return {name: without_hosts(value) if name in ("allowed", "hint") else value for name, value in detail.items()}


def without_login(url: str) -> str:
    """An address without a user and a password."""
    return re.sub("(^|//)[^/]*@", r"\1", url)


def without_hosts(text: str) -> str:
    """A text without IP addresses, internal names, and names with a port. Other public names stay."""
    return _WORD.sub(lambda match: _word(match.group()), text)


def _word(word: str) -> str:
    # An IPv6 address may begin and end with colons.
    core = word if _is_address(word) else word.strip(".:-_")
    if not core:
        return word
    shown = "[host]" if _is_host(core) else _IPV4.sub("[host]", core)
    if shown == core and ":" in core:
        shown = ":".join("[host]" if _is_host(part) else part for part in core.split(":"))
    return word.replace(core, shown, 1)


def _is_host(word: str) -> bool:
    name, colon, port = word.rpartition(":")
    has_port = bool(colon) and port.isdigit()
    name = (name if has_port else word).lower()
    if name == "localhost" or _is_address(name) or _is_address(word):
        return True
    if ":" in name:
        return False
    named = any(letter.isalpha() for letter in name)
    if has_port and named and ("." in name or 1000 <= int(port[:6]) <= 65535):
        return True
    return name.endswith(_INTERNAL)


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True
