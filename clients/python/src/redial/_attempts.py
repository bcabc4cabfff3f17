"""The attempts of this worker, from the grant until the report is on record.

Several events can end an attempt: its function ends, its deadline passes, its lease expires or is lost, its call is cancelled,
the worker ends. The first of them counts. They can also end it while its arguments are fetched: nothing was started then.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal

from redial._core import Core, Grant, Key, key_of, log
from redial._link import Refused
from redial._outcome import Outcome, report_of
from redial._pieces import FETCH, arguments
from redial._report import Reporter
from redial._run import Execution, Runner
from redial.context import Context
from redial.tool import Tool

Reason = Literal["timeout", "lease", "lost", "cancelled", "shutdown"]
"""What ended an attempt before its function did."""

STOP = 2.0
"""Seconds that a function which was stopped may take to end."""

LOOK = 0.5
"""Seconds after which it is looked again whether a lease has ended: it may have become shorter."""


@dataclass
class Attempt:
    """An active attempt."""

    grant: Grant
    effect: str
    timeout: float
    """Seconds that its function may take."""
    lease_ends: float
    deadline: float
    """Until when its function may run; before it starts: until when its arguments are fetched."""
    stopped: asyncio.Future[Reason]
    running: bool = True
    started: bool = False
    """Its function has started."""

    @property
    def key(self) -> Key:
        """What it is known by."""
        return key_of(self.grant)

    @property
    def may_run_twice(self) -> bool:
        """Whether another worker may be granted it after this one. An effect of a newer version is treated like `unsafe`."""
        return self.effect in ("read", "idempotent", "keyed")

    @property
    def ends_with_lease(self) -> bool:
        """Whether the end of its lease stops it: nobody else is granted an attempt of an unsafe tool that has started."""
        return self.may_run_twice or not self.started

    def stop(self, reason: Reason) -> None:
        """Ends it, unless something else has."""
        if not self.stopped.done():
            self.stopped.set_result(reason)


class Attempts:
    """Runs granted attempts, and reports or releases them."""

    def __init__(self, core: Core, runner: Runner, reporter: Reporter) -> None:
        self._core = core
        self._runner = runner
        self._reporter = reporter
        self._of_call: dict[str, dict[Key, Attempt]] = {}
        """The active ones, by call: at most one runs, and reports of others are not on record yet."""
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self, tool: Tool, grant: dict[str, Any], claim: str, sent: float, done: Callable[[], None]) -> bool:
        """Starts a granted attempt; says whether. It does not if another grant of the call runs, or is of the same attempt or a
        later one: a database that was restored does not know of that one. Its claim was sent at `sent`. Arguments that did not fit
        into the answer are fetched first. `done` is called when its function has ended, or will not start."""
        granted: Grant = {"call": grant["call"], "attempt": grant["attempt"], "claim": claim}
        others = self._of_call.get(granted["call"], {}).values()
        if any(other.running or other.grant["attempt"] >= granted["attempt"] for other in others):
            log.warning("Gave back a grant of a call that is active already call=%s attempt=%s", *key_of(granted)[:2])
            return False
        stopped: asyncio.Future[Reason] = asyncio.get_running_loop().create_future()
        timeout, lease_ends = grant["timeout_ms"] / 1000, self._core.lease_from(sent)
        attempt = Attempt(granted, grant["effect"], timeout, lease_ends, sent + FETCH, stopped)
        self._of_call.setdefault(granted["call"], {})[attempt.key] = attempt
        if grant.get("apart"):
            work = self._fetch_and_run(attempt, tool, grant, done)
        else:
            work = self._run(attempt, self._execute(attempt, tool, grant, done))
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return True

    def _execute(self, attempt: Attempt, tool: Tool, grant: dict[str, Any], done: Callable[[], None]) -> Execution:
        """Starts the function of an attempt: its time begins."""
        context = _context(grant, attempt.timeout)
        attempt.deadline, attempt.started = context.deadline, True
        execution = self._runner.start(tool, grant["arguments"], context)
        execution.ended.add_done_callback(lambda _: done())
        return execution

    @property
    def _active(self) -> Iterable[Attempt]:
        return (attempt for of_call in self._of_call.values() for attempt in of_call.values())

    def grants(self) -> list[Grant]:
        """The active grants, those of ended attempts included: their leases are renewed until they are on record."""
        return [attempt.grant for attempt in self._active]

    def holds_attempt(self, call: str, attempt: int) -> bool:
        """Whether this attempt is active, under any claim."""
        return any(one.grant["attempt"] == attempt for one in self._of_call.get(call, {}).values())

    def find(self, grants: Iterable[Grant] | None) -> list[Attempt]:
        """Those of these grants that are active."""
        found = [self._of_call.get(grant["call"], {}).get(key_of(grant)) for grant in grants or ()]
        return [attempt for attempt in found if attempt is not None]

    def renew(self, grants: Iterable[Grant], lease_ends: float) -> None:
        """Says when leases end, as the last heartbeat was answered. That is earlier than before if leases are shorter now."""
        for attempt in self.find(grants):
            attempt.lease_ends = lease_ends

    def forget(self, grants: Iterable[Grant] | None) -> None:
        """They are on record, or another worker's."""
        for grant in grants or ():
            self._remove(key_of(grant))
            self._reporter.forget(key_of(grant))

    def _remove(self, key: Key) -> None:
        of_call = self._of_call.get(key[0], {})
        of_call.pop(key, None)
        if not of_call:
            self._of_call.pop(key[0], None)

    def lose(self, grants: Iterable[Grant] | None) -> None:
        """They are no longer this worker's: stops them, and reports nothing."""
        grants = list(grants or ())
        for attempt in self.find(grants):
            if attempt.running:
                log.warning("Lost a lease; stopping its attempt call=%s attempt=%s", *attempt.key[:2])
            attempt.stop("lost")
        self.forget(grants)

    def cancel(self, grants: Iterable[Grant] | None) -> None:
        """Their calls are cancelled."""
        for attempt in self.find(grants):
            attempt.stop("cancelled")

    def stop_all(self) -> int:
        """Stops what still runs, because the worker ends; says how many."""
        running = [attempt for attempt in self._active if attempt.running]
        for attempt in running:
            attempt.stop("shutdown")
        return len(running)

    async def idle(self) -> None:
        """Waits until no attempt runs, and those that were stopped are reported or released."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    async def _fetch_and_run(self, attempt: Attempt, tool: Tool, grant: dict[str, Any], done: Callable[[], None]) -> None:
        fetching = asyncio.create_task(arguments(self._core, attempt.grant))
        await self._first_end(attempt, fetching)
        found = fetching.result() if fetching.done() else None
        if found is None or attempt.stopped.done() or self._core.draining.is_set():
            fetching.cancel()
            done()
            await self._end_unstarted(attempt)
            return
        await self._run(attempt, self._execute(attempt, tool, {**grant, "arguments": found}, done))

    async def _end_unstarted(self, attempt: Attempt) -> None:
        """Reports or releases an attempt whose function was not started, whatever its effect."""
        attempt.running = False
        reason = attempt.stopped.result() if attempt.stopped.done() else None
        if reason == "timeout":
            log.warning("Gave up fetching arguments: it took too long call=%s attempt=%s", *attempt.key[:2])
        if reason == "cancelled":
            outcome = Outcome.failed("cancelled", "the call was cancelled before the tool started", effect_possible=False)
            self._reporter.send(attempt.key, report_of(attempt.grant, 0.0, outcome))
            return
        await self._give_back(attempt, reason)

    async def _run(self, attempt: Attempt, execution: Execution) -> None:
        started = time.monotonic()
        reason = await self._first_end(attempt, execution.ended)
        if reason is not None:
            execution.stop()
            await asyncio.wait({execution.ended}, timeout=STOP)
        attempt.running = False
        outcome = _outcome(reason, attempt, execution)
        if outcome is not None:
            report = report_of(attempt.grant, time.monotonic() - started, outcome)
            self._reporter.send(attempt.key, report)
            return
        await self._give_back(attempt, reason)

    async def _give_back(self, attempt: Attempt, reason: Reason | None) -> None:
        # Before the release, because a dispatcher may grant the same attempt to this worker again.
        self._remove(attempt.key)
        if reason != "lost":
            await release(self._core, [attempt.grant])

    async def _first_end(self, attempt: Attempt, ended: asyncio.Future[Any]) -> Reason | None:
        """What ends the attempt; nothing if its function, or the fetch before it, does."""
        while not (ended.done() or attempt.stopped.done()):
            now = time.monotonic()
            if now >= attempt.deadline:
                attempt.stop("timeout")
            elif attempt.ends_with_lease and now >= attempt.lease_ends:
                log.error("Stopped an attempt because its lease expired call=%s attempt=%s", *attempt.key[:2])
                attempt.stop("lease")
            else:
                wait = (min(attempt.deadline, attempt.lease_ends) if attempt.ends_with_lease else attempt.deadline) - now
                futures: set[asyncio.Future[Any]] = {ended, attempt.stopped}
                await asyncio.wait(futures, timeout=min(wait, LOOK), return_when=asyncio.FIRST_COMPLETED)
        # An attempt that is another worker's is not reported, even if its function has ended meanwhile.
        if attempt.stopped.done() and (attempt.stopped.result() == "lost" or not ended.done()):
            return attempt.stopped.result()
        return None


def _context(grant: dict[str, Any], timeout: float) -> Context:
    return Context(
        call=grant["call"],
        tool=grant["tool"],
        attempt=grant["attempt"],
        idempotency_key=grant["idempotency_key"],
        tenant=grant["tenant"],
        timeout=timeout,
        conversation=grant.get("conversation"),
        task=grant.get("task"),
        traceparent=grant.get("traceparent"),
        deadline=time.monotonic() + timeout,
    )


def _outcome(reason: Reason | None, attempt: Attempt, execution: Execution) -> Outcome | None:
    """What is reported; nothing if the attempt is lost, or is released instead. An unsafe tool may have had its effect, so its
    attempt is never released."""
    ended = execution.ended.result() if execution.ended.done() else None
    if reason is None:
        return ended
    if reason == "lost":
        return None
    if ended is not None and ended.output is not None and not execution.can_be_stopped:
        # It could not be stopped, and has done all of its work.
        return ended
    how = "the tool was stopped" if ended is not None else "the tool could not be stopped, and may still be running"
    if reason == "timeout":
        return Outcome.failed("timeout", f"the tool did not finish within {attempt.timeout:g} s; {how}")
    if reason == "cancelled":
        return Outcome.failed("cancelled", f"the call was cancelled while the tool ran; {how}")
    if attempt.may_run_twice:
        return None
    return Outcome.failed("lost", f"the worker was shut down while the tool ran; {how}")


RELEASE, RELEASE_DRAINING = 3600.0, 10.0
"""Seconds after which the worker gives up a release; the attempt then counts as lost."""


async def release(core: Core, grants: list[Grant]) -> None:
    """Gives attempts back, so that they do not count. Repeats the request until a dispatcher answers. What was not granted stays as
    it is."""
    began, failures = time.monotonic(), 0
    while grants:
        try:
            reply = await core.request("release", {"worker": core.id, "jobs": grants}, failures)
            if reply.get("released"):
                log.info("Released attempts requested=%d released=%s", len(grants), reply["released"])
            return
        except Exception as error:
            failures += 1
            log.warning("Failed to release attempts attempts=%d error=%s", len(grants), error)
            if isinstance(error, Refused):
                return
        if time.monotonic() - began >= (RELEASE_DRAINING if core.draining.is_set() else RELEASE):
            return
        await asyncio.sleep(core.pause(failures))
