"""A Redial worker over the wire contract alone: `proto/schemas` says how messages look, `docs/PROTOCOL.md` what they
mean. Copy this file beside your tools. It needs Python 3.10 and nats-py, nothing else.

One job's life is `Worker._job`, read downwards: claim, run, report or give back.
"""

import asyncio
import json
import logging
import os
import random
import re
import signal
import sys
import time
import uuid
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timezone

import nats

from redial_outcome import encode, failure, message_of, result

log = logging.getLogger("redial")

# What an outage of NATS or of the dispatchers looks like from here.
OUTAGES = (nats.errors.Error, OSError, asyncio.TimeoutError)
# Seconds after which a claim that nobody answers is given back.
CLAIM_GIVES_UP = 20
# Seconds that reports and releases get to arrive when the process ends.
FLUSH = 10


class Refused(Exception):
    """A dispatcher said no, and would say it again."""


@dataclass
class Context:
    """What a tool may know besides its arguments."""

    call: str
    attempt: int
    idempotency_key: str  # the same in every attempt of the call: give it to whoever can tell repetitions by it
    deadline: float  # by time.monotonic()

    def remaining(self):
        """Seconds until the deadline."""
        return max(0.0, self.deadline - time.monotonic())


@dataclass
class Held:
    """An attempt that this worker answers for: from the grant until its report is on record. Whoever ends it first
    wins: the tool, its deadline, the end of its lease, a dispatcher's word, the shutdown."""

    ref: dict
    claim: str
    grant: dict
    lease: float  # by time.monotonic(); the heartbeat moves it
    context: Context
    stop: asyncio.Future = field(default_factory=lambda: asyncio.get_running_loop().create_future())
    recorded: asyncio.Event = field(default_factory=asyncio.Event)

    def end(self, why):
        if not self.stop.done():
            self.stop.set_result(why)


