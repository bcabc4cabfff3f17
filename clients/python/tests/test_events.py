"""Streams of events: how they are read, and that they are resumed after the last durable event."""

import asyncio
import unittest
from collections.abc import AsyncIterator, Callable

from gateway_of_tests import Answer, Gateway, Request

from redial import Event
from redial._events import Lines, Parser, events
from redial._http import Transport


class Parsing(unittest.TestCase):
    def read(self, text: str) -> list[Event]:
        parser = Parser()
        return [event for line in text.split("\n") if (event := parser.line(line)) is not None]

    def test_fields_comments_and_several_lines_of_data(self) -> None:
        text = ': hello\n\nid: 1.0\nevent: step\ndata: {"a":\ndata: 1}\n\ndata:x\n\nevent: empty\n\n: end\n\nid: 7\n\n'
        self.assertEqual(self.read(text), [Event("step", {"a": 1}, "1.0"), Event("message", "x"), Event("message", "", "7")])

    def test_an_event_that_was_cut_off_is_none(self) -> None:
        self.assertEqual(self.read("id: 1\nevent: step\ndata: {}"), [])


BREAKS = "\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"
"""What Python also takes for line breaks."""


class Splitting(unittest.TestCase):
    def test_lines_end_with_lf_crlf_or_cr_wherever_the_stream_is_cut(self) -> None:
        text = f"a\nb{BREAKS}ü\r\n\r\nc\r\rd\n".encode()
        for size in range(1, len(text) + 1):
            lines = Lines()
            found = [line for n in range(0, len(text), size) for line in lines.feed(text[n : n + size])]
            self.assertEqual(found, ["a", f"b{BREAKS}ü", "", "c", "", "d"], f"pieces of {size} bytes")


class Server:
    """A gateway with ten durable events and live text between them, whose connections break after some lines."""

    def __init__(self, breaks: Callable[[int], int]) -> None:
        self.breaks, self.connections, self.resumed = breaks, 0, list[str | None]()

    async def __aenter__(self) -> "Server":
        self.server = await asyncio.start_server(self.serve, "127.0.0.1", 0)
        host, port = self.server.sockets[0].getsockname()
        self.url = f"http://{host}:{port}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self.server.close()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        after = next((line.split(": ")[1] for line in head.split("\r\n") if line.startswith("last-event-id")), None)
        self.resumed.append(after)
        self.connections += 1
        left = self.breaks(self.connections)
        if left == 0:
            writer.write(b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\n\r\n")
        elif after == "10":
            writer.write(b"HTTP/1.1 204 No Content\r\n\r\n")
        else:
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n")
            lines = [line for n in range(int(after or 0) + 1, 11) for line in self.event(n)]
            writer.write("".join(lines[:left]).encode())
        await writer.drain()
        writer.close()

    def event(self, n: int) -> list[str]:
        live = ["event: delta\n", f'data: "{n}"\n', "\n"]
        return [*live, f"id: {n}\n", f"event: {'end' if n == 10 else 'step'}\n", f"data: {n}\n", "\n"]


async def follow(server: Server | Gateway, after: str | None = None) -> list[Event]:
    transport = Transport(server.url, None, timeout=5, patience=5)
    try:
        return [event async for event in events(transport, "/v1/events", after)]
    finally:
        await transport.close()


class Resuming(unittest.IsolatedAsyncioTestCase):
    async def test_every_durable_event_comes_once_wherever_the_connection_breaks(self) -> None:
        for lines in range(8, 15):
            async with Server(lambda n, lines=lines: 0 if n % 3 == 0 else lines) as server:  # type: ignore[misc]
                found = await follow(server)
            durable = [event.id for event in found if event.id is not None]
            self.assertEqual(durable, [str(n) for n in range(1, 11)], f"breaks after {lines} lines")
            self.assertEqual(found[-1].type, "end")
            self.assertGreater(server.connections, 3)

    async def test_a_stream_begins_after_an_event_and_ends_at_its_end(self) -> None:
        async with Server(lambda _: 1000) as server:
            found = await follow(server, after="8")
            self.assertEqual([event.id for event in found if event.id is not None], ["9", "10"])
            self.assertEqual(await follow(server, after="10"), [])
        self.assertEqual(server.resumed, ["8", "10"])

    async def test_texts_with_line_breaks_of_unicode_arrive_whole(self) -> None:
        async def answer(_: Request) -> Answer:
            async def stream() -> AsyncIterator[bytes]:
                yield f'id: 1\nevent: end\ndata: "{BREAKS[5:]}"\n\n'.encode()

            return Answer(stream=stream())

        with Gateway(answer) as gateway:
            self.assertEqual(await follow(gateway), [Event("end", BREAKS[5:], "1")])


if __name__ == "__main__":
    unittest.main()
