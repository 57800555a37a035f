"""Where things stand: kept act by act, made from the rows, and by a slow twin, it is the same."""

from collections import Counter

from hypothesis import example, given, settings
from hypothesis import strategies as st

from askance.label.records import AskedQuestion, Class, Event, StoredItem, now
from askance.label.state import AnnotationState, replayed
from askance.label.store import ProjectStore
from tests.label.outside import plain

PEOPLE, ITEMS, CLASSES = ("ann", "bob", "cem"), ("x", "y", "z"), 3
TIME = "2024-01-01T00:00:00.000+00:00"

acts = st.lists(
    st.tuples(
        st.sampled_from(["ask", "again", "answer", "skip", "undo"]),
        st.sampled_from(PEOPLE),
        st.integers(0, 2),
    ),
    max_size=40,
)


def played(script):
    """The rows a script of acts comes to, and the state that was kept meanwhile."""
    annotations = AnnotationState(Class(i, str(i)) for i in range(CLASSES))
    questions, events = [], []

    def keep(kind, question, who, choice=None, undoes=None):
        event = Event(len(events) + 1, kind, question, who, TIME, f"t{len(events)}", choice, undoes)
        events.append(event)
        annotations.apply(event)

    for kind, who, number in script:
        if kind in ("ask", "again"):
            reason = "first" if kind == "ask" else "disagreement"
            question = AskedQuestion(
                len(questions) + 1, ITEMS[number], who, TIME, reason, None, "why"
            )
            questions.append(question)
            annotations.ask(question)
        elif kind == "undo":
            if annotations.acts[who]:
                acts = list(annotations.acts[who].values())
                taken = acts[-1 - number % len(acts)]  # the page takes back the last, others any
                keep("undo", taken.question, who, undoes=taken.id)
                assert next(iter(annotations.open[who])) == taken.question
        elif annotations.open[who]:
            choice = number if kind == "answer" else None
            keep(kind, next(iter(annotations.open[who])), who, choice)
    return annotations, questions, events


def slowly(questions, events):
    """Labels and conflicts, straight from their definition."""
    item = {question.id: question.item for question in questions}
    undone = {event.undoes for event in events if event.kind == "undo"}
    current = {}
    for event in events:
        if event.kind == "answer" and event.id not in undone:
            current[item[event.question], event.annotator] = event.choice
    labels, conflicts = {}, set()
    for name in ITEMS:
        tally = Counter(choice for (which, _), choice in current.items() if which == name)
        if len(tally) > 1:
            conflicts.add(name)
        best = [choice for choice, votes in tally.items() if votes == max(tally.values())]
        if len(best) == 1:
            labels[name] = best[0]
    return current, labels, conflicts


TWICE = [("ask", "ann", 0), ("ask", "ann", 0), ("skip", "ann", 0), ("skip", "ann", 0)]


@settings(deadline=None)
@given(acts)
@example([*TWICE, ("undo", "ann", 0), ("undo", "ann", 0)])
@example([*TWICE[:2], ("answer", "ann", 0), ("answer", "ann", 1), ("undo", "ann", 1)])
def test_the_state_is_a_function_of_the_rows(script):
    annotations, questions, events = played(script)
    assert plain(replayed(annotations.classes, questions, events)) == plain(annotations)
    current, labels, conflicts = slowly(questions, events)
    assert annotations.labels == labels
    assert set(annotations.conflicts) == conflicts
    answers = {(i, who): choice for i in ITEMS for who, choice in annotations.current(i).items()}
    assert answers == current
    assert +annotations.counts == Counter(current.values())
    assert sum(annotations.by_annotator.values()) == len(current)
    skipped = [e for e in annotations.standing.values() if e.kind == "skip"]
    assert sum(map(len, annotations.skips.values())) == len(skipped)
    for who in PEOPLE:
        asked = {q.id for q in questions if q.annotator == who}
        acted = {e.question for e in annotations.standing.values() if e.annotator == who}
        assert set(annotations.open[who]) == asked - acted
        assert len(annotations.open[who]) == len(set(annotations.open[who]))


def test_the_files_view_says_the_same(tmp_path):
    script = [("ask", "ann", 0), ("ask", "bob", 0), ("answer", "ann", 1), ("answer", "bob", 2)]
    script += [("again", "ann", 0), ("answer", "ann", 2), ("undo", "bob", 0), ("skip", "bob", 0)]
    script += [("undo", "ann", 0), ("undo", "bob", 0), ("answer", "bob", 0)]
    annotations, questions, events = played(script)
    with ProjectStore.open(tmp_path) as store:
        items = [StoredItem(item, now(), None) for item in ITEMS]
        store.add([*annotations.classes, *items, *questions, *events])
        current = {(row["item"], row["annotator"]): row["class"] for row in store.answers()}
        assert list(store.events()) == events
        assert list(store.questions()) == questions
    assert current == slowly(questions, events)[0] == {("x", "ann"): 1, ("x", "bob"): 0}
