"""A labelling project's questions as tasks of Label Studio, and the answers back.

    with Studio("http://127.0.0.1:8080", token) as studio:
        push("my-project", studio, n=50)  # what the model wants to know, best first
        pull("my-project", studio)  # what people said
        sync("my-project", studio, n=50)  # both, with a training in between where one is due

A question is stored as asked of `WHO` before its task is sent, and what the server has is looked up
there. So a push that was killed is finished by the next one, and nothing is sent twice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from askance.errors import DataError, InputError
from askance.integrations import label_studio_forms as forms
from askance.integrations.label_studio_server import RemoteProject, Studio
from askance.integrations.label_studio_settings import (
    Settings,
    merged_settings,
    remote_name,
    save_settings,
    saved_settings,
    session_of,
)
from askance.label import LabelingSession
from askance.label.ingest import ExternalAnswer, IngestResult, Refusal, ingest
from askance.label.media import page_image
from askance.label.project import existing_project
from askance.label.records import GUESS_SHOWN, AskedQuestion
from askance.label.store import ProjectStore

WHO = "Label Studio"  # whom questions are asked of: who will answer there is not known
_PATIENCE = 24 * 3600.0  # seconds for one training


@dataclass(frozen=True)
class PullResult:
    """What came of the annotations: `answers` says of each; others' tasks are not looked at.

    Args:
        answers: kept, unchanged and refused.
        withdrawn: answers whose annotation was deleted there.
        foreign: tasks of the project that are not ours.
        url: the project's address.
    """

    answers: IngestResult
    withdrawn: int
    foreign: int
    url: str


@dataclass(frozen=True)
class PushResult:
    """What was sent.

    Args:
        items: sent now, best first.
        waiting: tasks without an answer, those sent now among them.
        guesses: tasks that were there before and got the newest model's guess.
        unreadable: items that cannot be shown, and why.
        finished: whether there is nothing left to ask.
        version: the model that asked; 0 before there is one.
        url: the project's address.
    """

    items: list[str]
    waiting: int
    guesses: int
    unreadable: list[Refusal]
    finished: bool
    version: int
    url: str


def push(
    project: str | Path,
    studio: Studio,
    n: int = 50,
    to: str | None = None,
    settings: Settings | None = None,
) -> PushResult:
    """Train where it is due, and ask until n tasks wait for an answer.

    Args:
        project: the folder of a labelling project.
        studio: the server.
        n: tasks without an answer that there shall be.
        to: id or title of the server's project, made where there is none; the one of the last time,
            else "askance FOLDER", when None.
        settings: where the data is and how to train, where that differs from the last time.
    """
    if n < 1:
        raise InputError(f"n must be at least 1, got {n}")
    folder = Path(project)
    note, settings = merged_settings(folder, settings or Settings())
    session = session_of(folder, settings)
    try:
        names = [each.name for each in session.annotations.classes]
        remote = studio.remote_project(
            remote_name(folder, note, studio, to), session.items.kind, names, make=True
        )
        pusher = _Push(session, remote)
        if to is None and "project" not in note:
            pusher.check_owner()
        save_settings(folder, remote, settings)
        return pusher.push(n)
    finally:
        session.close()


def pull(project: str | Path, studio: Studio, to: str | None = None) -> PullResult:
    """Keep what people said; what was said before is not kept again, what was changed replaces it."""
    folder = Path(project)
    with existing_project(folder) as store:
        kept = store.project()
        assert kept is not None
        names = [each.name for each in store.annotations().classes]
        which = remote_name(folder, saved_settings(folder), studio, to)
        remote = studio.remote_project(which, kept.kind, names, make=False)
        tasks = remote.tasks()
        mine = forms.tasks_of(tasks, forms.identity(kept))
        answers, refused = forms.answers_of(mine, remote.form, remote.people(), remote.mark)
        gone = _deleted_answers(store, mine, answers, remote.mark)
        done = ingest(store, [*answers, *gone], replace=True)
    done.refused[:0] = refused
    withdrawn = sum(1 for answer in done.applied if answer in gone)
    foreign = len(tasks) - sum(map(len, mine.values()))
    return PullResult(done, withdrawn, foreign, remote.url)


def sync(
    project: str | Path,
    studio: Studio,
    n: int = 50,
    to: str | None = None,
    settings: Settings | None = None,
) -> tuple[PullResult | None, PushResult]:
    """Pull, where there is a project to pull from; train where it is due; push."""
    folder = Path(project)
    existing_project(folder).close()
    there = studio.project(remote_name(folder, saved_settings(folder), studio, to)) is not None
    pulled = pull(folder, studio, to) if there else None
    return pulled, push(folder, studio, n, to, settings)


class _Push:
    """One push."""

    def __init__(self, session: LabelingSession, remote: RemoteProject) -> None:
        self.session, self.remote = session, remote
        self.names = forms.spelled((each.name for each in session.annotations.classes), remote.form)
        self.held = frozenset(session.split.held_out)
        kept = session.store.project()
        assert kept is not None
        self.mark = forms.identity(kept)
        self.unreadable: list[Refusal] = []

    def check_owner(self) -> None:
        """A project that merely has the right title may be that of another folder of this name."""
        marks = {task.data.get("askance") for task in self.remote.tasks()} - {None}
        if marks and self.mark not in marks:
            raise InputError(
                f"{self.remote.url} {self.remote.title!r} holds the tasks of another labelling "
                f"project; name one with --project, which is made where there is none"
            )

    def push(self, n: int) -> PushResult:
        session = self.session
        session.scheduler.wait(0, _PATIENCE)
        there = forms.tasks_of(self.remote.tasks(), self.mark)
        asked = {question.item: question for question in self._open_questions()}
        waiting = [
            (asked.get(item), tasks)
            for item, tasks in there.items()
            if (item in asked or item not in session.annotations.answers)
            and not any(task.annotations for task in tasks)
        ]
        left = [question for item, question in asked.items() if item not in there]
        ready, more = self._ready(left, max(0, n - len(waiting)))
        self._send(ready)
        self.remote.show_in_order()
        version = len(session.versions)
        guesses = self._update_guesses(waiting) if version else 0
        return PushResult(
            [question.item for question, _ in ready],
            len(waiting) + len(ready),
            guesses,
            self.unreadable,
            more == "finished",
            version,
            self.remote.url,
        )

    def _open_questions(self) -> list[AskedQuestion]:
        """Questions that want an answer, in the order of asking."""
        annotations, here = self.session.annotations, self.session.items.position
        questions = (annotations.questions[number] for number in annotations.open[WHO])
        return [
            question
            for question in questions
            if question.item in here
            and question.item not in annotations.skips
            # An item that is asked of a second person has one answer.
            and len(annotations.answers.get(question.item, ())) <= (question.reason == "repeat")
        ]

    def _ready(
        self, left: Sequence[AskedQuestion], n: int
    ) -> tuple[list[tuple[AskedQuestion, str]], str]:
        """Up to n questions with what their tasks show, best first: what is left, then new ones."""
        ready = self._shown(left[:n])
        more = "yes"
        while len(ready) < n:
            new, more = self._new_questions(n - len(ready))
            if not new:
                break
            ready += self._shown(new)
        return sorted(ready, key=lambda each: forms.priority(each[0]), reverse=True), more

    def _new_questions(self, n: int) -> tuple[list[AskedQuestion], str]:
        """Up to n new questions; a model is trained for more where those of the last one are asked."""
        session = self.session
        before = len(session.open_for(WHO))
        new: list[AskedQuestion] = []
        more, starved = "yes", False
        while len(new) < n:
            earlier = len(new)
            everything, more = session.questions(WHO, before + n)
            new = everything[before:]
            if more != "waiting" or (starved and len(new) == earlier):
                break
            session.scheduler.request_picks()
            starved = True
            session.scheduler.wait(0, _PATIENCE)
        return new, more

    def _send(self, ready: Sequence[tuple[AskedQuestion, str]]) -> None:
        tasks = []
        for question, content in ready:
            data = forms.task_of(question, content, self.session.items.kind, self.mark)
            made = self._prediction(question)
            tasks.append({"data": data, "predictions": [] if made is None else [made]})
        self.remote.send(tasks)

    def _prediction(self, question: AskedQuestion) -> dict[str, Any] | None:
        """The newest model's guess; never on what measures the model."""
        version, guess = self.session.guess(question.item)
        if question.reason not in GUESS_SHOWN or question.item in self.held:
            return None
        if version is None or guess is None:
            return None
        return forms.prediction_of(self.remote.form, guess, self.names, version)

    def _shown(self, questions: Sequence[AskedQuestion]) -> list[tuple[AskedQuestion, str]]:
        """What a task shows of each item; an image is sent and shown from the server."""
        source = self.session.items
        if source.kind != "image":
            texts = (source.text(question.item) or "" for question in questions)
            # PostgreSQL, which many servers keep their tasks in, has no sign for NUL.
            shown_as = [text.replace("\0", "\N{REPLACEMENT CHARACTER}") for text in texts]
            return list(zip(questions, shown_as, strict=True))
        readable, images = [], []
        for question in questions:
            try:
                row = source.position[question.item]
                images.append(
                    page_image(source.files[row], source.source.path, source.digests[row])
                )
                readable.append(question)
            except DataError as error:
                self.unreadable.append(Refusal("", question.item, str(error)))
        return list(zip(readable, self.remote.uploaded(images), strict=True))

    def _update_guesses(
        self, waiting: Sequence[tuple[AskedQuestion | None, Sequence[forms.Task]]]
    ) -> int:
        """Give waiting tasks the newest model's guess: the server shows one model's alone."""
        newest = forms.version_name(len(self.session.versions))
        predictions = []
        for question, tasks in waiting:
            made = None if question is None else self._prediction(question)
            if made is not None:
                without = (task for task in tasks if made["model_version"] not in task.versions)
                predictions += [{"task": task.id, **made} for task in without]
        self.remote.guess(predictions, newest)
        return len(predictions)


def _deleted_answers(
    store: ProjectStore,
    mine: Mapping[str, Sequence[forms.Task]],
    said: Sequence[ExternalAnswer],
    mark: str,
) -> list[ExternalAnswer]:
    """Answers kept from annotations that are gone while their tasks are there: now skips.

    Where the task itself is gone the answer stays: projects are tidied up.
    """
    annotations = store.annotations()
    now = {(answer.item, answer.annotator) for answer in said}
    gone = []
    for item, tasks in mine.items():
        there = {str(annotation["id"]) for task in tasks for annotation in task.annotations}
        for annotator, stack in annotations.answers.get(item, {}).items():
            number = forms.annotation_of(stack[-1].token, mark)
            if number is None or number in there or (item, annotator) in now:
                continue
            where = f"task {tasks[0].id}, annotation {number}, deleted"
            gone.append(
                ExternalAnswer(item, None, annotator, None, where, f"{mark}{number} deleted")
            )
    return gone
