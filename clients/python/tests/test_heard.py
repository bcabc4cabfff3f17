"""Until when claims are granted."""

import unittest

from redial._heard import ClaimTime, Heard


class Times(unittest.TestCase):
    def test_a_claim_lasts_a_third_of_a_lease_and_never_two_thirds_after_the_last_answer(self) -> None:
        heard = Heard.read("2026-11-28T08:00:00.250Z", asked=98.0, answered=100.0, lease=15.0)
        for age, lasts in ((0, 5), (3, 8), (5, 10), (7, 10)):
            time = ClaimTime(f"2026-11-28T08:00:{lasts:02}.250000+00:00", 98.0 + lasts, 100.0 + lasts)
            self.assertEqual(heard.claim_time(100.0 + age), time, f"{age} s after the answer")
        self.assertIsNone(heard.claim_time(108.0))

    def test_all_that_a_dispatcher_writes_is_a_time(self) -> None:
        for at in ("2026-11-28T08:00:00Z", "2026-11-28T08:00:00.120Z", "2026-11-28T08:00:00.123456Z"):
            self.assertEqual(Heard.read(at, 0.0, 0.0, 15.0).at.second, 0)


if __name__ == "__main__":
    unittest.main()
