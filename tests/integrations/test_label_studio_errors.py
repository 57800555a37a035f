"""A real Label Studio that cannot be used: wrong projects, tokens and addresses, told in words."""

import http.server
import threading

import pytest

from askance.errors import InputError
from askance.integrations.label_studio_server import Studio
from tests.integrations.studio import (
    BOB,
    TOKEN,
    Person,
    World,
    free_port,
    needs_studio,
    number_of,
    tasks_of,
)

sdk = pytest.importorskip(
    "label_studio_sdk",
    reason="*** NO LABEL STUDIO SDK: no test of it was run; install askance[label-studio]",
)


@pytest.mark.slow
@needs_studio
def test_projects_that_cannot_be_used_are_refused_in_words(tmp_path, api, url, command):
    world = World(tmp_path, "text", "errors", classes=["a & b", "<c>"])
    other = api.projects.create(
        title="Boxes",
        label_config='<View><Image name="i" value="$image"/>'
        '<RectangleLabels name="r" toName="i"><Label value="x"/></RectangleLabels></View>',
    )
    told = command("push", world.folder, "--project", "Boxes", *world.words, code=2)
    assert "'Boxes' of Label Studio asks for something else" in told
    assert api.projects.get(other.id).label_config.startswith('<View><Image name="i"')
    told = command("push", world.folder, "--project", "999999", *world.words, code=2)
    assert "there is no project 999999" in told
    told = command("pull", world.folder, "--project", "Boxis", code=2)
    assert "did you mean 'Boxes'" in told
    for _ in range(2):
        api.projects.create(title="Twins")
    told = command("push", world.folder, "--project", "Twins", *world.words, code=2)
    assert "has 2 projects called 'Twins'" in told
    assert not tasks_of(api, other.id)
    told = command("push", world.folder, "--project", "ab", *world.words, code=2)
    assert "title" in told

    # One that was made by hand and asks for nothing yet is taken, by id; a class more is added to it.
    empty = api.projects.create(title="By hand")
    command("push", world.folder, "--project", empty.id, "--n", "3", *world.words)
    assert "a &amp; b" in api.projects.get(empty.id).label_config
    world.classes.append('"q" ünï🙂')
    world.open().close()
    assert number_of(command("push", world.folder, "--n", "4")) == empty.id
    task = tasks_of(api, empty.id)[0]["id"]
    Person(api, world).answer(task, '"q" ünï🙂')
    Person(api, world, BOB).answer(task, "a & b")
    assert "pulled: 2 new answers, 0 known, 0 refused" in command("pull", world.folder)
    assert sorted(world.answers()[0].values()) == ['"q" ünï🙂', "a & b"]

    # The page has the project open: exit code 3, as everywhere.
    session = world.open()
    try:
        command("sync", world.folder, code=3)
    finally:
        session.close()

    for words, said in (
        (["--token", "f" * 40], "does not accept the token"),
        (["--token", "ünï token"], "ASCII without spaces"),
        (["--url", f"{url}/nowhere"], "no Label Studio answers"),
        (["--url", f"http://127.0.0.1:{free_port()}"], "cannot be reached"),
    ):
        told = command("pull", world.folder, *words, code=2)
        assert said in told
        assert "f" * 40 not in told


# Without a server


class Elsewhere(http.server.BaseHTTPRequestHandler):
    """A web server that is no Label Studio."""

    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(self.server.page)

    def log_message(self, *_):
        pass


@pytest.mark.parametrize("page", [b"<html>Welcome</html>", b"{}", b"[1, 2]", b"null"])
def test_another_web_server_is_no_label_studio(page):
    with http.server.HTTPServer(("127.0.0.1", 0), Elsewhere) as server:
        server.page = page
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            with pytest.raises(InputError, match="no Label Studio"):
                Studio(f"http://127.0.0.1:{server.server_port}", TOKEN)
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.parametrize(
    "address", ["", "nonsense", "127.0.0.1:8080", "ftp://x", "http://", "http://[", "http://u:p@x"]
)
def test_an_address_that_is_none(address):
    with pytest.raises(InputError, match="--url must be the address") as caught:
        Studio(address, TOKEN)
    assert "u:p" not in str(caught.value)


def test_nobody_there():
    with pytest.raises(InputError, match="cannot be reached"):
        Studio(f"http://127.0.0.1:{free_port()}", TOKEN)
