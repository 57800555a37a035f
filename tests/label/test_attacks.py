"""Requests that nobody's page sends: a refusal in words, never a 500 or a hang."""

# ruff: noqa: E501

import asyncio
import json
import random
import socket
import time
from contextlib import suppress

import pytest

from askance.label import replies
from askance.label.app import create_app
from askance.label.safety import HEADERS
from askance.label.server import serving
from askance.label.store import ProjectStore
from tests.label.worlds import PORT, images_folder

PATIENCE = 10  # seconds a request may take

TEXTS = [
    "", " ", "a", "ann", "x" * 60, "x" * 61, "x" * 5_000, "\x00", "a\nb", "\u202e", "é", "日本", "\U0001f600",
    "../../etc/passwd", "..\\..\\x", "%00", "%2e%2e%2f", "<script>", "'; DROP TABLE event; --", "=1+1", "null",
    "\ud800", "con", "/", "//", ".", "..", "001.png", "deeper/000.png", "deeper", "a" * 255, "NaN", "-1", "1e9",
]  # fmt: skip
VALUES = [
    None, True, False, 0, 1, -1, 2**31, 2**53 - 1, 2**53, 2**63, 2**64, 10**400, 1.0, 0.5, -0.0, 1e308,
    float("inf"), float("nan"), [], {}, [[]], {"a": 1}, [1] * 1_000,
]  # fmt: skip
KEYS = [
    "question",
    "class",
    "choice",
    "annotator",
    "token",
    "name",
    "item",
    "extra",
    "",
    "__class__",
]
PATHS = [
    "/", "/api/state", "/api/questions", "/api/answers", "/api/skip", "/api/undo", "/api/classes",
    "/api/tickets", "/api/items/{}", "/media/{}", "/static/{}", "/api/export/{}", "/enter/{}", "/{}",
    "/api/{}", "/api/openapi.json", "/static/app.js", "/media/001.png", "/api/browse", "/api/correct",
    "/api/corrections", "/api/train",
]  # fmt: skip
METHODS = ["GET"] * 6 + ["POST"] * 8 + ["HEAD", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "X"]


def value(rng, depth=0):
    kind = rng.random()
    if kind < 0.4:
        return rng.choice(VALUES)
    if kind < 0.9 or depth > 2:
        return rng.choice(TEXTS)
    return {rng.choice(KEYS): value(rng, depth + 1) for _ in range(rng.randrange(4))}


def body(rng, questions):
    kind = rng.random()
    if kind < 0.45:  # nearly right
        sound = {
            "question": rng.randrange(1, questions + 3),
            "class": rng.randrange(4),
            "annotator": rng.choice(["ann", "ben"]),
            "token": f"token-{rng.randrange(200):08d}",
            "name": rng.choice(TEXTS),
        }
        keys = rng.choice([list(sound)[:4], ["annotator", "token"], ["name", "token"], list(sound)])
        said = {key: sound[key] for key in keys}
        if rng.random() < 0.6:
            said[rng.choice(KEYS)] = value(rng)
        return json.dumps(said).encode()
    if kind < 0.7:
        return json.dumps(value(rng)).encode()
    if kind < 0.75:
        return b"[" * rng.choice([100, 30_000]) + b"]"
    if kind < 0.8:
        return b'{"token": "a", "token": "b", "annotator": "ann"}'
    if kind < 0.85:
        return b"x" * rng.choice([1, 65_536, 65_537, 200_000])
    return bytes(rng.randrange(256) for _ in range(rng.randrange(80)))


def request(rng, questions):
    """A scope of ASGI and the pieces of a body."""
    method = rng.choice(METHODS)
    path = rng.choice(PATHS).format(rng.choice(TEXTS))
    query = "&".join(
        f"{rng.choice(['annotator', 'n', 'format', 'size', 'fresh', 'item', ''])}={rng.choice(TEXTS)}"
        for _ in range(rng.randrange(4))
    )
    headers = [(b"host", f"127.0.0.1:{PORT}".encode())]
    if rng.random() < 0.1:
        headers[0] = (b"host", rng.choice(TEXTS).encode("utf-8", "surrogatepass"))
    if method not in ("GET", "HEAD") or rng.random() < 0.1:
        headers.append(
            (b"content-type", rng.choice([b"application/json"] * 9 + [b"text/plain", b"\xff"]))
        )
    if rng.random() < 0.15:
        name = rng.choice(
            [b"origin", b"sec-fetch-site", b"cookie", b"content-length", b"range", b"host"]
        )
        headers.append((name, rng.choice(TEXTS).encode("utf-8", "surrogatepass")))
    content = body(rng, questions) if method not in ("GET", "HEAD") else b""
    pieces = [content] if rng.random() < 0.8 else [content[:7], content[7:]]
    scope = {
        "type": "http", "asgi": {"version": "3.0", "spec_version": "2.3"}, "http_version": "1.1",
        "method": method, "path": path, "raw_path": path.encode("utf-8", "surrogatepass"),
        "query_string": query.encode("utf-8", "surrogatepass"), "headers": headers, "root_path": "",
        "scheme": "http", "server": ("127.0.0.1", PORT), "client": ("127.0.0.1", 1), "state": {},
    }  # fmt: skip
    return scope, pieces


