"""A real Label Studio: push, answer as a person would, pull, train, sync."""

import io
import os
import re
import signal
import subprocess
import sys

import httpx
import pytest
from PIL import Image

from askance.integrations.label_studio_server import plain
from askance.label.accuracy import held_out_results
from askance.label.store import ProjectStore
from tests.browser import browser, needs_browser
from tests.integrations.studio import (
    ANN,
    BOB,
    PASSWORD,
    TOKEN,
    Person,
    World,
    needs_studio,
    number_of,
    tasks_of,
    waiting,
)

sdk = pytest.importorskip(
    "label_studio_sdk",
    reason="*** NO LABEL STUDIO SDK: no test of it was run; install askance[label-studio]",
)

__all__ = ["browser"]


@pytest.mark.slow
@needs_studio
@pytest.mark.parametrize("kind", ["text", "image"])
def test_the_round_trip(tmp_path, api, url, command, kind):
    world = World(tmp_path, kind, f"round {kind}")
    held = world.held_out
    ann, bob = Person(api, world), Person(api, world, BOB)

    # Push: the first questions, at random, with nothing guessed.
    told = command("push", world.folder, "--n", "12", *world.words)
    assert "pushed: 12 tasks, 12 wait (no model yet)" in told
    project = number_of(told)
    assert api.projects.get(project).title == f"askance round {kind}"
    first = tasks_of(api, project)
    assert len({task["data"]["item"] for task in first}) == 12
    assert {task["data"]["reason"] for task in first} == {"first", "held-out"}
    assert {task["data"]["item"] for task in first if task["data"]["reason"] == "held-out"} <= held
    assert not any(task["predictions"] for task in first)
    check_content(world, url, first)

    # Again: nothing, of which there is no more.
    assert "pushed: 0 tasks, 12 wait" in command("push", world.folder, "--n", "12")
    assert "pushed: 0 tasks, 12 wait" in command("push", world.folder, "--n", "5")
    assert [task["id"] for task in tasks_of(api, project)] == [task["id"] for task in first]

    # Ann answers eight in the order of the label stream, Bob three of them, he and she skip one each.
    done = ann.work(project, 8)
    assert done == [task["id"] for task in first[:8]]
    item = {task["id"]: task["data"]["item"] for task in first}
    for number in done[:2]:
        bob.answer(number, world.truth(item[number]))
    other = next(name for name in world.classes if name != world.truth(item[done[2]]))
    bob.answer(done[2], other)
    bob.skip(done[3])
    ann.skip(first[8]["id"])
    expected = {(item[number], ANN): world.truth(item[number]) for number in done}
    expected |= {(item[number], BOB): world.truth(item[number]) for number in done[:2]}
    expected |= {(item[done[2]], BOB): other}

    # Pull, and pull again.
    assert "pulled: 13 new answers, 0 known, 0 refused" in command("pull", world.folder)
    with ProjectStore.open(world.folder) as store:
        events = list(store.events())
    assert [event.kind for event in events].count("skip") == 2
    assert "pulled: 0 new answers, 13 known, 0 refused" in command("pull", world.folder)
    with ProjectStore.open(world.folder) as store:
        assert list(store.events()) == events

    # Sync: a model is trained, and asks; what waits gets its guess. Held-out items never do.
    told = command("sync", world.folder, "--n", "12")
    assert "pushed: 9 tasks, 12 wait (model 1)" in told
    assert world.answers() == (expected, 1)
    check_guesses(world, api, project, "askance 1", held)
    asked = [task for task in waiting(api, project) if task["data"]["reason"] == "rule"]
    scores = [task["data"]["score"] for task in asked]
    assert len(scores) >= 5
    assert scores == sorted(scores, reverse=True)

    # The tab shows the newest model's questions first, best first.
    [tab] = [
        view for view in api.views.list(project=project) if plain(view.data)["title"] == "askance"
    ]
    shown = [task["data"] for task in tasks_of(api, project, view=tab.id)]
    assert [data["priority"] for data in shown] == sorted(
        (data["priority"] for data in shown), reverse=True
    )
    assert [data["model"] for data in shown] == sorted(
        (data["model"] for data in shown), reverse=True
    )

    # And once more around: all is answered, a second model asks.
    left = waiting(api, project)
    for task in left:
        ann.answer(task["id"], world.truth(task["data"]["item"]))
        expected[task["data"]["item"], ANN] = world.truth(task["data"]["item"])
    told = command("sync", world.folder, "--n", "12")
    assert "pulled: 12 new answers, 13 known, 0 refused" in told
    assert "pushed: 12 tasks, 12 wait (model 2)" in told
    assert world.answers() == (expected, 2)
    check_guesses(world, api, project, "askance 2", held)
    assert "pulled: 0 new answers, 25 known" in command("sync", world.folder, "--n", "12")
    every = [task["data"]["item"] for task in tasks_of(api, project)]
    assert len(every) == len(set(every)) == 33

    # Held-out items were asked for in their random order, so all answers to them count.
    session = world.open()
    session.close()
    right_VN = held_out_results(session.view(), session.training).right_VN
    assert right_VN.shape == (2, len(held & set(session.annotations.labels)))
    assert right_VN.shape[1] >= 4


