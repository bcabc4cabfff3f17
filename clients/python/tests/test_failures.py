"""What tools raise: the same error from a coroutine, a thread and a process, and an end of each attempt."""

import asyncio
import logging
import os
import queue
import threading
import unittest
from collections.abc import Callable
from datetime import timedelta
from typing import Any
from unittest import mock

from redial import (
    BusinessRule,
    Context,
    InvalidArgument,
    InvalidArguments,
    RateLimited,
    Stopped,
    ToolError,
    Unavailable,
    Violation,
    Worker,
)
from redial._outcome import NO_OUTCOME, Outcome, of_exception
from redial._redact import Redactor
from redial._run import Runner
from redial.tool import Tool

# The exceptions of these tests are meant to be raised, also in processes, which import this.
logging.getLogger("redial.worker").addHandler(logging.NullHandler())

NINE: Any = 9
CONTEXT = Context("call-17", "book_flight", 2, "key", "acme", 30.0)


class Unreadable(ToolError):
    """Its error cannot be made."""

    def to_json(self) -> dict[str, Any]:
        raise KeyError("to_json")


class Strange(ToolError):
    """Its error has no JSON."""

    def to_json(self) -> dict[str, Any]:
        return {**super().to_json(), "class": object()}


class Leaving(BaseException):
    """No `Exception`."""


def changed(error: ToolError, **fields: Any) -> ToolError:
    """An error that was changed after it was made."""
    error.__dict__.update(fields)
    return error


def nested(levels: int) -> Any:
    found: Any = 1
    for _ in range(levels):
        found = [found]
    return found


def told(sent: Any, allowed: str, **others: Any) -> dict[str, Any]:
    """The details of an error of `InvalidArgument("/seats", "maximum", …)`."""
    return {"details": [{"path": "/seats", "rule": "maximum", "sent": sent, "allowed": allowed, **others}]}


CASES: list[tuple[Callable[[], BaseException], str, dict[str, Any]]] = [
    (lambda: InvalidArgument("/seats", "maximum", 12, 9), "invalid_arguments", told(12, "9")),
    (lambda: InvalidArgument("/seats", "maximum", 12, 9.5, 8), "invalid_arguments", told(12, "9.5", hint="8")),
    (lambda: InvalidArguments(Violation("/seats", "maximum", 12, NINE)), "invalid_arguments", told(12, "9")),
    (lambda: InvalidArgument("/seats", "maximum", (1, "canary"), "9"), "invalid_arguments", told([1, "[secret]"], "9")),
    (lambda: InvalidArgument("/seats", "maximum", {1: "canary"}, "9"), "invalid_arguments", told({"1": "[secret]"}, "9")),
    (lambda: InvalidArgument("/seats", "maximum", nested(64), "9"), "invalid_arguments", told(nested(64), "9")),
    (lambda: InvalidArgument("/seats", "maximum", nested(65), "9"), "invalid_arguments", {"details": None}),
    (lambda: InvalidArgument("/seats", "maximum", threading.Lock(), "9"), "invalid_arguments", {"details": None}),
    (lambda: Unavailable(OSError("it is down")), "unavailable", {"message": "it is down"}),
    (lambda: Unavailable(TimeoutError()), "unavailable", {"message": "TimeoutError"}),
    (lambda: BusinessRule("no", diagnostics=OSError("why")), "business_rule", {"diagnostics": "why"}),
    (lambda: Unavailable("later", retry_after=timedelta(seconds=2)), "unavailable", {"retry_after_ms": 2000}),
    (lambda: RateLimited("later", retry_after=0), "rate_limited", {"retry_after_ms": 0}),
    (lambda: RateLimited("later", retry_after=1e300), "rate_limited", {"retry_after_ms": 366 * 86_400_000}),
    # What a tool gets instead of the error that it wanted to raise.
    (lambda: Unavailable("later", retry_after=float("inf")), "tool_failed", {"message": "the tool raised ValueError"}),
    (lambda: Unavailable("later", retry_after=-1), "unavailable", {"retry_after_ms": 0}),
    (lambda: InvalidArguments(NINE), "tool_failed", {"message": "the tool raised TypeError"}),
    (lambda: changed(Unavailable("later"), retry_after="soon"), "internal", {}),
    (lambda: changed(Unavailable("later"), message=NINE), "internal", {}),
    (lambda: Unreadable("no"), "internal", {}),
    (lambda: Strange("no"), "internal", {}),
    (lambda: Stopped(), "internal", {"message": "the tool stopped itself"}),
    (lambda: asyncio.CancelledError(), "internal", {"message": "the tool stopped itself"}),
    (lambda: SystemExit(1), "tool_failed", {"message": "the tool raised SystemExit"}),
    (lambda: Leaving(), "tool_failed", {"message": "the tool raised Leaving"}),
    (lambda: ValueError("only for the log"), "tool_failed", {"message": "the tool raised ValueError"}),
]


def fail(case: int) -> None:
    raise CASES[case][0]()


def leave(case: int) -> int:
    """Ends its process for the case 0."""
    if case == 0:
        os._exit(1)
    return case


async def fail_in_the_loop(case: int) -> None:
    fail(case)


