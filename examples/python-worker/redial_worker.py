"""A Redial worker that uses only the wire contract: `proto/schemas` defines the messages, `docs/PROTOCOL.md` their
meaning. Copy this file into the folder of your tools. It needs only Python 3.10 and nats-py.

`Worker._job` contains the steps of one job, in order: claim, run, then report or release.
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

# Errors that mean an outage of NATS or of the dispatchers.
OUTAGES = (nats.errors.Error, OSError, asyncio.TimeoutError)
# Seconds after which the worker releases a claim that no dispatcher answers.
CLAIM_TIMEOUT = 20
# Seconds that the last reports and releases may take when the process ends.
FLUSH_TIMEOUT = 10


class Refused(Exception):
    """A dispatcher refused a request, and would refuse it again."""


@dataclass
class Context:
    """One attempt of one call, as its tool sees it."""

    call: str
    attempt: int
    idempotency_key: str  # the same in every attempt of the call: pass it to services that detect repetitions
    tenant: str  # whose call it is: a tool that keeps data keeps it apart by this
    deadline: float  # by time.monotonic()

    def remaining(self):
        """Seconds until the deadline."""
        return max(0.0, self.deadline - time.monotonic())


@dataclass
class ActiveAttempt:
    """An attempt from its grant until its report is on record. The first of these events ends it: its tool finishes,
    its deadline passes, its lease expires or is lost, its call is cancelled, the worker shuts down."""

    ref: dict
    claim: str
    grant: dict
    lease_ends: float  # by time.monotonic(); heartbeats extend it
    context: Context
    stop: asyncio.Future = field(default_factory=lambda: asyncio.get_running_loop().create_future())
    recorded: asyncio.Event = field(default_factory=asyncio.Event)

    def end(self, reason):
        if not self.stop.done():
            self.stop.set_result(reason)


class Worker:
    """Runs tools for Redial's dispatchers until SIGTERM or SIGINT."""

    def __init__(self, name=None, pool="default", slots=8, grace=30.0):
        # The identity and the pools that the credentials are for; "+" stands for any pool.
        name = name or os.environ.get("REDIAL_WORKER_NAME", "python")
        self.name = re.sub("[^A-Za-z0-9_-]", "-", name)[:50]
        self.pools = "+".join(sorted(set(filter(None, os.environ.get("REDIAL_WORKER_POOLS", "").split(","))))) or "+"
        self.id = f"{self.name}-{uuid.uuid4().hex[:12]}"
        self.pool, self.slots, self.grace = pool, slots, grace
        self.tools, self.attempts, self.jobs = {}, {}, set()
        self.consumer = None  # brings the jobs of these tools; the reply to the registration names it
        self.lease = 15.0  # until the first reply to a claim contains the length of a lease
        self.started = datetime.now(timezone.utc).isoformat()

    def tool(self, parameters, effect="unsafe", timeout=30.0, **spec):
        """Registers an `async def tool(arguments, context)`; models read its docstring. The coroutine is cancelled
        after `timeout` seconds; threads that it started continue. `spec` takes other fields of `tool_spec.json`."""

        def add(function):
            described = {"name": function.__name__, "description": (function.__doc__ or "").strip(), "effect": effect}
            described |= {"parameters": parameters, "pool": self.pool, "timeout_ms": int(timeout * 1000)} | spec
            self.tools[described["name"]] = (described, function)
            return function

        return add

    def run(self):
        """Connects with REDIAL_NATS_URL and REDIAL_NATS_INBOX_PREFIX (`redial env` prints them), and works until SIGTERM or SIGINT."""
        url = os.environ.get("REDIAL_NATS_URL", "nats://127.0.0.1:4222")
        try:
            asyncio.run(self._run(url, os.environ.get("REDIAL_NATS_INBOX_PREFIX", "_INBOX")))
        except Refused as refusal:
            sys.exit(f"error: {refusal}")

    async def _run(self, url, inbox_prefix):
        self.draining, self.permits = asyncio.Event(), asyncio.Semaphore(self.slots)
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, self.draining.set)
        self.nats = await nats.connect(
            url, name=self.id, inbox_prefix=inbox_prefix, max_reconnect_attempts=-1, reconnect_time_wait=0.5,
            ping_interval=5, error_cb=self._connection_failed)
        self.jetstream = self.nats.jetstream(timeout=2)
        await self.nats.subscribe(f"redial.worker.{self.name}.{self.id}", cb=self._handle_control_message)
        await self._register()
        log.info("Worker started worker=%s tools=%s", self.id, ",".join(self.tools))
        heartbeats, pulling = asyncio.create_task(self._send_heartbeats()), asyncio.create_task(self._pull())
        await self.draining.wait()
        await self._drain(pulling)
        heartbeats.cancel()
        await self.nats.close()
        log.info("Drained")

    async def _drain(self, pulling):
        """Lets the running jobs finish within the grace period and releases the rest."""
        log.info("Started draining grace_s=%s", self.grace)
        if self.jobs:
            await asyncio.wait(self.jobs, timeout=self.grace)
        for attempt in self.attempts.values():
            attempt.end("shutdown")
        await asyncio.wait({pulling, *self.jobs}, timeout=FLUSH_TIMEOUT)
        if self.jobs:
            log.error("Stopped before all jobs had ended; their leases will expire jobs=%d", len(self.jobs))

    # ---- Requests to dispatchers, and messages from them ------------------------------------------------------------

    def _subject(self, verb):
        """The subject of a request: the server's permissions fix who may use it, and dispatchers believe nothing else."""
        return f"redial.ctl.{self.name}.{self.pools}.{verb}"

    async def _request(self, subject, message, timeout):
        reply = await self.nats.request(subject, encode(message), timeout=timeout)
        body = json.loads(reply.data)
        if code := (reply.headers or {}).get("redial-error"):
            text = f"{subject}: {body['message']} [{code}]"
            raise nats.errors.Error(text) if code == "unavailable" else Refused(text)
        return body

    async def _register(self):
        registration = {"worker": self.id, "started_at": self.started, "slots": self.slots, "version": "python-worker",
                        "tools": [spec for spec, _ in self.tools.values()]}
        while not self.draining.is_set():
            try:
                reply = await self._request(self._subject("register"), registration, timeout=5)
                self.consumer = reply.get("consumers", {}).get(self.pool)  # none while all tools wait
                for tool, reasons in reply.get("waiting", {}).items():
                    log.warning("A tool waits until an operator accepts it (redial tools shows how) tool=%s reasons=%s", tool, reasons)
                return
            except OUTAGES as error:
                log.warning("Failed to register the worker error=%r", error)
                await asyncio.sleep(random.uniform(0.2, 1))

    async def _send_heartbeats(self):
        """Renews the leases of all active attempts, every third of a lease."""
        while True:
            pause = self.lease / 20
            try:
                await self._heartbeat()
                pause = self.lease / 3
            except (*OUTAGES, Refused) as error:
                log.warning("Failed to send a heartbeat error=%r", error)
            await asyncio.sleep(pause)

    async def _heartbeat(self):
        attempts, sent = list(self.attempts.values()), time.monotonic()
        heartbeat = {"worker": self.id, "running": [attempt.ref for attempt in attempts], "slots": self.slots,
                     "draining": self.draining.is_set()}
        reply = await self._request(self._subject("heartbeat"), heartbeat, timeout=self.lease / 5)
        for attempt in attempts:
            attempt.lease_ends = max(attempt.lease_ends, self._lease_from(sent))
        for attempt in self._find(reply.get("lost")):
            attempt.end("lost")
            attempt.recorded.set()  # no dispatcher would accept its report
        for attempt in self._find(reply.get("cancelled")):
            attempt.end("cancelled")
        if reply.get("register"):
            await self._register()

    def _lease_from(self, sent):
        """The end of a lease that was requested at `sent`, minus a margin: the tool must have stopped when another
        worker may start it."""
        return sent + self.lease - min(1, self.lease / 10)

    async def _handle_control_message(self, message):
        body = json.loads(message.data)
        for attempt in self._find(body.get("ingested")):
            attempt.recorded.set()
        for attempt in self._find(body.get("cancelled")):
            attempt.end("cancelled")

    def _find(self, refs):
        found = [self.attempts.get((ref["call"], ref["attempt"])) for ref in refs or []]
        return [attempt for attempt in found if attempt]

    async def _connection_failed(self, error):
        log.warning("Connection to NATS failed error=%r", error)

    # ---- One job ----------------------------------------------------------------------------------------------------

    async def _pull(self):
        """Takes one job for each free permit, until the worker drains."""
        source = bound = None
        while True:
            await self.permits.acquire()
            message = None
            while message is None and not self.draining.is_set():
                try:
                    if self.consumer is None:  # no tool is accepted yet
                        await asyncio.sleep(1)
                        continue
                    if bound != self.consumer:  # as of the last registration
                        bound = self.consumer
                        source = await self.jetstream.pull_subscribe_bind(consumer=bound, stream="JOBS")
                    [message] = await source.fetch(1, timeout=1)
                except asyncio.TimeoutError:
                    pass  # no job
                except OUTAGES as error:
                    log.warning("Failed to pull jobs error=%r", error)
                    await asyncio.sleep(0.5)
            if message is None:
                return
            job = asyncio.create_task(self._job(message))
            self.jobs.add(job)
            job.add_done_callback(self.jobs.discard)

    async def _job(self, message):
        attempt = report = None
        try:
            attempt = await self._claim(message)
            report = attempt and await self._execute(attempt)
        finally:
            self.permits.release()  # before the report, so that the next job does not wait for it
        if attempt is None:
            return
        if report:
            await self._report(attempt, report)
        # Before the release, because a dispatcher may grant the released attempt to this worker again.
        del self.attempts[attempt.ref["call"], attempt.ref["attempt"]]
        if not report and attempt.stop.result() != "lost":
            await self._release(attempt.ref, attempt.claim)

    async def _claim(self, message):
        """Asks for permission to run a job. Returns the active attempt, or nothing if the job must not run here."""
        try:
            job = json.loads(message.data)
            ref, known = {"call": job["call"], "attempt": job["attempt"]}, job["tool"] in self.tools
        except (ValueError, KeyError, TypeError) as error:
            log.error("Discarded a job that could not be parsed error=%r", error)
            return await message.term()
        if not known:
            # Left over from workers with other tools. It is only a hint: dispatchers publish it again where the tool is.
            log.warning("Discarded a job whose tool this worker does not have tool=%s", job["tool"])
            return await message.ack()
        if self.draining.is_set():
            return await message.nak()
        claim, sent = str(uuid.uuid4()), time.monotonic()
        reply = await self._request_grant({"claim": claim, "worker": self.id, "jobs": [ref | {"tool": job["tool"]}]}, sent)
        if reply is None:  # a dispatcher may have granted it nevertheless; nothing was started
            return await self._release(ref, claim)
        await message.ack()  # from here on the lease guards the call
        self.lease = reply["lease_ms"] / 1000
        for grant in reply["grants"]:
            deadline = sent + grant["timeout_ms"] / 1000
            context = Context(ref["call"], ref["attempt"], grant["idempotency_key"], grant["tenant"], deadline)
            attempt = ActiveAttempt(ref, claim, grant, self._lease_from(sent), context)
            if self.draining.is_set() or time.monotonic() >= min(attempt.lease_ends, deadline):
                return await self._release(ref, claim)
            self.attempts[ref["call"], ref["attempt"]] = attempt
            return attempt

    async def _request_grant(self, request, sent):
        """Repeats a claim until a dispatcher replies. The claim id stays the same, so a dispatcher that granted it
        before grants it again."""
        while True:
            try:
                return await self._request(self._subject("claim"), request, timeout=self.lease / 5)
            except (*OUTAGES, Refused) as error:
                log.warning("Failed to claim a job error=%r", error)
                late = time.monotonic() - sent >= CLAIM_TIMEOUT
                if isinstance(error, Refused) or late or self.draining.is_set():
                    return None
            await asyncio.sleep(random.uniform(0, self.lease / 10))

    async def _execute(self, attempt):
        """Runs the tool; returns the report, or nothing if the attempt is lost or must be released."""
        started, (_, function) = time.monotonic(), self.tools[attempt.grant["tool"]]
        tool = asyncio.create_task(function(attempt.grant["arguments"], attempt.context))
        while not (tool.done() or attempt.stop.done()):
            now = time.monotonic()
            if now >= attempt.context.deadline:
                attempt.end("timeout")
            elif now >= attempt.lease_ends:
                attempt.end("lease")
            else:
                wait = min(attempt.context.deadline, attempt.lease_ends) - now
                await asyncio.wait({tool, attempt.stop}, timeout=wait, return_when=asyncio.FIRST_COMPLETED)
        if tool.done():
            end = result(tool)
        else:
            tool.cancel()
            await asyncio.wait({tool}, timeout=2)
            end = stopped(attempt.stop.result(), attempt.grant["effect"])
        duration_ms = int((time.monotonic() - started) * 1000)
        return end and attempt.ref | {"claim": attempt.claim, "duration_ms": duration_ms} | end

    async def _report(self, attempt, report):
        """Repeats a report until a dispatcher confirms that it is on record."""
        payload, pause = message_of(self.id, report), 5
        while not attempt.recorded.is_set():
            wait = 0.5
            try:
                await self.jetstream.publish(f"redial.results.{self.name}", payload)
                wait, pause = pause, min(60, pause * 2)
            except OUTAGES as error:
                log.warning("Failed to send a report error=%r", error)
            with suppress(asyncio.TimeoutError):
                await asyncio.wait_for(attempt.recorded.wait(), wait)

    async def _release(self, ref, claim):
        """Returns an attempt to the dispatchers, so that it does not count."""
        request = {"worker": self.id, "jobs": [ref | {"claim": claim}]}
        while True:
            try:
                await self._request(self._subject("release"), request, timeout=self.lease / 5)
                return log.info("Released an attempt call=%s", ref["call"])
            except Refused as error:
                return log.error("Dispatcher refused a release call=%s error=%s", ref["call"], error)
            except OUTAGES as error:
                log.warning("Failed to release an attempt call=%s error=%r", ref["call"], error)
            await asyncio.sleep(random.uniform(0, self.lease / 10))


def stopped(reason, effect):
    """The report of a tool that was stopped before it finished; nothing if the attempt is released instead. An unsafe
    tool may have had its effect, so its attempt is never released."""
    if reason == "timeout":
        return failure("timeout", "the tool did not finish before its deadline")
    if reason == "cancelled":
        return failure("cancelled", "the call was cancelled while the tool ran; the tool was stopped")
    if reason in ("shutdown", "lease") and effect == "unsafe":
        event = "the worker was shut down" if reason == "shutdown" else "the lease expired"
        return failure("lost", f"{event} while the tool ran; the tool was stopped")
    return None