async def answered(app, scope, pieces):
    """(status, headers, content) of the reply."""
    waiting, sent = list(pieces), []

    async def receive():
        if waiting:
            piece = waiting.pop(0)
            return {"type": "http.request", "body": piece, "more_body": bool(waiting)}
        return {"type": "http.disconnect"}

    async def send(message):
        sent.append(message)

    await asyncio.wait_for(app(scope, receive, send), PATIENCE)
    begin = sent[0]
    content = b"".join(message.get("body", b"") for message in sent[1:])
    return begin["status"], dict(begin["headers"]), content


@pytest.mark.parametrize(
    "tries", [300, pytest.param(60_000, marks=[pytest.mark.slow, pytest.mark.timeout(7200)])]
)
def test_hostile_requests(tmp_path, start, tries):
    session = start(images_folder(tmp_path, 8), batch=1_000, held_out=0)
    app = create_app(session, port=PORT)
    session.questions("ann", 3)
    session.questions("ben", 3)
    rng = random.Random(0)

    async def attack():
        for number in range(tries):
            scope, pieces = request(rng, 8)
            case = number, scope["method"], scope["path"], scope["query_string"], pieces
            status, headers, content = await answered(app, scope, pieces)
            assert 200 <= status < 500 or status == 503, (case, status, content)
            assert headers.keys() >= HEADERS.keys(), case
            if status >= 400 and scope["method"] != "HEAD":
                error = replies.ErrorReply.model_validate(json.loads(content)).error
                assert error.message, case
                assert "Traceback" not in error.message

    asyncio.run(attack())
    # What was acknowledged is what is stored, and the tables are sound.
    assert session.store._query("PRAGMA integrity_check")[0][0] == "ok"
    live = {item: list(by) for item, by in session.annotations.answers.items()}
    session.close()
    with ProjectStore.open(tmp_path / "project") as store:
        stored = store.annotations()
        assert {item: list(by) for item, by in stored.answers.items()} == live


LINES = [
    b"GET / HTTP/1.1", b"GET  / HTTP/1.1", b"GET / HTTP/9.9", b"GET /", b"PRI * HTTP/2.0", b"\x16\x03\x01\x02",
    b"POST /api/undo HTTP/1.1", b"GET http://evil/ HTTP/1.1", b"CONNECT a:1 HTTP/1.1", b"G" * 9_000,
    b"GET /" + b"a" * 70_000 + b" HTTP/1.1", b"GET /\x00 HTTP/1.1", b"GET /%zz HTTP/1.1", b"",
]  # fmt: skip
FIELDS = [
    b"Host: 127.0.0.1:%d", b"Host: evil", b"Content-Length: 5", b"Content-Length: -1", b"Content-Length: 9e9",
    b"Content-Length: 99999999999999999999", b"Transfer-Encoding: chunked", b"Transfer-Encoding: identity, chunked",
    b"Connection: upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: x", b"Expect: 100-continue", b"A: b\r\n c",
    b"X: " + b"y" * 20_000, b": no name", b"Bad Name: x", b"Content-Type: application/json", b"X: \xff\x00",
]  # fmt: skip
ENDS = [
    b"{}",
    b"5\r\nhello\r\n0\r\n\r\n",
    b"FFFFFFFFFFFFFFFFF\r\n",
    b"-5\r\n",
    b"\x00" * 100,
    b"",
    b"{" * 3_000,
]


@pytest.mark.parametrize(
    "tries", [60, pytest.param(10_000, marks=[pytest.mark.slow, pytest.mark.timeout(7200)])]
)
def test_bytes_that_are_no_requests(session, capfd, tries):
    rng = random.Random(1)
    with serving(session, port=0) as url:
        port = int(url.rsplit(":", 1)[1].strip("/"))
        for number in range(tries):
            fields = [
                field.replace(b"%d", b"%d" % port) for field in rng.sample(FIELDS, rng.randrange(6))
            ]
            said = b"\r\n".join([rng.choice(LINES), *fields]) + b"\r\n\r\n" + rng.choice(ENDS)
            began = time.monotonic()
            address = "127.0.0.1", port
            with (
                suppress(ConnectionError),
                socket.create_connection(address, timeout=PATIENCE) as client,
            ):
                client.sendall(said)
                client.shutdown(socket.SHUT_WR)
                reply = client.recv(65_536)
                assert reply == b"" or reply.startswith(b"HTTP/1.1 "), (number, said)
                assert not reply.startswith(b"HTTP/1.1 500"), (number, said)
            assert time.monotonic() - began < PATIENCE, (number, said)
        with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as client:
            client.sendall(b"GET /api/state HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n" % port)
            assert client.recv(100).startswith(b"HTTP/1.1 200")
    assert "Traceback" not in "".join(capfd.readouterr())
