"""The version of this package."""

VERSION = "0.1.0"

CONTRACT = 1
"""The version of the contract that the worker's messages have: see docs/UPGRADING.md."""
