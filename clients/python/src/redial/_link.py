"""The connection to NATS: kept, and made again with jittered waits whenever it is lost.

Each connection is a client of its own, without the client's own reconnection, which waits the same time for all clients and
ends for good at some errors. What was subscribed to is subscribed to again.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import SplitResult, unquote, urlsplit

import nats.errors
from nats.aio.client import Client
from nats.aio.msg import Msg

from redial._redact import without_login
from redial._version import CONTRACT

log = logging.getLogger("redial.worker")

SAID = {"redial-contract": str(CONTRACT)} if CONTRACT > 1 else None
"""What messages say of the version of their sender; nothing for the first version."""
ANSWER = 2.0
"""Seconds that the server may take to answer, unless the caller sets another limit."""
CONNECT = 5.0
"""Seconds that one try to connect may take."""
FIRST_WAIT, LONGEST_WAIT = 0.1, 2.0
"""Seconds before the second try, and at most between two: short, so that a server that is back is noticed at once."""

SHORTEST_SECRET = 6
"""A shorter password is in too many texts to be removed from them."""

SCHEMES = ("nats", "tls", "ws", "wss")
"""What an address of NATS may begin with."""

Handler = Callable[[Msg], Awaitable[None]]


class Outage(Exception):
    """NATS or the dispatchers cannot be reached now."""


class Refused(Exception):
    """NATS or a dispatcher refuses something, and would refuse it again. The text says what, and why."""


@dataclass(frozen=True)
class Address:
    """Where NATS is, and who connects."""

    url: str
    name: str
    inbox_prefix: str
    credentials: str | None = None
    """A file with a user's JWT and its key."""
    hint: str = ""
    """What may help if no connection can be made."""

    def options(self) -> dict[str, Any]:
        """What the client takes. The login of the first server is that of all. Raises ValueError for what is no address."""
        servers: list[str] = []
        login: dict[str, str] = {}
        for part in self.url.split(","):
            url = urlsplit(part.strip() if "://" in part else f"nats://{part.strip()}")
            if url.scheme not in SCHEMES or not url.hostname or not _has_port(url):
                allowed = "nats://user:password@host:port, also with tls, ws or wss"
                raise ValueError(f"{without_login(part)!r} is no address of NATS; allowed: {allowed}")
            host = f"[{url.hostname}]" if ":" in url.hostname else url.hostname
            servers.append(f"{url.scheme}://{host}:{url.port or 4222}")
            if url.username is not None and not login:
                user = unquote(url.username)
                login = {"token": user} if url.password is None else {"user": user, "password": unquote(url.password)}
        more = {"user_credentials": self.credentials} if self.credentials else {}
        return {"servers": servers, "name": self.name, "inbox_prefix": self.inbox_prefix, **login, **more}


def _has_port(url: SplitResult) -> bool:
    """Whether its port is a number, or left out."""
    try:
        return url.port is None or url.port > 0
    except ValueError:
        return False


