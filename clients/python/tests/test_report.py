"""Reports on their way."""

from __future__ import annotations

import asyncio
import json
import unittest
from types import SimpleNamespace
from typing import Any
from unittest import mock

from redial import _report
from redial._limits import MAX_MESSAGE
from redial._report import Reporter


class Link:
    """A stream that takes every message."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []
        self.took = asyncio.Event()

    async def request(self, _subject: str, body: bytes, headers: Any = None) -> Any:
        self.bodies.append(body)
        self.took.set()
        return SimpleNamespace(data=json.dumps({"stream": "RESULTS", "seq": len(self.bodies)}).encode())


class Lanes(unittest.IsolatedAsyncioTestCase):
    async def test_a_large_report_holds_up_no_small_ones(self) -> None:
        link, begun, go_on = Link(), asyncio.Event(), asyncio.Event()
        core: Any = SimpleNamespace(id="w-1", link=link, settings=SimpleNamespace(name="w"), resend_now=asyncio.Event())

        async def put(_core: Any, _body: bytes) -> str:
            begun.set()
            await go_on.wait()
            return "1;2"

        reporter = Reporter(core)
        with mock.patch.object(_report, "put", put):
            running = asyncio.ensure_future(reporter.run())
            reporter.send(("large", 1, "claim"), b'"' + b"x" * MAX_MESSAGE + b'"')
            await asyncio.wait_for(begun.wait(), 20)
            reporter.send(("small", 1, "claim"), b'"small"')
            await asyncio.wait_for(link.took.wait(), 20)
            self.assertIn(b"small", link.bodies[0])
            link.took.clear()
            go_on.set()
            await asyncio.wait_for(link.took.wait(), 20)
            self.assertEqual((len(link.bodies), link.bodies[1], len(reporter)), (2, b"", 2))
            reporter.forget(("small", 1, "claim"))
            reporter.forget(("large", 1, "claim"))
            await asyncio.wait_for(reporter.wait_until_recorded(), 20)
            running.cancel()
            await asyncio.wait([running])


if __name__ == "__main__":
    unittest.main()
