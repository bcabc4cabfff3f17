"""Pulls jobs for free permits, asks for the right to run them, and starts what is granted."""

from __future__ import annotations

import asyncio
import json
import time
import uuid
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from nats.aio.msg import Msg

from redial._attempts import Attempts, release
from redial._core import Core, Grant, log, until
from redial._heard import ClaimTime
from redial._limits import MAX_CLAIM, MAX_INLINE, MAX_PACK, parts
from redial._link import Link, Outage, Refused, backoff
from redial._pull import Puller
from redial._register import Registration
from redial._report import Reporter
from redial._version import CONTRACT
from redial.tool import Tool

LOCKED = 5.0
"""A claim that waits in Postgres for the lock of a row, for 4 s at most, is granted so many seconds after its time."""

LARGE = 8
"""Calls of a pool with large arguments at a time: they are in memory until their functions end."""


def is_newer(message: Msg) -> bool:
    """Whether the sender of a message is of a newer version of the contract. Anything but a number is ignored."""
    said = (message.headers or {}).get("redial-contract", "")
    return said.isascii() and said.isdigit() and int(said[:9]) > CONTRACT


def unpack(data: bytes) -> tuple[str, list[dict[str, Any]]]:
    """The tool of a message of the job stream, and its jobs: those of a pack, or one alone. Raises what a message that is none
    raises."""
    body = json.loads(data)
    packed = body.get("jobs", [body])
    jobs = [{"call": one["call"], "attempt": one["attempt"], "bytes": int(one.get("bytes") or 0)} for one in packed]
    if not jobs:
        raise ValueError("there is no job")
    return body["tool"], jobs


class Permits:
    """How many calls of a pool may still start."""

    def __init__(self, limit: int) -> None:
        self.free = limit
        self._released = asyncio.Event()

    async def wait(self) -> None:
        """Waits until there is a free one."""
        while self.free <= 0:
            self._released.clear()
            await self._released.wait()

    def release(self) -> None:
        """One call has ended."""
        self.free += 1
        self._released.set()


class Delivery:
    """A message of the job stream with so many jobs; it is answered once all of them are done with."""

    def __init__(self, message: Msg, jobs: int) -> None:
        self._message, self._left, self._goes_back = message, jobs, False

    async def done(self, link: Link, jobs: int = 1, back: bool = False) -> None:
        """So many of its jobs are done with. If some go `back`, the message is delivered again."""
        self._left -= jobs
        self._goes_back |= back
        if self._left == 0:
            # Not at once: a claim that is refused at once must not go round in circles.
            await answer(link, self._message, b'-NAK {"delay": 1000000000}' if self._goes_back else b"+ACK")


@dataclass
class Returned:
    """Jobs of a message that there are no permits for."""

    consumer: str
    tool: str
    jobs: list[dict[str, Any]]

    @property
    def ref(self) -> dict[str, Any]:
        """As a claim gives them back."""
        return {"consumer": self.consumer, "pack": {"tool": self.tool, "jobs": self.jobs}}


@dataclass
class Job:
    """A job that was pulled, and holds a permit."""

    delivery: Delivery
    call: str
    attempt: int
    tool: str
    bytes: int
    rest: Returned | None = None
    """Of the first job of a message: those that there are no permits for."""

    @property
    def is_large(self) -> bool:
        """Whether its arguments are fetched apart."""
        return self.bytes > MAX_INLINE

    @property
    def ref(self) -> dict[str, Any]:
        """As a claim names it."""
        return {"call": self.call, "attempt": self.attempt, "tool": self.tool}

    def grant(self, claim: str) -> Grant:
        """As a release names it, if it was granted to this claim."""
        return {"call": self.call, "attempt": self.attempt, "claim": claim}


def claims(jobs: list[Job]) -> list[list[Job]]:
    """The jobs of each request. Its answer has to fit into a message."""
    return [jobs[part] for part in parts([0 if job.is_large else job.bytes for job in jobs])]


def returned(jobs: list[Job]) -> list[dict[str, Any]]:
    """What the request for these jobs gives back: a dispatcher publishes it again at once if one of them is granted."""
    return [job.rest.ref for job in jobs if job.rest is not None]


