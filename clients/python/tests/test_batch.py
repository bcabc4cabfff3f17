"""Batches of calls: each gets its own result, whatever happens to the others."""

import asyncio
import json
import threading
import unittest
from typing import Any

from gateway_of_tests import Answer, Gateway, Request

from redial import AsyncClient, CallRefused, Conflict, ConnectionFailed, InvalidRequest, RedialError, ServerError

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

    async def test_a_request_that_fails_is_the_error_of_its_own_calls(self) -> None:
        async def answer(request: Request) -> Answer:
            if any(one["arguments"]["n"] == 1500 for one in submissions(request)):
                return Answer(413, {"code": "too_large", "detail": "too large"})
            return lines(*({"status": "accepted", "call": f"id-{one['arguments']['n']}"} for one in submissions(request)))

        with Gateway(answer) as gateway:
            async with AsyncClient(gateway.url) as client:
                calls = await client.calls([("echo", {"n": n}) for n in range(2500)])
        self.assertEqual([call.id for call in calls[:1000]], [f"id-{n}" for n in range(1000)])
        self.assertEqual({type(call.error) for call in calls[1000:2000]}, {InvalidRequest})
        self.assertEqual([call.id for call in calls[2000:]], [f"id-{n}" for n in range(2000, 2500)])

    async def test_what_was_accepted_before_an_outage_is_kept(self) -> None:
        async def answer(request: Request) -> Answer | None:
            sent = submissions(request)
            if len(sent) == 1:
                return None
            # The last line is cut off.
            whole = lines(*({"status": "accepted", "call": one["arguments"]["n"]} for one in sent[:-1])).body
            assert isinstance(whole, bytes)
            return Answer(body=whole + b'{"status":"acc')

        with Gateway(answer) as gateway:
            async with AsyncClient(gateway.url, patience=0) as client:
                calls = await client.calls([("echo", {"n": n}) for n in range(3)])
        self.assertEqual([call.id for call in calls[:2]], ["0", "1"])
        self.assertIsInstance(calls[2].error, ConnectionFailed)

    async def test_an_outage_is_waited_for_once(self) -> None:
        async def answer(_: Request) -> None:
            return None

        with Gateway(answer) as gateway:
            async with AsyncClient(gateway.url, patience=0) as client:
                calls = await client.calls([("echo", {"n": n}) for n in range(20_000)])
        self.assertEqual({type(call.error) for call in calls}, {ConnectionFailed})
        self.assertLessEqual(len(gateway.requests), 4)

    async def test_each_error_has_its_type(self) -> None:
        cases: list[tuple[str, str | None, type[RedialError]]] = [
            ("idempotency_conflict", None, Conflict),
            ("internal", None, ServerError),
            ("invalid_message", None, InvalidRequest),
            ("invalid_arguments", "id", CallRefused),
        ]

        async def answer(_: Request) -> Answer:
            return lines(*({"call": call, "error": {"code": code, "message": "no"}} for code, call, _ in cases))

        with Gateway(answer) as gateway:
            async with AsyncClient(gateway.url) as client:
                calls = await client.calls([("echo", {})] * len(cases))
        self.assertEqual([type(call.error) for call in calls], [kind for _, _, kind in cases])
        self.assertEqual(len(gateway.requests), 1)

    async def test_a_cancelled_batch_leaves_no_tasks(self) -> None:
        begun = threading.Event()

        async def answer(_: Request) -> None:
            begun.set()
            await asyncio.sleep(60)

        with Gateway(answer) as gateway:
            async with AsyncClient(gateway.url) as client:
                task = asyncio.create_task(client.calls([("echo", {"n": n}) for n in range(5000)]))
                await asyncio.to_thread(begun.wait)
                task.cancel()
                with self.assertRaises(asyncio.CancelledError):
                    await task
                self.assertEqual(asyncio.all_tasks(), {asyncio.current_task()})


if __name__ == "__main__":
    unittest.main()
