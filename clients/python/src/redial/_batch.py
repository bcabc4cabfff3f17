"""Submits any number of calls as lines of JSON, some requests at a time, and again what an outage prevented."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Any

from redial._http import Transport, path_of, pause_after
from redial._limits import parts
from redial.errors import ApiError, CallRefused, InvalidRequest, ServerError

LINES, BYTES = 1000, 512 * 1024
"""Calls and bytes of one request."""
AT_ONCE = 4
"""Requests at a time."""
TRIES = 8
"""How often a call is sent that the dispatchers could not take."""

Submitted = tuple[str | None, ApiError | None]
"""The id of a call, and why it was not accepted."""


async def submit(transport: Transport, bodies: Sequence[Mapping[str, Any]]) -> list[Submitted]:
    """What became of each call, in their order. Each must have a key."""
    lines = [json.dumps(body).encode() + b"\n" for body in bodies]
    free, results = asyncio.Semaphore(AT_ONCE), []

    async def one(part: slice) -> list[Submitted]:
        async with free:
            return await _submit(transport, lines[part])

    tasks = [asyncio.create_task(one(part)) for part in parts([len(line) for line in lines], BYTES, LINES)]
    try:
        for task in tasks:
            results.extend(await task)
    finally:
        for task in tasks:
            task.cancel()
    return results


async def _submit(transport: Transport, lines: list[bytes]) -> list[Submitted]:
    found: dict[int, Submitted] = {}
    waiting = list(range(len(lines)))
    for tries in range(1, TRIES + 1):
        answers = await _send(transport, b"".join(lines[n] for n in waiting))
        # The answer to a request that was cut off lacks its end.
        for n, answer in zip(waiting, answers, strict=False):
            found[n] = _read(answer)
        waiting = [n for n in waiting if n not in found or _may_help(found[n])]
        if not waiting:
            break
        if tries < TRIES:
            await asyncio.sleep(pause_after(tries + 2))
    missing = ServerError(503, {"code": "unavailable", "detail": "the gateway did not say what became of the call"})
    return [found.get(n, (None, missing)) for n in range(len(lines))]


async def _send(transport: Transport, content: bytes) -> list[Mapping[str, Any]]:
    headers = {"content-type": "application/x-ndjson"}
    response = await transport.send("POST", path_of("calls"), content=content, headers=headers)
    # Texts may contain the line breaks of Unicode.
    return [json.loads(line) for line in response.content.split(b"\n") if line.strip()]


def _read(answer: Mapping[str, Any]) -> Submitted:
    call, error = answer.get("call"), answer.get("error")
    id = None if call is None else str(call)
    if error is None:
        return id, None
    if error.get("code") == "unavailable":
        return id, ServerError(503, error)
    if answer.get("status") == "refused":
        return id, CallRefused(422, {**error, "call": call, "feedback": answer.get("feedback")})
    return id, InvalidRequest(422, error)


def _may_help(submitted: Submitted) -> bool:
    return isinstance(submitted[1], ServerError)