def check_content(world, url, tasks):
    """What a person is shown is the item."""
    session = world.open()
    session.close()
    for task in tasks:
        data = task["data"]
        row = session.items.position[data["item"]]
        if world.kind == "text":
            assert data["text"] == session.items.texts[row]
            continue
        reply = httpx.get(f"{url}{data['image']}", headers={"Authorization": f"Token {TOKEN}"})
        assert reply.status_code == 200
        got, meant = Image.open(io.BytesIO(reply.content)), Image.open(session.items.files[row])
        assert got.size == meant.size
        centre = (160, 120)
        seen, true = got.convert("RGB").getpixel(centre), meant.getpixel(centre)
        assert max(abs(a - b) for a, b in zip(seen, true, strict=True)) < 8


def check_guesses(world, api, project, version, held):
    """Of what waits, all have the model's own guess but what measures it."""
    assert api.projects.get(project).model_version == version
    session = world.open()
    try:
        kinds = set()
        for task in waiting(api, project):
            data = task["data"]
            kinds.add(data["reason"])
            if data["item"] in held:
                assert data["reason"] == "held-out"
                assert task["predictions"] == []
                continue
            made = next(each for each in task["predictions"] if each["model_version"] == version)
            _, guess = session.guess(data["item"])
            assert made["result"][0]["value"]["choices"] == [world.classes[guess.choice]]
            assert made["score"] == pytest.approx(guess.confidence)
        assert {"rule", "held-out"} <= kinds
    finally:
        session.close()


@pytest.mark.slow
@needs_studio
def test_annotations_that_change_vanish_or_are_no_answers(tmp_path, api, command):
    world = World(tmp_path, "text", "changes")
    ann = Person(api, world)
    project = number_of(command("push", world.folder, "--n", "8", *world.words))
    tasks = [(task["id"], task["data"]["item"]) for task in tasks_of(api, project)]
    made = [ann.answer(number, world.truth(item)) for number, item in tasks[:4]]
    expected = {(item, ANN): world.truth(item) for _, item in tasks[:4]}
    assert "pulled: 4 new" in command("pull", world.folder)

    # Changed there, changed here; back again, and back again here too.
    item = tasks[0][1]
    for choice in [*reversed(world.classes), *world.classes]:
        api.annotations.update(id=made[0].id, result=ann.result(choice))
        command("pull", world.folder)
        expected[item, ANN] = choice
        assert world.answers()[0] == expected
    assert "pulled: 0 new answers, 4 known" in command("pull", world.folder)

    # Deleted there: a skip here. Its task waits again, is not sent again, and can be answered again.
    api.annotations.delete(id=made[1].id)
    told = command("pull", world.folder)
    assert "1 of them were deleted there" in told
    gone = expected.pop((tasks[1][1], ANN))
    assert world.answers()[0] == expected
    assert "pulled: 0 new answers, 3 known, 0 refused" in command("pull", world.folder)
    assert "pushed: 0 tasks, 5 wait" in command("push", world.folder, "--n", "5")
    ann.answer(tasks[1][0], gone)
    assert "pulled: 1 new" in command("pull", world.folder)
    expected[tasks[1][1], ANN] = gone
    assert world.answers()[0] == expected

    # A task that is deleted with its answer: the answer stays. One without: it is asked again.
    api.tasks.delete(id=str(tasks[2][0]))
    api.tasks.delete(id=str(tasks[5][0]))
    assert "pulled: 0 new answers, 3 known, 0 refused" in command("pull", world.folder)
    assert world.answers()[0] == expected
    assert "pushed: 1 tasks, 4 wait" in command("push", world.folder, "--n", "4")
    assert tasks_of(api, project)[-1]["data"]["item"] == tasks[5][1]

    # Somebody else's task, another choice, no choice, an item there is not: told, and nothing kept.
    why = {"text": "by hand", "why": "because"}
    mark = tasks_of(api, project)[0]["data"]["askance"]
    api.projects.import_tasks(
        project, request=[{"data": why}, {"data": {**why, "item": "unknown", "askance": mark}}]
    )
    foreign, unknown = (task["id"] for task in tasks_of(api, project)[-2:])
    for number in (foreign, unknown):
        ann.answer(number, "good")
    ann.answer(tasks[4][0], "indifferent")
    api.annotations.create(id=tasks[6][0], result=[])
    told = command("pull", world.folder, code=4)
    assert "pulled: 0 new answers, 3 known, 3 refused" in told
    assert "1 tasks of" in told
    assert "item 'unknown': the project has no such item" in told
    assert "the project has no class 'indifferent'; it has good, bad" in told
    assert "one choice is expected, got none" in told
    assert world.answers()[0] == expected