class Pool:
    """The jobs of one pool."""

    def __init__(
        self,
        name: str,
        limit: int,
        tools: dict[str, Tool],
        core: Core,
        attempts: Attempts,
        registration: Registration,
        reporter: Reporter,
    ) -> None:
        self.name, self._tools, self._core, self._attempts = name, tools, core, attempts
        self._registration, self._reporter = registration, reporter
        self._change = registration.change_of(name)
        self._permits = Permits(limit)
        self._jobs_per_message = max(1, min(limit // 4, MAX_PACK))
        """Of the last pull. At first so many that a pull takes too few messages, not too many."""
        self._large = 0
        self._claims: set[asyncio.Task[None]] = set()
        self._missing: set[str] = set()
        self._set_aside = 0
        self._failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def run(self) -> None:
        """Pulls until the worker drains, and until the claims of what was pulled are answered."""
        puller: Puller | None = None
        failures = 0
        while not self._core.draining.is_set():
            consumer = self._registration.consumers.get(self.name)
            if puller is not None and puller.consumer != consumer:
                self._spawn(self._end(puller))
                puller = None
            if consumer is None:
                # No tool of the pool is accepted yet.
                await until(self._change, 1.0)
                self._change.clear()
                continue
            puller = puller or Puller(self._core.link, consumer)
            try:
                await self._pull(puller)
                failures = 0
            except Outage as error:
                failures += 1
                wait = backoff(failures, 0.1, 1.0)
                log.warning("Failed to pull jobs pool=%s wait_s=%.1f error=%s", self.name, wait, error)
                await until(self._core.draining, wait)
        if puller is not None:
            await self._end(puller)
        while self._claims:
            await asyncio.wait(self._claims)
        if self._failed.done():
            self._failed.result()

    def _spawn(self, work: Any) -> None:
        task = asyncio.create_task(work)
        self._claims.add(task)
        task.add_done_callback(self._spawned_ended)

    def _spawned_ended(self, task: asyncio.Task[None]) -> None:
        self._claims.discard(task)
        # Permits are missing then: the worker has to end, and to say why.
        if not task.cancelled() and (error := task.exception()) is not None and not self._failed.done():
            self._failed.set_exception(error)

    async def _pull(self, puller: Puller) -> None:
        """Waits for permits and jobs, and claims what came. Returns when the worker drains, or has another consumer."""
        self._change.clear()
        pulling = asyncio.create_task(self._next(puller))
        others = {asyncio.create_task(event.wait()) for event in (self._core.draining, self._change)}
        try:
            everything: set[asyncio.Future[Any]] = {pulling, self._failed, *others}
            await asyncio.wait(everything, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for other in others:
                other.cancel()
            if not pulling.done():
                # It holds no job while it waits.
                pulling.cancel()
                await asyncio.wait({pulling})
        if self._failed.done():
            self._failed.result()
        messages = [] if pulling.cancelled() else pulling.result()
        if self._core.draining.is_set():
            for message in messages:
                await answer(self._core.link, message, b"-NAK")
            return
        jobs: list[Job] = []
        taken = 0
        for message in messages:
            more = await self._take(message, puller.consumer)
            taken += bool(more)
            jobs += more
        if taken:
            count = len(jobs) + sum(len(job.rest.jobs) for job in jobs if job.rest is not None)
            self._jobs_per_message = -(-count // taken)
        for of_claim in claims(jobs):
            self._spawn(self._claim(of_claim))

    async def _next(self, puller: Puller) -> list[Msg]:
        await self._core.may_claim()
        await self._reporter.wait_for_capacity()
        await self._permits.wait()
        free = min(self._permits.free, MAX_CLAIM)
        return await puller.next(-(-free // self._jobs_per_message))

    async def _end(self, puller: Puller) -> None:
        """Gives back what still arrives."""
        for message in await puller.end():
            await answer(self._core.link, message, b"-NAK")

    async def _take(self, message: Msg, consumer: str) -> list[Job]:
        """Reads a message and takes permits for its jobs, as many as there are; the others go back with the claim. A message of
        which no job can run here is discarded, or given back."""
        try:
            tool, packed = unpack(message.data)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            if is_newer(message):
                # Delivered again a little later, perhaps to a worker that can read it.
                if not self._set_aside:
                    log.warning("Set aside a job of a newer version that cannot be read: see UPGRADING.md error=%r", error)
                self._set_aside += 1
                await answer(self._core.link, message, b'-NAK {"delay": 5000000000}')
                return []
            log.error("Discarded a job that could not be parsed error=%r", error)
            await answer(self._core.link, message, b"+TERM")
            return []
        if tool not in self._tools:
            # Left over from workers with other tools. It is only a hint: it is published again where the tool is.
            await answer(self._core.link, message, b"+ACK")
            if tool not in self._missing:
                self._missing.add(tool)
                log.warning("Discarded a job whose tool this worker does not have tool=%s", tool)
            return []
        delivery = Delivery(message, len(packed))
        jobs: list[Job] = []
        for one in packed:
            job = Job(delivery, one["call"], one["attempt"], tool, one["bytes"])
            if self._permits.free <= 0 or (job.is_large and self._large >= LARGE):
                break
            self._large += job.is_large
            self._permits.free -= 1
            jobs.append(job)
        if not jobs:
            await answer(self._core.link, message, b"-NAK" if self._permits.free <= 0 else b'-NAK {"delay": 1000000000}')
            return []
        if rest := packed[len(jobs) :]:
            jobs[0].rest = Returned(consumer, tool, rest)
        return jobs

    async def _claim(self, jobs: list[Job]) -> None:
        claim, sent, lasts = str(uuid.uuid4()), time.monotonic(), self._core.claim_time()
        # A job that is held has nothing to do with the rest of its message.
        rests = [(job.delivery, job.rest) for job in jobs if job.rest is not None]
        back = returned(jobs)
        if lasts is None:
            await self._give_back(jobs, rests)
            return
        jobs = await self._without_held(jobs)
        if not jobs and not back:
            return
        request: dict[str, Any] = {"claim": claim, "worker": self._core.id, "not_after": lasts.not_after}
        request["jobs"] = [job.ref for job in jobs]
        if back:
            request["returned"] = back
        reply, failures = await self._ask(request, lasts)
        if reply is None:
            await self._give_back(jobs, rests)
        else:
            await self._start_granted(jobs, reply, claim, sent, lasts, failures)
            for delivery, rest in rests:
                # Without an answer to the first request it is not known whether they were published again. Twice is harmless.
                await delivery.done(self._core.link, len(rest.jobs), back=failures > 0)
        if failures > 0:
            # A copy of the request may be granted until then, also what another copy was not granted, and nobody would run it.
            await asyncio.sleep(max(0.0, lasts.over_at - time.monotonic()))
            await self._release_unheld(jobs, claim)
            # A worker that ends does not wait.
            await until(self._core.draining, lasts.over_at + LOCKED - time.monotonic())
            await self._release_unheld(jobs, claim)

    async def _without_held(self, jobs: list[Job]) -> list[Job]:
        """Acknowledges the jobs of attempts that are active already, and returns the others. Either they are old copies, or the
        database has lost the grants: it takes them back from a heartbeat, and must not grant the attempts to another claim before."""
        held = [job for job in jobs if self._attempts.holds_attempt(job.call, job.attempt)]
        for job in held:
            self._done(job)
            await job.delivery.done(self._core.link)
        if held:
            self._core.heartbeat_now.set()
        return [job for job in jobs if job not in held]

    async def _release_unheld(self, jobs: list[Job], claim: str) -> None:
        """Releases what of a claim the worker does not run."""
        grants = [job.grant(claim) for job in jobs]
        await release(self._core, [grant for grant in grants if not self._attempts.find([grant])])

    async def _start_granted(
        self,
        jobs: list[Job],
        reply: dict[str, Any],
        claim: str,
        sent: float,
        lasts: ClaimTime,
        failures: int,
    ) -> None:
        """Starts what was granted, and releases what comes too late. What was perhaps refused only because its time was over goes
        back to the stream."""
        in_time = time.monotonic() < lasts.lasts_until
        self._core.set_lease(reply["lease_ms"])
        # The lease may have begun with the first request, whose reply was lost.
        lease_ends = self._core.lease_from(sent)
        waiting = {(job.call, job.attempt): job for job in jobs}
        for copy in jobs:
            # Of several copies of one job one is granted.
            if waiting[copy.call, copy.attempt] is not copy:
                self._done(copy)
        late: list[Grant] = []
        for grant in reply["grants"]:
            job = waiting.pop((grant["call"], grant["attempt"]), None)
            may_start = time.monotonic() < lease_ends and not self._core.draining.is_set()
            if job is None or not may_start or not self._start(job, grant, claim, sent):
                late.append({"call": grant["call"], "attempt": grant["attempt"], "claim": claim})
                if job is not None:
                    self._done(job)
        for job in waiting.values():
            self._done(job)
        for job in jobs:
            # From here on the leases guard the calls.
            await job.delivery.done(self._core.link, back=not in_time and (job.call, job.attempt) in waiting)
        await release(self._core, late)

    def _start(self, job: Job, grant: dict[str, Any], claim: str, sent: float) -> bool:
        return self._attempts.start(self._tools[job.tool], grant, claim, sent, lambda: self._done(job))

    def _done(self, job: Job) -> None:
        """Its function has ended, or was not started."""
        self._large -= job.is_large
        self._permits.release()

    async def _ask(self, request: dict[str, Any], lasts: ClaimTime) -> tuple[dict[str, Any] | None, int]:
        """Repeats a claim until a dispatcher answers, or until nothing is granted any more; says how often it failed. Its id stays
        the same, so a dispatcher that granted it grants it again. Only the first request gives jobs back: each copy would publish
        them once more."""
        failures = 0
        while True:
            try:
                return await self._core.request("claim", request, failures), failures
            except (Outage, Refused) as error:
                failures += 1
                request.pop("returned", None)
                log.warning("Failed to claim jobs jobs=%d failures=%d error=%s", len(request["jobs"]), failures, error)
                if isinstance(error, Refused) or time.monotonic() >= lasts.over_at:
                    return None, failures
            await asyncio.sleep(self._core.pause(failures))

    async def _give_back(self, jobs: list[Job], rests: list[tuple[Delivery, Returned]]) -> None:
        """Nothing of it was started, and no dispatcher answers."""
        for job in jobs:
            self._done(job)
            await job.delivery.done(self._core.link, back=True)
        for delivery, rest in rests:
            await delivery.done(self._core.link, len(rest.jobs), back=True)


async def answer(link: Link, message: Msg, word: bytes) -> None:
    """Answers a delivery. If that is lost, the job is delivered again, and not granted again."""
    with suppress(Outage):
        await link.publish(message.reply, word)
