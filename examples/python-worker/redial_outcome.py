"""Turns the result of a tool into a report: error classes, and the limits from `docs/PROTOCOL.md`. Pure."""

import asyncio
import json
import logging
import re

log = logging.getLogger("redial")

MAX_OUTPUT, MAX_DEPTH = 512 * 1024, 64
MAX_ERROR_MESSAGE, MAX_DETAILS = 4096, 100
# Bytes of a message with one report; NATS takes 1 MiB.
MAX_REPORT = 900 * 1024
PREVIEW = 500


class ToolError(Exception):
    """A tool's failure. The class decides what happens next: `invalid_arguments` and `business_rule` go back to the
    caller, `unavailable` and `rate_limited` are retried, `auth` and `configuration` need an operator, and `tool_failed`
    says only that it failed."""

    def __init__(self, error_class, message, details=(), retry_after=None, effect_possible=True):
        """`retry_after` is in seconds. Pass `effect_possible=False` only if the tool certainly did nothing: an `unsafe`
        tool is then retried."""
        super().__init__(message)
        self.error = failure(error_class, message)["error"]
        self.error |= {"details": list(details)[:MAX_DETAILS], "effect_possible": effect_possible}
        if retry_after is not None:
            self.error["retry_after_ms"] = int(retry_after * 1000)


NOT_SENT = object()
"""What was sent, if nothing was: `None` says that `null` was sent."""


def field_error(path, rule, sent, allowed, hint=None):
    """A rule that an argument breaks. `path` is a JSON pointer into the arguments."""
    error = {"path": path, "rule": rule, "allowed": allowed, "hint": hint}
    return error if sent is NOT_SENT else error | {"sent": sent}


def invalid(errors):
    """An error for arguments that break the tool's own rules. List all of them, so that one correction is enough."""
    def what(error):
        sent = f"{error['sent']!r}" if "sent" in error else "nothing"
        return f"{error['path']}: {sent} was sent; allowed: {error['allowed']}"

    message = "; ".join(map(what, errors))
    return ToolError("invalid_arguments", message, errors, effect_possible=False)


def failure(error_class, message):
    return {"error": {"class": error_class, "message": shorten(message, MAX_ERROR_MESSAGE)}}


def result(tool):
    """The report of a finished tool: `{"output": …}` or `{"error": …}`."""
    if tool.cancelled():
        return failure("internal", "the tool cancelled itself")
    error = tool.exception()
    return checked(tool.result()) if error is None else {"error": classified(error)}


def classified(error):
    """The error of an exception. The text of an unknown exception goes only to the log: the report is stored, and models
    read its message."""
    if isinstance(error, ToolError):
        return error.error
    if isinstance(error, (ConnectionError, asyncio.TimeoutError, TimeoutError)):
        refused = isinstance(error, ConnectionRefusedError)
        message = "the connection was refused" if refused else "the connection failed"
        return failure("unavailable", message)["error"] | {"effect_possible": not refused}
    log.error("Tool raised an exception", exc_info=error)
    return failure("tool_failed", f"the tool raised {type(error).__name__}")["error"]


def checked(output):
    """A result, or an error if the result breaks a limit."""
    try:
        text = encode(output)
    except (TypeError, ValueError, RecursionError) as error:
        return failure("output_invalid", f"the result is not JSON: {error}")
    start = text[:PREVIEW].decode(errors="ignore")
    if len(text) > MAX_OUTPUT:
        message = f"the result has {len(text)} bytes; allowed: {MAX_OUTPUT}; it starts: {start}"
        return failure("output_too_large", message)
    if depth(text.decode()) > MAX_DEPTH:
        return failure("output_invalid", f"the result nests deeper than {MAX_DEPTH} levels; it starts: {start}")
    return {"output": output}


def encode(value):
    """JSON in UTF-8, without `\\u` escapes, which cost models more tokens. Raises ValueError for values such as NaN."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


def depth(text):
    """The nesting depth of a JSON text."""
    level = deepest = 0
    for bracket in re.findall(r"[\[{\]}]", re.sub(r'"(?:[^"\\]|\\.)*"', "", text)):
        level += 1 if bracket in "[{" else -1
        deepest = max(deepest, level)
    return deepest


def shorten(text, most):
    """The start of a text, at most so many bytes of UTF-8, with a mark if it was cut."""
    whole, mark = text.encode(errors="replace"), "… (cut)"
    return whole.decode() if len(whole) <= most else whole[: most - len(mark.encode())].decode(errors="ignore") + mark


def message_of(worker, report):
    """The message with one report. If it is too large, the details of the error are left out."""
    try:
        payload = encode({"worker": worker, "reports": [report]})
    except ValueError:
        payload = None
    if payload is None or len(payload) > MAX_REPORT:
        bare = report | {"error": {k: v for k, v in report["error"].items() if k != "details"}}
        payload = encode({"worker": worker, "reports": [bare]})
    return payload