class Worker:
    """Runs tools for Redial's dispatchers until SIGTERM or SIGINT."""

    def __init__(self, name="python", pool="default", slots=8, grace=30.0):
        self.id = f"{re.sub('[^A-Za-z0-9]', '-', name)[:40]}-{uuid.uuid4().hex[:12]}"
        self.pool, self.slots, self.grace = pool, slots, grace
        self.tools, self.held, self.jobs = {}, {}, set()
        self.lease = 15.0  # until the first claim says better
        self.started = datetime.now(timezone.utc).isoformat()

    def tool(self, parameters, effect="unsafe", timeout=30.0, **spec):
        """Makes an `async def tool(arguments, context)` a tool; its docstring is what models read. When its time is up
        it is cancelled; what it left to a thread runs on. `spec` may hold any other field of `tool_spec.json`."""

        def add(function):
            described = {"name": function.__name__, "description": (function.__doc__ or "").strip(), "effect": effect}
            described |= {"parameters": parameters, "pool": self.pool, "timeout_ms": int(timeout * 1000)} | spec
            self.tools[described["name"]] = (described, function)
            return function

        return add

    def run(self):
        """Connects as REDIAL_NATS_URL and REDIAL_NATS_INBOX_PREFIX say, and works."""
        url = os.environ.get("REDIAL_NATS_URL", "nats://127.0.0.1:4222")
        try:
            asyncio.run(self._run(url, os.environ.get("REDIAL_NATS_INBOX_PREFIX", "_INBOX")))
        except Refused as refusal:
            sys.exit(f"error: {refusal}")

    async def _run(self, url, inbox_prefix):
        self.draining, self.free = asyncio.Event(), asyncio.Semaphore(self.slots)
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, self.draining.set)
        self.nats = await nats.connect(
            url, name=self.id, inbox_prefix=inbox_prefix, max_reconnect_attempts=-1, reconnect_time_wait=0.5,
            ping_interval=5, error_cb=self._connection_failed)
        self.jetstream = self.nats.jetstream(timeout=2)
        await self.nats.subscribe(f"redial.worker.{self.id}", cb=self._notice)
        await self._announce()
        log.info("worker %s is ready with %s", self.id, ", ".join(self.tools))
        renewing, pulling = asyncio.create_task(self._renew()), asyncio.create_task(self._pull())
        await self.draining.wait()
        await self._drain(pulling)
        renewing.cancel()
        await self.nats.close()
        log.info("drained")

    async def _drain(self, pulling):
        """Lets the running jobs finish within the grace and gives the rest back."""
        log.info("draining: no more jobs are taken")
        if self.jobs:
            await asyncio.wait(self.jobs, timeout=self.grace)
        for held in self.held.values():
            held.end("shutdown")
        await asyncio.wait({pulling, *self.jobs}, timeout=FLUSH)
        if self.jobs:
            log.error("%d jobs are not settled; their leases end by themselves", len(self.jobs))

    # ---- What dispatchers are told and say ---------------------------------------------------------------------------

    async def _ask(self, subject, message, timeout):
        reply = await self.nats.request(subject, encode(message), timeout=timeout)
        body = json.loads(reply.data)
        if code := (reply.headers or {}).get("redial-error"):
            text = f"{subject}: {body['message']} [{code}]"
            raise nats.errors.Error(text) if code == "unavailable" else Refused(text)
        return body

    async def _announce(self):
        registration = {"worker": self.id, "started_at": self.started, "slots": self.slots, "version": "python-worker",
                        "tools": [spec for spec, _ in self.tools.values()]}
        while not self.draining.is_set():
            try:
                return await self._ask("redial.ctl.register", registration, timeout=5)
            except OUTAGES as error:
                log.warning("cannot register this worker: %r", error)
                await asyncio.sleep(random.uniform(0.2, 1))

    async def _renew(self):
        """The heartbeat: renews the leases of all that is held, every third of a lease."""
        while True:
            pause = self.lease / 20
            try:
                await self._beat()
                pause = self.lease / 3
            except (*OUTAGES, Refused) as error:
                log.warning("a heartbeat failed: %r", error)
            await asyncio.sleep(pause)

    async def _beat(self):
        held, sent = list(self.held.values()), time.monotonic()
        heartbeat = {"worker": self.id, "running": [one.ref for one in held], "slots": self.slots,
                     "draining": self.draining.is_set()}
        reply = await self._ask("redial.ctl.heartbeat", heartbeat, timeout=self.lease / 5)
        for one in held:
            one.lease = max(one.lease, self._lease_from(sent))
        for one in self._find(reply.get("lost")):
            one.end("lost")
            one.recorded.set()  # nobody wants its report any more
        for one in self._find(reply.get("cancelled")):
            one.end("cancelled")
        if reply.get("register"):
            await self._announce()

    def _lease_from(self, sent):
        """Counted from when the request left, and ended a little early: the tool must be dead when another worker may
        start it."""
        return sent + self.lease - min(1, self.lease / 10)

    async def _notice(self, message):
        notice = json.loads(message.data)
        for one in self._find(notice.get("ingested")):
            one.recorded.set()
        for one in self._find(notice.get("cancelled")):
            one.end("cancelled")

    def _find(self, refs):
        held = [self.held.get((ref["call"], ref["attempt"])) for ref in refs or []]
        return [one for one in held if one]

    async def _connection_failed(self, error):
        log.warning("NATS: %r", error)

    # ---- One job ----------------------------------------------------------------------------------------------------

    async def _pull(self):
        """Takes one job for each free slot, until the worker drains."""
        source = await self.jetstream.pull_subscribe_bind(consumer=self.pool, stream="JOBS")
        while True:
            await self.free.acquire()
            message = None
            while message is None and not self.draining.is_set():
                try:
                    [message] = await source.fetch(1, timeout=1)
                except asyncio.TimeoutError:
                    pass  # no job
                except OUTAGES as error:
                    log.warning("cannot pull jobs: %r", error)
                    await asyncio.sleep(0.5)
            if message is None:
                return
            job = asyncio.create_task(self._job(message))
            self.jobs.add(job)
            job.add_done_callback(self.jobs.discard)

    async def _job(self, message):
        held = report = None
        try:
            held = await self._claim(message)
            report = held and await self._execute(held)
        finally:
            self.free.release()  # before the report, so that the next job does not wait for it
        if held is None:
            return
        if report:
            await self._report(held, report)
        # Before the release: a released attempt may be granted to this very worker again.
        del self.held[held.ref["call"], held.ref["attempt"]]
        if not report and held.stop.result() != "lost":
            await self._release(held.ref, held.claim)

    async def _claim(self, message):
        """Asks for the right to run a job. Only what is granted may run."""
        try:
            job = json.loads(message.data)
            ref, known = {"call": job["call"], "attempt": job["attempt"]}, job["tool"] in self.tools
        except (ValueError, KeyError, TypeError) as error:
            log.error("a job that is none was thrown away: %r", error)
            return await message.term()
        if not known or self.draining.is_set():
            return await message.nak()
        claim, sent = str(uuid.uuid4()), time.monotonic()
        reply = await self._granted({"claim": claim, "worker": self.id, "jobs": [ref]}, sent)
        if reply is None:  # it may have been granted all the same; nothing was started
            return await self._release(ref, claim)
        await message.ack()  # from here on the lease guards the call
        self.lease = reply["lease_ms"] / 1000
        for grant in reply["grants"]:
            deadline = sent + grant["timeout_ms"] / 1000
            context = Context(ref["call"], ref["attempt"], grant["idempotency_key"], deadline)
            held = Held(ref, claim, grant, self._lease_from(sent), context)
            if self.draining.is_set() or time.monotonic() >= min(held.lease, deadline):
                return await self._release(ref, claim)
            self.held[ref["call"], ref["attempt"]] = held
            return held

    async def _granted(self, request, sent):
        """Asks with the same claim until there is an answer, so that a lost answer costs nothing."""
        while True:
            try:
                return await self._ask("redial.ctl.claim", request, timeout=self.lease / 5)
            except (*OUTAGES, Refused) as error:
                log.warning("a claim failed: %r", error)
                late = time.monotonic() - sent >= CLAIM_GIVES_UP
                if isinstance(error, Refused) or late or self.draining.is_set():
                    return None
            await asyncio.sleep(random.uniform(0, self.lease / 10))

    async def _execute(self, held):
        """Runs the tool; returns what is to be reported, or nothing if the attempt is lost or to be given back."""
        started, (_, function) = time.monotonic(), self.tools[held.grant["tool"]]
        tool = asyncio.create_task(function(held.grant["arguments"], held.context))
        while not (tool.done() or held.stop.done()):
            now = time.monotonic()
            if now >= held.context.deadline:
                held.end("timeout")
            elif now >= held.lease:
                held.end("lease")
            else:
                wait = min(held.context.deadline, held.lease) - now
                await asyncio.wait({tool, held.stop}, timeout=wait, return_when=asyncio.FIRST_COMPLETED)
        if tool.done():
            end = result(tool)
        else:
            tool.cancel()
            await asyncio.wait({tool}, timeout=2)
            end = stopped(held.stop.result(), held.grant["effect"])
        return end and held.ref | {"duration_ms": int((time.monotonic() - started) * 1000)} | end

    async def _report(self, held, report):
        """Sends a report again and again until a dispatcher says that it is on record."""
        payload, pause = message_of(self.id, report), 5
        while not held.recorded.is_set():
            wait = 0.5
            try:
                await self.jetstream.publish("redial.results", payload)
                wait, pause = pause, min(60, pause * 2)
            except OUTAGES as error:
                log.warning("a report could not be sent, trying again: %r", error)
            with suppress(asyncio.TimeoutError):
                await asyncio.wait_for(held.recorded.wait(), wait)

    async def _release(self, ref, claim):
        """Gives an attempt back, so that it does not count."""
        request = {"worker": self.id, "jobs": [ref | {"claim": claim}]}
        while True:
            try:
                await self._ask("redial.ctl.release", request, timeout=self.lease / 5)
                return log.info("call %s was given back", ref["call"])
            except Refused as error:
                return log.error("call %s could not be given back: %s", ref["call"], error)
            except OUTAGES as error:
                log.warning("call %s could not be given back, trying again: %r", ref["call"], error)
            await asyncio.sleep(random.uniform(0, self.lease / 10))


def stopped(why, effect):
    """What is reported of a tool that was stopped half-way. What may run twice is given back instead, and does not
    count; how far an unsafe tool came, nobody knows."""
    if why == "timeout":
        return failure("timeout", "the tool was not done at its deadline")
    if why == "cancelled":
        return failure("cancelled", "cancelled while it ran; the tool was stopped")
    if why in ("shutdown", "lease") and effect == "unsafe":
        return failure("lost", f"stopped half-way by the end of its {'worker' if why == 'shutdown' else 'lease'}")
    return None
