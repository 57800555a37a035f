"""A goal: kept, measured by the stopping rules, and never said to be reached too early."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from askance.cli import app
from askance.errors import InputError
from askance.label import goal as goals
from askance.label.goal import Goal, progress
from askance.stopping import wilson
from tests.label.test_last_answers import answer
from tests.label.worlds import Person, client_of


def test_a_goal_is_a_number_of_answers_or_an_accuracy():
    assert Goal.parse("500") == Goal("answers", 500)
    assert Goal.parse(" 92.5 % ") == Goal("accuracy", 0.925)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("lots", "a goal is a number of answers"),
        ("0", "whole number ≥ 1"),
        ("1.5", "whole number ≥ 1"),
        ("-3", "whole number ≥ 1"),
        ("100%", "above 0% and below 100%"),
        ("0%", "above 0% and below 100%"),
        ("nan", "whole number ≥ 1"),
        ("inf", "whole number ≥ 1"),
        ("nan%", "above 0% and below 100%"),
    ],
)
def test_other_goals_are_refused(text, said):
    with pytest.raises(InputError, match=said):
        Goal.parse(text)


def test_a_goal_of_answers():
    far = progress(Goal("answers", 500), 120, None, 0.1, 50)
    assert (far.reached, far.answers_left, far.share) == (False, 380, 0.24)
    assert far.text == "120 of 500 answers."
    assert progress(Goal("answers", 500), 500, None, 0.1, 50).reached
    assert progress(Goal("answers", 500), 600, None, 0.1, 50).share == 1.0


def accuracy(right, n, target=0.9, reserved=1000, share=0.1):
    return progress(Goal("accuracy", target), 10 * n, wilson(right, n), share, reserved)


def test_all_of_twenty_are_no_ninety_percent():
    far = accuracy(20, 20)
    assert not far.reached
    assert "At least 83% so far" in far.text
    assert "15 more held-out answers show it" in far.text  # 35/(35 + z²) = 0.901
    assert far.answers_left == 150
    assert accuracy(35, 35).reached


@given(st.integers(1, 300), st.data())
def test_a_goal_of_accuracy_is_the_lower_end(n, data):
    right = data.draw(st.integers(0, n))
    far = accuracy(right, n)
    assert far.reached == (wilson(right, n).low >= 0.9)
    assert 0 <= far.share <= 1
    if far.answers_left:
        more = far.answers_left // 10
        assert wilson(right / n * (n + more), n + more).low >= 0.9
        assert wilson(right / n * (n + more - 1), n + more - 1).low < 0.9


def test_what_a_goal_of_accuracy_needs_is_said():
    assert "must get better first: 80% of 50" in accuracy(40, 50).text
    assert accuracy(40, 50).answers_left is None
    few = accuracy(20, 20, reserved=25)
    assert "takes 35 held-out answers, and 25 items are held out" in few.text
    goal = Goal("accuracy", 0.9)
    assert "Not measured yet" in progress(goal, 9, None, 0.1, 9).text
    assert "No items are held out" in progress(goal, 9, None, 0.0, 0).text


def test_a_goal_is_kept_over_a_restart(start, tmp_path):
    session = start()
    client = client_of(session)
    assert client.get("/api/state").json()["goal"] is None
    reply = client.post("/api/goal", json={"kind": "answers", "value": 8})
    assert reply.json()["goal"]["text"] == "0 of 8 answers."
    answer(session, 4)
    state = Person(client).state()
    assert state["goal"]["text"] == f"{state['answered']} of 8 answers."
    session.close()
    again = client_of(start())
    assert again.get("/api/state").json()["goal"]["value"] == 8
    assert again.post("/api/goal", json={"kind": None}).json()["goal"] is None
    assert goals.load(tmp_path / "project") is None


@pytest.mark.parametrize(
    "body",
    [
        {"kind": "accuracy", "value": 95},
        {"kind": "accuracy"},
        {"kind": "answers", "value": 2.5},
        {"kind": "time", "value": 3},
        {"value": 3},
    ],
)
def test_a_goal_that_cannot_be_meant_is_refused_and_none_is_kept(session, body):
    client = client_of(session)
    assert client.post("/api/goal", json=body).status_code == 422
    assert client.get("/api/state").json()["goal"] is None


def test_a_damaged_goal_is_left_out(start, tmp_path, caplog):
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / goals.FILE).write_text('{"kind": "answers", "value": 0}')
    session = start()
    assert session.goal is None
    assert "goal.json is left out" in caplog.text


def test_a_goal_on_the_command_line(project):
    data = str(project.parent / "items.parquet")
    command = ["label", str(project), "--data", data, "--features", "vector", "--id", "name"]
    options = ["--held-out", "0.2", "--encoder", "none", "--no-server"]
    done = CliRunner().invoke(app, [*command, *options, "--goal", "90%"])
    assert done.exit_code == 0, done.output
    assert goals.load(project) == Goal("accuracy", 0.9)
