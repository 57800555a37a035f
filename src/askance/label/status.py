"""What the page shows: the session's state, questions and items as replies. Import it late."""

from __future__ import annotations

from askance import strategies
from askance.label import accuracy, estimate, messages, replies
from askance.label import goal as goals
from askance.label import mistakes as wrong
from askance.label.accuracy import HeldOutResults
from askance.label.browse import ItemFilter, shown_guess
from askance.label.exports import MODELS, TABLES
from askance.label.keys import assigned_keys
from askance.label.planning import open_picks
from askance.label.records import GUESS_SHOWN, AskedQuestion, Class, Event, Guess
from askance.label.session import LabelingSession, QuestionBatch, RefusedError
from askance.label.store import FILE
from askance.stopping import Estimate

_BEGINNING = 600  # characters of a text in the list of items


def state(session: LabelingSession, annotator: str | None) -> replies.StateReply:
    """Everything on the page but the questions."""
    with session.lock:
        annotations, training, items = session.annotations, session.training, session.items
        results = accuracy.held_out_results(session.view(), training)
        answers = annotations.answers
        missing = session.missing
        answered = len(answers) - sum(item in answers for item in missing)
        skipped = annotations.skipped - sum(
            item in annotations.skips and item not in answers for item in missing
        )
        unreadable = sorted(training.unreadable.union(session.broken))
        name = annotator or ""
        return replies.StateReply(
            project=session.folder.resolve().name,
            kind=items.kind,
            data=str(items.source.path),
            store=str(session.folder / FILE),
            classes=classes_reply(session),
            deleted_classes=deleted_classes(session),
            counts=[
                replies.ClassCount(
                    choice=each.id, name=each.name, answers=annotations.counts[each.id]
                )
                for each in annotations.offered()
            ],
            answered=answered,
            answers=sum(annotations.by_annotator.values()),
            skipped=skipped,
            total=len(items),
            remaining=max(0, len(items) - answered - skipped),
            queue=sum(1 for _ in open_picks(session.view(), training)),
            open=len(session.open_for(name)),
            mine=_own_counts(session, name),
            per_minute=estimate.per_minute(annotations.times.get(name, [])),
            annotators=[
                replies.AnnotatorCount(name=who, answers=count)
                for who, count in sorted(annotations.by_annotator.items())
                if count
            ],
            default_annotator=session.options.annotator,
            estimate=_newest(session, results),
            held_out=replies.HeldOutCounts(
                share=session.options.held_out,
                answered=results.right_VN.shape[1],
                reserved=len(session.split.held_out),
            ),
            curve=[
                replies.CurvePoint.of(point.estimate, model=point.version, answers=point.trained_on)
                for point in accuracy.curve(training, results)
            ],
            sure=_sure(session),
            advice=_advice(session, results),
            goal=goal_reply(session, name),
            model=_model(session),
            conflicts=len(annotations.conflicts),
            agreement=_agreement(session),
            changes=replies.ChangesReply.of(
                session.changes,
                unreadable=len(unreadable),
                unreadable_text=messages.unreadable(
                    len(unreadable),
                    [
                        session.images.problem(items, item) or items.name(item) or item
                        for item in unreadable[: messages.MOST_NAMED]
                    ],
                ),
                left_out=messages.left_out(items.left_out),
                text=messages.changed(session.changes),
                trouble=session.trouble,
            ),
            exports=replies.ExportFormats(
                answers=list(TABLES),
                predictions=list(TABLES) if training.guesses is not None else [],
                model=list(MODELS) if training.versions else [],
            ),
            store_trouble=session.store.trouble,
            notes=list(messages.NOTES),
            revision=session.revision,
        )


def classes_reply(session: LabelingSession) -> list[replies.ClassReply]:
    """The classes that are offered, in their order, with their keys."""
    annotations = session.annotations
    edits, offered = annotations.class_edits, annotations.offered()
    keys = assigned_keys(
        offered, {n: edit.key for n, edit in edits.items() if edit.key is not None}
    )
    return [_class(session, each, keys.get(each.id)) for each in offered]


def deleted_classes(session: LabelingSession) -> list[replies.ClassReply]:
    """The classes that were deleted and can be restored."""
    edits = session.annotations.class_edits
    classes = session.annotations.classes
    return [_class(session, classes[n], None) for n, edit in edits.items() if edit.deleted]


def _class(session: LabelingSession, one: Class, key: str | None) -> replies.ClassReply:
    edit, items = session.annotations.class_edits.get(one.id), session.items
    example = None if edit is None else edit.example
    return replies.ClassReply.of(
        one,
        key=key,
        chosen=edit is not None and edit.key is not None,
        place=session.annotations.place(one.id),
        description="" if edit is None else edit.description,
        example=example,
        example_media=None if example not in items.position else items.media(example),
        example_text=None if example is None else (items.text(example) or "")[:_BEGINNING] or None,
    )


