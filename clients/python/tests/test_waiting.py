"""Waits: they outlast the loss of a gateway, and ask no more often than they must."""

import asyncio
import unittest

from gateway_of_tests import Answer, Gateway, Request

from redial import AsyncClient, ConnectionFailed, Timeout


class Waiting(unittest.IsolatedAsyncioTestCase):
    async def test_a_gateway_that_dies_late_in_a_wait_is_given_the_whole_patience(self) -> None:
        async def answer(_: Request) -> Answer | None:
            if len(gateway.requests) > 1:
                return Answer(body={"call": "1", "state": "succeeded", "output": 7})
            await asyncio.sleep(0.6)
            return None

        with Gateway(answer) as gateway:
            async with AsyncClient(gateway.url, patience=0.5) as client:
                self.assertEqual(await client.get_call("1").result(), 7)

    async def test_without_patience_nothing_is_tried_again(self) -> None:
        async def answer(_: Request) -> None:
            return None

        with Gateway(answer) as gateway:
            async with AsyncClient(gateway.url, patience=0) as client:
                with self.assertRaises(ConnectionFailed):
                    await client.get_call("1").result()
        self.assertEqual(len(gateway.requests), 1)

    async def test_less_than_a_second_is_not_waited_for_in_a_storm_of_requests(self) -> None:
        async def answer(request: Request) -> Answer:
            one = {"call": "1", "state": "running", "ended": False}
            return Answer(body={"done": False, "calls": [one]} if request.method == "POST" else one)

        with Gateway(answer) as gateway:
            async with AsyncClient(gateway.url) as client:
                call = client.get_call("1")
                for wait in (client.wait([call], timeout=0.5), call.wait(timeout=0.5)):
                    with self.assertRaises(Timeout):
                        await wait
        self.assertLessEqual(len(gateway.requests), 14)


if __name__ == "__main__":
    unittest.main()
