"""Tells the dispatchers which tools this worker runs, and learns which consumers bring their jobs."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import Any

from redial._core import Core, log
from redial._limits import encode, parts
from redial._link import Outage, Refused, backoff
from redial._version import CONTRACT
from redial.tool import Tool

TIMEOUT = 5.0
LONGEST_WAIT = 2.0
MAX_BYTES = 600_000
"""Bytes of specifications in one message; the rest is for the names of the other tools."""


class Registration:
    """See the module."""

    def __init__(self, core: Core, tools: Mapping[str, Tool], limits: Mapping[str, int], version: str) -> None:
        self._core = core
        self._tools = sorted(tools.values(), key=lambda tool: tool.name)
        self._limits = limits
        self._version = version
        self._waiting: dict[str, list[str]] = {}
        self.consumers: dict[str, str] = {}
        """The consumer of each pool; one that is missing brings nothing, because none of its tools is accepted yet."""
        self._changes: dict[str, asyncio.Event] = {}

    def change_of(self, pool: str) -> asyncio.Event:
        """Set when the consumers have changed; for the loop of one pool, which clears it."""
        return self._changes.setdefault(pool, asyncio.Event())

    async def register(self) -> None:
        """Repeats the registration until a dispatcher answers. Raises `Refused`."""
        consumers: dict[str, str] = {}
        waiting: dict[str, list[str]] = {}
        for message in self._messages():
            reply = await self._send(message)
            consumers = reply.get("consumers") or {}
            waiting.update(reply.get("waiting") or {})
        self._note_waiting(waiting)
        if consumers != self.consumers:
            self.consumers = consumers
            for change in self._changes.values():
                change.set()

    async def keep(self) -> None:
        """Registers again when the answer to a heartbeat asks for it; one is sent after each reconnection."""
        while True:
            await self._core.register_now.wait()
            self._core.register_now.clear()
            try:
                await self.register()
            except Refused as refusal:
                log.error("Dispatcher refused the registration error=%s", refusal)

    async def _send(self, message: dict[str, Any]) -> dict[str, Any]:
        failures = 0
        while True:
            asked = time.monotonic()
            try:
                reply = await self._core.request("register", message, limit=TIMEOUT)
                self._core.hear(reply, asked)
                return reply
            except Outage as error:
                failures += 1
                wait = backoff(failures, 0.1, LONGEST_WAIT)
                log.warning("Failed to register the worker wait_s=%.1f error=%s", wait, error)
                await asyncio.sleep(wait)

    def _messages(self) -> list[dict[str, Any]]:
        """One message, or several: each has some specifications, and the names of all other tools."""
        core = self._core
        head = {
            "worker": core.id,
            "started_at": core.started_at,
            "slots": sum(self._limits.values()),
            "pools": self._limits,
            "version": self._version,
            "contract": CONTRACT,
        }
        sizes = [len(encode(tool.spec)) for tool in self._tools]
        messages = []
        for part in parts(sizes, MAX_BYTES, len(sizes)):
            own = self._tools[part]
            others = {tool.name: tool.pool for tool in self._tools if tool not in own}
            specs = {"tools": [tool.spec for tool in own], "other_tools": others}
            messages.append({**head, "host": core.host, **specs})
        return messages

    def _note_waiting(self, waiting: dict[str, list[str]]) -> None:
        """Says which tools get no calls yet, if others wait than after the last registration."""
        if waiting == self._waiting:
            return
        for tool, reasons in waiting.items():
            remedy = "`redial tools` shows how"
            log.warning("A tool waits until an operator accepts it tool=%s reasons=%s remedy=%s", tool, reasons, remedy)
        for tool in self._waiting.keys() - waiting.keys():
            log.info("A tool does not wait any more tool=%s", tool)
        self._waiting = waiting
