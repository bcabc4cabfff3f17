"""Which messages are of a newer version."""

import unittest

from nats.aio.client import Client
from nats.aio.msg import Msg

from redial._claim import is_newer
from redial._version import CONTRACT


def message(said: str | None) -> Msg:
    headers = None if said is None else {"redial-contract": said}
    return Msg(_client=Client(), subject="redial.jobs.default.tool", data=b"{}", headers=headers)


class Versions(unittest.TestCase):
    def test_only_a_larger_number_is_newer(self) -> None:
        for newer in (str(CONTRACT + 1), "9" * 5000):
            self.assertTrue(is_newer(message(newer)), newer)
        for said in (None, str(CONTRACT), "new", "-1", "", "\u0662"):
            self.assertFalse(is_newer(message(said)), said)


if __name__ == "__main__":
    unittest.main()
