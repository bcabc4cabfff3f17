"""Batches of calls: each gets its own result, whatever happens to the others."""

import json
import unittest
from typing import Any

from gateway_of_tests import Answer, Gateway, Request

from redial import AsyncClient

BREAKS = "\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"
"""What Python also takes for line breaks."""


def lines(*results: dict[str, Any]) -> Answer:
    return Answer(body="".join(json.dumps(one, ensure_ascii=False) + "\n" for one in results).encode())


def submissions(request: Request) -> list[dict[str, Any]]:
    return [json.loads(line) for line in request.body.splitlines()]


class Batches(unittest.IsolatedAsyncioTestCase):
    async def test_results_with_line_breaks_of_unicode_are_read(self) -> None:
        async def answer(request: Request) -> Answer:
            error = {"code": "invalid_arguments", "message": f"a{BREAKS[5:]}b"}
            return lines({"status": "accepted", "call": "1"}, {"status": "refused", "call": "2", "error": error})

        with Gateway(answer) as gateway:
            async with AsyncClient(gateway.url) as client:
                calls = await client.calls([("echo", {}), ("echo", {})])
        self.assertEqual([call.id for call in calls], ["1", "2"])
        assert calls[1].error is not None
        self.assertIn(BREAKS[5:], str(calls[1].error))


if __name__ == "__main__":
    unittest.main()
