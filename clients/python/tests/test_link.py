"""Addresses of NATS: what is one, and what is said while there is no connection."""

import asyncio
import unittest

from redial import Worker
from redial._link import Address, Link


class Addresses(unittest.TestCase):
    def test_what_is_no_address_of_nats_is_refused_at_once(self) -> None:
        wrong = ("http://127.0.0.1:8700", "ftp://user:pass-17@host", "nats://", "user:pass-17@host:port", "nats://a:1,http://b:2")
        for url in wrong:
            wanted = "^'.*' is no address of NATS; allowed: nats://user:password@host:port, also with tls, ws or wss$"
            with self.assertRaisesRegex(ValueError, wanted) as refused:
                Worker(url, environment={})
            self.assertNotIn("pass-17", str(refused.exception))

    def test_the_addresses_that_nats_has_are_allowed(self) -> None:
        for url, servers in [
            ("nats://user:pass-17@host", ["nats://host:4222"]),
            ("host:1, tls://[::1]:2", ["nats://host:1", "tls://[::1]:2"]),
            ("wss://host:443", ["wss://host:443"]),
        ]:
            self.assertEqual(Address(url, "w", "_INBOX").options()["servers"], servers)
            Worker(url, environment={})


class Connecting(unittest.IsolatedAsyncioTestCase):
    async def warning_of(self, worker: Worker) -> str:
        """What a worker logs first while nothing answers."""
        address = worker._settings.address
        link = Link(Address("nats://127.0.0.1:1", address.name, address.inbox_prefix, hint=address.hint), lambda: None)
        with self.assertLogs("redial.worker", "WARNING") as logged:
            starting = asyncio.ensure_future(link.start())
            while not logged.output:
                await asyncio.wait([starting], timeout=0.01)
            starting.cancel()
            await asyncio.wait([starting])
        return logged.output[0]

    async def test_a_worker_without_an_address_is_told_how_to_get_one(self) -> None:
        self.assertIn('REDIAL_NATS_URL is not set; eval "$(redial env)"', await self.warning_of(Worker(environment={})))
        given = await self.warning_of(Worker(environment={"REDIAL_NATS_URL": "nats://127.0.0.1:1"}))
        self.assertIn("Failed to connect to NATS address=nats://127.0.0.1:1", given)
        self.assertNotIn("REDIAL_NATS_URL", given)


if __name__ == "__main__":
    unittest.main()
