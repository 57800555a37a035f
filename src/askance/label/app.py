"""The routes: thin, typed, and all of them through the session. Import it late (FastAPI)."""

from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

from anyio import CapacityLimiter, to_thread
from fastapi import FastAPI, Query, Request
from fastapi import Path as InPath
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, RedirectResponse, Response
from pydantic import BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException

from askance.errors import AskanceError, DataError, StoreError
from askance.label import exports, replies, status
from askance.label.browse import ItemFilter, Order, Show
from askance.label.goal import Goal
from askance.label.media import Size
from askance.label.records import ClassEdit, checked_name
from askance.label.safety import AllowedHosts, App, SafetyMiddleware, TokenAuth
from askance.label.session import ActResult, LabelingSession, QuestionBatch, RefusedError

STATIC = Path(__file__).parent / "static"
SUFFIXES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
}
CODES = {
    "bad-request": 400, "not-found": 404, "method": 405, "conflict": 409, "invalid": 422,
    "unreadable": 422, "unavailable": 503,
}  # fmt: skip
BY_STATUS = {404: "not-found", 405: "method"}
IMAGES = ("image/png", "image/jpeg")
_DECODERS = 2  # images that are made at a time
_EXPORTERS = 4  # exports at a time, which may wait for a training

Token = Annotated[str, Field(min_length=8, max_length=100)]
Number = Annotated[int, Field(ge=0, lt=2**53)]
Name = Annotated[str, Field(min_length=1, max_length=200)]
ItemId = Annotated[str, Field(min_length=1, max_length=4096)]
MOST_AT_ONCE = 500  # items of one act
MOST_LISTED = 200  # items of a page of the list


class _Request(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, populate_by_name=True)


class AnswerRequest(_Request):
    """The class that a question is answered with."""

    question: Number
    choice: Number = Field(alias="class")
    annotator: Name
    token: Token


class SkipRequest(_Request):
    """A question that is left without an answer."""

    question: Number
    annotator: Name
    token: Token


class ItemsRequest(_Request):
    """The class of items that were not asked about, or are answered otherwise than before: one act."""

    items: Annotated[list[ItemId], Field(min_length=1, max_length=MOST_AT_ONCE)]
    choice: Number = Field(alias="class")
    annotator: Name
    token: Token


class AgainRequest(_Request):
    """Asks this person's skipped items again."""

    annotator: Name
    token: Token


class UndoRequest(_Request):
    """Takes back this person's latest act."""

    annotator: Name
    token: Token


class ClassRequest(_Request):
    """A class to add."""

    name: Name
    token: Token


class GoalRequest(_Request):
    """When to stop: at so many answers, at an accuracy between 0 and 1; null: no goal."""

    kind: Literal["answers", "accuracy"] | None
    value: Annotated[float, Field(ge=0, le=2**53)] | None = None


class TrainRequest(_Request):
    """Asks for a training on the answers so far."""


class ClassEditRequest(_Request):
    """How a class is called and shown from now on: all of it, not what differs."""

    name: Name
    description: Annotated[str, Field(max_length=1000)] = ""
    example: ItemId | None = None
    key: Annotated[str | None, Field(min_length=1, max_length=1)] = None
    place: Annotated[float, Field(strict=False)]
    deleted: bool = False
    annotator: Name
    token: Token


class TicketRequest(_Request):
    """Asks for a link that works once."""


ERRORS: dict[int | str, dict[str, Any]] = {
    code: {"model": replies.ErrorReply}
    for code in (400, 401, 403, 404, 405, 409, 413, 415, 422, 503)
}


def create_app(
    session: LabelingSession,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    auth: TokenAuth | None = None,
) -> App:
    """The guarded app of a session, for one address."""
    api = FastAPI(
        title="askance label",
        docs_url=None,
        redoc_url=None,
        openapi_url="/api/openapi.json",
        responses=ERRORS,
    )
    _add_errors(api)
    _add_page(api)
    # A few at a time, so that images never take all threads from the answers.
    decoders = CapacityLimiter(_DECODERS)
    _add_reading(api, session, decoders)
    _add_acts(api, session)
    _add_class_edits(api, session)
    _add_files(api, session, decoders)
    _add_tickets(api, auth)
    return SafetyMiddleware(api, AllowedHosts(host, port), auth)


def _refusal(code: str, message: str) -> JSONResponse:
    # Bytes that are no UTF-8 may come back in a message; they are shown, not sent.
    text = message.encode("utf-8", "backslashreplace").decode()
    reply = replies.ErrorReply(error=replies.ErrorDetail(code=code, message=text))
    return JSONResponse(reply.model_dump(), CODES.get(code, 400))


