"""The queue of reports that are not on record yet."""

import unittest

from redial._core import Key
from redial._resend import ResendQueue


def filled(*sizes: int) -> tuple[ResendQueue, list[Key]]:
    queue, keys = ResendQueue(), [(f"call-{n}", 1, "claim") for n in range(len(sizes))]
    for key, size in zip(keys, sizes, strict=True):
        queue.add(key, b"x" * size)
    return queue, keys


class Resending(unittest.TestCase):
    def test_batches_respect_order_count_and_size(self) -> None:
        queue, keys = filled(*[100] * 300)
        self.assertEqual(list(queue.batch()), keys[:256])
        self.assertEqual(list(queue.batch()), keys[256:])
        self.assertEqual(queue.batch(), {})
        queue, keys = filled(400_000, 300_000, 400_000, 900_000, 10)
        for wanted in (keys[:2], keys[2:3], keys[3:4], keys[4:]):
            self.assertEqual(list(queue.batch()), wanted)

    def test_a_report_is_repeated_until_it_is_on_record(self) -> None:
        queue, keys = filled(10, 10)
        now = 0.0
        for wait in (5, 10, 20, 40, 60, 60):
            self.assertEqual(list(queue.batch()), keys)
            queue.sent(keys, True, now)
            queue.resend(now + wait - 0.001)
            self.assertEqual(queue.batch(), {}, f"before {wait} s")
            now += wait
            queue.resend(now)
        queue.remove(keys[0])
        queue.remove(keys[0])
        self.assertEqual(list(queue.batch()), keys[1:])
        self.assertEqual((len(queue), queue.bytes), (1, 10))

    def test_a_large_report_is_repeated_later_but_before_its_attempt_is_ended_for_it(self) -> None:
        for size, waits in ((1 << 20, (10, 15)), (16 << 20, (15, 20))):
            queue, keys = filled(size)
            now = 0.0
            for wait in waits:
                self.assertEqual(list(queue.batch()), keys)
                queue.resend(now + 1000)
                self.assertEqual(queue.batch(), {}, "it is still being sent")
                queue.sent(keys, True, now)
                queue.resend(now + wait - 0.001)
                self.assertEqual(queue.batch(), {}, f"{size} bytes before {wait} s")
                now += wait
                queue.resend(now)

    def test_a_report_that_the_stream_did_not_take_is_sent_again_soon(self) -> None:
        queue, keys = filled(10)
        queue.sent(list(queue.batch()), False, 1.0)
        queue.resend(1.5)
        self.assertEqual(list(queue.batch()), keys)

    def test_after_a_reconnection_every_sent_report_is_sent_once_more(self) -> None:
        queue, keys = filled(10, 10)
        queue.batch()
        queue.sent(keys[:1], True, 0.0)
        queue.resend()
        queue.resend()
        self.assertEqual(list(queue.batch()), keys[:1], "the other report is still being sent")


if __name__ == "__main__":
    unittest.main()
