"""A small service of known timing and any misbehaviour: it answers with the bytes that a test scripts."""

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

from provstore.runs.wire import Target

STREAM: Final = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\n"
CHUNKED: Final = STREAM + b"Transfer-Encoding: chunked\r\n\r\n"
PLAIN: Final = STREAM + b"\r\n"


class Request(NamedTuple):
    """What a client sent."""

    line: str
    headers: dict[str, str]
    body: dict[str, Any]


class Server:
    """Listens on the loopback; every connection is answered by the script of its place, the last one for all.

    Attributes:
        requests: what clients sent, in order.
        sent_ns: monotonic clock before each piece of an answer was sent.
        most: most connections that were open at one time.
    """

    def __init__(self, scripts: "Sequence[Script]") -> None:
        self._scripts = scripts
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.target = Target("127.0.0.1", self._listener.getsockname()[1])
        self.requests: list[Request] = []
        self.sent_ns: list[int] = []
        self.most = 0
        self._open = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        place = 0
        while not self._stop.is_set():
            try:
                link, _ = self._listener.accept()
            except OSError:
                return
            script = self._scripts[min(place, len(self._scripts) - 1)]
            place += 1
            threading.Thread(target=self._answer, args=(link, script), daemon=True).start()

    def _answer(self, link: socket.socket, script: "Script") -> None:
        self._open += 1
        self.most = max(self.most, self._open)
        link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            with link:
                self.requests.append(_request(link))
                script(self, link)
        except OSError:
            pass  # the client had enough
        finally:
            self._open -= 1

    def send(self, link: socket.socket, data: bytes) -> None:
        """Send a piece, and remember when."""
        self.sent_ns.append(time.monotonic_ns())
        link.sendall(data)

    def close(self) -> None:
        self._stop.set()
        self._listener.close()


Script = Callable[[Server, socket.socket], None]


def _request(link: socket.socket) -> Request:
    data = b""
    while b"\r\n\r\n" not in data:
        data += link.recv(65536)
    head, _, body = data.partition(b"\r\n\r\n")
    lines = head.decode().split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}
    while len(body) < int(headers.get("content-length", "0")):
        body += link.recv(65536)
    return Request(lines[0], headers, json.loads(body))


@contextmanager
def serving(*scripts: Script) -> Iterator[Server]:
    """Run a service for a block."""
    server = Server(scripts)
    try:
        yield server
    finally:
        server.close()


def event(document: Any) -> bytes:
    """Return one event."""
    return b"data: " + json.dumps(document).encode() + b"\n\n"


def chunk(data: bytes) -> bytes:
    """Return bytes as one chunk of HTTP/1.1."""
    return b"%x\r\n%s\r\n" % (len(data), data)


END: Final = b"data: [DONE]\n\n"


def said(ids: Sequence[int], text: str, **more: Any) -> dict[str, Any]:
    """Return the document of one event of a chat."""
    choice = {"index": 0, "delta": {"content": text}, "token_ids": list(ids), "finish_reason": None}
    return {"id": "chatcmpl-1", "model": "tiny", "choices": [choice | more]}


def usage(prompt: Any, answer: Any, cached: Any = 0) -> dict[str, Any]:
    """Return the document of a usage report."""
    counts = {"prompt_tokens": prompt, "completion_tokens": answer}
    return {
        "id": "chatcmpl-1",
        "choices": [],
        "usage": counts | {"prompt_tokens_details": {"cached_tokens": cached}},
    }


def whole(tokens: int = 5) -> list[bytes]:
    """Return the events of a whole answer of one token an event."""
    events = [event(said([100 + at], f"w{at} ")) for at in range(tokens - 1)]
    events.append(event(said([100 + tokens - 1], "end", finish_reason="length")))
    return [*events, event(usage(7, tokens)), END]


def pieces(*parts: bytes, head: bytes = CHUNKED, chunked: bool = True, pause_s: float = 0.0) -> Script:
    """Return a script that sends a head, then each part on its own."""

    def script(server: Server, link: socket.socket) -> None:
        server.send(link, head)
        for part in parts:
            time.sleep(pause_s)
            server.send(link, chunk(part) if chunked else part)
        if chunked:
            server.send(link, b"0\r\n\r\n")

    return script


def raw(data: bytes, *, hold_s: float = 0.0) -> Script:
    """Return a script that sends bytes as they are, and then waits before it closes."""

    def script(server: Server, link: socket.socket) -> None:
        server.send(link, data)
        server._stop.wait(hold_s)

    return script


def dripping(data: bytes, each_s: float) -> Script:
    """Return a script that sends a byte at a time, for ever."""

    def script(server: Server, link: socket.socket) -> None:
        server.send(link, CHUNKED)
        while not server._stop.is_set():
            for at in range(len(data)):
                link.sendall(chunk(data[at : at + 1]))
                time.sleep(each_s)

    return script