def _add_errors(api: FastAPI) -> None:
    @api.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> JSONResponse:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"][1:]) or "the request"
        return _refusal("invalid", f"{where}: {first['msg']}")

    @api.exception_handler(HTTPException)
    async def refused(request: Request, error: HTTPException) -> JSONResponse:
        code = BY_STATUS.get(error.status_code, "bad-request")
        reply = _refusal(code, str(error.detail))
        if error.headers:
            reply.headers.update(error.headers)
        return reply

    @api.exception_handler(AskanceError)
    async def expected(request: Request, error: AskanceError) -> JSONResponse:
        if isinstance(error, RefusedError):
            return _refusal(error.code, str(error))
        if isinstance(error, StoreError):
            return _refusal("unavailable", f"{error}. It was not kept: try again")
        return _refusal("unreadable" if isinstance(error, DataError) else "invalid", str(error))


def _add_page(api: FastAPI) -> None:
    def page(name: str) -> Response:
        path = STATIC / name
        kind = SUFFIXES.get(path.suffix)
        # A plain name of a file that lies there: no folder, no link, no hidden file.
        if "/" in name or "\\" in name or "\x00" in name or name.startswith(".") or kind is None:
            raise HTTPException(404, f"there is no file {name[:100]!r}")
        if not path.is_file():
            raise HTTPException(404, f"there is no file {name[:100]!r}")
        return Response(path.read_bytes(), media_type=kind, headers={"cache-control": "no-cache"})

    @api.get("/", include_in_schema=False)
    def index() -> Response:
        return page("index.html")

    @api.get("/static/{name}", include_in_schema=False)
    def static(name: str) -> Response:
        return page(name)


def _add_reading(api: FastAPI, session: LabelingSession, decoders: CapacityLimiter) -> None:
    @api.get("/api/state")
    def state(annotator: Annotated[str | None, Query(max_length=200)] = None) -> replies.StateReply:
        name = None if annotator is None else checked_name(annotator, "annotator")
        return status.state(session, name)

    @api.get("/api/questions")
    async def questions(
        annotator: Annotated[str, Query(min_length=1, max_length=200)],
        n: Annotated[int, Query(ge=1, le=48)] = 1,
    ) -> replies.QuestionsReply:
        while True:
            batch = await to_thread.run_sync(session.next_questions, annotator, n)
            if isinstance(batch, QuestionBatch):
                return await to_thread.run_sync(status.questions_reply, session, batch)
            await to_thread.run_sync(session.look_at, batch, limiter=decoders)

    @api.get("/api/items")
    def items(
        show: Show = "all",
        choice: Annotated[int | None, Query(alias="class", ge=0, lt=2**53)] = None,
        annotator: Annotated[str | None, Query(max_length=200)] = None,
        guess: Annotated[int | None, Query(ge=0, lt=2**53)] = None,
        least: Annotated[float, Query(ge=0, le=1)] = 0.0,
        most: Annotated[float, Query(ge=0, le=1)] = 1.0,
        search: Annotated[str, Query(max_length=200)] = "",
        order: Order = "data",
        like: Annotated[str | None, Query(max_length=4096)] = None,
        offset: Annotated[int, Query(ge=0, lt=2**53)] = 0,
        n: Annotated[int, Query(ge=1, le=MOST_LISTED)] = 48,
    ) -> replies.ItemsReply:
        wanted = ItemFilter(show, choice, annotator, guess, least, most, search, order, like)
        return status.items_reply(session, wanted, offset, n)

    @api.get("/api/mistakes")
    def mistakes() -> replies.MistakesReply:
        return status.mistakes_reply(session)

    @api.get("/api/items/{item:path}")
    def item(item: Annotated[str, InPath(max_length=4096)]) -> replies.ItemReply:
        return status.history(session, item)


def _add_acts(api: FastAPI, session: LabelingSession) -> None:
    @api.post("/api/answers")
    def answer(body: AnswerRequest) -> replies.ActReply:
        return reply(session.answer(body.question, body.choice, body.annotator, body.token))

    @api.post("/api/skip")
    def skip(body: SkipRequest) -> replies.ActReply:
        return reply(session.skip(body.question, body.annotator, body.token))

    def reply(act: ActResult) -> replies.ActReply:
        return replies.ActReply.of(
            act.event,
            event=act.event.id,
            item=act.item,
            undone=act.undone,
            **common(act.duplicate),
        )

    def common(duplicate: bool) -> dict[str, Any]:
        return {"duplicate": duplicate, "revision": session.revision}

    @api.post("/api/changes")
    def change(body: ItemsRequest) -> replies.ItemsActReply:
        act = session.answer_items(body.items, body.choice, body.annotator, body.token)
        with session.lock:
            questions = session.annotations.questions
            changed = [questions[event.question].item for event in act.events]
            numbers = [event.question for event in act.events]
        return replies.ItemsActReply(
            choice=body.choice, items=changed, questions=numbers, **common(act.duplicate)
        )

    @api.post("/api/again")
    def ask_again(body: AgainRequest) -> replies.AgainReply:
        events = session.ask_skipped_again(body.annotator, body.token)
        return replies.AgainReply(n=len(events), revision=session.revision)

    @api.post("/api/undo")
    def undo(body: UndoRequest) -> replies.UndoReply:
        act = session.undo(body.annotator, body.token)
        first = act.undone[0]
        with session.lock:
            asked = [session.annotations.questions[event.question] for event in act.undone]
            question = status.question_reply(session, asked[0])
        return replies.UndoReply.of(
            first,
            event=act.event.id,
            undone=first.id,
            question=question,
            items=[each.item for each in asked],
            **common(act.duplicate),
        )

    @api.post("/api/train")
    def train(body: TrainRequest) -> replies.TrainReply:
        return replies.TrainReply(started=session.scheduler.train_now(), revision=session.revision)

    @api.post("/api/goal")
    def set_goal(body: GoalRequest) -> replies.GoalSetReply:
        session.set_goal(None if body.kind is None else Goal(body.kind, body.value or 0.0))
        with session.lock:
            return replies.GoalSetReply(
                goal=status.goal_reply(session, None), revision=session.revision
            )

    @api.post("/api/classes")
    def add_class(body: ClassRequest) -> replies.NewClassReply:
        made, duplicate = session.add_class(body.name, body.token)
        with session.lock:
            there = [*status.classes_reply(session), *status.deleted_classes(session)]
            reply = next(each for each in there if each.id == made.id)
        return replies.NewClassReply(made=reply, **common(duplicate))


