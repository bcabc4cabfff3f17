"""What the worker last heard of the database's clock, and until when its claims are granted. Pure.

A claim that is under way when its worker dies, or gives it up, must not be granted later: nobody would run that attempt, and an
`unsafe` call would end `unknown` though it never began. So each claim names the last moment at which it may be granted.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta


@dataclass(frozen=True)
class ClaimTime:
    """Until when a claim is granted for the first time."""

    not_after: str
    """By the database's clock, as the protocol writes it."""
    lasts_until: float
    """By the worker's clock, that moment has not come before this."""
    over_at: float
    """It has passed by this."""


@dataclass(frozen=True)
class Heard:
    """An answer that says what the database's clock showed."""

    at: datetime
    asked: float
    """The clock showed `at` after the worker had asked, and before it had the answer."""
    answered: float
    lease: float

    @staticmethod
    def read(at: str, asked: float, answered: float, lease: float) -> Heard:
        """Reads an answer. Raises ValueError."""
        return Heard(datetime.fromisoformat(at.replace("Z", "+00:00")), asked, answered, lease)

    def at_least(self, now: float) -> str:
        """What the database's clock shows now, if not more, as the protocol writes it."""
        return (self.at + timedelta(seconds=max(0.0, now - self.answered))).isoformat()

    def claim_time(self, now: float) -> ClaimTime | None:
        """The time of a claim that is sent now; nothing if nothing was heard for half a lease, though there is an answer every
        third: a dispatcher or the database hangs, and would grant the claim when this worker may be gone.

        It is a third of a lease: who waits that long for an answer meets an outage. And it ends two thirds of a lease after the
        last answer, so that nothing is granted to a worker that was silent for longer.
        """
        age = now - self.answered
        if age > self.lease / 2:
            return None
        lasts = min(age + self.lease / 3, self.lease * 2 / 3)
        return ClaimTime((self.at + timedelta(seconds=lasts)).isoformat(), self.asked + lasts, self.answered + lasts)
