"""What all parts of a running worker share: its name, the connection, the length of a lease, requests to dispatchers."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import random
import re
import socket
import time
import uuid
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any, TypedDict

from redial._heard import ClaimTime, Heard
from redial._limits import encode
from redial._link import Address, Link, Outage, Refused, backoff

log = logging.getLogger("redial.worker")

FIRST_LEASE = 15.0
"""The length of a lease until a reply contains it: the dispatchers' default."""
SHORTEST_LEASE = 0.3
"""Shorter leases would flood the dispatchers with heartbeats."""


Key = tuple[str, int, str]
"""What a grant is known by: call, attempt and claim."""


class Grant(TypedDict):
    """One grant of an attempt, as the protocol names it. A released attempt is granted again under its number: only the claim
    tells the two apart."""

    call: str
    attempt: int
    claim: str


def key_of(grant: Grant) -> Key:
    """What a grant is known by. Raises what a message that is none raises."""
    return grant["call"], grant["attempt"], grant["claim"]


@dataclass(frozen=True)
class Settings:
    """What a worker is told about itself."""

    id: str
    """The name and a random part: another one for each run."""
    address: Address
    name: str
    """The identity that its credentials are for."""
    pools: tuple[str, ...]
    """The pools that they are for; none if the server allows all."""
    host: str | None
    grace: float
    secrets: tuple[str, ...]

    @staticmethod
    def identity(name: str) -> str:
        """A name as the identity of a worker."""
        return re.sub("[^A-Za-z0-9_-]", "-", name)[:50] or "worker"

    @staticmethod
    def new_id(name: str) -> str:
        """An id for one run of a worker."""
        return f"{name}-{uuid.uuid4().hex[:12]}"


class Core:
    """See the module."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.id = settings.id
        self.host = settings.host or socket.gethostname()
        self.started_at = datetime.now(timezone.utc).isoformat()
        self.lease = FIRST_LEASE
        self._heard: Heard | None = None
        self._hears = asyncio.Event()
        self.draining = asyncio.Event()
        self.heartbeat_now = asyncio.Event()
        self.register_now = asyncio.Event()
        self.resend_now = asyncio.Event()
        self.link = Link(settings.address, self._reconnected)
        # `+` stands for any pool.
        self._pools = "+".join(sorted(set(settings.pools))) or "+"
        self._seed = random.Random(os.urandom(8))

    def _reconnected(self) -> None:
        """What was sent on the old connection may be lost, and so may be what dispatchers said."""
        self.heartbeat_now.set()
        self.resend_now.set()

    def set_lease(self, milliseconds: int) -> None:
        """How long a lease is, according to a dispatcher. A change wakes the heartbeat, which may wait for a third of a longer
        one."""
        lease = max(SHORTEST_LEASE, milliseconds / 1000)
        if lease != self.lease:
            self.lease = lease
            self.heartbeat_now.set()

    def hear(self, reply: dict[str, Any], asked: float) -> None:
        """Takes in an answer to a request that was sent at `asked`: what the database's clock showed, and how long a lease is.
        Raises `Outage` if it cannot be read."""
        try:
            self.set_lease(reply["lease_ms"])
            if (at := reply.get("at")) is not None:
                self._heard = Heard.read(at, asked, time.monotonic(), self.lease)
                self._hears.set()
        except (KeyError, ValueError, TypeError, AttributeError) as error:
            raise Outage(f"an answer without a time or a lease: {error!r}") from error

    def claim_time(self) -> ClaimTime | None:
        """Until when a claim that is sent now is granted; nothing if it must not be sent, because no dispatcher answers."""
        return None if self._heard is None else self._heard.claim_time(time.monotonic())

    def database_time(self) -> str | None:
        """What the database's clock shows now, if not more; nothing if no dispatcher has told it yet."""
        return None if self._heard is None else self._heard.at_least(time.monotonic())

    async def may_claim(self) -> None:
        """Waits until claims may be sent."""
        while self.claim_time() is None:
            self._hears.clear()
            await self._hears.wait()

    def lease_from(self, sent: float) -> float:
        """The end of a lease that was asked for at `sent`, by this worker's clock, minus a margin: the tool must have stopped
        when another worker may start it."""
        return sent + self.lease - min(1.0, self.lease / 10)

    def pause(self, failures: int) -> float:
        """Seconds between two tries of a request: several fit into a lease."""
        return backoff(failures, 0.1, min(2.0, self.lease / 10))

    async def request(self, verb: str, body: Any, failures: int = 0, limit: float | None = None) -> dict[str, Any]:
        """Asks any dispatcher; after failures, with several copies, of which the first answer counts.

        NATS delivers each copy to one dispatcher, and one that hangs answers none. Requests are idempotent, so copies are
        harmless. Raises `Outage`, and `Refused` for what would be refused again.
        """
        copies = (1, 3, 5)[min(failures, 2)]
        # If the reply to a claim was lost, the worker must ask again well before the lease ends.
        limit = limit or min(3.0, max(0.1, self.lease / 5))
        subject, payload = f"redial.ctl.{self.settings.name}.{self._pools}.{verb}", encode(body)
        tasks = {asyncio.create_task(self.link.request(subject, payload, limit)) for _ in range(copies)}
        error: BaseException | None = None
        try:
            while tasks:
                done, tasks = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    if (error := task.exception()) is None:
                        reply = task.result()
                        return self._answer(subject, reply.data, (reply.headers or {}).get("redial-error"))
        finally:
            for task in tasks:
                task.cancel()
        raise error if isinstance(error, Outage) else Outage(f"{subject}: {error}")

    def _answer(self, subject: str, data: bytes, code: str | None) -> dict[str, Any]:
        try:
            body = json.loads(data)
        except ValueError as error:
            raise Outage(f"{subject}: the answer is no JSON: {error}") from error
        if not isinstance(body, dict):
            raise Outage(f"{subject}: the answer is no object")
        if code is None:
            return body
        text = f"{body.get('message')} [{code}]"
        raise Outage(text) if code == "unavailable" else Refused(text)


async def until(event: asyncio.Event, seconds: float) -> bool:
    """Waits for an event, at most so long; says whether it is set."""
    try:
        await asyncio.wait_for(event.wait(), max(0.0, seconds))
    except asyncio.TimeoutError:
        return event.is_set()
    return True