def _own_counts(session: LabelingSession, name: str) -> replies.OwnCounts:
    kinds = [event.kind for event in session.annotations.acts.get(name, {}).values()]
    return replies.OwnCounts(
        answers=session.annotations.by_annotator.get(name, 0),
        skipped=kinds.count("skip"),
        can_undo=bool(kinds),
        again=session.n_skipped_by(name),
    )


def _newest(session: LabelingSession, results: HeldOutResults) -> replies.AccuracyReply | None:
    """The estimate of the newest model."""
    newest: Estimate | None = results.of(-1) if session.versions else None
    if newest is None:
        return None
    return replies.AccuracyReply.of(newest, model=session.versions[-1].version)


def _advice(session: LabelingSession, results: HeldOutResults) -> replies.AdviceReply:
    batch = session.options.batch
    advice = accuracy.advice(session.view(), session.training, results, batch)
    gain = advice.gain
    return replies.AdviceReply(
        text=advice.text,
        gain=None if gain is None else gain.gain,
        low=None if gain is None else gain.low,
        high=None if gain is None else gain.high,
        answers=advice.answers,
        stop=advice.stop,
    )


def goal_reply(session: LabelingSession, annotator: str | None) -> replies.GoalReply | None:
    """The goal and how far it is; in minutes at this person's pace."""
    goal = session.goal
    if goal is None:
        return None
    results = accuracy.held_out_results(session.view(), session.training)
    far = goals.progress(
        goal,
        len(session.annotations.answers),
        results.of(-1) if session.versions else None,
        session.options.held_out,
        len(session.split.held_out),
    )
    pace = estimate.per_minute(session.annotations.times.get(annotator or "", []))
    left = far.answers_left
    minutes = left / pace if left is not None and pace else None
    return replies.GoalReply.of(goal, **vars(far), minutes_left=minutes)


def _sure(session: LabelingSession) -> replies.SureReply | None:
    found = accuracy.where_sure(session.view(), session.training)
    return None if found is None else replies.SureReply(confidence=accuracy.SURE, **found._asdict())


def _model(session: LabelingSession) -> replies.ModelReply:
    newest = session.versions[-1] if session.versions else None
    default = strategies.default()
    return replies.ModelReply(
        version=0 if newest is None else newest.version,
        training=session.training.running,
        preparing=_preparing(session),
        trained_on=0 if newest is None else newest.trained_on,
        untrained=session.scheduler.n_untrained,
        running_for=session.scheduler.running_for,
        next_at=session.scheduler.due_in,
        batch=session.options.batch,
        name=session.options.described_model(session.items.kind),
        strategy=session.options.strategy,
        chosen=default.why if session.options.strategy == default.name else "",
        seconds=None if newest is None else newest.seconds,
        error=session.training.error,
    )


def _preparing(session: LabelingSession) -> replies.PreparingReply | None:
    now = session.training.preparing
    return None if now is None else replies.PreparingReply(done=now[0], total=now[1])


def _agreement(session: LabelingSession) -> replies.Agreement:
    items, agree = session.annotations.agreement
    return replies.Agreement(items=items, agree=agree)


def questions_reply(session: LabelingSession, batch: QuestionBatch) -> replies.QuestionsReply:
    """Questions that were handed out, and in words why there are no more."""
    with session.lock:
        questions = [question_reply(session, question) for question in batch.questions]
        error, preparing = session.training.error, session.training.preparing
    message = None
    if batch.more == "waiting":
        message = "The model is being trained; the next questions come in a moment."
        if preparing is not None:
            done, total = preparing
            message = f"The items are being prepared ({done:,} of {total:,}); questions come then."
        if error is not None:
            message = f"Training failed and is tried again: {error}"
    elif batch.more == "finished":
        message = "There is nothing left to ask you."
    return replies.QuestionsReply(
        questions=questions,
        waiting=batch.more == "waiting",
        finished=batch.more == "finished" and not questions,
        message=message,
    )


def question_reply(session: LabelingSession, question: AskedQuestion) -> replies.QuestionReply:
    """A question as the page gets it; the guess only where it cannot spoil a measurement."""
    guess_shown = question.reason in GUESS_SHOWN
    disagreement = question.reason == "disagreement"
    return replies.QuestionReply.of(
        question,
        name=session.items.name(question.item),
        kind=session.items.kind,
        media=session.items.media(question.item),
        text=_text(session, question.item),
        columns=_columns(session, question.item),
        model=question.version,
        guess=_guess(session, question.guess) if guess_shown else None,
        guess_withheld=not guess_shown,
        why=replies.WhyReply(text=question.why, numbers=question.numbers),
        earlier=_current_answers(session, question.item) if disagreement else [],
    )


