"""Streams of server-sent events that survive the loss of a gateway: resumed after the last durable event, without a gap, and
without a double where ids are exact: those of calls and tasks."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Mapping
from typing import Any

import httpx

from redial._http import Transport, pause_after
from redial.errors import ServerError, TooManyRequests
from redial.views import Event

END = "end"
"""The type of the last event of a call or a task."""


class Lines:
    """Bytes of a stream as lines, which end with LF, CRLF or CR. Texts may contain the other line breaks of Unicode. Pure."""

    def __init__(self) -> None:
        self._begun: list[bytes] = []
        self._may_continue_break = False

    def feed(self, piece: bytes) -> list[str]:
        """The lines that this piece ends."""
        if self._may_continue_break and piece.startswith(b"\n"):
            piece = piece[1:]
        self._may_continue_break = piece.endswith(b"\r")
        *ended, rest = re.split(rb"\r\n|\n|\r", piece)
        if ended:
            ended[0] = b"".join([*self._begun, ended[0]])
            self._begun = []
        self._begun.append(rest)
        return [line.decode(errors="replace") for line in ended]


class Parser:
    """Lines of a stream as events. Pure."""

    def __init__(self) -> None:
        self._type = ""
        self._id: str | None = None
        self._data: list[str] = []

    def line(self, line: str) -> Event | None:
        """The event that this line ends, if it ends one."""
        if line == "":
            return self._end()
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "event":
            self._type = value
        elif name == "data":
            self._data.append(value)
        elif name == "id" and "\0" not in value:
            self._id = value
        return None

    def _end(self) -> Event | None:
        kind, data, identity = self._type or "message", "\n".join(self._data), self._id
        has_data = bool(self._data)
        self._type, self._data, self._id = "", [], None
        return Event(kind, read(data), identity or None) if has_data or identity else None


def read(data: str) -> Any:
    """Data as JSON, or as it is."""
    try:
        return json.loads(data)
    except ValueError:
        return data


async def events(
    transport: Transport, path: str, after: str | None = None, query: Mapping[str, Any] | None = None
) -> AsyncIterator[Event]:
    """The events of a stream after this one, until its last one. While no gateway answers, it is tried again for ever; stop to
    iterate to give up."""
    last, failures = after, 0
    while True:
        headers = {} if last is None else {"last-event-id": last}
        try:
            async with transport.stream(path, headers, query or {}) as response:
                if response.status_code == 204:
                    return
                async for event in _read_events(response):
                    failures = 0
                    if event.id is not None:
                        last = event.id
                    yield event
                    if event.type == END:
                        return
        except (httpx.TransportError, ServerError, TooManyRequests):
            pass
        failures += 1
        await asyncio.sleep(pause_after(failures))


async def _read_events(response: httpx.Response) -> AsyncIterator[Event]:
    lines, parser = Lines(), Parser()
    async for piece in response.aiter_bytes():
        for line in lines.feed(piece):
            if (event := parser.line(line)) is not None:
                yield event
