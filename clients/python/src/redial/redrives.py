"""Runs all calls again that match a filter: a resource with progress."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from redial._http import Transport, path_of
from redial.errors import Timeout
from redial.views import shown

LOOKS = 0.5
"""Seconds between two looks at a redrive."""


@dataclass(frozen=True, repr=False)
class RedriveView:
    """How far a redrive is."""

    json: Mapping[str, Any]
    """The whole view: `RedriveView` in the API's document."""

    def __repr__(self) -> str:
        return shown(self, "id", "state", "matched", "redriven")

    @property
    def id(self) -> str:
        """Its id."""
        return str(self.json["redrive"])

    @property
    def state(self) -> str:
        """`counting`, `running`, `done`, `cancelled` or `failed`."""
        return str(self.json["state"])

    @property
    def ended(self) -> bool:
        """True if nothing happens any more."""
        return self.state in ("done", "cancelled", "failed")

    @property
    def matched(self) -> int:
        """Calls that would run again, as far as they are counted."""
        return int(self.json["matched"])

    @property
    def redriven(self) -> int:
        """Calls that run again, as new calls."""
        return int(self.json["redriven"])


class AsyncRedrive:
    """A redrive of all calls that match a filter."""

    def __init__(self, transport: Transport, id: str) -> None:
        self._transport = transport
        self.id = id
        """Its id."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.id!r})"

    async def view(self) -> RedriveView:
        """How far it is now."""
        return RedriveView(await self._transport.json("GET", path_of("redrives", self.id)))

    async def wait(self, timeout: float | None = None) -> RedriveView:
        """Waits for its end. Raises `Timeout` after so many seconds; it goes on."""
        until = None if timeout is None else time.monotonic() + timeout
        while True:
            view = await self.view()
            if view.ended:
                return view
            if until is not None and time.monotonic() >= until:
                raise Timeout(f"redrive {self.id} is {view.state} after {timeout:g} s, and goes on")
            await asyncio.sleep(LOOKS)

    async def cancel(self) -> RedriveView:
        """Stops it. Calls that run again already are not stopped."""
        return RedriveView(await self._transport.json("POST", path_of("redrives", self.id, "cancel")))