def items_reply(
    session: LabelingSession, wanted: ItemFilter, offset: int, n: int
) -> replies.ItemsReply:
    """A page of the items that match."""
    found = session.matching(wanted)
    with session.lock:
        here = [item for item in found[offset : offset + n] if item in session.items.position]
        return replies.ItemsReply(
            items=[_listed(session, item) for item in here],
            total=len(found),
            offset=offset,
            likeness=session.scheduler.likeness is not None,
        )


def _listed(session: LabelingSession, item: str) -> replies.ListedItem:
    items, annotations = session.items, session.annotations
    text = items.text(item)
    return replies.ListedItem(
        item=item,
        name=items.name(item),
        kind=items.kind,
        media=items.media(item),
        text=text if text is None or len(text) <= _BEGINNING else f"{text[:_BEGINNING]}…",
        columns=_columns(session, item),
        choice=annotations.labels.get(item),
        answers=_current_answers(session, item),
        skipped=sorted(set(annotations.skips.get(item, ()))),
        guess=_guess(session, shown_guess(session.view(), session.training, item)),
        held_out=item in session.split.held,
    )


def _columns(session: LabelingSession, item: str) -> list[replies.ColumnReply]:
    cells = session.items.columns(item)
    return [replies.ColumnReply(name=name, value=value) for name, value in cells.items()]


def _text(session: LabelingSession, item: str) -> str | None:
    """What is shown of an item; an act that was undone may bring back one that is missing."""
    if session.items.kind == "image" or item in session.items.position:
        return session.items.text(item)
    return messages.GONE


def _guess(session: LabelingSession, guess: Guess | None) -> replies.GuessReply | None:
    if guess is None:
        return None
    name = session.annotations.classes[guess.choice].name
    return replies.GuessReply.of(guess, name=name)


def _current_answers(session: LabelingSession, item: str) -> list[replies.CurrentAnswer]:
    """Everybody's current answer."""
    stacks = session.annotations.answers.get(item, {})
    return [
        replies.CurrentAnswer(
            annotator=who,
            choice=choice,
            name=session.annotations.classes[choice].name,
            time=stacks[who][-1].time,
        )
        for who, choice in session.annotations.current(item).items()
    ]


def history(session: LabelingSession, item: str) -> replies.ItemReply:
    """All that was ever asked and said about one item.

    A held-out item's guess is shown only once it has an answer.
    """
    with session.lock:
        here = item in session.items.position
        if not here and item not in session.annotations.asked:
            raise RefusedError("not-found", f"there is no item {item!r}")
        asked = [q for q in session.annotations.questions.values() if q.item == item]
        numbers = {question.id for question in asked}
        acts = [e for e in session.annotations.events.values() if e.question in numbers]
        rows = [_asked_row(session, question) for question in asked]
        rows += [_act_row(session, event) for event in acts]
        return replies.ItemReply(
            item=item,
            name=session.items.name(item),
            kind=session.items.kind,
            media=session.items.media(item) if here else None,
            text=session.items.text(item),
            columns=_columns(session, item),
            held_out=item in session.split.held_out,
            missing=not here,
            answers=_current_answers(session, item),
            history=sorted(rows, key=lambda row: (row.time, row.kind != "asked")),
        )


def _asked_row(session: LabelingSession, question: AskedQuestion) -> replies.HistoryRow:
    answered = question.item in session.annotations.answers
    shown = question.reason in GUESS_SHOWN or answered
    return replies.HistoryRow.of(
        question,
        kind="asked",
        time=question.asked,
        model=question.version,
        guess=_guess(session, question.guess) if shown else None,
    )


def _act_row(session: LabelingSession, event: Event) -> replies.HistoryRow:
    classes = session.annotations.classes
    name = None if event.choice is None else classes[event.choice].name
    return replies.HistoryRow.of(event, name=name)


def mistakes_reply(session: LabelingSession) -> replies.MistakesReply:
    """What the newest model gets wrong, and where people disagree."""
    with session.lock:
        found = wrong.mistakes(session.view(), session.training)
        names = [each.name for each in session.annotations.classes]
        pairs = [replies.PairReply.of(pair) for pair in wrong.agreement(session.annotations)]
    if found is None:
        return replies.MistakesReply(
            version=0, n=0, confusion=[], by_class=[], by_confidence=[], doubtful=0, agreement=pairs
        )
    return replies.MistakesReply(
        version=found.version,
        n=found.n,
        confusion=[replies.ConfusionReply.of(each) for each in found.confusion],
        by_class=[
            replies.ClassAccuracyReply(
                choice=each.choice,
                name=names[each.choice],
                right=each.right,
                n=each.estimate.n,
                low=each.estimate.low,
                high=each.estimate.high,
            )
            for each in found.by_class
        ],
        by_confidence=[replies.ConfidenceReply.of(each) for each in found.by_confidence],
        doubtful=found.doubtful,
        agreement=pairs,
    )
