"""Requests to a gateway: with the token, tried again while it cannot be reached, and with typed errors."""

from __future__ import annotations

import asyncio
import json
import logging
import random
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from ipaddress import ip_address
from typing import Any
from urllib.parse import quote
from urllib.request import getproxies, proxy_bypass

import httpx

from redial import _version
from redial._limits import plain
from redial._redact import without_login
from redial.errors import ConnectionFailed, of_problem

log = logging.getLogger("redial")

HINT = "`redial dev` starts a gateway on this machine; another one is named by `url` or REDIAL_URL"
"""For whoever has no gateway, or asks in the wrong place."""
AGAIN = frozenset({429, 502, 503, 504})
"""The statuses of requests that may succeed later."""
FIRST_WAIT, LONGEST_WAIT = 0.1, 5.0
"""Seconds before the second try, and at most between two."""
SILENCE = 45.0
"""Seconds without a byte after which a stream counts as lost; gateways send a comment every 15 s."""


def may_go_through_a_proxy(url: httpx.URL) -> bool:
    """Whether a proxy of the environment may be used: not for this machine, and not where it would read the token."""
    host = url.host.removesuffix(".")
    try:
        is_this_machine = ip_address(host).is_loopback
    except ValueError:
        is_this_machine = host == "localhost"
    return url.scheme == "https" and not is_this_machine


class Transport:
    """The connections to a gateway. `patience` is how many seconds after its first failure a request is tried again
    while no gateway answers."""

    def __init__(self, url: str, token: str | None, timeout: float, patience: float) -> None:
        headers = {"user-agent": f"redial-python/{_version.VERSION}"}
        if token:
            headers["authorization"] = f"Bearer {token}"
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=64)
        base = url.rstrip("/")
        may_proxy = may_go_through_a_proxy(httpx.URL(base))
        self._http = httpx.AsyncClient(base_url=base, headers=headers, timeout=timeout, limits=limits, trust_env=may_proxy)
        through = may_proxy and "https" in getproxies() and not proxy_bypass(httpx.URL(base).host)
        self._way = " through the proxy of HTTPS_PROXY" if through else ""
        self.url = without_login(url)
        """Where the gateway is, for people."""
        self._timeout, self._patience = timeout, patience
        self._outage = False

    async def close(self) -> None:
        """Ends the connections."""
        await self._http.aclose()

    async def send(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        content: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        query: Mapping[str, Any] | None = None,
        wait: float | None = None,
        again: bool = True,
    ) -> httpx.Response:
        """Sends a request. `wait` is how many seconds the gateway may wait before it answers. `again` says that the request may
        be sent twice; requests that submit something have a key for that. Raises a `RedialError`."""
        sent = dict(headers or {})
        timeout = self._timeout
        if wait is not None:
            # Rather several waits than one that is too long.
            seconds = max(0, int(wait))
            sent["prefer"] = f"wait={seconds}"
            timeout += seconds
        if body is not None:
            content, sent["content-type"] = json.dumps(body, default=plain).encode(), "application/json"
        params = {name: value for name, value in (query or {}).items() if value is not None}
        until, failures = 0.0, 0
        while True:
            pause: float | None = None
            cause = ""
            try:
                response = await self._http.request(
                    method, path, content=content, headers=sent, params=params or None, timeout=timeout
                )
                self._outage = False
                if response.status_code < 400:
                    return response
                error: Exception = of_problem(response.status_code, problem_of(response))
                pause = _seconds(response.headers.get("retry-after"))
                may_help = again and response.status_code in AGAIN
            except httpx.TransportError as failure:
                # Nothing was sent if there is no connection.
                unsent = isinstance(failure, (httpx.ConnectError, httpx.ConnectTimeout))
                cause = str(failure) or type(failure).__name__
                reason = f"{self.url} cannot be reached{self._way}: {cause}"
                error = ConnectionFailed(f"{reason}; {HINT}" if unsent else reason)
                error.__cause__ = failure
                may_help = again or unsent
            failures += 1
            if failures == 1:
                # A request that waited for long had no outage before its first failure.
                until = time.monotonic() + self._patience
            wait_now = pause_after(failures) if pause is None else max(pause, pause_after(failures))
            if not may_help or time.monotonic() + wait_now > until:
                raise error
            if isinstance(error, ConnectionFailed):
                self._note_outage(cause)
            await asyncio.sleep(wait_now)

    def _note_outage(self, cause: str) -> None:
        """Tells once of an outage, however many requests wait for its end."""
        if not self._outage:
            self._outage = True
            text = "Failed to reach the gateway; trying again for %g s at most url=%s error=%s"
            log.warning(text, self._patience, self.url, cause)

    async def json(self, method: str, path: str, body: Any = None, **options: Any) -> Any:
        """The JSON of an answer."""
        return (await self.send(method, path, body, **options)).json()

    @asynccontextmanager
    async def stream(self, path: str, headers: Mapping[str, str], query: Mapping[str, Any]) -> AsyncIterator[httpx.Response]:
        """A stream of events. Raises a `RedialError` for a refusal."""
        timeout = httpx.Timeout(self._timeout, read=SILENCE)
        params = {name: value for name, value in query.items() if value is not None}
        accept = {"accept": "text/event-stream", **headers}
        async with self._http.stream("GET", path, headers=accept, params=params or None, timeout=timeout) as response:
            if response.status_code >= 400:
                await response.aread()
                raise of_problem(response.status_code, problem_of(response))
            yield response


def check_url(name: str, url: str) -> None:
    """Raises ValueError for what is no address of a gateway; `name` is what the error calls it."""
    try:
        parsed = httpx.URL(url)
    except httpx.InvalidURL:
        parsed = httpx.URL()
    if parsed.scheme not in ("http", "https") or not parsed.host:
        raise ValueError(f"{name} is {without_login(url)!r}; allowed: http://host:port or https://host:port")


def problem_of(response: httpx.Response) -> dict[str, Any]:
    """The problem document of an answer, or what can be said without one."""
    try:
        problem = response.json()
    except ValueError:
        problem = None
    return problem if isinstance(problem, dict) else {"detail": f"HTTP {response.status_code}: {response.text[:200]}"}


def pause_after(failures: int) -> float:
    """Seconds to wait after so many failures, counted from 1: doubled each time, with jitter."""
    return float(min(LONGEST_WAIT, FIRST_WAIT * 2 ** min(failures - 1, 20)) * random.uniform(0.5, 1.0))


def path_of(*parts: str) -> str:
    """A path of the API."""
    return "/v1/" + "/".join(quote(part, safe="") for part in parts)


def _seconds(text: str | None) -> float | None:
    return float(text) if text is not None and text.isdecimal() else None
