"""Questions as Label Studio's tasks, its annotations as answers: functions of plain values.

A task's data is what is shown (`image` or `text`), and `item`, `score`, `priority`, `reason`, `why`,
`model`, `askance`: columns of its data manager. `askance` says whose task it is.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from xml.etree import ElementTree

from askance.errors import InputError
from askance.label.ingest import ExternalAnswer, Refusal
from askance.label.records import AskedQuestion, Guess, Project
from askance.label.source import Kind

MOST_BUTTONS = 30  # classes beyond which a list folds out instead
_MANY = 1_000_000  # more than a project has questions
_SMALL = "font-size: 13px; font-weight: normal"


@dataclass(frozen=True)
class Form:
    """The part of a labelling setup that asks for the class: a Choices tag and what it is about."""

    control: str
    about: str
    choices: tuple[str, ...]


@dataclass(frozen=True)
class Task:
    """A task as the server has it."""

    id: int
    data: Mapping[str, Any]
    annotations: Sequence[Mapping[str, Any]]
    versions: frozenset[str]  # of the models whose guess it has


def field_of(kind: Kind) -> str:
    """The key of a task's data under which its content is."""
    return "image" if kind == "image" else "text"


def identity(project: Project) -> str:
    """What marks a project's tasks: another project's row 7 is another item."""
    text = f"{project.created}\n{project.kind}\n{project.seed}"
    return hashlib.blake2b(text.encode(), digest_size=6).hexdigest()


# The labelling setup


def setup(kind: Kind, classes: Sequence[str]) -> str:
    """Label Studio's XML for these classes: the item, a choice of one, and why it is asked."""
    field = field_of(kind)
    view = ElementTree.Element("View")
    ElementTree.SubElement(view, field.capitalize(), name=field, value=f"${field}")
    layout = "inline" if len(classes) <= MOST_BUTTONS else "select"
    choices = ElementTree.SubElement(
        view,
        "Choices",
        name="label",
        toName=field,
        choice="single-radio",
        required="true",
        layout=layout,
    )
    _add_choices(choices, classes)
    ElementTree.SubElement(view, "Header", value="$why", style=_SMALL)
    return ElementTree.tostring(view, encoding="unicode")


def is_empty(xml: str) -> bool:
    """Whether a labelling setup asks for nothing yet, as that of a new project does."""
    root = _parsed(xml)
    return root is None or len(root) == 0


def form_of(xml: str, kind: Kind) -> Form | None:
    """The choice of a class in a labelling setup, ours or one that somebody has made more of."""
    root = _parsed(xml)
    if root is None:
        return None
    shown = {tag.get("name") for tag in root.iter() if tag.get("value") == f"${field_of(kind)}"} - {
        None
    }
    for tag in root.iter("Choices"):
        about, name = tag.get("toName"), tag.get("name")
        if name and about in shown:
            texts = (each.get("alias") or each.get("value") for each in tag.iter("Choice"))
            return Form(name, str(about), tuple(text for text in texts if text))
    return None


def spelled(classes: Iterable[str], form: Form) -> list[str]:
    """Classes as the setup writes them, which may be in other capitals; it must have them all."""
    there = {choice.casefold(): choice for choice in form.choices}
    return [there[name.casefold()] for name in classes]


def with_choices(xml: str, form: Form, classes: Iterable[str]) -> str:
    """The same labelling setup with these classes to choose from too."""
    root = _parsed(xml)
    assert root is not None
    for tag in root.iter("Choices"):
        if tag.get("name") == form.control:
            _add_choices(tag, classes)
    return ElementTree.tostring(root, encoding="unicode")


def _add_choices(tag: ElementTree.Element, classes: Iterable[str]) -> None:
    for name in classes:
        if name.startswith("$"):  # Label Studio would look it up in the task's data
            raise InputError(
                f"class {name!r} cannot be a choice in Label Studio, which reads a leading $ as the "
                f"name of a column"
            )
        ElementTree.SubElement(tag, "Choice", value=name)


