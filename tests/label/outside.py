"""Answers from outside, and what a project then says."""

from askance.label.ingest import ExternalAnswer
from askance.label.store import ProjectStore


def said(item, label, who="bob", **more):
    return ExternalAnswer(f"item {item}" if isinstance(item, int) else item, label, who, **more)


def why(done):
    assert not done.applied
    return [refusal.why for refusal in done.refused]


def state_of(store):
    return store.annotations()


def standing(folder):
    with ProjectStore.open(folder) as store:
        names = [each.name for each in store.classes()]
        return {(row["item"], row["annotator"]): names[row["class"]] for row in store.answers()}


def rows_of(folder):
    """Everything that was ever written."""
    with ProjectStore.open(folder) as store:
        return store.classes(), list(store.questions()), list(store.events())


def plain(annotations):
    """All of a state as plain values, to compare states by."""
    return (
        [each.name for each in annotations.classes],
        {who: list(ids) for who, ids in annotations.open.items() if ids},
        {question: event.id for question, event in annotations.standing.items()},
        {item: annotations.current(item) for item in annotations.answers},
        dict(annotations.labels),
        set(annotations.conflicts),
        +annotations.counts,
        {item: sorted(who) for item, who in annotations.skips.items()},
        annotations.n_asked,
        annotations.last_event,
    )