KILLED = """
import os, signal, sys
from askance.integrations.label_studio_server import RemoteProject
from askance.cli import main
name, before = sys.argv[1], sys.argv[2] == "before"
real = getattr(RemoteProject, name)
def killed(*arguments):
    if not before:
        real(*arguments)
    os.kill(os.getpid(), signal.SIGKILL)
setattr(RemoteProject, name, killed)
main(sys.argv[3:])
"""


@pytest.mark.slow
@needs_studio
@pytest.mark.parametrize(
    ("kind", "name", "when"),
    [
        ("image", "_upload", "after"),
        ("image", "send", "before"),
        ("text", "send", "after"),
        ("text", "tasks", "after"),
    ],
)
def test_a_push_that_is_killed_is_finished_by_the_next(tmp_path, api, command, kind, name, when):
    world = World(tmp_path, kind, f"killed {name} {when}")
    words = ["push", str(world.folder), "--n", "10", *world.words]
    child = [sys.executable, "-c", KILLED, name, when, "label-studio", *words]
    killed = subprocess.run(child, capture_output=True, text=True, env=os.environ, check=False)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    sent = 10 if (name, when) == ("send", "after") else 0
    told = command(*words)
    assert f"pushed: {10 - sent} tasks, 10 wait" in told
    project = number_of(told)
    items = [task["data"]["item"] for task in tasks_of(api, project)]
    assert len(items) == len(set(items)) == 10
    if kind == "image":  # what was sent before the kill was taken up
        assert len(api.files.list(project, all_=True)) == 10
    with ProjectStore.open(world.folder) as store:
        assert sorted(each.item for each in store.questions()) == sorted(items)


@pytest.mark.slow
@needs_studio
def test_what_the_page_began_goes_on_there(tmp_path, api, command):
    world = World(tmp_path, "image", "begun", n=12, repeat=1.0)
    session = world.open()
    try:
        for question in session.questions("cem", 4)[0]:
            choice = world.classes.index(world.truth(question.item))
            session.answer(question.id, choice, "cem", f"token-{question.id}")
        begun = {(item, "cem"): world.truth(item) for item in session.annotations.answers}
    finally:
        session.close()

    # All of them want a second answer, without a guess. One that is new cannot be shown: it is told.
    (world.source.path / "broken.png").write_bytes(b"no image")
    told = command("push", world.folder, "--n", "20", "--repeat", "1", *world.words)
    assert "pushed: 12 tasks, 12 wait" in told
    assert "item 'broken.png': broken.png: not a readable image" in told
    project = number_of(told)
    again = [task for task in tasks_of(api, project) if task["data"]["reason"] == "repeat"]
    assert {(task["data"]["item"], "cem") for task in again} == set(begun)
    assert not any(task["predictions"] for task in again)
    assert "pushed: 0 tasks, 12 wait" in command("push", world.folder, "--n", "20")
    first = again[0]
    api.tasks.delete(id=str(again[1]["id"]))
    assert "pushed: 1 tasks, 12 wait" in command("push", world.folder, "--n", "20")
    Person(api, world).answer(first["id"], world.truth(first["data"]["item"]))
    assert "pulled: 1 new answers" in command("pull", world.folder)
    said = begun | {(first["data"]["item"], ANN): world.truth(first["data"]["item"])}
    assert world.answers()[0] == said
    assert "pushed: 0 tasks, 11 wait" in command("push", world.folder, "--n", "20")

    # Another folder of the same name does not get into this project by accident, only by name.
    (tmp_path / "elsewhere").mkdir()
    other = World(tmp_path / "elsewhere", "image", "begun", n=4)
    told = command("push", other.folder, *other.words, code=2)
    assert "holds the tasks of another labelling project" in told
    assert not (other.folder / "label-studio.json").exists()
    command("push", other.folder, "--project", project, "--n", "2", *other.words)
    assert len(tasks_of(api, project)) == 14
    told = command("pull", other.folder)
    assert "pulled: 0 new answers, 0 known, 0 refused" in told
    assert "12 tasks of" in told


