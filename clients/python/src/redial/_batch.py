"""Submits any number of calls as lines of JSON, some requests at a time, and again what an outage prevented."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Any

from redial._http import AGAIN, Transport, path_of, pause_after
from redial._limits import parts
from redial.errors import ApiError, ConnectionFailed, RedialError, ServerError, of_problem

LINES, BYTES = 1000, 512 * 1024
"""Calls and bytes of one request."""
AT_ONCE = 4
"""Requests at a time."""
TRIES = 8
"""How often a call is sent that the dispatchers could not take."""

STATUSES = {"unavailable": 503, "rate_limited": 429, "internal": 500}
"""The HTTP status that an error has where it is the answer to a request; that of all others here is 422."""

Submitted = tuple[str | None, RedialError | None]
"""The id of a call, and why it was not accepted."""


async def submit(transport: Transport, bodies: Sequence[Mapping[str, Any]]) -> list[Submitted]:
    """What became of each call, in their order. Each must have a key. A request that fails is the error of its own calls."""
    lines = [json.dumps(body).encode() + b"\n" for body in bodies]
    free = asyncio.Semaphore(AT_ONCE)
    lost: ConnectionFailed | None = None

    async def one(part: slice) -> list[Submitted]:
        nonlocal lost
        async with free:
            if lost is not None:
                # Not each request waits again for a gateway that does not come.
                return [(None, lost)] * len(lines[part])
            results, error = await _submit(transport, lines[part])
            if isinstance(error, ConnectionFailed):
                lost = error
            return results

    tasks = [asyncio.create_task(one(part)) for part in parts([len(line) for line in lines], BYTES, LINES)]
    try:
        return [result for results in await asyncio.gather(*tasks) for result in results]
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _submit(transport: Transport, lines: list[bytes]) -> tuple[list[Submitted], RedialError]:
    """What became of these calls, and the error of those without a result."""
    found: dict[int, Submitted] = {}
    waiting = list(range(len(lines)))
    error: RedialError = ServerError(503, {"code": "unavailable", "detail": "the gateway did not say what became of the call"})
    for tries in range(1, TRIES + 1):
        try:
            answers = await _send(transport, b"".join(lines[n] for n in waiting))
        except RedialError as failure:
            error = failure
            break
        # The answer to a request that was cut off lacks its end.
        for n, answer in zip(waiting, answers, strict=False):
            found[n] = _read(answer)
        waiting = [n for n in waiting if n not in found or _may_help(found[n])]
        if not waiting:
            break
        if tries < TRIES:
            await asyncio.sleep(pause_after(tries + 2))
    return [found.get(n, (None, error)) for n in range(len(lines))], error


async def _send(transport: Transport, content: bytes) -> list[Mapping[str, Any]]:
    headers = {"content-type": "application/x-ndjson"}
    response = await transport.send("POST", path_of("calls"), content=content, headers=headers)
    return _read_lines(response.content)


def _read_lines(content: bytes) -> list[Mapping[str, Any]]:
    found: list[Mapping[str, Any]] = []
    # Texts may contain the line breaks of Unicode.
    for line in content.split(b"\n"):
        if not line.strip():
            continue
        try:
            answer = json.loads(line)
        except ValueError:
            answer = None
        if not isinstance(answer, dict):
            # The line was cut off.
            break
        found.append(answer)
    return found


def _read(answer: Mapping[str, Any]) -> Submitted:
    call, error = answer.get("call"), answer.get("error")
    id = None if call is None else str(call)
    if error is None:
        return id, None
    problem = {**error, "call": call, "feedback": answer.get("feedback")}
    return id, of_problem(STATUSES.get(str(error.get("code")), 422), problem)


def _may_help(submitted: Submitted) -> bool:
    return isinstance(submitted[1], ApiError) and submitted[1].status in AGAIN
