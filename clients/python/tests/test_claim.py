"""Messages of the job stream: one job or a pack, answered once."""

import json
import unittest

from nats.aio.client import Client
from nats.aio.msg import Msg

from redial._claim import Delivery, Job, Returned, claims, returned, unpack
from redial._link import Address, Link


class FakeLink(Link):
    def __init__(self) -> None:
        super().__init__(Address("nats://localhost", "test", "_INBOX"), lambda: None)
        self.sent: list[bytes] = []

    async def publish(self, subject: str, payload: bytes, reply: str = "") -> None:
        self.sent.append(payload)


class Messages(unittest.IsolatedAsyncioTestCase):
    def test_a_job_alone_is_a_pack_of_one(self) -> None:
        one = {"call": "c", "attempt": 2, "bytes": 7}
        self.assertEqual(unpack(json.dumps({**one, "tool": "t"}).encode()), ("t", [one]))
        pack = {"tool": "t", "jobs": [{**one, "rack": 7}, {"call": "d", "attempt": 1}]}
        self.assertEqual(unpack(json.dumps(pack).encode()), ("t", [one, {"call": "d", "attempt": 1, "bytes": 0}]))

    def test_what_is_no_job_is_an_error(self) -> None:
        for wrong in (b"", b"[]", b"7", b'"job"', b"{}", b'{"tool":"t","jobs":[]}', b'{"tool":"t","jobs":[7]}', b'{"jobs":{}}'):
            with self.assertRaises((ValueError, KeyError, TypeError, AttributeError), msg=wrong):
                unpack(wrong)

    async def test_a_message_is_answered_once_all_its_jobs_are_done_with(self) -> None:
        for back, answer in ((False, b"+ACK"), (True, b'-NAK {"delay": 1000000000}')):
            link = FakeLink()
            delivery = Delivery(Msg(_client=Client(), subject="redial.jobs.p.t.3", reply="r", data=b"{}"), 3)
            await delivery.done(link, back=back)
            self.assertEqual(link.sent, [])
            await delivery.done(link, 2)
            self.assertEqual(link.sent, [answer])

    def test_what_goes_back_of_a_pack_goes_with_the_claim_of_its_jobs(self) -> None:
        def job(call: str, size: int) -> Job:
            delivery = Delivery(Msg(_client=Client(), subject="redial.jobs.p.t"), 1)
            return Job(delivery, call, 1, "t", size)

        alone, pack = [job(call, 250 * 1024) for call in "abc"], job("d", 2)
        pack.rest = Returned("p", "t", [{"call": "e", "attempt": 1, "bytes": 2}])
        first, second = claims([*alone, pack])
        self.assertEqual([one.call for one in second], ["c", "d"])
        self.assertEqual((returned(first), returned(second)), ([], [pack.rest.ref]))


if __name__ == "__main__":
    unittest.main()
