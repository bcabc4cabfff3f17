"""Streams of server-sent events that survive the loss of a gateway: resumed after the last durable event, without a gap, and
without a double where ids are exact: those of calls and tasks."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from typing import Any

import httpx

from redial._http import Transport, pause_after
from redial.errors import ServerError, TooManyRequests
from redial.views import Event

END = "end"
"""The type of the last event of a call or a task."""


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
                parser = Parser()
                async for line in response.aiter_lines():
                    event = parser.line(line)
                    if event is None:
                        continue
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
