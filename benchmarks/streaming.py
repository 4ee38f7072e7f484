"""A service of known timing for the suite client: one event of one token every interval, for ever again.

Run as a program it prints its port and serves until its stdin closes.
"""

import json
import socket
import sys
import threading
import time

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"


def chunk(document: object) -> bytes:
    """Return one event as one chunk."""
    text = document if isinstance(document, str) else json.dumps(document)
    data = f"data: {text}\n\n".encode()
    return b"%x\r\n%s\r\n" % (len(data), data)


def answer(link: socket.socket, events: int, interval_s: float) -> None:
    """Send events, each at its own time after the first."""
    with link:
        link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while b"\r\n\r\n" not in link.recv(65536):
            pass
        link.sendall(HEAD)
        parts = []
        for at in range(events):
            choice = {"index": 0, "delta": {"content": f" word{at}"}, "token_ids": [at], "logprobs": None}
            choice["finish_reason"] = "length" if at == events - 1 else None
            common = {"id": "chatcmpl-bench", "object": "chat.completion.chunk", "created": 1, "model": "m"}
            parts.append(chunk(common | {"choices": [choice]}))
        start = time.perf_counter()
        for at, part in enumerate(parts):
            while (left := start + at * interval_s - time.perf_counter()) > 0:
                time.sleep(left)
            link.sendall(part)
        usage = {"prompt_tokens": 3, "completion_tokens": events}
        link.sendall(chunk({"id": "chatcmpl-bench", "choices": [], "usage": usage}) + chunk("[DONE]"))
        link.sendall(b"0\r\n\r\n")


def main() -> None:
    """Serve: events, then seconds between them, are the arguments."""
    events, interval_s = int(sys.argv[1]), float(sys.argv[2])
    listener = socket.create_server(("127.0.0.1", 0))
    sys.stdout.write(f"{listener.getsockname()[1]}\n")
    sys.stdout.flush()

    def serve() -> None:
        while True:
            link, _ = listener.accept()
            threading.Thread(target=answer, args=(link, events, interval_s), daemon=True).start()

    threading.Thread(target=serve, daemon=True).start()
    sys.stdin.read()


if __name__ == "__main__":
    main()
