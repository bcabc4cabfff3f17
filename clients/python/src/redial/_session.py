"""One run of a worker: from the connection to the end of its drain. It has a thread and a loop of its own."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from typing import Any

from nats.aio.msg import Msg

from redial._attempts import Attempts
from redial._claim import Pool
from redial._core import Core, Settings, log
from redial._heartbeat import Heartbeat
from redial._redact import Redactor
from redial._register import Registration
from redial._report import Reporter
from redial._run import Runner
from redial.tool import Tool

FLUSH = 10.0
"""Seconds that the last reports may take to be on record."""


class Session:
    """See the module. `limits` is how many calls of each pool run at once. Its methods may be called from any thread."""

    def __init__(
        self,
        settings: Settings,
        tools: Mapping[str, Tool],
        limits: Mapping[str, int],
        version: str,
        on_ready: Callable[[], None],
    ) -> None:
        self._settings, self._tools, self._limits, self._version = settings, dict(tools), dict(limits), version
        self._on_ready = on_ready
        # A signal handler takes it, perhaps while it is held.
        self._lock = threading.RLock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop = asyncio.Event()
        self._kill = asyncio.Event()
        self._stops = 0

    def stop(self) -> None:
        """Drains the worker. The second time the grace period ends at once."""
        with self._lock:
            self._stops += 1
            if self._loop is not None:
                with suppress(RuntimeError):  # it has ended
                    self._loop.call_soon_threadsafe(self._note_stops)

    def _note_stops(self) -> None:
        if self._stops > 0:
            self._stop.set()
        if self._stops > 1:
            self._kill.set()

    def run(self, tool_loop: asyncio.AbstractEventLoop) -> None:
        """Runs until `stop` and the end of the drain. Raises `Refused`."""
        asyncio.run(self._run(tool_loop))

    async def _run(self, tool_loop: asyncio.AbstractEventLoop) -> None:
        with self._lock:
            self._loop = asyncio.get_running_loop()
            self._note_stops()
        core = Core(self._settings)
        # The login of NATS is a secret, too.
        login = core.link.secrets()
        runner = Runner(tool_loop, Redactor([*self._settings.secrets, *login]))
        reporter = Reporter(core)
        attempts = Attempts(core, runner, reporter)
        slots = sum(self._limits.values())
        registration = Registration(core, self._tools, self._limits, self._version)
        parts = _Parts(core, attempts, reporter, registration, Heartbeat(core, attempts, slots))
        try:
            if await self._unless_stopped(self._begin(core, attempts, registration)):
                await self._work(parts)
        finally:
            await runner.close()
            await core.link.close()

    async def _unless_stopped(self, beginning: Coroutine[Any, Any, None]) -> bool:
        """Whether the beginning came to its end before the worker was stopped."""
        begin = asyncio.create_task(beginning)
        stop = asyncio.create_task(self._stop.wait())
        await asyncio.wait({begin, stop}, return_when=asyncio.FIRST_COMPLETED)
        stop.cancel()
        if not begin.done():
            begin.cancel()
            await asyncio.wait({begin})
            return False
        begin.result()
        return True

    async def _begin(self, core: Core, attempts: Attempts, registration: Registration) -> None:
        async def handle(message: Msg) -> None:
            _handle(message, attempts)

        await core.link.start()
        # Before the first claim, so that the worker misses nothing.
        await core.link.handle(f"redial.worker.{self._settings.name}.{core.id}", handle)
        await registration.register()
        log.info("Worker started worker=%s slots=%d tools=%s", core.id, sum(self._limits.values()), ",".join(self._tools))
        self._on_ready()

    async def _work(self, parts: _Parts) -> None:
        background = [
            asyncio.create_task(loop) for loop in (parts.reporter.run(), parts.heartbeat.run(), parts.registration.keep())
        ]
        pools = [asyncio.create_task(parts.pool(name, limit, self._tools).run()) for name, limit in self._limits.items()]
        stop = asyncio.create_task(self._stop.wait())
        try:
            await asyncio.wait({stop, *background, *pools}, return_when=asyncio.FIRST_COMPLETED)
            await self._drain(parts, pools)
            # A loop that failed has ended the worker, and says why.
            for loop in (*background, *pools):
                if loop.done():
                    loop.result()
        finally:
            for task in (stop, *background, *pools):
                task.cancel()

    async def _drain(self, parts: _Parts, pools: list[asyncio.Task[None]]) -> None:
        """Takes no more jobs, lets running calls finish within the grace period, releases the rest, and waits for the
        reports."""
        core = parts.core
        log.info("Started draining grace_s=%g", self._settings.grace)
        core.draining.set()
        core.heartbeat_now.set()

        async def finish() -> None:
            await asyncio.wait(pools)
            await parts.attempts.idle()

        finishing, kill = asyncio.create_task(finish()), asyncio.create_task(self._kill.wait())
        grace = self._settings.grace
        await asyncio.wait({finishing, kill}, timeout=grace, return_when=asyncio.FIRST_COMPLETED)
        kill.cancel()
        if not finishing.done():
            stopped = parts.attempts.stop_all()
            log.warning("Stopped the tools that still ran after the grace period attempts=%d", stopped)

        async def flush() -> None:
            # What was stopped is reported only afterwards.
            await finishing
            await parts.reporter.wait_until_recorded()

        try:
            await asyncio.wait_for(flush(), FLUSH)
        except asyncio.TimeoutError:
            reports = len(parts.reporter)
            log.error("Stopped before all reports were on record; their attempts will count as lost reports=%d", reports)
        await parts.heartbeat.say_goodbye()
        log.info("Drained")


class _Parts:
    """The parts of a running worker."""

    def __init__(
        self, core: Core, attempts: Attempts, reporter: Reporter, registration: Registration, heartbeat: Heartbeat
    ) -> None:
        self.core, self.attempts, self.reporter = core, attempts, reporter
        self.registration, self.heartbeat = registration, heartbeat

    def pool(self, name: str, limit: int, tools: Mapping[str, Tool]) -> Pool:
        """The pool of this name."""
        own = {tool.name: tool for tool in tools.values() if tool.pool == name}
        return Pool(name, limit, own, self.core, self.attempts, self.registration, self.reporter)


def _handle(message: Msg, attempts: Attempts) -> None:
    """Handles a control message of a dispatcher."""
    try:
        body = json.loads(message.data)
        attempts.forget(body.get("ingested"))
        attempts.cancel(body.get("cancelled"))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        log.error("Discarded a control message that could not be parsed error=%r", error)