@pytest.mark.slow
@needs_studio
def test_more_tasks_than_a_request_holds(tmp_path, api, command):
    world = World(tmp_path, "text", "many", n=140)
    told = command("push", world.folder, "--n", "130", *world.words)
    assert "pushed: 130 tasks, 130 wait" in told
    project = number_of(told)
    assert "pushed: 0 tasks, 130 wait" in command("push", world.folder, "--n", "130")
    told = command("push", world.folder, "--n", "500")
    assert "pushed: 10 tasks, 140 wait" in told
    assert "nothing left to ask" in told
    items = [task["data"]["item"] for task in tasks_of(api, project)]
    assert sorted(items) == sorted(f"row {i}" for i in range(140))


@pytest.mark.slow
@needs_studio
def test_watching_takes_answers_as_they_come_until_ctrl_c(tmp_path, api, url, command):
    world = World(tmp_path, "text", "watched")
    project = number_of(command("push", world.folder, "--n", "6", *world.words))
    words = ["sync", str(world.folder), "--n", "6", "--watch", "1"]
    watching = subprocess.Popen(
        [sys.executable, "-m", "askance", "label-studio", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert watching.stdout.readline() == "pulled: 0 new answers, 0 known, 0 refused\n"
        Person(api, world).work(project, 2)
        seen = ""
        while "pulled: 2 new" not in seen:
            line = watching.stdout.readline()
            assert line, watching.communicate()[1]
            seen += line
        assert "pushed: 2 tasks, 6 wait" in watching.stdout.readline()
        watching.send_signal(signal.SIGINT)
        _, err = watching.communicate(timeout=60)
        assert (watching.returncode, "Traceback" in err) == (130, False)
    finally:
        watching.kill()
        watching.wait()
    assert len(world.answers()[0]) == 2


@pytest.mark.slow
@needs_studio
@needs_browser
@pytest.mark.parametrize("kind", ["text", "image"])
def test_a_person_sees_the_item_with_the_guess_selected(tmp_path, api, url, command, browser, kind):
    world = World(tmp_path, kind, f"seen {kind}")
    project = number_of(command("push", world.folder, "--n", "10", *world.words))
    Person(api, world).work(project, 10)
    command("sync", world.folder, "--n", "10")
    context = browser.new_context(viewport={"width": 1400, "height": 900})
    page = context.new_page()
    page.goto(f"{url}/user/login/")
    page.fill("input[name=email]", ANN)
    page.fill("input[name=password]", PASSWORD)
    page.press("input[name=password]", "Enter")
    page.wait_for_url("**/", timeout=60_000)
    led = next(task for task in waiting(api, project) if task["predictions"])
    free = next(task for task in waiting(api, project) if not task["predictions"])
    for task, guess in ((led, led["predictions"][0]["result"][0]["value"]["choices"]), (free, [])):
        page.goto(f"{url}/projects/{project}/data?task={task['id']}")
        page.get_by_text(task["data"]["why"]).first.wait_for(timeout=60_000)
        page.wait_for_timeout(1000)
        chosen = page.locator("label:has(input[type=radio]:checked)").all_inner_texts()
        names = [re.sub(r"\[.*", "", text).strip() for text in chosen]
        assert [name for name in names if name] == guess
        if kind == "image":
            sizes = page.eval_on_selector_all("img", "all => all.map(one => one.naturalWidth)")
            assert 320 in sizes
        if "ASKANCE_SHOTS" in os.environ and guess:
            page.screenshot(path=f"{os.environ['ASKANCE_SHOTS']}/ls-{kind}.png")
    context.close()