class Link:
    """One connection at a time. `on_connected` is called after each connection but the first."""

    def __init__(self, address: Address, on_connected: Callable[[], None]) -> None:
        self._options = address.options()
        self._shown = ", ".join(self._options["servers"])
        self._hint = f"; {address.hint}" if address.hint else ""
        self._on_connected = on_connected
        self._handlers: dict[str, Handler] = {}
        self._client: Client | None = None
        self._closed = asyncio.Event()
        self._connected = asyncio.Event()
        self._keeper: asyncio.Task[None] | None = None
        self.connections = 0
        """Counts connections."""

    def secrets(self) -> list[str]:
        """The password or token of the login."""
        found = (self._options.get("password"), self._options.get("token"))
        return [secret for secret in found if secret and len(secret) >= SHORTEST_SECRET]

    @property
    def client(self) -> Client:
        """The connected client."""
        if self._client is None or not self._client.is_connected:
            raise Outage("there is no connection to NATS")
        return self._client

    async def start(self) -> None:
        """Connects, however long that takes, and stays connected until `close`. Raises `Refused` if the server does not let
        this login in."""
        await self._connect(first=True)
        self._keeper = asyncio.create_task(self._keep())

    async def close(self) -> None:
        """Ends the connection; what was published is sent before."""
        if self._keeper is not None:
            self._keeper.cancel()
        if self._client is not None:
            with suppress(nats.errors.Error, OSError, asyncio.TimeoutError):
                await asyncio.wait_for(self._client.flush(int(ANSWER)), ANSWER)
            with suppress(nats.errors.Error, OSError):
                await self._client.close()
        self._client = None

    async def handle(self, subject: str, handler: Handler) -> None:
        """Subscribes on this connection and on all that follow."""
        self._handlers[subject] = handler
        await self.client.subscribe(subject, cb=handler)
        await self.client.flush(int(ANSWER))

    async def connected(self, limit: float) -> Client:
        """Waits until there is a connection."""
        with suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._connected.wait(), limit)
        return self.client

    async def request(self, subject: str, payload: bytes, limit: float = ANSWER, headers: dict[str, str] | None = None) -> Msg:
        """Sends a request, and waits for the first reply."""
        client = await self.connected(limit)
        try:
            return await client.request(subject, payload, timeout=limit, headers={**(SAID or {}), **(headers or {})} or None)
        except (nats.errors.Error, OSError, asyncio.TimeoutError) as error:
            raise Outage(f"{subject}: {str(error) or type(error).__name__}") from error

    async def publish(self, subject: str, payload: bytes, reply: str = "") -> None:
        """Sends a message, without a confirmation."""
        try:
            await self.client.publish(subject, payload, reply=reply)
        except (nats.errors.Error, OSError) as error:
            raise Outage(f"{subject}: {error}") from error

    async def _keep(self) -> None:
        while True:
            await self._closed.wait()
            self._connected.clear()
            log.warning("Lost the connection to NATS; connecting again")
            await self._connect(first=False)
            log.info("Connected to NATS again")
            self._on_connected()

    async def _connect(self, first: bool) -> None:
        failures = 0
        while True:
            try:
                self._client = await self._new_client()
                break
            except Exception as error:
                if first and "authorization" in str(error).lower():
                    raise Refused(f"NATS at {self._shown} refuses this login: {error}{self._hint}") from error
                failures += 1
                wait = backoff(failures, FIRST_WAIT, LONGEST_WAIT)
                cause = str(error) or type(error).__name__
                text = "Failed to connect to NATS address=%s wait_s=%.1f error=%s%s"
                log.warning(text, self._shown, wait, cause, self._hint)
                await asyncio.sleep(wait)
        self.connections += 1
        self._connected.set()

    async def _new_client(self) -> Client:
        client = Client()
        failures: list[Exception] = []
        closed = self._closed = asyncio.Event()

        async def on_closed() -> None:
            closed.set()

        async def on_error(error: Exception) -> None:
            failures.append(error)
            # The first failure of a connection is logged with the wait that follows it.
            if client.is_connected:
                log.warning("NATS reported an error error=%s", str(error) or type(error).__name__)

        options = {**self._options, "closed_cb": on_closed, "disconnected_cb": on_closed, "error_cb": on_error}
        connect = client.connect(
            **options, allow_reconnect=False, connect_timeout=int(CONNECT), max_reconnect_attempts=1,
            reconnect_time_wait=0, ping_interval=5, max_outstanding_pings=2, drain_timeout=1,
        )  # fmt: skip
        try:
            await asyncio.wait_for(connect, 2 * CONNECT)
            for subject, handler in self._handlers.items():
                await client.subscribe(subject, cb=handler)
            await client.flush(int(ANSWER))
        except BaseException as error:
            with suppress(Exception):
                await client.close()
            if isinstance(error, Exception) and failures:
                raise failures[-1] from error
            raise
        return client


def backoff(failures: int, first: float, longest: float) -> float:
    """Seconds to wait after so many failures, counted from 1: doubled each time, with jitter."""
    return float(min(longest, first * 2 ** min(failures - 1, 20)) * random.uniform(0.5, 1.0))
