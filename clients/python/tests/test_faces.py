"""What `help` shows of the package."""

import inspect
import unittest
from typing import Any

from redial import AsyncClient, Client, Worker


class Signatures(unittest.TestCase):
    def test_no_default_contains_the_environment(self) -> None:
        for kind in (Client, AsyncClient, Worker):
            parameters: Any = inspect.signature(kind).parameters
            self.assertIsNone(parameters["environment"].default, kind)


if __name__ == "__main__":
    unittest.main()
