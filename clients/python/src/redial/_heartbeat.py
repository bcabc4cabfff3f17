"""Renews the leases of all active attempts, in one message every third of a lease."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from typing import Any

from redial._attempts import Attempts
from redial._core import Core, Grant, key_of, log, until
from redial._link import Outage, Refused

CHUNK = 8_000
"""Grants in one message, 107 bytes each."""
RETRY_PART = 20
"""A heartbeat that failed is sent again after this part of a lease."""
GOODBYE = 1.0
"""Seconds that a dispatcher may take to answer the last one."""


class Heartbeat:
    """See the module."""

    def __init__(self, core: Core, attempts: Attempts, slots: int) -> None:
        self._core = core
        self._attempts = attempts
        self._slots = slots

    async def run(self) -> None:
        """Sends heartbeats, also when a lease changed and after a reconnection."""
        wait, failures = 0.0, 0
        while True:
            await until(self._core.heartbeat_now, wait)
            self._core.heartbeat_now.clear()
            try:
                await self._beat(failures)
                wait, failures = self._core.lease / 3, 0
            except (Outage, Refused) as error:
                log.warning("Failed to send a heartbeat error=%s", error)
                wait, failures = self._core.lease / RETRY_PART, failures + 1

    async def _beat(self, failures: int) -> None:
        """At least one message, even if nothing runs."""
        # The time before the grants: they were held then.
        held_at, grants = self._core.database_time(), self._attempts.grants()
        for start in range(0, max(1, len(grants)), CHUNK):
            await self._renew(grants[start : start + CHUNK], held_at, failures)

    async def _renew(self, grants: list[Grant], held_at: str | None, failures: int) -> None:
        # Taken before the request leaves, so that the lease can only end later at the dispatcher.
        sent = time.monotonic()
        message = self._message(grants, self._slots)
        if held_at is not None:
            message["held_at"] = held_at
        reply = await self._core.request("heartbeat", message, failures)
        self._core.hear(reply, sent)
        # The leases of calls that are locked stay as they are.
        locked = {key_of(grant) for grant in reply.get("locked") or ()}
        self._attempts.renew([one for one in grants if key_of(one) not in locked], self._core.lease_from(sent))
        self._attempts.lose(reply.get("lost"))
        self._attempts.cancel(reply.get("cancelled"))
        if reply.get("register"):
            self._core.register_now.set()

    async def say_goodbye(self) -> None:
        """Tells the dispatchers that this worker has ended. If that fails, they notice that its heartbeats stay away."""
        with suppress(Outage, Refused, asyncio.TimeoutError):
            await asyncio.wait_for(self._core.request("heartbeat", self._message([], 0)), GOODBYE)

    def _message(self, grants: list[Grant], slots: int) -> dict[str, Any]:
        draining = self._core.draining.is_set()
        return {"worker": self._core.id, "running": grants, "slots": slots, "draining": draining}
