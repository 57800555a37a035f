"""The routes: thin, typed, and all of them through the desk. Imports FastAPI; import it late."""

import json
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal

from fastapi import FastAPI, Query, Request
from fastapi import Path as InPath
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, RedirectResponse, Response
from pydantic import BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException

from askance.errors import AskanceError, DataError, StoreError
from askance.label import exports, status
from askance.label.media import shown
from askance.label.records import checked_name
from askance.label.safety import COOKIE, App, Gate, Guard, Hosts
from askance.label.session import LabelingSession, RefusedError

STATIC = Path(__file__).parent / "static"
SUFFIXES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".ico": "image/x-icon",
    ".json": "application/json",
    ".woff2": "font/woff2",
}
CODES = {
    "bad-request": 400, "not-found": 404, "method": 405, "conflict": 409, "invalid": 422,
    "unreadable": 422, "unavailable": 503,
}  # fmt: skip
BY_STATUS = {404: "not-found", 405: "method"}
_IMAGES_KEPT = 512

Token = Annotated[str, Field(min_length=8, max_length=100)]
Number = Annotated[int, Field(ge=0, lt=2**53)]
Name = Annotated[str, Field(min_length=1, max_length=200)]


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, populate_by_name=True)


class AnswerIn(_Body):
    question: Number
    choice: Number = Field(alias="class")
    annotator: Name
    token: Token


class SkipIn(_Body):
    question: Number
    annotator: Name
    token: Token


class UndoIn(_Body):
    annotator: Name
    token: Token


class ClassIn(_Body):
    name: Name
    token: Token


class TicketIn(_Body):
    pass


class ErrorOut(BaseModel):
    """Every reply of status 400 and above."""

    error: dict[str, str]


ERRORS: dict[int | str, dict[str, Any]] = {
    code: {"model": ErrorOut} for code in (400, 401, 403, 404, 405, 409, 413, 415, 422, 503)
}


def create_app(
    session: LabelingSession, *, host: str = "127.0.0.1", port: int = 8000, gate: Gate | None = None
) -> App:
    """The guarded app of a desk, for one address."""
    api = FastAPI(
        title="askance label",
        docs_url=None,
        redoc_url=None,
        openapi_url="/api/openapi.json",
        responses=ERRORS,
    )
    _add_errors(api)
    _add_page(api)
    _add_reading(api, session)
    _add_acts(api, session)
    _add_files(api, session)
    _add_gate(api, gate, host, port)
    return Guard(api, Hosts(host, port), gate)


def _reply(code: str, message: str) -> JSONResponse:
    # Bytes that are no UTF-8 may come back in a message; they are shown, not sent.
    text = message.encode("utf-8", "backslashreplace").decode()
    return JSONResponse({"error": {"code": code, "message": text}}, CODES.get(code, 400))


def _add_errors(api: FastAPI) -> None:
    @api.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> JSONResponse:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"][1:]) or "the request"
        return _reply("invalid", f"{where}: {first['msg']}")

    @api.exception_handler(HTTPException)
    async def refused(request: Request, error: HTTPException) -> JSONResponse:
        code = BY_STATUS.get(error.status_code, "bad-request")
        reply = _reply(code, str(error.detail))
        if error.headers:
            reply.headers.update(error.headers)
        return reply

    @api.exception_handler(AskanceError)
    async def known(request: Request, error: AskanceError) -> JSONResponse:
        if isinstance(error, RefusedError):
            return _reply(error.code, str(error))
        if isinstance(error, StoreError):
            return _reply("unavailable", f"{error}. It was not kept: try again")
        return _reply("unreadable" if isinstance(error, DataError) else "invalid", str(error))


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


def _add_reading(api: FastAPI, session: LabelingSession) -> None:
    @api.get("/api/state")
    def state(annotator: Annotated[str | None, Query(max_length=200)] = None) -> Any:
        name = None if annotator is None else checked_name(annotator, "annotator")
        return _json(status.state(session, name))

    @api.get("/api/questions")
    def questions(
        annotator: Annotated[str, Query(min_length=1, max_length=200)],
        n: Annotated[int, Query(ge=1, le=48)] = 1,
    ) -> Any:
        found, more = session.questions(annotator, n)
        with session.lock:
            told = [status.question_of(session, question) for question in found]
            error = session.scheduler.error
        message = None
        if more == "waiting":
            message = "The model is being trained; the next questions come in a moment."
            if error is not None:
                message = f"Training failed and is tried again: {error}"
        elif more == "finished":
            message = "There is nothing left to ask you."
        return _json(
            {
                "questions": told,
                "waiting": more == "waiting",
                "finished": more == "finished" and not told,
                "message": message,
            }
        )

    @api.get("/api/items/{item:path}")
    def item(item: Annotated[str, InPath(max_length=4096)]) -> Any:
        return _json(status.history(session, item))


