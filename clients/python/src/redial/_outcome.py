"""Turns the end of a tool's function into what a report says: a result within the limits, or an error with its class. Pure."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import httpx

from redial._limits import MAX_DEPTH, MAX_OUTPUT, MAX_REPORT, depth, encode
from redial._redact import Redactor
from redial.context import Context
from redial.tool_errors import Stopped, ToolError, failure

log = logging.getLogger("redial.worker")

PREVIEW = 500
"""Bytes of a result that its error shows."""


@dataclass(frozen=True)
class Outcome:
    """How a function ended: either the JSON of its result, or a `Failure` of the protocol."""

    output: bytes | None = None
    error: dict[str, Any] | None = None

    @staticmethod
    def failed(error_class: str, message: str, effect_possible: bool = True) -> Outcome:
        """An error."""
        return Outcome(error=failure(error_class, message, effect_possible))


NO_OUTCOME = Outcome.failed("internal", "the worker failed while it ran the tool")
"""What a function has that ended in a way that the worker does not know."""


def of_result(result: Any, redactor: Redactor) -> Outcome:
    """A result, or an error if it breaks a limit."""
    try:
        text = encode(result)
        if redactor.finds(text.decode()):
            text = encode(redactor.value(json.loads(text)))
    except (TypeError, ValueError, RecursionError) as error:
        return Outcome.failed("output_invalid", redactor.text(f"the result is not JSON: {error}"))
    start = text[:PREVIEW].decode(errors="ignore")
    if len(text) > MAX_OUTPUT:
        message = f"the result has {len(text)} bytes; allowed: {MAX_OUTPUT}; it starts: {start}"
        return Outcome.failed("output_too_large", message)
    if depth(text.decode()) > MAX_DEPTH:
        message = f"the result nests deeper than {MAX_DEPTH} levels; it starts: {start}"
        return Outcome.failed("output_invalid", message)
    return Outcome(output=text)


def of_exception(error: BaseException, redactor: Redactor, context: Context) -> Outcome:
    """The error of an exception. The text of an unknown exception goes to the log only, with the attempt that raised it: a
    report is stored, and models read its message. Raises nothing: the attempt would never end."""
    try:
        return Outcome(error=redactor.error(_plain(_classified(error, context))))
    except BaseException as failed:
        with suppress(BaseException):  # a handler of the log may be what failed
            text = "Failed to report an exception of a tool tool=%s call=%s attempt=%d"
            log.error(text, context.tool, context.call, context.attempt, exc_info=failed)
        return Outcome.failed("internal", "the worker failed to report what the tool raised")


def _plain(error: dict[str, Any]) -> dict[str, Any]:
    """A `Failure` as what JSON knows, so that all secrets in it are found. Its details are left out if what was sent, as the tool
    tells it, has no JSON."""
    bare = {name: value for name, value in error.items() if name != "details"}
    found: dict[str, Any] = json.loads(encode(bare))
    with suppress(TypeError, ValueError, RecursionError):
        if details := _plain_details(error.get("details") or ()):
            found["details"] = details
    return found


def _plain_details(details: Iterable[Any]) -> list[Any]:
    """The same as what JSON knows; none if they are too large for a report, or nest deeper than dispatchers read them."""
    found, size = [], 0
    for detail in details:
        text = encode(detail)
        size += len(text)
        # What was sent is a level deeper than it was in the arguments.
        if size > MAX_REPORT or depth(text.decode()) > MAX_DEPTH + 1:
            return []
        found.append(json.loads(text))
    return found


def _classified(error: BaseException, context: Context) -> dict[str, Any]:
    if isinstance(error, ToolError):
        return error.to_json()
    if isinstance(error, (asyncio.CancelledError, Stopped)):
        return failure("internal", "the tool stopped itself")
    if isinstance(error, httpx.HTTPStatusError):
        return _of_status(error.response)
    if isinstance(error, (ConnectionRefusedError, httpx.ConnectError, httpx.ConnectTimeout)):
        return failure("unavailable", "the connection could not be made", effect_possible=False)
    if isinstance(error, (ConnectionError, TimeoutError, asyncio.TimeoutError, httpx.TransportError)):
        return failure("unavailable", "the connection failed")
    text = "Tool raised an exception tool=%s call=%s attempt=%d"
    log.error(text, context.tool, context.call, context.attempt, exc_info=error)
    return failure("tool_failed", f"the tool raised {type(error).__name__}")


def _of_status(response: httpx.Response) -> dict[str, Any]:
    """The error of an HTTP status, as HTTP tools of the manifest have it."""
    status = response.status_code
    message = f"the service answered HTTP {status}"
    if status == 429:
        error = failure("rate_limited", message, effect_possible=False)
    elif status in (401, 403):
        error = failure("auth", message)
    elif status == 501:
        error = failure("configuration", message)
    elif status in (408, 425) or status >= 500:
        error = failure("unavailable", message)
    else:
        error = failure("invalid_arguments" if status in (400, 422) else "business_rule", message)
    seconds = response.headers.get("retry-after", "")
    if seconds.isdecimal() and error["class"] in ("rate_limited", "unavailable"):
        error["retry_after_ms"] = min(int(seconds[:9]), 86_400) * 1000
    return error


def report_of(grant: Mapping[str, Any], seconds: float, outcome: Outcome) -> bytes:
    """The JSON of a `Report` of the protocol. If it would not fit into a message, the details of its error are left out."""
    head = {**grant, "duration_ms": int(seconds * 1000)}
    if outcome.output is not None:
        return encode(head)[:-1] + b',"output":' + outcome.output + b"}"
    error = outcome.error or failure("internal", "the outcome has neither a result nor an error")
    text = encode({**head, "error": error})
    if len(text) <= MAX_REPORT:
        return text
    bare = {name: value for name, value in error.items() if name != "details"}
    return encode({**head, "error": bare})


def message_of(worker: str, reports: list[bytes]) -> bytes:
    """The JSON of a `ReportBatch` of the protocol."""
    return b'{"worker":' + encode(worker) + b',"reports":[' + b",".join(reports) + b"]}"
