"""Takes jobs from a consumer: never more than there are free permits, and without losing any.

At most one pull request is open. It stays open between calls of `next`, so a job that arrives late is returned by the next
call. The server says when a request has expired; if that does not arrive in time, the request was lost, and another is sent.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from contextlib import suppress
from dataclasses import dataclass

from nats.aio.msg import Msg
from nats.aio.subscription import Subscription

from redial._limits import encode
from redial._link import ANSWER, Link, Outage

EXPIRES = 2.0
"""Seconds that the server keeps a request open. Short, because a lost request is noticed only afterwards."""
GRACE = 1.0
"""Seconds that the message about its end may take to arrive."""
LINGER = 0.002
"""If more jobs wait on the server, wait this long for them, so that batches are full under load."""
WAIT = 5.0
"""Seconds after which `next` returns without a job."""


@dataclass
class _Open:
    inbox: str
    credit: int
    overdue: float


class Puller:
    """Pulls from one consumer of the job stream."""

    def __init__(self, link: Link, consumer: str) -> None:
        self._link = link
        self.consumer = consumer
        self._subscription: Subscription | None = None
        self._prefix = ""
        self._connection = 0
        self._requests = 0
        self._open: _Open | None = None
        self._ready: deque[Msg] = deque()
        self._arrived = asyncio.Event()
        self._refusal: str | None = None

    async def next(self, most: int) -> list[Msg]:
        """The next jobs, or none after a while. Raises `Outage`."""
        until = time.monotonic() + WAIT
        while not self._ready:
            if self._refusal is not None:
                refusal, self._refusal = self._refusal, None
                raise Outage(f"consumer {self.consumer}: {refusal}")
            now = time.monotonic()
            if now >= until:
                return []
            if self._open is not None and (now >= self._open.overdue or self._connection != self._link.connections):
                self._open = None
            if self._open is None:
                await self._request(most)
                continue
            await self._wait(min(until, self._open.overdue) - now)
        if len(self._ready) < most and self._open is not None and self._ready[-1].metadata.num_pending:
            await asyncio.sleep(LINGER)
        return [self._ready.popleft() for _ in range(min(most, len(self._ready)))]

    async def end(self) -> list[Msg]:
        """Waits for the open request to end; returns the jobs that still arrived."""
        while self._open is not None and self._connection == self._link.connections:
            wait = self._open.overdue - time.monotonic()
            if wait <= 0:
                break
            await self._wait(wait)
        if self._subscription is not None:
            with suppress(Exception):
                await self._subscription.unsubscribe()
        found, self._ready = list(self._ready), deque()
        return found

    async def _wait(self, seconds: float) -> None:
        self._arrived.clear()
        with suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._arrived.wait(), max(0.0, seconds))

    async def _request(self, most: int) -> None:
        client = await self._link.connected(ANSWER)
        if self._connection != self._link.connections:
            self._connection, self._prefix = self._link.connections, client.new_inbox()
            self._subscription = await client.subscribe(f"{self._prefix}.*", cb=self._accept)
        self._requests += 1
        inbox = f"{self._prefix}.{self._requests}"
        request = encode({"batch": most, "expires": int(EXPIRES * 1e9)})
        self._open = _Open(inbox, most, time.monotonic() + EXPIRES + GRACE)
        await self._link.publish(f"$JS.API.CONSUMER.MSG.NEXT.JOBS.{self.consumer}", request, reply=inbox)

    async def _accept(self, message: Msg) -> None:
        # Senders may write a status into what the stream stores. What a consumer delivers names its acknowledgement.
        if message.reply.startswith("$JS.ACK."):
            self._ready.append(message)
            if self._open is not None:
                self._open.credit -= 1
                if self._open.credit <= 0:
                    self._open = None
        else:
            self._note_end(message)
        self._arrived.set()

    def _note_end(self, message: Msg) -> None:
        headers = message.headers or {}
        status = headers.get("Status", "")
        if status == "100" or self._open is None or message.subject != self._open.inbox:
            return
        self._open = None
        if status not in ("408", "404"):
            self._refusal = headers.get("Description") or ("it is missing" if status == "503" else f"status {status}")