def tools() -> dict[str, Tool]:
    """The same tool in its three forms."""
    worker = Worker(environment={})
    worker.tool(name="coroutine")(fail_in_the_loop)
    worker.tool(name="thread")(fail)
    worker.tool(name="process", offload="process")(fail)
    return dict(worker.tools)


async def outcome_of(runner: Runner, tool: Tool, case: int) -> Outcome:
    context = Context("call-17", tool.name, 2, "key", "acme", 30.0)
    return await asyncio.wait_for(runner.start(tool, {"case": case}, context).ended, 20)


class Failures(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self) -> None:
        self.runner = Runner(asyncio.get_running_loop(), Redactor(["canary"]))

    async def asyncTearDown(self) -> None:
        await self.runner.close()

    async def test_an_exception_becomes_the_same_error_in_all_three_forms(self) -> None:
        for case, (_, error_class, wanted) in enumerate(CASES):
            for form, tool in tools().items():
                with self.subTest(case=case, form=form):
                    error = (await outcome_of(self.runner, tool, case)).error or {}
                    self.assertEqual(error["class"], error_class, error)
                    self.assertEqual({name: error.get(name) for name in wanted}, wanted)

    async def test_a_process_that_ended_is_not_used_again(self) -> None:
        worker = Worker(environment={})
        worker.tool(name="leave", offload="process")(leave)
        for case in (0, 1, 0, 2):
            outcome = await outcome_of(self.runner, worker.tools["leave"], case)
            self.assertEqual(outcome.output, str(case).encode() if case else None)

    async def test_an_attempt_ends_also_if_the_worker_fails(self) -> None:
        # In the process of a tool nothing is replaced here.
        failing = mock.patch("redial._outcome.of_exception", side_effect=RuntimeError("a mistake of the worker"))
        logged = queue.SimpleQueue[Any]()
        with failing, mock.patch("threading.excepthook", logged.put):
            for form in ("coroutine", "thread"):
                with self.subTest(form=form):
                    self.assertEqual(await outcome_of(self.runner, tools()[form], 0), NO_OUTCOME)
            with mock.patch("redial._process._InProcess._run", side_effect=RuntimeError("a mistake of the worker")):
                self.assertEqual(await outcome_of(self.runner, tools()["process"], 0), NO_OUTCOME)
            for _ in ("thread", "process"):
                self.assertIs(logged.get(timeout=20).exc_type, RuntimeError)


class Ends(unittest.IsolatedAsyncioTestCase):
    async def test_a_worker_ends_also_if_what_follows_it_fails(self) -> None:
        worker = Worker(environment={})
        worker.tool(fail)
        logged = queue.SimpleQueue[Any]()
        follows = mock.Mock(side_effect=RuntimeError("no thread is left"))
        with mock.patch("redial._session.Session.run"), mock.patch("threading.excepthook", logged.put):
            serving = asyncio.create_task(worker.serve(then=follows))
            _, late = await asyncio.wait({serving}, timeout=5)
            if late:
                # The first time it would wait for its drain; the second time is the end of this test.
                serving.cancel()
                await asyncio.sleep(0.1)
            self.assertFalse(late)
            self.assertIs(logged.get(timeout=20).exc_type, RuntimeError)


class Telling(unittest.TestCase):
    def test_an_error_that_cannot_be_told_is_logged_with_its_traceback(self) -> None:
        with self.assertLogs("redial.worker", "ERROR") as logged:
            outcome = of_exception(Unreadable("no"), Redactor(()), CONTEXT)
        self.assertEqual((outcome.error or {})["class"], "internal")
        self.assertIn("tool=book_flight call=call-17 attempt=2\n", logged.output[0])
        self.assertIn('raise KeyError("to_json")', logged.output[0])

    def test_a_log_that_fails_does_not_matter(self) -> None:
        with mock.patch("redial._outcome.log.error", side_effect=OSError("the disk is full")):
            outcome = of_exception(ValueError("only for the log"), Redactor(()), CONTEXT)
        self.assertEqual((outcome.error or {})["class"], "internal")

    def test_what_is_no_pause_is_refused(self) -> None:
        for pause, refusal in [
            (float("inf"), ValueError),
            (float("nan"), ValueError),
            (-float("inf"), ValueError),
            ("5", TypeError),
            (True, TypeError),
        ]:
            for kind in (Unavailable, RateLimited):
                with self.assertRaises(refusal) as raised:
                    kind("later", retry_after=pause)  # type: ignore[arg-type]
                self.assertIn("allowed: seconds as a finite number, or a timedelta", str(raised.exception))

    def test_a_pause_that_is_over_is_none(self) -> None:
        for pause in (-0.5, timedelta(seconds=-1)):
            self.assertEqual(Unavailable("later", retry_after=pause).to_json()["retry_after_ms"], 0)

    def test_a_long_message_is_no_copy_of_what_was_sent_for_each_rule(self) -> None:
        text = "x" * 100_000
        error = InvalidArguments(*[Violation("/text", "maxLength", text, "less")] * 20)
        self.assertLess(len(error.message), 100_000)
        self.assertTrue(error.to_json()["message"].startswith("/text: 'xxx"))


if __name__ == "__main__":
    unittest.main()
