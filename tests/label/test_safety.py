"""What other sites, other machines and odd data cannot do."""

import json
import socket

import pytest
from fastapi.testclient import TestClient
from PIL import Image

from askance.errors import DataError, InputError
from askance.label import open_session
from askance.label.app import create_app
from askance.label.media import page_image
from askance.label.safety import AllowedHosts, TokenAuth, is_loopback
from askance.label.server import bound, check_address, serving
from tests.label.worlds import (
    BASE,
    CLASSES,
    PORT,
    Person,
    client_of,
    images_folder,
    options,
    token,
)

SECRET = "a-token-of-enough-letters"


@pytest.fixture
def client(session):
    return client_of(session)


@pytest.mark.parametrize(
    "host",
    [
        "evil.example", "evil.example:8123", "127.0.0.1:8124", "127.0.0.1", "",
        "127.0.0.1.evil.example:8123",
        "localhost.evil.example:8123", "10.0.0.1:8123", "127.0.0.1:8123@evil.example",
        "127.0.0.1:08123x",
        "[::1]:1", "127.0.0.1:٨١٢٣",
    ],
)  # fmt: skip
def test_a_rebound_name_is_refused(client, host):
    reply = client.get("/api/state", headers={b"host": host.encode()})
    assert reply.status_code == 403
    assert reply.json()["error"]["code"] == "forbidden"


@pytest.mark.parametrize(
    "host", ["127.0.0.1:8123", "localhost:8123", "LOCALHOST:8123", "[::1]:8123"]
)
def test_our_own_names_are_answered(client, host):
    assert client.get("/api/state", headers={"host": host}).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": "https://127.0.0.1:8123"},
        {"origin": "http://127.0.0.1:9999"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
    ],
)
def test_other_sites_can_neither_post_nor_read(client, session, headers):
    body = {"name": "sneaked", "token": token()}
    assert client.post("/api/classes", json=body, headers=headers).status_code == 403
    assert client.get("/api/state", headers=headers).status_code == 403
    assert [each.name for each in session.annotations.classes] == CLASSES


def test_our_own_page_can_post(client):
    headers = {"origin": BASE, "sec-fetch-site": "same-origin"}
    body = {"name": "ours", "token": token()}
    assert client.post("/api/classes", json=body, headers=headers).status_code == 200


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", ""])
def test_a_form_is_no_json(client, kind):
    body = json.dumps({"name": "formed", "token": token()})
    reply = client.post("/api/classes", content=body, headers={"content-type": kind})
    assert (reply.status_code, reply.json()["error"]["code"]) == (415, "not-json")


def test_large_bodies_are_refused(client):
    big = {"name": "x" * 70_000, "token": token()}
    assert client.post("/api/classes", json=big).status_code == 413

    def pieces():
        for _ in range(100):
            yield b"x" * 10_000

    reply = client.post(
        "/api/classes", content=pieces(), headers={"content-type": "application/json"}
    )
    assert reply.status_code == 413


@pytest.mark.parametrize("path", ["/", "/api/state", "/api/nothing", "/media/none", "/static/x.js"])
def test_every_reply_has_the_headers(client, path):
    headers = client.get(path).headers
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"


def test_refusals_have_the_headers_too(client):
    reply = client.get("/", headers={"host": "evil.example"})
    assert "default-src 'none'" in reply.headers["content-security-policy"]


@pytest.mark.parametrize(
    "path",
    [
        "/media/../secret.png", "/media/%2e%2e/secret.png", "/media/..%2fsecret.png",
        "/media//etc/passwd",
        "/media/deeper/../../secret.png", "/media/%00", "/static/../app.py", "/static/..%2fapp.py",
        "/static/%2e%2e%2fapp.py", "/static/..%5capp.py", "/static/.hidden.js", "/static/app.py",
        "/api/items/../secret.png",
    ],
)  # fmt: skip
def test_no_path_escapes(tmp_path, path, start):
    root = images_folder(tmp_path, 4)
    Image.new("RGB", (8, 8)).save(tmp_path / "secret.png")
    session = start(root)
    reply = client_of(session).get(path)
    assert reply.status_code == 404, reply.text


