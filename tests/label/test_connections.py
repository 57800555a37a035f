"""Who connects and says nothing, or says it slowly, or reads nothing, holds nobody up."""

import socket
import time
from contextlib import ExitStack, contextmanager, suppress

import httpx
import pytest

from askance.label import connections
from askance.label.server import serving


@pytest.fixture
def port(session):
    with serving(session, port=0) as url:
        yield int(url.rsplit(":", 1)[1].strip("/"))


@contextmanager
def half_open(port, count, said=b"GET /api/state HTTP/1.1\r\nHost: "):
    with ExitStack() as opened:
        yield [opened.enter_context(connected(port, said)) for _ in range(count)]


def connected(port, said):
    client = socket.create_connection(("127.0.0.1", port), timeout=5)
    with suppress(OSError):
        client.sendall(said)
    return client


def ended(client, seconds=10):
    """Whether the server ends the connection within so many seconds."""
    client.settimeout(seconds)
    try:
        return client.recv(1) == b""
    except ConnectionError:
        return True
    except TimeoutError:
        return False


BEGINNINGS = {
    "nothing": b"",
    "half a header": b"GET /api/state HTTP/1.1\r\nHost: 127.0.0.1\r\nX-A",
    "half a body": b"POST /api/undo HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n"
    b"Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{",
}


@pytest.mark.parametrize("said", BEGINNINGS)
def test_a_request_that_does_not_come_ends(port, said, monkeypatch):
    monkeypatch.setattr(connections, "RECEIVED_WITHIN", 0.3)
    text = BEGINNINGS[said].replace(b"%d", b"%d" % port)
    with connected(port, text) as client:
        assert ended(client)


def test_half_a_second_request_ends_too(port, monkeypatch):
    monkeypatch.setattr(connections, "RECEIVED_WITHIN", 1.0)
    with connected(port, b"GET /api/none HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n" % port) as client:
        assert client.recv(4096).startswith(b"HTTP/1.1 404")
        client.sendall(b"GET /api")
        assert ended(client)


def test_a_reply_that_is_not_read_ends(port, monkeypatch):
    monkeypatch.setattr(connections, "READ_WITHIN", 0.3)
    with connected(port, b"") as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
        request = b"GET /static/style.css HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n" % port
        with suppress(OSError):
            client.sendall(request * 3_000)  # thousands of replies of kilobytes
        time.sleep(0.6)
        assert reset(client)


def reset(client):
    """Whether the connection ends before all replies could be read."""
    client.settimeout(10)
    try:
        for _ in range(100_000):
            if not client.recv(65536):
                return True
    except ConnectionError:
        return True
    return False


def test_of_too_many_connections_the_idle_ones_end(port, monkeypatch):
    monkeypatch.setattr(connections, "MOST_CONNECTIONS", 20)
    with (
        httpx.Client(base_url=f"http://127.0.0.1:{port}") as person,
        half_open(port, 15) as first,
    ):
        assert person.get("/api/state").status_code == 200
        with half_open(port, 40):
            assert all(map(ended, first))
            assert person.get("/api/state").status_code == 200


def test_bad_requests_are_not_logged_one_by_one(port, caplog, capfd):
    for _ in range(60):
        with connected(port, b"\x00nonsense\r\n\r\n") as client:
            client.recv(100)
    assert len(caplog.records) <= 20
    out, err = capfd.readouterr()
    assert len((out + err).splitlines()) <= 20
