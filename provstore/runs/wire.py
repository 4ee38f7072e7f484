"""One request over HTTP/1.1 and the bytes of its answer, each piece with the time at which it was here.

While an answer comes in, nothing is done with it: a piece is received, stamped and kept. What it means is
read afterwards (:mod:`provstore.runs.stream`), so that reading costs no time between two pieces. Nothing is
followed, decompressed or retried, and nothing waits without a limit.
"""

import re
import socket
import struct
import time
from typing import Final, Literal, NamedTuple
from urllib.parse import urlsplit

from provstore.errors import UsageError
from provstore.paths import show

Trouble = Literal[
    "",
    "connect-failed",
    "send-failed",
    "bad-head",
    "http-status",
    "redirect",
    "compressed",
    "not-a-stream",
    "early-close",
    "too-large",
    "timeout-head",
    "timeout-first",
    "timeout-idle",
    "timeout-total",
]
"""What kept an answer from coming in whole; empty for nothing."""

DONE: Final = b"\ndata: [DONE]"
"""End of a stream of events: no text inside an event has a raw line feed."""

MAX_HEAD_BYTES: Final = 64 << 10
EXCERPT_BYTES: Final = 2048
"""Bytes of an answer that is no stream that are kept."""

RECEIVE_BYTES: Final = 1 << 16
_TICK_US: Final = 100_000
_STATUS: Final = re.compile(rb"HTTP/1\.[01] ([0-9]{3})(?: [^\r\n]*)?")
_HEADER: Final = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*(.*?)[ \t]*")


class Target(NamedTuple):
    """A service that is asked.

    Attributes:
        host: name or address.
        port: port.
        prefix: path before ``/v1``.
    """

    host: str
    port: int
    prefix: str = ""


class Limits(NamedTuple):
    """How long and how much is waited for, in seconds and bytes.

    Attributes:
        connect_s: until the connection is there, and until the request is sent.
        first_s: from the request to the head of the answer, and from that to its first bytes.
        idle_s: between two events or comments of the answer.
        total_s: from the request to the end of the answer.
        answer_bytes: most bytes of an answer.
    """

    connect_s: float = 10.0
    first_s: float = 600.0
    idle_s: float = 120.0
    total_s: float = 3600.0
    answer_bytes: int = 256 << 20


class Answer(NamedTuple):
    """What came in.

    Attributes:
        trouble: what kept it from coming in whole.
        detail: more about that, for people.
        started_ns: clock when the request began to be sent.
        ended_ns: clock when nothing more was waited for.
        status: HTTP status; 0 for none.
        headers: names in lower case; of several the last.
        pieces: bytes after the head, as they came.
        stamps: clock when each was here, in ns.
        receives: calls that waited for bytes.
    """

    trouble: Trouble
    detail: str
    started_ns: int
    ended_ns: int
    status: int = 0
    headers: dict[str, str] = {}  # noqa: RUF012 (never changed)
    pieces: tuple[bytes, ...] = ()
    stamps: tuple[int, ...] = ()
    receives: int = 0


def target_of(url: str) -> Target:
    """Return the service of an address; plain HTTP alone, since the service is one's own.

    Raises:
        UsageError: another scheme, credentials, a query, no host.

    Example:
        >>> target_of("http://127.0.0.1:8000/")
        Target(host='127.0.0.1', port=8000, prefix='')
    """
    try:
        parts = urlsplit(url)
        port = parts.port or 80
    except ValueError as error:
        raise UsageError(f"{show(url)} is no address: {error}") from error
    fine = (
        parts.scheme == "http"
        and parts.hostname
        and not (parts.query or parts.fragment or "@" in parts.netloc)
    )
    if not fine or not url.isascii() or not url.isprintable() or " " in url:
        raise UsageError(f"{show(url)} is no address like http://HOST:PORT")
    return Target(parts.hostname or "", port, parts.path.rstrip("/"))


def ask(target: Target, path: str, body: bytes, request_id: str, limits: Limits) -> Answer:
    """Send one request and take in its answer, on a connection of its own.

    Returns:
        The answer, whatever became of it; nothing of a service raises.
    """
    head = (
        f"POST {target.prefix}{path} HTTP/1.1\r\nHost: {target.host}:{target.port}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\nAccept: text/event-stream\r\n"
        f"Accept-Encoding: identity\r\nX-Request-Id: {request_id}\r\nConnection: close\r\n\r\n"
    )
    started = time.monotonic_ns()
    try:
        link = socket.create_connection((target.host, target.port), timeout=limits.connect_s)
    except OSError as error:
        return Answer("connect-failed", str(error), started, time.monotonic_ns())
    with link:
        try:
            link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            started = time.monotonic_ns()
            link.sendall(head.encode() + body)
            link.settimeout(None)
            # The kernel itself wakes us: a timeout of Python's would cost a second call for every piece.
            link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", 0, _TICK_US))
        except OSError as error:
            return Answer("send-failed", str(error), started, time.monotonic_ns())
        return _Incoming(link, started, limits).answer()