def _parsed(xml: str) -> ElementTree.Element | None:
    try:
        return ElementTree.fromstring(xml)
    except ElementTree.ParseError:
        return None


# Questions to tasks


def task_of(question: AskedQuestion, content: str, kind: Kind, mark: str) -> dict[str, Any]:
    """A question as task data."""
    return {
        field_of(kind): content,
        "item": question.item,
        "score": question.numbers.get("score"),
        "priority": priority(question),
        "reason": question.reason,
        "why": question.why,
        "model": question.version or 0,
        "askance": mark,
    }


def priority(question: AskedQuestion) -> int:
    """Higher is to be answered earlier: the newest model's questions, then the order of asking.

    One number, because the server orders by one column; and not the score, which the items that
    measure the model have not, and which cannot be compared between models.
    """
    return _MANY * (1 + (question.version or 0)) - question.id


def version_name(version: int) -> str:
    """What Label Studio calls a model of ours."""
    return f"askance {version}"


def prediction_of(form: Form, guess: Guess, classes: Sequence[str], version: int) -> dict[str, Any]:
    """A guess as a pre-annotation; its score is the model's confidence."""
    return {
        "model_version": version_name(version),
        "score": guess.confidence,
        "result": [
            {
                "from_name": form.control,
                "to_name": form.about,
                "type": "choices",
                "value": {"choices": [classes[guess.choice]]},
            }
        ],
    }


# Annotations to answers


def tasks_of(tasks: Iterable[Task], mark: str) -> dict[str, list[Task]]:
    """This project's tasks by item."""
    by_item: dict[str, list[Task]] = {}
    for task in tasks:
        item = task.data.get("item")
        if task.data.get("askance") == mark and isinstance(item, str):
            by_item.setdefault(item, []).append(task)
    return by_item


def answers_of(
    tasks: Mapping[str, Sequence[Task]], form: Form, people: Mapping[int, str], mark: str
) -> tuple[list[ExternalAnswer], list[Refusal]]:
    """Each person's latest annotation of each item, earliest first, and what is no answer.

    A cancelled annotation is a skip. `mark` names the server's project in tokens.
    """
    latest: dict[tuple[str, str], tuple[datetime, ExternalAnswer]] = {}
    refused = []
    for item, several in tasks.items():
        for task in several:
            for annotation in task.annotations:
                where = f"task {task.id}, annotation {annotation['id']}"
                try:
                    label = _chosen(annotation, form)
                except InputError as error:
                    refused.append(Refusal(where, item, str(error)))
                    continue
                who = _person(annotation, people)
                moment = datetime.fromisoformat(annotation["updated_at"])
                time = moment.isoformat()
                token = f"{mark}{annotation['id']} {time}"
                answer = ExternalAnswer(item, label, who, time, where, token)
                if (item, who) not in latest or latest[item, who][0] < moment:
                    latest[item, who] = moment, answer
    return [answer for _, answer in sorted(latest.values(), key=lambda each: each[0])], refused


def annotation_of(token: str, mark: str) -> str | None:
    """The id of the annotation that an act's token names."""
    return token.removeprefix(mark).split(" ")[0] if token.startswith(mark) else None


def _chosen(annotation: Mapping[str, Any], form: Form) -> str | None:
    if annotation.get("was_cancelled"):
        return None
    chosen = [
        choice
        for part in annotation.get("result") or ()
        if part.get("from_name") == form.control
        for choice in part.get("value", {}).get("choices", ())
    ]
    if len(chosen) != 1:
        raise InputError(f"one choice is expected, got {', '.join(map(str, chosen)) or 'none'}")
    return str(chosen[0])


def _person(annotation: Mapping[str, Any], people: Mapping[int, str]) -> str:
    by = annotation.get("completed_by")
    if isinstance(by, Mapping):
        return str(by.get("email") or f"user {by.get('id')}")
    return people.get(by, f"user {by}") if isinstance(by, int) else "nobody"
