"""The reports that are not on record yet: which to send next, and when to send one again. Pure."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from redial._core import Key
from redial._limits import MAX_BYTES, MAX_CLAIM

RESEND, LONGEST_RESEND = 5.0, 60.0
"""Seconds after which a report that is on the stream but not on record is sent again; doubled with each repetition."""
PER_MIB = 5.0
"""More seconds for each MiB of a report, from when its last piece was sent: a large one takes longer to be put on record."""
MOST_FOR_LARGE = 10.0
"""But no more than these. If the first copy is lost, the second one has to arrive before the dispatchers end the attempt, which is
30 s after its timeout."""
RETRY = 0.5
"""Seconds after which a report that the stream did not take is sent again."""


@dataclass
class _Pending:
    report: bytes
    sent: int = 0
    """How many times it was put on the stream."""
    due: float | None = None
    """When to send it again; none while it is due, or being sent."""


class ResendQueue:
    """Reports by grant, and the order in which they are sent."""

    def __init__(self) -> None:
        self._reports: dict[Key, _Pending] = {}
        self._next: deque[Key] = deque()
        self.bytes = 0
        """The size of all of them."""

    def __len__(self) -> int:
        return len(self._reports)

    def add(self, key: Key, report: bytes) -> None:
        """A new report."""
        self.remove(key)
        self._reports[key] = _Pending(report)
        self._next.append(key)
        self.bytes += len(report)

    def remove(self, key: Key) -> None:
        """It is on record, or nobody would accept it any more."""
        if (pending := self._reports.pop(key, None)) is not None:
            self.bytes -= len(pending.report)

    def resend(self, now: float | None = None) -> None:
        """Makes the reports due whose time has come; all that were sent if no time is given."""
        for key, pending in self._reports.items():
            if pending.due is not None and (now is None or pending.due <= now):
                pending.due = None
                self._next.append(key)

    def batch(self) -> dict[Key, bytes]:
        """Takes the reports of the next message."""
        found: dict[Key, bytes] = {}
        size = 0
        while self._next:
            key = self._next[0]
            pending = self._reports.get(key)
            if pending is not None:
                size += len(pending.report) + 1
                if len(found) == MAX_CLAIM or (found and size > MAX_BYTES):
                    break
                found[key] = pending.report
            self._next.popleft()
        return found

    def sent(self, keys: list[Key], stored: bool, now: float) -> None:
        """A message with these reports was sent; `stored` says whether the stream took it."""
        for key in keys:
            if (pending := self._reports.get(key)) is not None:
                pending.sent += stored
                large = min(MOST_FOR_LARGE, PER_MIB * (len(pending.report) >> 20))
                wait = min(LONGEST_RESEND, RESEND * 2 ** (pending.sent - 1)) + large if stored else RETRY
                pending.due = now + wait