class _Incoming:
    def __init__(self, link: socket.socket, started_ns: int, limits: Limits) -> None:
        self._link = link
        self._started = started_ns
        self._limits = limits
        self._receives = 0

    def answer(self) -> Answer:
        """Take in the head, then the body if it is a stream."""
        try:
            return self._answer()
        except OSError as error:
            return self._done("early-close", str(error))

    def _done(self, trouble: Trouble, detail: str, **more: object) -> Answer:
        found = Answer(trouble, detail, self._started, time.monotonic_ns(), receives=self._receives)
        return found._replace(**more)  # type: ignore[arg-type]

    def _receive(self) -> bytes | None:
        self._receives += 1
        try:
            return self._link.recv(RECEIVE_BYTES)
        except BlockingIOError:
            return None

    def _answer(self) -> Answer:
        data = b""
        until = self._started + int(min(self._limits.first_s, self._limits.total_s) * 1e9)
        while b"\r\n\r\n" not in data:
            piece = self._receive()
            if piece == b"":
                return self._done("early-close", "closed before the head of an answer")
            data += piece or b""
            if len(data) > MAX_HEAD_BYTES:
                return self._done("bad-head", f"more than {MAX_HEAD_BYTES} bytes")
            if time.monotonic_ns() > until:
                return self._done("timeout-head", f"no head within {self._limits.first_s} s")
        stamp = time.monotonic_ns()
        head, _, rest = data.partition(b"\r\n\r\n")
        lines = head.split(b"\r\n")
        status = _STATUS.fullmatch(lines[0])
        fields = [_HEADER.fullmatch(line) for line in lines[1:]]
        if status is None or None in fields:
            return self._done("bad-head", "no head of HTTP/1.1")
        headers = {f[1].decode().lower(): f[2].decode("latin-1") for f in fields if f is not None}
        known = {"status": int(status[1]), "headers": headers}
        trouble, detail = _refusal(int(status[1]), headers)
        if trouble:
            return self._done(trouble, detail, **known, **self._excerpt(rest, stamp))
        return self._stream(rest, stamp, known)

    def _excerpt(self, rest: bytes, stamp: int) -> dict[str, object]:
        """Take in the beginning of an answer that is no stream, for people."""
        until = time.monotonic_ns() + 1_000_000_000
        while len(rest) < EXCERPT_BYTES and time.monotonic_ns() < until:
            piece = self._receive()
            if piece == b"":
                break
            rest += piece or b""
        return {"pieces": (rest[:EXCERPT_BYTES],), "stamps": (stamp,)}

    def _stream(self, rest: bytes, stamp: int, known: dict[str, object]) -> Answer:
        pieces = [rest] if rest else []
        stamps = [stamp] if rest else []
        trouble, detail = self._take(pieces, stamps, stamp)
        return self._done(trouble, detail, pieces=tuple(pieces), stamps=tuple(stamps), **known)

    def _take(self, pieces: list[bytes], stamps: list[int], head_ns: int) -> tuple[Trouble, str]:
        """Take in pieces to the end of the stream. This is the loop that runs between two tokens."""
        limits, receive, clock = self._limits, self._link.recv, time.monotonic_ns
        total = sum(map(len, pieces))
        until = self._started + int(limits.total_s * 1e9)
        line_ns, wait_ns = head_ns, int((limits.idle_s if pieces else limits.first_s) * 1e9)
        tail = b"\n" + b"".join(pieces)
        while DONE not in tail:
            try:
                piece = receive(RECEIVE_BYTES)
            except BlockingIOError:
                piece = None
            now = clock()
            self._receives += 1
            if piece:
                pieces.append(piece)
                stamps.append(now)
                tail = tail[-len(DONE) :] + piece
                total += len(piece)
                # Framing of chunks has line feeds of its own, but none of these.
                if b"\n\n" in tail or b"\n\r\n" in tail:
                    line_ns, wait_ns = now, int(limits.idle_s * 1e9)
                if total > limits.answer_bytes:
                    return "too-large", f"more than {limits.answer_bytes} bytes"
            elif piece is not None:
                return "early-close", "closed before the end of the stream"
            if now - line_ns > wait_ns:
                return ("timeout-idle" if pieces else "timeout-first"), f"no event within {wait_ns / 1e9:g} s"
            if now > until:
                return "timeout-total", f"no end within {limits.total_s:g} s"
        return "", ""


def _refusal(status: int, headers: dict[str, str]) -> tuple[Trouble, str]:
    """Return why an answer is not taken in as a stream."""
    if 300 <= status < 400:
        return "redirect", f"to {show(headers.get('location', 'nowhere')[:200])}; it is not followed"
    if status != 200:
        return "http-status", f"status {status}"
    encoding = headers.get("content-encoding", "identity").lower()
    transfer = headers.get("transfer-encoding", "chunked").lower()
    if encoding != "identity" or transfer not in ("chunked", "identity"):
        return "compressed", f"encoded as {show(f'{encoding}, {transfer}'[:200])}, which was not asked for"
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "text/event-stream":
        return "not-a-stream", f"an answer of type {show(kind[:200]) or 'none'}"
    return "", ""