def _json(value: Any) -> Response:
    # Plain values already: no second walk over them by the framework.
    body = json.dumps(value, ensure_ascii=False, allow_nan=False).encode("utf-8", "replace")
    return Response(body, media_type="application/json")


def _add_acts(api: FastAPI, session: LabelingSession) -> None:
    @api.post("/api/answers")
    def answer(body: AnswerIn) -> Any:
        event, item, before = session.answer(body.question, body.choice, body.annotator, body.token)
        return _json(_told(session, event.id, event.question, item, event.choice, before))

    @api.post("/api/skip")
    def skip(body: SkipIn) -> Any:
        event, item, before = session.skip(body.question, body.annotator, body.token)
        return _json(_told(session, event.id, event.question, item, None, before))

    @api.post("/api/undo")
    def undo(body: UndoIn) -> Any:
        event, undone, before = session.undo(body.annotator, body.token)
        with session.lock:
            question = status.question_of(session, session.annotations.questions[undone.question])
        return _json(
            {
                "event": event.id,
                "undone": undone.id,
                "kind": undone.kind,
                "question": question,
                "class": undone.choice,
                "duplicate": before,
                "stamp": session.revision,
            }
        )

    @api.post("/api/classes")
    def add_class(body: ClassIn) -> Any:
        made, before = session.add_class(body.name, body.token)
        told = {"class": status.class_of(made), "duplicate": before, "stamp": session.revision}
        return _json(told)


def _told(
    session: LabelingSession, event: int, question: int, item: str, choice: int | None, before: bool
) -> dict[str, Any]:
    return {
        "event": event,
        "question": question,
        "item": item,
        "class": choice,
        "duplicate": before,
        "stamp": session.revision,
    }


def _add_files(api: FastAPI, session: LabelingSession) -> None:
    @lru_cache(_IMAGES_KEPT)
    def encoded(path: Path, changed: int, digest: str) -> tuple[bytes, str]:
        return shown(path, session.items.source.path, digest)

    @api.get("/media/{item:path}")
    def media(item: Annotated[str, InPath(max_length=4096)]) -> Response:
        # Only what was read has a name here; a path is never made of what was asked.
        items = session.items
        row = items.position.get(item)
        if row is None or items.kind != "image":
            raise HTTPException(404, "there is no such image")
        path = items.files[row]
        try:
            changed = path.stat().st_mtime_ns
        except OSError:
            raise HTTPException(404, "the image is gone") from None
        content, kind = encoded(path, changed, items.digests[row])
        return Response(content, media_type=kind)

    @api.get("/api/export/{what}")
    def export(
        what: Literal["answers", "predictions", "model"],
        format: Annotated[str | None, Query(max_length=20)] = None,
    ) -> Response:
        wanted = format or ("safetensors" if what == "model" else "csv")
        content = exports.export(session, what, wanted)
        name = f"{what}.{wanted}"
        return Response(
            content,
            media_type=exports.TYPES[wanted],
            headers={"content-disposition": f'attachment; filename="{name}"'},
        )


def _add_gate(api: FastAPI, gate: Gate | None, host: str, port: int) -> None:
    @api.get("/enter/{ticket}", include_in_schema=False)
    def enter(ticket: str) -> Response:
        session = None if gate is None else gate.enter(ticket)
        if session is None:
            raise HTTPException(404, "this link has been used or never was; ask for another")
        reply = RedirectResponse("/", status_code=303)
        reply.set_cookie(COOKIE, session, httponly=True, samesite="strict", path="/")
        return reply

    @api.post("/api/tickets")
    def ticket(body: TicketIn) -> Any:
        if gate is None:
            raise RefusedError("conflict", "there is no token here, and no link is needed")
        path = gate.ticket()
        return _json({"path": path, "url": f"http://{host}:{port}{path}"})
