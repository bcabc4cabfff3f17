"""What a heartbeat's answer does to leases. The dispatcher is scripted."""

import unittest
from types import SimpleNamespace
from typing import Any

from redial._core import Core, Grant, Settings
from redial._heartbeat import Heartbeat
from redial._link import Address

ONE: Grant = {"call": "call-1", "attempt": 1, "claim": "claim-1"}
OTHER: Grant = {"call": "call-2", "attempt": 1, "claim": "claim-1"}


class Answering(Core):
    """Gets the same answer each time."""

    def __init__(self, answer: dict[str, Any]) -> None:
        super().__init__(Settings("w-1", Address("nats://127.0.0.1:1", "w", "_INBOX"), "w", (), None, 1.0, ()))
        self.answer = answer

    async def request(self, verb: str, body: Any, failures: int = 0, limit: float | None = None) -> dict[str, Any]:
        return self.answer


class Renewing(unittest.IsolatedAsyncioTestCase):
    async def test_a_lease_whose_call_is_locked_is_neither_renewed_nor_lost(self) -> None:
        renewed, lost = list[Grant](), list[Grant]()
        attempts: Any = SimpleNamespace(
            grants=lambda: [ONE, OTHER],
            renew=lambda grants, _until: renewed.extend(grants),
            lose=lambda grants: lost.extend(grants or ()),
            cancel=lambda _grants: None,
        )
        core = Answering({"lease_ms": 3000, "at": "2026-11-28T08:00:00Z", "locked": [ONE]})
        self.assertIsNone(core.claim_time(), "nothing was heard yet")
        await Heartbeat(core, attempts, 4)._beat(0)
        self.assertIsNotNone(core.claim_time())
        self.assertEqual((renewed, lost, core.lease), ([OTHER], [], 3.0))


if __name__ == "__main__":
    unittest.main()
