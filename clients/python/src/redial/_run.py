"""Runs the function of a tool: a coroutine in the loop of the worker's user, a blocking function in a thread or a process.

The protocol has a loop and a thread of its own, so a function that blocks where it must not costs nobody's lease.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Protocol

from redial import _outcome
from redial._outcome import NO_OUTCOME, Outcome, log
from redial._process import ProcessPool
from redial._redact import Redactor
from redial.context import Context
from redial.tool import Tool


class Execution(Protocol):
    """A function that was started."""

    ended: asyncio.Future[Outcome]
    """Done when the function has ended, also after it was stopped."""
    can_be_stopped: bool
    """False for a function that goes on until it returns."""

    def stop(self) -> None:
        """Asks it to end; once."""


class Runner:
    """Starts functions, from the loop of the protocol."""

    def __init__(self, tool_loop: asyncio.AbstractEventLoop, redactor: Redactor) -> None:
        self._tool_loop = tool_loop
        self._redactor = redactor
        self._processes = ProcessPool(redactor)

    def start(self, tool: Tool, arguments: dict[str, Any], context: Context) -> Execution:
        """Starts the function of a granted attempt."""
        if tool.offload == "process":
            return self._processes.start(tool, arguments, context)
        if tool.offload == "thread":
            return _InThread(tool, arguments, context, self._redactor)
        return _InLoop(tool, arguments, context, self._redactor, self._tool_loop)

    async def close(self) -> None:
        """Ends the processes."""
        await self._processes.close()


def call(tool: Tool, arguments: dict[str, Any], context: Context) -> Any:
    """Calls the function; raises what it raises, and `InvalidArguments`."""
    parameters = tool.bind(arguments)
    if tool.context is not None:
        parameters[tool.context] = context
    return tool.function(**parameters)


def ended_with(tool: Tool, arguments: dict[str, Any], context: Context, redactor: Redactor) -> Outcome:
    """Runs a blocking function to its end, and says how it ended."""
    try:
        return _outcome.of_result(call(tool, arguments, context), redactor)
    except BaseException as error:
        # A tool that calls `sys.exit` ends itself, and not the worker.
        return _outcome.of_exception(error, redactor, context)


class _InLoop:
    """A coroutine, in the loop in which the worker was started. Its methods but `stop` and the constructor run there."""

    can_be_stopped = True

    def __init__(
        self,
        tool: Tool,
        arguments: dict[str, Any],
        context: Context,
        redactor: Redactor,
        tool_loop: asyncio.AbstractEventLoop,
    ) -> None:
        self._tool, self._arguments, self._context, self._redactor = tool, arguments, context, redactor
        self._loop, self._tool_loop = asyncio.get_running_loop(), tool_loop
        self.ended: asyncio.Future[Outcome] = self._loop.create_future()
        self._task: asyncio.Task[Outcome] | None = None
        self._call(self._start)

    def stop(self) -> None:
        self._context.cancelled.set()
        self._call(self._cancel)

    def _call(self, function: Callable[[], None]) -> None:
        try:
            self._tool_loop.call_soon_threadsafe(function)
        except RuntimeError:
            # The loop of the tools is closed; nothing of this runs any more.
            self._set(Outcome.failed("lost", "the loop in which the tool ran was closed"))

    def _start(self) -> None:
        if self._context.cancelled.is_set():
            # The loop was blocked for so long that the attempt is over.
            self._finish(Outcome.failed("cancelled", "the tool was stopped before it started", effect_possible=False))
            return
        self._task = self._tool_loop.create_task(self._run())
        self._task.add_done_callback(self._done)

    def _cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def _run(self) -> Outcome:
        try:
            return _outcome.of_result(await call(self._tool, self._arguments, self._context), self._redactor)
        except (asyncio.CancelledError, GeneratorExit):
            raise
        except BaseException as error:
            return _outcome.of_exception(error, self._redactor, self._context)

    def _done(self, task: asyncio.Task[Outcome]) -> None:
        if task.cancelled():
            self._finish(_outcome.of_exception(asyncio.CancelledError(), self._redactor, self._context))
        else:
            self._finish(ended_or_raised(task, self._context))

    def _finish(self, outcome: Outcome) -> None:
        try:
            self._loop.call_soon_threadsafe(self._set, outcome)
        except RuntimeError:
            # The worker has ended.
            return

    def _set(self, outcome: Outcome) -> None:
        if not self.ended.done():
            self.ended.set_result(outcome)


def ended_or_raised(task: asyncio.Task[Outcome], context: Context) -> Outcome:
    """The outcome of a task that was not cancelled."""
    if (error := task.exception()) is not None:
        text = "Failed to run a tool tool=%s call=%s attempt=%d"
        log.error(text, context.tool, context.call, context.attempt, exc_info=error)
        return NO_OUTCOME
    return task.result()


def no_thread(error: RuntimeError) -> Outcome:
    """The outcome if the system has no thread left: another worker may have one."""
    log.error("Failed to start a thread for a tool error=%s", error)
    return Outcome.failed("unavailable", "the worker could not start the tool", effect_possible=False)


class _InThread:
    """A blocking function in a thread of its own. It cannot be stopped, only asked to; the process does not wait for it."""

    can_be_stopped = False

    def __init__(self, tool: Tool, arguments: dict[str, Any], context: Context, redactor: Redactor) -> None:
        self._context = context
        loop = asyncio.get_running_loop()
        self.ended: asyncio.Future[Outcome] = loop.create_future()

        def work() -> None:
            outcome = NO_OUTCOME
            try:
                outcome = ended_with(tool, arguments, context, redactor)
            finally:
                with suppress(RuntimeError):  # the worker has ended
                    loop.call_soon_threadsafe(self.ended.set_result, outcome)

        try:
            threading.Thread(target=work, name=f"redial-{tool.name}", daemon=True).start()
        except RuntimeError as error:
            self.ended.set_result(no_thread(error))

    def stop(self) -> None:
        self._context.cancelled.set()
