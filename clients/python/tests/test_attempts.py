"""Attempts whose arguments are fetched before their functions start. Dispatchers are scripted."""

import asyncio
import json
import time
import unittest
from typing import Any

from redial import Context, Worker
from redial._attempts import Attempts
from redial._core import Core, Grant, Settings
from redial._link import Address
from redial._pieces import FETCH
from redial._redact import Redactor
from redial._report import Reporter
from redial._run import Runner

HELD: Grant = {"call": "call-17", "attempt": 1, "claim": "claim-1"}
GRANT = {
    "call": "call-17", "attempt": 1, "tool": "book_flight", "arguments": None, "apart": True, "timeout_ms": 30_000,
    "effect": "unsafe", "idempotency_key": "key", "tenant": "acme",
}  # fmt: skip


class Scripted(Core):
    """Asks nobody: opens the arguments once it is told to, and keeps what is released."""

    def __init__(self) -> None:
        super().__init__(Settings("w-1", Address("nats://127.0.0.1:1", "w", "_INBOX"), "w", (), None, 1.0, ()))
        # Far longer than a fetch may take.
        self.lease = 1000.0
        self.opened, self.asked = asyncio.Event(), asyncio.Event()
        self.piece: Any = '{"to": "Oslo"}'
        self.released: list[dict[str, Any]] = []

    async def request(self, verb: str, body: Any, failures: int = 0, limit: float | None = None) -> dict[str, Any]:
        if verb == "release":
            self.released += body["jobs"]
        elif "open" in body:
            self.asked.set()
            await self.opened.wait()
            return {"opened": {"payload": "p", "pieces": 1}}
        elif "get" in body:
            return {"text": self.piece}
        return {}


class Reports(Reporter):
    """Keeps what is reported."""

    def __init__(self, core: Core) -> None:
        super().__init__(core)
        self.sent: list[dict[str, Any]] = []

    def send(self, key: tuple[str, int, str], report: bytes) -> None:
        self.sent.append(json.loads(report))


