"""Sends the reports of attempts, and repeats each one until a dispatcher has put it on record.

The first report leaves at once; those that arrive while it is being sent form the next message. Large ones, which may take seconds,
hold up no others.
"""

from __future__ import annotations

import asyncio
import json
import time

from redial._core import Core, Key, log, until
from redial._limits import MAX_BYTES, MAX_MESSAGE
from redial._link import Outage, Refused
from redial._outcome import message_of
from redial._pieces import HEADER, put
from redial._resend import ResendQueue

MAX_PENDING = 32 * 1024 * 1024
"""Bytes of reports that are not on record, above which the worker takes no more jobs."""
TICK = 0.25
"""Seconds between two looks for reports that are due again."""


class _Lane:
    """Reports that are sent one after the other."""

    def __init__(self) -> None:
        self.queue = ResendQueue()
        self.added = asyncio.Event()


class Reporter:
    """See the module."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._small, self._large = _Lane(), _Lane()
        self._removed = asyncio.Event()

    @property
    def _lanes(self) -> tuple[_Lane, _Lane]:
        return self._small, self._large

    def __len__(self) -> int:
        return sum(len(lane.queue) for lane in self._lanes)

    def send(self, key: Key, report: bytes) -> None:
        """Sends a report until it is on record."""
        self.forget(key)
        lane = self._large if len(report) > MAX_BYTES else self._small
        lane.queue.add(key, report)
        lane.added.set()

    def forget(self, key: Key) -> None:
        """It is on record, or no dispatcher would accept it any more."""
        for lane in self._lanes:
            lane.queue.remove(key)
        self._removed.set()

    async def wait_for_capacity(self) -> None:
        """Waits until the reports are small enough for the worker to take more jobs."""
        while sum(lane.queue.bytes for lane in self._lanes) >= MAX_PENDING:
            self._removed.clear()
            await self._removed.wait()

    async def wait_until_recorded(self) -> None:
        """Waits until all reports are on record."""
        while len(self):
            self._removed.clear()
            await self._removed.wait()

    async def run(self) -> None:
        """Sends what is due, for as long as the worker runs."""
        await asyncio.gather(self._repeat(), *(self._send(lane) for lane in self._lanes))

    async def _repeat(self) -> None:
        while True:
            await until(self._core.resend_now, TICK)
            is_all = self._core.resend_now.is_set()
            self._core.resend_now.clear()
            for lane in self._lanes:
                lane.queue.resend(None if is_all else time.monotonic())
                lane.added.set()

    async def _send(self, lane: _Lane) -> None:
        while True:
            await lane.added.wait()
            lane.added.clear()
            while batch := lane.queue.batch():
                stored = await self._put(list(batch.values()))
                lane.queue.sent(list(batch), stored, time.monotonic())
                if not stored:
                    break

    async def _put(self, reports: list[bytes]) -> bool:
        """Puts a message on the stream; says whether the stream has confirmed it."""
        subject = f"redial.results.{self._core.settings.name}"
        try:
            body, headers = message_of(self._core.id, reports), None
            if len(body) > MAX_MESSAGE:
                body, headers = b"", {HEADER: await put(self._core, body)}
            reply = await self._core.link.request(subject, body, headers=headers)
            answer = json.loads(reply.data)
            if not isinstance(answer, dict) or answer.get("error") or not answer.get("stream"):
                raise Outage(f"{subject}: {answer}")
        except (Outage, Refused, ValueError) as error:
            log.warning("Failed to send reports reports=%d error=%s", len(reports), error)
            return False
        return True
