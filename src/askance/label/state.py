"""Where everything stands: what the rows of the store, read in order, come to.

The state is a function of those rows alone. It is kept up to date act by act while the server runs, and
made anew from the file when it starts; both ways give the same state.
"""

from __future__ import annotations

import math
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import replace

from askance.label.records import (
    COUNTED,
    AskedQuestion,
    Class,
    ClassEdit,
    Event,
    EventGroup,
    seconds_of,
)

PACE_WINDOW = 200  # answers of one person that are remembered for their pace
# Questions that are kept for all those together who have done nothing yet: any name can ask for some.
KEPT_FOR_NEWCOMERS = 50


class AnnotationState:
    """Open questions, standing acts, and the label each item has come to.

    An item's *label* is what most of its annotators say; where two classes lead together there is
    none, and the item is left out of training and of the estimate. A *conflict* is an item on which
    current answers differ, whether or not there is a majority.
    """

    def __init__(self, classes: Iterable[Class] = ()) -> None:
        self.classes = list(classes)
        self.class_edits: dict[int, ClassEdit] = {}  # class → how it is shown now, if it was edited
        self.last_class_edit = 0
        self.class_edit_tokens: set[str] = set()
        self.former_names = {each.name.casefold(): each.id for each in self.classes}
        self.questions: dict[int, AskedQuestion] = {}
        self.open: dict[str, OrderedDict[int, None]] = defaultdict(OrderedDict)  # next one first
        self.asked: dict[str, set[str]] = defaultdict(set)  # item → who has been asked
        self._times_asked: Counter[tuple[str, str]] = Counter()  # item and person
        self.asked_held: set[str] = set()  # items asked about because they are held out
        self.asked_again: set[tuple[str, str]] = set()
        self.n_asked = 0  # questions so far that were no repeat, and asked here
        self.standing: dict[int, Event] = {}  # question → the act that stands
        self.acts: dict[str, dict[int, Event]] = defaultdict(dict)  # by event, the latest last
        self.answers: dict[str, dict[str, list[Event]]] = {}
        # Item → who skips it; twice who was asked twice.
        self.skips: dict[str, list[str]] = {}
        self.labels: dict[str, int] = {}  # in the order of first answers
        self.conflicts: dict[str, None] = {}
        self.counts: Counter[int] = Counter()
        self.by_annotator: Counter[str] = Counter()
        self.times: dict[str, list[float]] = defaultdict(list)
        self.last_seen: dict[str, float] = {}  # who → when they were last asked or did something
        self.events: dict[str, Event] = {}  # token → event
        self.groups: dict[int, EventGroup] = {}  # event → those done at once with it
        self.times_skipped: Counter[int] = Counter()  # question → how often, those undone too
        self.last_event = 0

    def add_class(self, new: Class) -> None:
        """Enter a class that was made."""
        self.classes.append(new)
        self.former_names[new.name.casefold()] = new.id

    def edit_class(self, edit: ClassEdit) -> None:
        """Enter how a class is called and shown from now on."""
        self.classes[edit.choice] = replace(self.classes[edit.choice], name=edit.name)
        self.class_edits[edit.choice] = edit
        self.last_class_edit = edit.id
        self.class_edit_tokens.add(edit.token)
        self.former_names.setdefault(edit.name.casefold(), edit.choice)

    def class_named(self, name: str) -> Class | None:
        """The class that has this name, or had it before."""
        key = name.casefold()
        now = next((each for each in self.classes if each.name.casefold() == key), None)
        if now is None and key in self.former_names:
            return self.classes[self.former_names[key]]
        return now

    def offered(self) -> list[Class]:
        """The classes that are not deleted, in the order in which they are shown."""
        edits = self.class_edits
        left = [each for each in self.classes if not (each.id in edits and edits[each.id].deleted)]
        return sorted(left, key=lambda each: (self.place(each.id), each.id))

    def place(self, choice: int) -> float:
        """Where a class is shown among the others; smaller ones come first."""
        edit = self.class_edits.get(choice)
        return float(choice) if edit is None else edit.place

    def ask(self, question: AskedQuestion) -> None:
        """Enter a question that was handed out."""
        self.questions[question.id] = question
        self.open[question.annotator][question.id] = None
        self._count_asked(question, 1)
        if question.reason == "disagreement":
            self.asked_again.add((question.item, question.annotator))
        elif question.reason == "held-out":
            self.asked_held.add(question.item)
        self.n_asked += question.reason in COUNTED
        if question.reason != "outside":
            self.last_seen[question.annotator] = seconds_of(question.asked)

    def _count_asked(self, question: AskedQuestion, step: int) -> None:
        item, annotator = question.item, question.annotator
        self._times_asked[item, annotator] += step
        if self._times_asked[item, annotator]:
            self.asked[item].add(annotator)
            return
        self.asked[item].discard(annotator)
        if not self.asked[item]:
            del self.asked[item]

    def group(self, group: EventGroup) -> None:
        """Enter that acts were done at once."""
        self.groups |= dict.fromkeys(range(group.first, group.last + 1), group)

    def apply(self, event: Event) -> str:
        """Enter what a person did, and return the item it was about."""
        question = self.questions[event.question]
        self.events[event.token] = event
        self.last_event = event.id
        if question.reason != "outside":
            self.last_seen[event.annotator] = seconds_of(event.time)
        if event.kind == "undo":
            self._undo(question, event)
        else:
            if self.open[event.annotator].pop(event.question, event) is event:
                self._count_asked(question, 1)  # nobody was asked, and its answer was undone before
            self.standing[event.question] = event
            self.acts[event.annotator][event.id] = event
            if event.kind == "skip":
                self.times_skipped[question.id] += 1
                self.skips.setdefault(question.item, []).append(event.annotator)
            else:
                self._answer(question.item, event)
                if question.reason != "outside":
                    times = self.times[event.annotator]
                    times.append(seconds_of(event.time))
                    del times[:-PACE_WINDOW]
        return question.item

    def _answer(self, item: str, event: Event) -> None:
        assert event.choice is not None
        stack = self.answers.setdefault(item, {}).setdefault(event.annotator, [])
        if stack:
            self._count(stack[-1], -1)
        stack.append(event)
        self._count(event, 1)
        self._resolve(item)

    def _undo(self, question: AskedQuestion, event: Event) -> None:
        undone = self.standing.pop(event.question)
        assert undone.id == event.undoes
        del self.acts[event.annotator][undone.id]
        if question.reason == "outside" and undone.id in self.groups:  # nobody was asked
            self._count_asked(question, -1)
        else:
            self.open[event.annotator][undone.question] = None
            self.open[event.annotator].move_to_end(undone.question, last=False)  # asked again first
        item = question.item
        if undone.kind == "skip":
            self.skips[item].remove(event.annotator)
            if not self.skips[item]:
                del self.skips[item]
            return
        by_annotator = self.answers[item]
        stack = by_annotator[event.annotator]
        self._count(stack[-1], -1)
        stack.remove(undone)
        if stack:
            self._count(stack[-1], 1)
        else:
            del by_annotator[event.annotator]
        if not by_annotator:
            del self.answers[item]
        self._resolve(item)

    def _count(self, event: Event, step: int) -> None:
        assert event.choice is not None
        self.counts[event.choice] += step
        self.by_annotator[event.annotator] += step

    def _resolve(self, item: str) -> None:
        tally = Counter(self.current(item).values()).most_common(2)
        if not tally or (len(tally) == 2 and tally[0][1] == tally[1][1]):
            self.labels.pop(item, None)
        else:
            self.labels[item] = tally[0][0]
        if len(tally) == 2:
            self.conflicts[item] = None
        else:
            self.conflicts.pop(item, None)

    def current(self, item: str) -> dict[str, int]:
        """Each annotator's current answer to an item."""
        choices = {}
        for annotator, stack in self.answers.get(item, {}).items():
            choice = stack[-1].choice
            assert choice is not None
            choices[annotator] = choice
        return choices

    def next_conflict_for(self, annotator: str, shown: Callable[[str], bool]) -> str | None:
        """An item that can be shown, on which this person disagrees and was not asked again."""
        for item in self.conflicts:
            if not shown(item):
                continue
            if annotator in self.answers[item] and (item, annotator) not in self.asked_again:
                return item
        return None

    def kept(self, now: float, seconds: float, *, newcomers: bool) -> set[str]:
        """Items of open questions that are kept for whoever has them.

        Args:
            now: seconds since 1970; a clock that was set back lets go of what it kept.
            seconds: for how long they are kept for somebody who does nothing.
            newcomers: whether those who have never done anything count; the newest of theirs do.
        """
        items, of_newcomers = set[str](), list[int]()
        for who, numbers in self.open.items():
            if not numbers or abs(now - self.last_seen.get(who, -math.inf)) > seconds:
                continue
            if self.acts.get(who):
                items.update(self.questions[number].item for number in numbers)
            elif newcomers:
                of_newcomers += numbers
        newest = sorted(of_newcomers)[-KEPT_FOR_NEWCOMERS:]
        return items.union(self.questions[number].item for number in newest)

    @property
    def skipped(self) -> int:
        """Items somebody skipped and nobody answered."""
        return sum(1 for item in self.skips if item not in self.answers)

    @property
    def agreement(self) -> tuple[int, int]:
        """Items two or more people answered, and how many of those they agree on."""
        several = [item for item, by in self.answers.items() if len(by) > 1]
        return len(several), sum(1 for item in several if item not in self.conflicts)


def replayed(
    classes: Iterable[Class],
    questions: Iterable[AskedQuestion],
    events: Iterable[Event],
    groups: Iterable[EventGroup] = (),
    class_edits: Iterable[ClassEdit] = (),
) -> AnnotationState:
    """The state these rows come to.

    All questions and groups are taken in first: an event never precedes its question, and which
    questions are open does not depend on when another was asked.
    """
    state = AnnotationState(classes)
    for question in questions:
        state.ask(question)
    for edit in class_edits:
        state.edit_class(edit)
    for group in groups:
        state.group(group)
    for event in events:
        state.apply(event)
    return state
