"""SIGKILL in a storm of answers: what was acknowledged is there, once."""

from collections import Counter

import pytest

from askance.label.store import ProjectStore
from tests.label.storm import storm
from tests.label.worlds import features_file


@pytest.mark.parametrize(
    ("clients", "answers", "kills", "batch", "limit"),
    [
        (5, 40, 2, 300, 120),
        pytest.param(20, 500, 25, 2000, 1800, marks=pytest.mark.slow),
        pytest.param(
            10, 300, 110, 10_000, 3000, marks=[pytest.mark.slow, pytest.mark.timeout(3600)]
        ),
    ],
)
def test_no_acknowledged_answer_is_lost_or_doubled(tmp_path, clients, answers, kills, batch, limit):
    features_file(tmp_path, n=int(clients * answers * 1.2))
    told, killed = storm(
        tmp_path, clients=clients, answers=answers, kills=kills, batch=batch, seed=0, limit=limit
    )
    assert killed == kills
    assert len(told) >= clients * answers
    with ProjectStore.open(tmp_path / "project") as store:
        assert store._query("PRAGMA integrity_check")[0][0] == "ok"
        questions = {question.id: question for question in store.questions()}
        events = list(store.events())
        current = {(row["item"], row["annotator"]) for row in store.answers()}
    stored = {event.token: (questions[event.question].item, event.choice) for event in events}
    assert stored == told  # nothing lost, nothing that nobody was told of
    assert len(events) == len(stored)
    assert max(Counter(event.question for event in events).values()) == 1
    assert len(current) == len(events)