class Fetching(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self) -> None:
        self.core, self.remaining, self.done = Scripted(), list[float](), list[None]()
        self.go_on = list[asyncio.Event]()
        self.reports = Reports(self.core)
        runner = Runner(asyncio.get_running_loop(), Redactor(()))
        self.attempts = Attempts(self.core, runner, self.reports)
        worker = Worker(environment={})

        @worker.tool
        async def book_flight(to: str, ctx: Context) -> str:
            self.remaining.append(ctx.remaining())
            for going_on in self.go_on:
                await going_on.wait()
            return to

        self.tool = worker.tools["book_flight"]

    def begin(self, ago: float) -> None:
        """Begins an attempt whose claim was sent so many seconds ago."""
        sent = time.monotonic() - ago
        self.assertTrue(self.attempts.start(self.tool, dict(GRANT), "claim-1", sent, lambda: self.done.append(None)))

    async def start(self, ago: float = 0.0) -> None:
        """The same; waits until its arguments are being opened."""
        self.begin(ago)
        await self.core.asked.wait()

    async def assert_released(self) -> None:
        await asyncio.wait_for(self.attempts.idle(), 20)
        self.assertEqual(self.core.released, [HELD])
        self.assertEqual((self.attempts.grants(), self.reports.sent, self.remaining, self.done), ([], [], [], [None]))

    async def test_the_lease_is_renewed_during_the_fetch_and_the_time_of_the_function_begins_after_it(self) -> None:
        began, ago = time.monotonic(), FETCH / 2
        await self.start(ago)
        self.assertEqual(self.attempts.grants(), [HELD])
        self.assertFalse(self.attempts.start(self.tool, dict(GRANT), "claim-2", time.monotonic(), lambda: None))
        self.core.opened.set()
        await self.attempts.idle()
        self.assertEqual([report["output"] for report in self.reports.sent], ["Oslo"])
        self.assertEqual((self.core.released, self.done), ([], [None]))
        self.assertGreater(self.remaining[0], 30.0 - ago)
        self.assertGreaterEqual(self.attempts.find([HELD])[0].deadline, began + 30.0)
        self.assertEqual(self.attempts.grants(), [HELD], "until it is on record")

    async def test_arguments_that_come_too_late_end_no_attempt_of_an_unsafe_tool(self) -> None:
        self.begin(ago=FETCH - 0.05)
        await self.assert_released()

    async def test_an_attempt_is_given_back_when_its_lease_expires_during_the_fetch(self) -> None:
        self.core.lease = 1.0
        self.begin(ago=0.85)
        await self.assert_released()

    async def test_arguments_that_cannot_be_read_are_given_back(self) -> None:
        self.core.lease = 0.3  # the pauses between the tries are part of it
        self.core.opened.set()
        for piece in ("no JSON", "[]", None, 17):
            self.core.piece, self.core.released, self.done = piece, [], []
            await self.start()
            self.attempts.renew([HELD], time.monotonic() + 1000)
            await self.assert_released()

    async def test_an_unsafe_function_goes_on_after_the_end_of_its_lease(self) -> None:
        for effect, goes_on in (("unsafe", True), ("of a newer version", True), ("keyed", False)):
            self.core.lease, self.reports.sent, self.core.released = 1000.0, [], []
            self.core.opened.set()
            going_on = asyncio.Event()
            self.go_on.append(going_on)
            sent = time.monotonic()
            grant = {**GRANT, "apart": False, "arguments": {"to": "Oslo"}, "effect": effect}
            self.assertTrue(self.attempts.start(self.tool, grant, "claim-1", sent, lambda: None))
            attempt = self.attempts.find([HELD])[0]
            attempt.lease_ends = sent
            await asyncio.sleep(0.05)
            going_on.set()
            await asyncio.wait_for(self.attempts.idle(), 20)
            self.assertEqual([report["output"] for report in self.reports.sent], ["Oslo"] if goes_on else [], effect)
            self.assertEqual(self.core.released, [] if goes_on else [HELD], effect)
            self.attempts.forget([HELD])
            self.go_on.clear()

    async def test_a_function_is_stopped_when_leases_have_become_shorter(self) -> None:
        sent = time.monotonic()
        grant = {**GRANT, "apart": False, "arguments": {"to": "Oslo"}, "effect": "keyed"}
        self.go_on.append(asyncio.Event())
        self.assertTrue(self.attempts.start(self.tool, grant, "claim-1", sent, lambda: None))
        await asyncio.sleep(0)
        self.attempts.renew([HELD], sent)
        await asyncio.wait_for(self.attempts.idle(), 20)
        self.assertEqual((self.reports.sent, self.core.released), ([], [HELD]))

    async def test_a_lost_lease_ends_the_fetch(self) -> None:
        await self.start()
        self.attempts.lose([HELD])
        await self.attempts.idle()
        self.assertEqual((self.core.released, self.reports.sent, self.remaining, self.done), ([], [], [], [None]))
        self.assertEqual(self.attempts.grants(), [])

    async def test_what_is_said_about_another_grant_of_the_attempt_does_not_reach_this_one(self) -> None:
        await self.start()
        older: Grant = {**HELD, "claim": "claim-0"}
        self.attempts.lose([older])
        self.attempts.cancel([older])
        self.attempts.forget([older])
        self.assertEqual(self.attempts.grants(), [HELD])
        self.core.opened.set()
        await self.attempts.idle()
        self.assertEqual([report["output"] for report in self.reports.sent], ["Oslo"])

    async def test_a_cancel_ends_the_fetch_and_is_reported_without_an_effect(self) -> None:
        # The second time it comes with the arguments.
        for opened in (False, True):
            self.reports.sent, self.done = [], []
            self.core.asked.clear()
            await self.start()
            if opened:
                self.core.opened.set()
                await asyncio.sleep(0)
            self.attempts.cancel([HELD])
            await self.attempts.idle()
            errors = [report["error"] for report in self.reports.sent]
            self.assertEqual([(error["class"], error["effect_possible"]) for error in errors], [("cancelled", False)])
            self.assertEqual((self.core.released, self.remaining, self.done), ([], [], [None]))
            self.attempts.forget([HELD])

    async def test_a_worker_that_drains_gives_back_what_it_fetched(self) -> None:
        await self.start()
        self.core.draining.set()
        self.core.opened.set()
        await self.assert_released()

    async def test_the_end_of_the_grace_period_ends_the_fetch(self) -> None:
        await self.start()
        self.assertEqual(self.attempts.stop_all(), 1)
        await self.assert_released()


if __name__ == "__main__":
    unittest.main()
