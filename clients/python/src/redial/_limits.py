"""Limits of the protocol (`proto/src/limits.rs`), and how values become JSON within them. Pure."""

from __future__ import annotations

import dataclasses
import datetime
import enum
import json
import math
import re
import uuid
from collections.abc import Callable, Iterator, Mapping, Set
from typing import Any

MAX_OUTPUT = 16 * 1024 * 1024
"""Bytes of the output of one attempt, unless a dispatcher allows less."""
MAX_INLINE = 256 * 1024
"""Bytes of arguments that the answer to a claim carries; larger ones are fetched apart."""
MAX_MESSAGE = 1000 * 1024
"""Bytes of one message."""
MAX_PIECE = 400 * 1024
"""Bytes of one piece of a body that does not fit into one message."""
MAX_DEPTH = 64
"""Nesting of arrays and objects in an output."""
MAX_ERROR_MESSAGE = 4096
"""Bytes of the message of an error, and of its diagnostics."""
MAX_DETAILS = 100
"""Violations in one error."""
MAX_CLAIM = 256
"""Jobs in one claim, and reports in one message."""
MAX_PACK = 64
"""Jobs in one message of the job stream."""
MAX_BYTES = 700 * 1024
"""Bytes of arguments that one claim may ask for, and of reports in one message: NATS takes 1 MiB."""
MAX_REPORT = 900 * 1024
"""Bytes above which a report loses the details of its error."""


def encode(value: Any) -> bytes:
    """JSON in UTF-8, without `\\u` escapes, which cost models more tokens, but for half of a surrogate pair, which UTF-8 has
    not and JSON may have. Raises ValueError or TypeError for what has no JSON, such as NaN."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=plain)
    return text.encode(errors="backslashreplace")


def plain(value: Any) -> Any:
    """A value of one of the types that are common in results, as what JSON knows."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    dump = getattr(value, "model_dump", None)
    if callable(dump):
        return dump(mode="json")
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, (datetime.datetime, datetime.date, datetime.time)):
        return value.isoformat()
    if isinstance(value, uuid.UUID):
        return str(value)
    if isinstance(value, (Set, Iterator)):
        return list(value)
    raise TypeError(f"a value of type {type(value).__name__} has no JSON")


ENCODED = "texts, numbers, True, False, None, lists, dictionaries, dates, times, UUIDs, enums, dataclasses, pydantic models"
"""What has JSON here."""


def as_json(value: Any, about: str) -> Any:
    """A value of `ENCODED` as what JSON knows. Raises TypeError or ValueError for what has no JSON, with its JSON pointer;
    `about` is what the error calls the whole."""
    try:
        return _as_json(value, about, "")
    except RecursionError as error:
        raise ValueError(f"{about} nest too deeply, or contain themselves") from error


def _as_json(value: Any, about: str, path: str) -> Any:
    if value is None or isinstance(value, (str, int)):
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(f"{about}: {path} is {value}; allowed: finite numbers")
        return value
    if isinstance(value, Mapping):
        return {_name(name, about, path): _as_json(one, about, f"{path}/{escaped(str(name))}") for name, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_as_json(one, about, f"{path}/{n}") for n, one in enumerate(value)]
    try:
        simpler = plain(value)
    except TypeError as error:
        raise TypeError(f"{about}: {path or 'the whole'} is of type {type(value).__name__}; allowed: {ENCODED}") from error
    return _as_json(simpler, about, path)


def _name(name: Any, about: str, path: str) -> Any:
    if name is None or isinstance(name, (str, int, float)):
        return name
    raise TypeError(f"{about}: {path or 'the whole'} has a name of type {type(name).__name__}; allowed: texts")


def escaped(name: str) -> str:
    """A name as a part of a JSON pointer."""
    return name.replace("~", "~0").replace("/", "~1")


_MARK = re.compile(r'["\[{\]}]|\\.')
"""A quote or a bracket, or what a backslash escapes, which JSON has only in strings."""


def depth(text: str) -> int:
    """The nesting depth of a JSON text. Does not recurse, and its memory does not grow with the text."""
    level = deepest = 0
    in_string = False
    for found in _MARK.finditer(text):
        mark = found[0]
        if mark == '"':
            in_string = not in_string
        elif not in_string:
            level += 1 if mark in "[{" else -1
            deepest = max(deepest, level)
    return deepest


def shorten(text: str, most: int) -> str:
    """The start of a text, at most so many bytes of UTF-8, with a mark if it was cut."""
    whole, mark = text.encode(errors="replace"), "… (cut)"
    if len(whole) <= most:
        return whole.decode()
    return whole[: most - len(mark.encode())].decode(errors="ignore") + mark


def parts(sizes: list[int], most: int = MAX_BYTES, count: int = MAX_CLAIM) -> list[slice]:
    """Consecutive parts of so many bytes and elements at most; an element that is larger is a part of its own."""
    found, start, size = [], 0, 0
    for n, more in enumerate(sizes):
        if n > start and (n - start == count or size + more > most):
            found.append(slice(start, n))
            start, size = n, 0
        size += more
    if sizes:
        found.append(slice(start, len(sizes)))
    return found


Convert = Callable[[Any, str], Any]
"""Turns a JSON value, found at a JSON pointer, into what a function takes."""
