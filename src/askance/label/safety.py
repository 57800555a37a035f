"""What stands between the session and the network: who may ask, from where, and how much.

A page on the user's own machine is reachable by every site their browser visits. So: the `Host` must be
one of ours (a name an attacker points at 127.0.0.1 is not), a request from another site is refused, a
body must be JSON and small, and away from loopback a token is needed.
"""

from __future__ import annotations

import hmac
import ipaddress
import json
import secrets
import socket
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from askance.errors import InputError

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

MOST_BYTES = 64 * 1024
SHORTEST_TOKEN = 16

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "font-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)
HEADERS = {
    b"content-security-policy": POLICY.encode(),
    b"x-content-type-options": b"nosniff",
    b"referrer-policy": b"no-referrer",
    b"cross-origin-opener-policy": b"same-origin",
    b"cross-origin-resource-policy": b"same-origin",
    b"x-frame-options": b"DENY",
}


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach the address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class TokenAuth:
    """The token, the one-time links, and the cookies that came of them."""

    def __init__(self, token: str, port: int = 0) -> None:
        if len(token) < SHORTEST_TOKEN:
            raise InputError(
                f"a token must have at least {SHORTEST_TOKEN} characters, got {len(token)}; "
                f"--token auto makes one"
            )
        if not (token.isascii() and token.isprintable()) or " " in token:
            raise InputError("a token must be of printable ASCII characters without spaces")
        self.token = token
        self.cookie = f"askance-{port}"  # browsers send a machine's cookies to all of its ports
        self._tickets: set[str] = set()
        self._sessions: set[str] = set()

    def ticket(self) -> str:
        """The path of a link that works once."""
        ticket = secrets.token_urlsafe(24)
        self._tickets.add(ticket)
        return f"/enter/{ticket}"

    def enter(self, ticket: str) -> str | None:
        """The session a ticket opens; None for one that is unknown or used."""
        if ticket not in self._tickets:
            return None
        self._tickets.remove(ticket)
        session = secrets.token_urlsafe(24)
        self._sessions.add(session)
        return session

    def accepts(self, headers: dict[bytes, bytes]) -> bool:
        """Whether a request carries the token, or a cookie of a session."""
        scheme, _, token = headers.get(b"authorization", b"").partition(b" ")
        if scheme.lower() == b"bearer" and hmac.compare_digest(token, self.token.encode()):
            return True
        # Other servers of this machine set cookies too, and a strict reader stops at the first odd one.
        for cookie in headers.get(b"cookie", b"").decode("latin-1").split(";"):
            name, _, value = cookie.strip().partition("=")
            if name == self.cookie and value in self._sessions:
                return True
        return False


class AllowedHosts:
    """The names and ports under which this server may be addressed."""

    def __init__(self, host: str, port: int) -> None:
        self._port = port
        self._names = {"127.0.0.1", "localhost", "::1", host.lower()}
        # Bound to every address, it may be called by any of them. A number cannot be rebound: only
        # names can be pointed elsewhere, so of names only the machine's own is taken.
        self._any_number = host in ("0.0.0.0", "::", "")
        if self._any_number:
            self._names.add(socket.gethostname().lower())

    def holds(self, value: str) -> bool:
        """Whether a Host header names this server."""
        name, port = _split(value)
        if (80 if port is None else port) != self._port:
            return False
        if name in self._names:
            return True
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return False
        return self._any_number


def _split(value: str) -> tuple[str, int | None]:
    """A Host header's name and port; an unreadable one has the name ""."""
    name, colon, port = value.strip().lower().rpartition(":")
    if not colon or (value.startswith("[") and value.endswith("]")):
        name, port = value.strip().lower(), ""
    if port and not (port.isascii() and port.isdigit() and len(port) <= 5):
        return "", None
    if name.startswith("[") and name.endswith("]"):
        name = name[1:-1]
    return name, int(port) if port else None


class SafetyMiddleware:
    """An ASGI middleware: refuses what is not ours to answer, and adds the headers to what is."""

    def __init__(self, app: App, hosts: AllowedHosts, auth: TokenAuth | None) -> None:
        self.app, self.hosts, self.auth = app, hosts, auth

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":  # no websocket is spoken here
            await send({"type": "websocket.close", "code": 1003})
            return

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                present = {name.lower() for name, _ in message.get("headers", [])}
                more = [(k, v) for k, v in HEADERS.items() if k not in present]
                if b"cache-control" not in present:
                    more.append((b"cache-control", b"no-store"))
                message["headers"] = [*message.get("headers", []), *more]
            await send(message)

        refusal = self._refusal(scope)
        if refusal is None and scope["method"] not in ("GET", "HEAD", "OPTIONS"):
            body, refusal = await _body(scope, receive)
            receive = _replay(body, receive)
        if refusal is None:
            await self.app(scope, receive, with_headers)
        else:
            await _refuse(with_headers, *refusal)

    def _refusal(self, scope: Scope) -> tuple[int, str, str] | None:
        headers: dict[bytes, bytes] = {}
        for name, value in scope["headers"]:
            if name in headers and name in (b"host", b"origin", b"content-length"):
                return 400, "bad-request", f"{name.decode()} was given twice"
            headers[name] = b"; ".join((headers[name], value)) if name in headers else value
        host = headers.get(b"host", b"").decode("latin-1")
        if not self.hosts.holds(host):
            return 403, "forbidden", f"this server does not answer to the name {host[:100]!r}"
        origin = headers.get(b"origin")
        if origin is not None and origin.decode("latin-1").lower() != f"http://{host.lower()}":
            return 403, "forbidden", "requests from other sites are refused"
        site = headers.get(b"sec-fetch-site", b"none")
        path: str = scope["path"]
        # A link from elsewhere may open the page; nothing else may be asked for from elsewhere.
        page = path == "/" or path.startswith("/enter/")
        if site not in (b"none", b"same-origin") and not (page and scope["method"] == "GET"):
            return 403, "forbidden", "requests from other sites are refused"
        public = self.auth is None or path.startswith("/enter/")
        if not public and self.auth is not None and not self.auth.accepts(headers):
            return 401, "unauthorised", "open the link that askance printed; it works once"
        return None


async def _body(scope: Scope, receive: Receive) -> tuple[bytes, tuple[int, str, str] | None]:
    """The whole body, or why it is refused."""
    headers = dict(scope["headers"])
    too_large = 413, "too-large", f"a request may have {MOST_BYTES:,} bytes"
    length = headers.get(b"content-length", b"0")
    if not length.isdigit() or int(length) > MOST_BYTES:
        return b"", too_large
    kind = headers.get(b"content-type", b"").split(b";")[0].strip().lower()
    if scope["method"] == "POST" and kind != b"application/json":
        return b"", (415, "not-json", "send JSON, with Content-Type: application/json")
    body = b""
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return b"", (400, "bad-request", "the request ended early")
        body += message.get("body", b"")
        if len(body) > MOST_BYTES:
            return b"", too_large
        if not message.get("more_body", False):
            return body, None


def _replay(body: bytes, receive: Receive) -> Receive:
    """The body that was read, for whoever reads it next."""
    replayed = False

    async def replay() -> Message:
        nonlocal replayed
        if replayed:
            return await receive()
        replayed = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replay


async def _refuse(send: Send, status: int, code: str, message: str) -> None:
    body = json.dumps({"error": {"code": code, "message": message}}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