def test_a_link_that_leaves_the_folder(tmp_path, start):
    root = images_folder(tmp_path, 4)
    secret = tmp_path / "secret.png"
    Image.new("RGB", (8, 8)).save(secret)
    session = start(root)
    client = client_of(session)
    inside = root / "001.png"
    inside.unlink()
    inside.symlink_to(secret)  # changed after the folder was read
    reply = client.get("/media/001.png")
    assert reply.status_code == 422
    assert "leaves the data's folder" in reply.json()["error"]["message"]
    session.close()
    with pytest.raises(DataError, match="leaves"):
        open_session(tmp_path / "q", root, CLASSES, options())


def test_images_are_written_anew(tmp_path):
    from PIL.PngImagePlugin import PngInfo

    note = PngInfo()
    note.add_text("comment", "<script>alert(1)</script>")
    path = tmp_path / "a.png"
    Image.new("RGB", (3000, 10), (1, 2, 3)).save(path, pnginfo=note)
    content, kind = page_image(path, tmp_path)
    assert b"script" in path.read_bytes()
    assert b"script" not in content
    assert kind == "image/png"
    big = tmp_path / "b.jpg"
    Image.new("RGB", (2000, 1500)).save(big, exif=b"Exif\x00\x00secret place")
    content, kind = page_image(big, tmp_path)
    assert kind == "image/jpeg"
    assert b"secret" not in content
    from io import BytesIO

    assert max(Image.open(BytesIO(content)).size) == 1600


def test_a_bomb_is_not_unpacked(tmp_path):
    path = tmp_path / "bomb.png"
    Image.new("1", (9_000, 9_000)).save(path)
    assert path.stat().st_size < 100_000
    with pytest.raises(DataError, match="pixels"):
        page_image(path, tmp_path)


def test_script_in_names_and_texts_stays_text(tmp_path, start):
    from askance.label import ItemSource

    evil = "<script>alert(1)</script><img src=x onerror=alert(2)>"
    table = tmp_path / "t.csv"
    table.write_text("said\n" + f'"{evil}"\n' * 10)
    session = start(ItemSource(table, text="said"))
    client = client_of(session)
    assert client.post("/api/classes", json={"name": "<b>bold</b>", "token": token()}).is_success
    reply = client.get("/api/questions", params={"annotator": "<i>ann</i>"})
    assert reply.headers["content-type"] == "application/json"
    assert reply.json()["questions"][0]["text"] == evil


@pytest.mark.parametrize("name", ["", "   ", "x" * 61, "a\x00b", "a\nb", "\u202eevil", "\ud800"])
def test_names_that_cannot_be_shown_are_refused(client, name):
    body = json.dumps({"name": name, "token": token()})
    reply = client.post("/api/classes", content=body, headers={"content-type": "application/json"})
    assert reply.status_code == 422, reply.text
    assert set(reply.json()["error"]) == {"code", "message"}


def test_the_token(session):
    auth = TokenAuth(SECRET, PORT)
    app = create_app(session, port=PORT, auth=auth)
    client = TestClient(app, base_url=BASE)
    for path in ("/", "/api/state", "/media/x", "/static/page.js", "/api/openapi.json"):
        assert client.get(path).status_code == 401
    assert client.post("/api/undo", json={}).status_code == 401
    assert client.get("/api/state", headers={"authorization": "Bearer wrong"}).status_code == 401
    wrong = {"cookie": f"askance-{PORT}=wrong"}
    assert client.get("/api/state", headers=wrong).status_code == 401
    bearer = {"authorization": f"Bearer {SECRET}"}
    assert client.get("/api/state", headers=bearer).status_code == 200
    link = client.post("/api/tickets", json={}, headers=bearer).json()["path"]
    entered = client.get(link, follow_redirects=False)
    assert (entered.status_code, entered.headers["location"]) == (303, "/")
    cookie = entered.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert SECRET not in cookie
    assert client.get("/api/state").status_code == 200  # the cookie was kept
    other = TestClient(app, base_url=BASE)
    assert other.get(link, follow_redirects=False).status_code == 404  # it worked once
    assert other.get("/api/state").status_code == 401


