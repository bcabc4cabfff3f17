"""Arguments and results that do not fit into one message travel in pieces (`docs/PROTOCOL.md`)."""

from __future__ import annotations

import asyncio
import json
import uuid
from typing import Any

from redial._core import Core, Grant, log
from redial._limits import MAX_PIECE
from redial._link import Outage, Refused

VERB = "payloads.piece"
HEADER = "redial-payload"
"""The header of a message whose body is in pieces: the id of the body, and how many pieces it has."""
PIECE = 10.0
"""Seconds that a piece may take."""
FETCH = 15.0
"""Seconds after its claim was sent until an attempt is given back whose large arguments are not there. Dispatchers end an attempt
30 s after its timeout, counted from the grant: this, what a stopped function takes to end, and the way of the report have to fit
into that."""
AT_ONCE = 4
"""Pieces that are on their way at once."""
TRIES = 5
"""How often large arguments are asked for, before the attempt is given back."""


def split(body: bytes) -> list[str]:
    """A text as pieces, cut between characters."""
    found, start = [], 0
    while start < len(body):
        end = start + MAX_PIECE
        while end < len(body) and body[end] & 0xC0 == 0x80:
            end -= 1
        found.append(body[start:end].decode())
        start = end
    return found


async def put(core: Core, body: bytes) -> str:
    """Sends a body in pieces; returns the value of the header that stands for it. Raises `Outage` and `Refused`."""
    pieces, payload = split(body), str(uuid.uuid4())
    for number, text in enumerate(pieces):
        request = {"put": {"payload": payload, "pieces": len(pieces), "piece": number, "text": text}}
        await core.request(VERB, request, limit=PIECE)
    return f"{payload}.{len(pieces)}"


async def arguments(core: Core, grant: Grant) -> dict[str, Any] | None:
    """The arguments of a grant that names them apart; nothing if they cannot be had: nothing was started then. The caller cancels
    it after `FETCH`."""
    failures = 0
    while True:
        try:
            return await _fetch(core, grant)
        except Exception as error:
            # Also what an answer that is not as it should be raises: the attempt would stay active otherwise.
            failures += 1
            log.warning("Failed to fetch arguments call=%s failures=%d error=%s", grant["call"], failures, error)
            if isinstance(error, Refused) or failures >= TRIES:
                return None
        await asyncio.sleep(core.pause(failures))


async def _fetch(core: Core, grant: Grant) -> dict[str, Any]:
    opened = (await core.request(VERB, {"open": {"worker": core.id, **grant}}, limit=FETCH)).get("opened") or {}
    payload, pieces = opened.get("payload"), int(opened.get("pieces") or 0)
    texts: list[str] = []
    for first in range(0, pieces, AT_ONCE):
        gets = [{"get": {"payload": payload, "piece": number}} for number in range(first, min(first + AT_ONCE, pieces))]
        replies = await asyncio.gather(*(core.request(VERB, get, limit=PIECE) for get in gets), return_exceptions=True)
        for reply in replies:
            if isinstance(reply, BaseException):
                raise reply
            if not isinstance(reply.get("text"), str):
                raise ValueError(f"piece {len(texts)} of the arguments is missing")
            texts.append(reply["text"])
    found = json.loads("".join(texts))
    if not isinstance(found, dict):
        raise ValueError("the arguments are no object")
    try:
        await core.request(VERB, {"drop": {"payload": payload}}, limit=PIECE)
    except (Outage, Refused) as error:
        log.debug("Failed to drop fetched arguments; they expire error=%s", error)
    return found