def _add_class_edits(api: FastAPI, session: LabelingSession) -> None:
    @api.post("/api/classes/{number}")
    def edit_class(
        number: Annotated[int, InPath(ge=0, lt=2**53)], body: ClassEditRequest
    ) -> replies.ClassesReply:
        edit = ClassEdit(0, number, **body.model_dump() | {"deleted": int(body.deleted)})
        duplicate = session.edit_class(edit)
        with session.lock:
            return replies.ClassesReply(
                classes=status.classes_reply(session),
                deleted_classes=status.deleted_classes(session),
                duplicate=duplicate,
                revision=session.revision,
            )


def _content(*kinds: str) -> dict[str, Any]:
    """The content of a reply that is a file of one of these media types."""
    return {kind: {"schema": {"type": "string", "format": "binary"}} for kind in kinds}


def _add_files(api: FastAPI, session: LabelingSession, decoders: CapacityLimiter) -> None:
    exporters = CapacityLimiter(_EXPORTERS)

    @api.get(
        "/media/{item:path}",
        response_class=Response,
        responses={200: {"description": "The image, encoded anew.", "content": _content(*IMAGES)}},
    )
    async def media(
        item: Annotated[str, InPath(max_length=4096)],
        size: Size = "page",
    ) -> Response:
        return await to_thread.run_sync(shown, item, size, limiter=decoders)

    def shown(item: str, size: Size) -> Response:
        # Only what was read has a name here; a path is never made of what was asked.
        items = session.items
        row = items.position.get(item)
        if row is None or items.kind != "image":
            raise HTTPException(404, "there is no such image")
        image = session.images.get(items, row, size)
        return Response(image.content, media_type=image.kind)

    @api.get(
        "/api/export/{what}",
        response_class=Response,
        responses={
            200: {"description": "A file.", "content": _content(*exports.TYPES.values())},
        },
    )
    async def export(
        what: Literal["answers", "predictions", "model"],
        format: Annotated[str | None, Query(max_length=20)] = None,
        fresh: Annotated[
            bool, Query(description="Train on the last answers first: model and predictions.")
        ] = True,
        spreadsheet: Annotated[
            bool, Query(description="Whether texts like =1+1 are quoted, for spreadsheets (csv).")
        ] = False,
    ) -> Response:
        wanted = format or ("safetensors" if what == "model" else "csv")
        # In threads of their own: those that wait for a training take none from the answers.
        made = partial(exports.export, fresh=fresh, spreadsheet=spreadsheet)
        content = await to_thread.run_sync(made, session, what, wanted, limiter=exporters)
        name = f"{what}.{wanted}"
        return Response(
            content,
            media_type=exports.TYPES[wanted],
            headers={"content-disposition": f'attachment; filename="{name}"'},
        )


def _add_tickets(api: FastAPI, auth: TokenAuth | None) -> None:
    @api.get("/enter/{ticket}", include_in_schema=False)
    def enter(ticket: str) -> Response:
        session = None if auth is None else auth.enter(ticket)
        if auth is None or session is None:
            raise HTTPException(404, "this link has been used or never was; ask for another")
        reply = RedirectResponse("/", status_code=303)
        reply.set_cookie(auth.cookie, session, httponly=True, samesite="strict", path="/")
        return reply

    @api.post("/api/tickets")
    def ticket(body: TicketRequest, request: Request) -> replies.TicketReply:
        if auth is None:
            raise RefusedError("conflict", "there is no token here, and no link is needed")
        path = auth.ticket()
        return replies.TicketReply(path=path, url=f"http://{request.headers['host']}{path}")