def test_other_cookies_of_this_machine_are_nobodys_business(session):
    auth = TokenAuth(SECRET, PORT)
    cookie = f"{auth.cookie}={auth.enter(auth.ticket().rpartition('/')[2])}"
    other = TokenAuth(SECRET, PORT + 1)
    client = TestClient(create_app(session, port=PORT, auth=auth), base_url=BASE)

    def status(*cookies):
        headers = [(b"cookie", each.encode("latin-1")) for each in cookies]
        return client.get("/api/state", headers=headers).status_code

    for junk in (
        "a b=c d",
        'x="',
        "=",
        ";;;",
        "\xff=\xfe",
        "{}[]=1",
        f"{other.cookie}=x",
        "askance=x",
    ):
        assert status(f"{junk}; {cookie}") == status(f"{cookie}; {junk}") == 200
        assert status(junk, cookie) == status(cookie, junk) == 200
        assert status(junk) == 401


def test_a_link_names_the_address_that_was_asked(session):
    auth = TokenAuth(SECRET, PORT)
    app = create_app(session, host="0.0.0.0", port=PORT, auth=auth)
    client = TestClient(app, base_url=f"http://192.168.1.5:{PORT}")
    reply = client.post("/api/tickets", json={}, headers={"authorization": f"Bearer {SECRET}"})
    assert reply.json()["url"].startswith(f"http://192.168.1.5:{PORT}/enter/")
    with serving(session, host="0.0.0.0", token=SECRET) as url:
        assert url.startswith("http://127.0.0.1:")


def test_other_addresses_need_a_token():
    with pytest.raises(InputError, match="--token auto"):
        check_address("0.0.0.0", None)
    check_address("0.0.0.0", SECRET)
    check_address("127.0.0.1", None)
    with pytest.raises(InputError, match="at least 16"):
        TokenAuth("short")
    assert is_loopback("127.8.8.8")
    assert not is_loopback("example.org")


def test_bound_everywhere_any_number_is_a_name_but_no_foreign_name():
    hosts = AllowedHosts("0.0.0.0", 8123)
    assert hosts.holds("192.168.1.5:8123")
    assert hosts.holds("[fe80::1]:8123")
    assert not hosts.holds("evil.example:8123")
    assert not AllowedHosts("127.0.0.1", 8123).holds("192.168.1.5:8123")


def test_a_reply_in_two_writes_waits_for_no_receipt():
    with (
        bound("127.0.0.1", 0) as listener,
        socket.create_connection(listener.getsockname()),
        listener.accept()[0] as accepted,
    ):
        assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_a_real_socket(session):
    import httpx

    with serving(session, port=0) as url:
        assert url.startswith("http://127.0.0.1:")
        assert httpx.get(f"{url}api/state").json()["total"] == 60
        assert httpx.get(f"{url}api/state", headers={"host": "evil.example"}).status_code == 403
        port = int(url.rsplit(":", 1)[1].strip("/"))
        with pytest.raises(InputError, match="another server there"), serving(session, port=port):
            pass
    with (
        serving(session, port=0, token=SECRET) as url,
        httpx.Client(follow_redirects=False) as client,
    ):
        assert "/enter/" in url
        assert client.get(url).status_code == 303
        assert client.get(f"{url.split('/enter/')[0]}/api/state").status_code == 200


def test_a_person_may_be_called_anything_printable(client):
    ann = Person(client, "Åsa ‘Q’ <3 日本")
    assert ann.answer(ann.ask()["questions"][0], 0).status_code == 200
