"""What the server replies, as pydantic models: the page's state, questions, items and acts.

`/api/openapi.json` describes them. This module imports pydantic, which comes with the extra `[label]`
alone, so import it late.
"""

from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from askance.label.records import Act, Reason
from askance.label.source import Kind


def _as_utf8(value: object) -> object:
    """Names of files and messages may hold bytes that are no UTF-8: they become "?"."""
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value


Text = Annotated[str, BeforeValidator(_as_utf8)]


class Reply(BaseModel):
    """The base of all replies. JSON says `class` where Python, with that keyword, says `choice`."""

    model_config = ConfigDict(extra="forbid")

    @classmethod
    def of(cls, record: object, **more: Any) -> Self:
        """The fields that a record has too, and more."""
        shared = {name: getattr(record, name) for name in cls.model_fields if hasattr(record, name)}
        return cls(**shared | more)


class ErrorDetail(Reply):
    """What went wrong: a code for programs, a message for people."""

    code: str
    message: str


class ErrorReply(Reply):
    """Every reply of status 400 and above."""

    error: ErrorDetail


class ClassReply(Reply):
    """A possible answer, and the key that gives it."""

    id: int
    name: str
    key: str | None
    chosen: bool = Field(description="Whether somebody chose its key.")
    place: float = Field(description="Where it is shown; smaller ones come first.")
    description: str
    example: str | None = Field(description="An item that shows what is meant.")
    example_media: str | None
    example_text: str | None


class ClassesReply(Reply):
    """The classes after an edit that is on the disk."""

    classes: list[ClassReply]
    deleted_classes: list[ClassReply]
    duplicate: bool
    revision: int


class ClassCount(Reply):
    """How many answers name this class now."""

    choice: int = Field(serialization_alias="class")
    name: str
    answers: int


class OwnCounts(Reply):
    """What the person who asks has done."""

    answers: int
    skipped: int
    can_undo: bool
    again: int = Field(description="Skipped items that can be asked again.")


class AnnotatorCount(Reply):
    """How many of a person's answers stand."""

    name: str
    answers: int


class AccuracyReply(Reply):
    """A share of right guesses among n held-out answers, its 95% interval, and of which model."""

    accuracy: float
    low: float
    high: float
    n: int
    model: int


class CurvePoint(AccuracyReply):
    """The estimate of one model, which was trained on so many answers."""

    answers: int


class HeldOutCounts(Reply):
    """The share of items held out, how many they are, and how many of them count now."""

    share: float
    answered: int
    reserved: int


class AdviceReply(Reply):
    """Whether to go on: in words, and the gain in accuracy over the last `answers` answers."""

    text: str
    gain: float | None
    low: float | None
    high: float | None
    answers: int | None
    stop: bool


class GoalReply(Reply):
    """The project's goal, so many answers or an accuracy, and how far it is."""

    kind: Literal["answers", "accuracy"]
    value: float
    reached: bool
    share: float
    text: str
    answers_left: int | None
    minutes_left: float | None = Field(description="At the pace of the person who asks.")


class SureReply(Reply):
    """How often the newest model is right where it is sure: on n held-out answers."""

    confidence: float
    right: int
    n: int


class PreparingReply(Reply):
    """How many items a pretrained encoder has made the features of, and of how many."""

    done: int
    total: int


class ModelReply(Reply):
    """The newest model (version 0: none yet), and the training under way."""

    version: int
    training: bool
    preparing: PreparingReply | None = Field(description="While an encoder reads the items.")
    trained_on: int
    untrained: int = Field(description="Labels that are not as the newest model was trained on.")
    running_for: float | None = Field(description="Seconds since the training under way began.")
    next_at: int = Field(description="Changed labels until the next training.")
    batch: int
    name: str
    strategy: str
    chosen: str = Field(description="Why that rule, where it is the default; else empty.")
    seconds: float | None = Field(description="How long the last training took.")
    error: Text | None


class Agreement(Reply):
    """Items that two people or more answered, and on how many of them they agree."""

    items: int
    agree: int


class ChangesReply(Reply):
    """How the data differs from what it was when the project was opened: counts of items."""

    new: int
    missing: int
    changed: int
    renamed: int
    unreadable: int = Field(description="Items that cannot be shown, and are not asked.")
    unreadable_text: Text = Field(description="Which these are, and why; empty where none is.")
    left_out: Text = Field(description="Files of the folder that are not read; empty without any.")
    text: str
    trouble: Text | None = Field(description="Why the data cannot be read now.")


class ExportFormats(Reply):
    """The formats in which each export can be had now."""

    answers: list[str]
    predictions: list[str]
    model: list[str]


class StateReply(Reply):
    """Everything on the page but the questions."""

    project: Text
    kind: Kind
    data: Text
    store: Text
    classes: list[ClassReply]
    deleted_classes: list[ClassReply]
    counts: list[ClassCount]
    answered: int = Field(description="Items of the data with an answer.")
    answers: int
    skipped: int
    total: int
    remaining: int
    queue: int = Field(description="Picks that nobody was asked about yet.")
    open: int = Field(description="Questions this person has before them.")
    mine: OwnCounts
    per_minute: float | None
    annotators: list[AnnotatorCount]
    default_annotator: str
    estimate: AccuracyReply | None
    held_out: HeldOutCounts
    curve: list[CurvePoint]
    sure: SureReply | None = Field(description="None where it is sure of no held-out answer.")
    advice: AdviceReply
    goal: GoalReply | None
    model: ModelReply
    conflicts: int
    agreement: Agreement
    changes: ChangesReply
    exports: ExportFormats
    store_trouble: Text | None = Field(
        description="Why nothing that people say can be kept now: the project's file is gone."
    )
    notes: list[str]
    revision: int = Field(description="Rises with every change of this state.")


