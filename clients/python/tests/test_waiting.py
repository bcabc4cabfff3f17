"""Waits: they outlast the loss of a gateway, and ask no more often than they must."""

import asyncio
import threading
import unittest

from gateway_of_tests import Answer, Gateway, Request

from redial import AsyncClient, Client, ConnectionFailed, Timeout


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

    async def test_an_outage_is_told_once_and_how_to_end_it(self) -> None:
        async with AsyncClient("http://user:word@127.0.0.1:1", patience=0.5) as client:
            with self.assertLogs("redial", "WARNING") as logged:
                requests = [client.get_call("1").view() for _ in range(3)]
                errors = await asyncio.gather(*requests, return_exceptions=True)
        self.assertEqual(len(logged.output), 1, logged.output)
        text = "Failed to reach the gateway; trying again for 0.5 s at most url=http://127.0.0.1:1 error="
        self.assertIn(text, logged.output[0])
        for error in errors:
            self.assertIsInstance(error, ConnectionFailed)
            self.assertIn("http://127.0.0.1:1 cannot be reached", str(error))
            self.assertIn("`redial dev` starts a gateway", str(error))

    def test_what_is_no_address_of_a_gateway_is_refused_at_once(self) -> None:
        for url in ("127.0.0.1:8700", "localhost:8700", "ftp://u:word@host", "http://", "http://host:x", "gateway"):
            for kind in (AsyncClient, Client):
                with self.assertRaisesRegex(ValueError, "^url is '.*'; allowed: http://host:port or https://host:port$") as refused:
                    kind(url)
                self.assertNotIn("word", str(refused.exception))
        with self.assertRaisesRegex(ValueError, "^REDIAL_URL is 'nats://h:4222'"):
            AsyncClient(environment={"REDIAL_URL": "nats://h:4222"})

    def test_who_waits_in_another_thread_hears_that_the_client_was_closed(self) -> None:
        asked = threading.Event()

        async def answer(_: Request) -> None:
            asked.set()
            await asyncio.sleep(600)

        told = list[str]()

        def wait(client: Client) -> None:
            try:
                client.get_call("1").result()
            except RuntimeError as error:
                told.append(str(error))

        with Gateway(answer) as gateway:
            client = Client(gateway.url, patience=600)
            thread = threading.Thread(target=wait, args=[client], daemon=True)
            thread.start()
            self.assertTrue(asked.wait(60))
            client.close()
            thread.join(60)
        self.assertEqual(told, ["the client was closed meanwhile"])
        with self.assertRaisesRegex(RuntimeError, "the client is closed"):
            client.get_call("1").view()

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
