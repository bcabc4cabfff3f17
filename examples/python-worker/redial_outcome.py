"""How a tool's end becomes a report: classes of errors, and the limits that `docs/PROTOCOL.md` names. Pure."""

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
    """A tool's failure. The class says what happens next: `invalid_arguments` and `business_rule` go back to whoever
    called, `unavailable` and `rate_limited` are retried, `auth` and `configuration` wait for an operator."""

    def __init__(self, error_class, message, details=(), retry_after=None, effect_possible=True):
        """`retry_after` is in seconds. `effect_possible=False` states that certainly nothing was done: an `unsafe` tool
        is retried only then."""
        super().__init__(message)
        self.error = failure(error_class, message)["error"]
        self.error |= {"details": list(details)[:MAX_DETAILS], "effect_possible": effect_possible}
        if retry_after is not None:
            self.error["retry_after_ms"] = int(retry_after * 1000)


def violation(path, rule, sent, allowed, hint=None):
    """One broken rule. `path` is a JSON pointer into the arguments."""
    return {"path": path, "rule": rule, "sent": sent, "allowed": allowed, "hint": hint}


def invalid(violations):
    """Arguments that break the tool's own rules. Name all of them at once: then one correction is enough."""
    message = "; ".join(f"{one['path']}: {one['sent']!r} was sent; allowed: {one['allowed']}" for one in violations)
    return ToolError("invalid_arguments", message, violations, effect_possible=False)


def failure(error_class, message):
    return {"error": {"class": error_class, "message": shorten(message, MAX_ERROR_MESSAGE)}}


def result(tool):
    """What is reported of a tool that is done: `{"output": …}` or `{"error": …}`."""
    if tool.cancelled():
        return failure("internal", "the tool cancelled itself")
    error = tool.exception()
    return checked(tool.result()) if error is None else {"error": classified(error)}


def classified(error):
    """The class of an exception. What is not known to be harmless stays in the log: a model will read this."""
    if isinstance(error, ToolError):
        return error.error
    if isinstance(error, (ConnectionError, asyncio.TimeoutError, TimeoutError)):
        refused = isinstance(error, ConnectionRefusedError)
        said = "the connection was refused" if refused else "the connection failed"
        return failure("unavailable", said)["error"] | {"effect_possible": not refused}
    log.error("a tool failed", exc_info=error)
    return failure("internal", f"the tool raised {type(error).__name__}")["error"]


def checked(output):
    """A result within the limits of what can be stored."""
    try:
        text = encode(output)
    except (TypeError, ValueError, RecursionError) as error:
        return failure("output_invalid", f"the result is no JSON: {error}")
    start = text[:PREVIEW].decode(errors="ignore")
    if len(text) > MAX_OUTPUT:
        why = f"the result takes {len(text)} bytes; allowed: {MAX_OUTPUT}; it starts: {start}"
        return failure("output_too_large", why)
    if depth(text.decode()) > MAX_DEPTH:
        return failure("output_invalid", f"the result nests deeper than {MAX_DEPTH} levels; it starts: {start}")
    return {"output": output}


def encode(value):
    """UTF-8, not `\\u` escapes: models pay for each of them. Raises ValueError for what JSON cannot say, such as NaN."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


def depth(text):
    """How deep a JSON text nests."""
    level = deepest = 0
    for bracket in re.findall(r"[\[{\]}]", re.sub(r'"(?:[^"\\]|\\.)*"', "", text)):
        level += 1 if bracket in "[{" else -1
        deepest = max(deepest, level)
    return deepest


def shorten(text, most):
    """The start of a text, at most so many bytes of UTF-8; says so when it was cut."""
    whole, mark = text.encode(errors="replace"), "… (cut)"
    return whole.decode() if len(whole) <= most else whole[: most - len(mark.encode())].decode(errors="ignore") + mark


def message_of(worker, report):
    """The message that carries one report. If the details of an error make it too large, it goes without them."""
    try:
        payload = encode({"worker": worker, "reports": [report]})
    except ValueError:
        payload = None
    if payload is None or len(payload) > MAX_REPORT:
        bare = report | {"error": {k: v for k, v in report["error"].items() if k != "details"}}
        payload = encode({"worker": worker, "reports": [bare]})
    return payload