class GuessReply(Reply):
    """What a model would answer, and the probability it gives that."""

    choice: int = Field(serialization_alias="class")
    name: str
    confidence: float


class WhyReply(Reply):
    """Why an item is asked about, in words and in the rule's numbers."""

    text: str
    numbers: dict[str, int | float | None]


class ColumnReply(Reply):
    """A cell beside an item: its column's name and what it says."""

    name: str
    value: str


class CurrentAnswer(Reply):
    """What a person says of an item now."""

    annotator: str
    choice: int = Field(serialization_alias="class")
    name: str
    time: str


class QuestionReply(Reply):
    """A question; the model's guess is in it only where it cannot spoil a measurement."""

    id: int
    item: str
    name: Text | None = Field(description="Where it is in the data now: a file, or a row's id.")
    kind: Kind
    media: str | None
    text: str | None
    columns: list[ColumnReply]
    reason: Reason
    model: int | None
    guess: GuessReply | None
    guess_withheld: bool
    why: WhyReply
    annotator: str
    asked: str
    earlier: list[CurrentAnswer] = Field(description="Where people disagree: what they said.")


class QuestionsReply(Reply):
    """Questions to answer, and why there are no more."""

    questions: list[QuestionReply]
    waiting: bool
    finished: bool
    message: Text | None


class HistoryRow(Reply):
    """Something that was asked of, or done by, a person."""

    kind: Literal["asked"] | Act
    id: int
    annotator: str
    time: str
    choice: int | None = Field(default=None, serialization_alias="class")
    name: str | None = None
    reason: Reason | None = None
    model: int | None = None
    guess: GuessReply | None = None
    why: str | None = None


class ItemReply(Reply):
    """All that was ever asked and said about one item."""

    item: str
    name: Text | None
    kind: Kind
    media: str | None
    text: str | None
    columns: list[ColumnReply]
    held_out: bool
    missing: bool
    answers: list[CurrentAnswer]
    history: list[HistoryRow]


class ListedItem(Reply):
    """An item in the list of items: what people say of it, and what the newest model says."""

    item: str
    name: Text | None
    kind: Kind
    media: str | None
    text: str | None = Field(description="Its beginning, where it is long.")
    columns: list[ColumnReply]
    choice: int | None = Field(
        serialization_alias="class", description="What most people say; null for a tie."
    )
    answers: list[CurrentAnswer]
    skipped: list[str] = Field(description="Who skipped it.")
    guess: GuessReply | None
    held_out: bool


class ItemsReply(Reply):
    """A page of the items that match a filter, and how many match in all."""

    items: list[ListedItem]
    total: int
    offset: int
    likeness: bool = Field(description="Whether it is known which items look alike.")


class ItemsActReply(Reply):
    """Answers to several items that are on the disk; items that had that answer are left out."""

    choice: int = Field(serialization_alias="class")
    items: list[str]
    questions: list[int]
    duplicate: bool
    revision: int


class AgainReply(Reply):
    """How many skipped items are asked again."""

    n: int
    revision: int


class ActReply(Reply):
    """An answer or a skip that is on the disk."""

    event: int
    question: int
    item: str
    choice: int | None = Field(serialization_alias="class")
    duplicate: bool
    undone: bool = Field(description="Whether it was taken back since; only of a duplicate.")
    revision: int


class UndoReply(Reply):
    """An undo that is on the disk: which act it took back, and its question, which is open again."""

    event: int
    undone: int
    kind: Act
    question: QuestionReply
    items: list[str] = Field(description="What it was about: one item, or those of one act.")
    choice: int | None = Field(serialization_alias="class")
    duplicate: bool
    revision: int


class NewClassReply(Reply):
    """A class that is on the disk."""

    made: ClassReply = Field(serialization_alias="class")
    duplicate: bool
    revision: int


class GoalSetReply(Reply):
    """The goal that is kept now."""

    goal: GoalReply | None
    revision: int


class TrainReply(Reply):
    """Whether there was anything to train on that the newest model does not know."""

    started: bool
    revision: int


class TicketReply(Reply):
    """A link that works once."""

    path: str
    url: str


class ConfusionReply(Reply):
    """How many held-out items that people call one class the model calls another, or the same."""

    said: int
    guessed: int
    n: int


class ClassAccuracyReply(Reply):
    """How often held-out items of a class are guessed right, with a 95% interval."""

    choice: int = Field(serialization_alias="class")
    name: str
    right: int
    n: int
    low: float
    high: float


class ConfidenceReply(Reply):
    """How often guesses on held-out items are right whose confidence is in a range."""

    least: float
    most: float
    n: int
    right: int
    mean: float


class PairReply(Reply):
    """How two people agree on what both answered; kappa is null where it says nothing."""

    one: str
    other: str
    n: int
    agree: int
    kappa: float | None


class MistakesReply(Reply):
    """What the newest model gets wrong on held-out answers, and where people disagree."""

    version: int = Field(description="Of the model; 0 before there is one.")
    n: int = Field(description="Held-out answers that count.")
    confusion: list[ConfusionReply] = Field(description="Pairs that occur.")
    by_class: list[ClassAccuracyReply] = Field(description="The least accurate class first.")
    by_confidence: list[ConfidenceReply]
    doubtful: int = Field(description="Answers that the model gives less than 20%.")
    agreement: list[PairReply]
