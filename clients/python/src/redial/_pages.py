"""Lists of the API, page by page."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from redial._http import Transport

T = TypeVar("T")


@dataclass(frozen=True)
class Page:
    """One page of a list."""

    entries: list[Any]
    next: str | None
    """The token of the next page; none at the end."""
    json: Mapping[str, Any]
    """The whole answer, which may say more, such as how far a search has come."""

    @staticmethod
    async def get(transport: Transport, path: str, name: str, query: Mapping[str, Any]) -> Page:
        """One page; `name` is that of its list."""
        answer = await transport.json("GET", path, query=query)
        return Page(list(answer.get(name) or ()), answer.get("next_page_token") or None, answer)


async def pages(
    transport: Transport, path: str, name: str, filters: Mapping[str, Any], kind: Callable[[Any], T]
) -> AsyncIterator[T]:
    """All entries of a list. A page of a search may be empty although more follow."""
    token = filters.get("page_token")
    while True:
        page = await Page.get(transport, path, name, {**filters, "page_token": token})
        for entry in page.entries:
            yield kind(entry)
        token = page.next
        if token is None:
            return
