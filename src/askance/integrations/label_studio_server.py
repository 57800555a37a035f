"""A Label Studio server through its SDK: one project of it, its tasks, and what goes wrong in words.

The token is in no message and no repr.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

from askance.errors import AskanceError, ExtraError, InputError, UnknownError
from askance.integrations.label_studio_forms import (
    Form,
    Task,
    form_of,
    is_empty,
    setup,
    with_choices,
)
from askance.label.source import Kind

TAB = "askance"
_SECONDS = 60
_PAGE = 100
_BATCH = 50  # tasks in a request
_UPLOADS = 20  # images in a request; the server takes 100
# What is sent twice would be there twice.
_ONCE = {"max_retries": 0}
# Columns of the data manager that would push ours out of sight.
_HIDDEN = (
    "inner_id", "completed_at", "annotations_results", "annotations_ids", "predictions_score",
    "predictions_model_versions", "predictions_results", "file_upload", "storage_filename",
    "created_at", "updated_at", "updated_by", "avg_lead_time", "draft_exists", "data.askance",
)  # fmt: skip


class Studio:
    """A server that has answered to this token; close it, or use it in a `with`."""

    def __init__(self, url: str, token: str) -> None:
        try:
            import httpx
            from label_studio_sdk import LabelStudio
        except ImportError as error:
            raise ExtraError.of("label-studio-sdk", "label-studio") from error
        self.url = _checked_url(url)
        if not token or not token.isascii() or not token.isprintable() or " " in token:
            raise InputError(
                "a Label Studio token is ASCII without spaces; copy it from Account & Settings, "
                "and give it as --token or LABEL_STUDIO_API_KEY"
            )
        self._connection = httpx.Client(timeout=_SECONDS, follow_redirects=True)
        self.api: Any = LabelStudio(
            base_url=self.url, api_key=token, timeout=_SECONDS, httpx_client=self._connection
        )
        try:
            self._check()
        except BaseException:
            self.close()
            raise

    def _check(self) -> None:
        try:
            with self.explained():
                me = self.api.users.whoami()
        except TypeError:  # JSON of another shape
            me = None
        if not getattr(me, "email", None):
            raise InputError(f"{self.url} answers, but is no Label Studio; check --url")

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def __enter__(self) -> Studio:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Studio({self.url!r})"

    def project(self, which: str) -> Any | None:
        """The project of this id or title; None where no title is the same."""
        with self.explained():
            there = {each.id: each.title for each in self.api.projects.list(page_size=_PAGE)}
        if which.isdecimal():
            if int(which) not in there:
                titles = ", ".join(f"{number} {title!r}" for number, title in there.items())
                raise InputError(
                    f"there is no project {which} in Label Studio at {self.url}; "
                    f"it has {titles or 'none'}"
                )
            ids = [int(which)]
        else:
            ids = [number for number, title in there.items() if title == which]
        if len(ids) > 1:
            raise InputError(
                f"Label Studio at {self.url} has {len(ids)} projects called {which!r}; name one by "
                f"its id: --project {' or '.join(map(str, sorted(ids)))}"
            )
        if not ids:
            return None
        with self.explained():
            return self.api.projects.get(ids[0])

    def remote_project(
        self, which: str, kind: Kind, classes: Sequence[str], make: bool
    ) -> RemoteProject:
        """The project of this id or title; made where there is none, if it may be."""
        project = self.project(which)
        if project is None:
            if not make:
                with self.explained():
                    titles = [each.title for each in self.api.projects.list(page_size=_PAGE)]
                raise UnknownError.of("Label Studio project", which, titles)
            with self.explained():
                project = self.api.projects.create(
                    title=which,
                    label_config=setup(kind, classes),
                    sampling="Sequential sampling",
                    show_collab_predictions=True,
                    enable_empty_annotation=False,
                    request_options=_ONCE,
                )
                project = self.api.projects.get(project.id)
        return RemoteProject(self, project, self._form(project, kind, classes, make))

    def _form(self, project: Any, kind: Kind, classes: Sequence[str], make: bool) -> Form:
        """The project's choice of a class; with `make` it gets the classes it lacks."""
        xml = project.label_config or ""
        wanted = xml
        if make and is_empty(xml):
            wanted = setup(kind, classes)
        form = form_of(wanted, kind)
        if form is None:
            field = "image" if kind == "image" else "text"
            raise InputError(
                f"project {project.id} {project.title!r} of Label Studio asks for something else: "
                f'expected <Choices toName="{field}"> for value="${field}"; name another --project'
            )
        existing = {name.casefold() for name in form.choices}
        missing = [name for name in classes if name.casefold() not in existing]
        if make and missing:
            wanted = with_choices(wanted, form, missing)
        if wanted != xml:
            with self.explained():
                self.api.projects.update(project.id, label_config=wanted)
            form = form_of(wanted, kind)
            assert form is not None
        return form

    @contextmanager
    def explained(self) -> Iterator[None]:
        """What the SDK raises, as an error that says what to do."""
        import httpx
        from label_studio_sdk.core.api_error import ApiError

        try:
            yield
        except ApiError as error:
            raise InputError(self.error_text(error.status_code, error.body)) from None
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            reason = str(error) or type(error).__name__
            raise InputError(
                f"Label Studio cannot be reached at {self.url}: {reason}; is it running, and is "
                f"--url right?"
            ) from None

    def error_text(self, status: int | None, body: Any) -> str:
        detail = ""
        if isinstance(body, Mapping):
            errors = body.get("validation_errors")
            detail = f": {errors or body.get('detail') or ''}".rstrip(": ")[:500]
        if status in (401, 403):
            return (
                f"Label Studio at {self.url} does not accept the token{detail}; copy one from its "
                f"Account & Settings, and give it as --token or LABEL_STUDIO_API_KEY"
            )
        if status is None or status < 400 or (status == 404 and not detail):
            return f"no Label Studio answers at {self.url} (status {status}); check --url"
        return f"Label Studio at {self.url} refused a request (status {status}){detail}"


class RemoteProject:
    """One project of a server, and its choice of a class."""

    def __init__(self, studio: Studio, project: Any, form: Form) -> None:
        self.studio, self.form = studio, form
        self.id, self.title = int(project.id), str(project.title)
        # Ids alone would mean another annotation on another server.
        self.mark = f"label-studio {project.created_at:%Y%m%dT%H%M%S.%f} {self.id} "
        self._version = project.model_version

    @property
    def url(self) -> str:
        """The address of its page."""
        return f"{self.studio.url}/projects/{self.id}"

    def tasks(self) -> list[Task]:
        """Everything in the project, in the order of ids."""
        api = self.studio.api
        with self.studio.explained():
            tasks = api.tasks.list(project=self.id, fields="all", page_size=_PAGE)
            rows = [plain(task) for task in tasks]
        return [
            Task(
                row["id"],
                row.get("data") or {},
                row.get("annotations") or (),
                frozenset(each["model_version"] for each in row.get("predictions") or ()),
            )
            for row in rows
        ]

    def people(self) -> dict[int, str]:
        """The e-mail address of everybody who may have answered."""
        with self.studio.explained():
            return {each.id: each.email for each in self.studio.api.users.list()}

    def send(self, tasks: Sequence[Mapping[str, Any]]) -> None:
        """Add tasks, in this order."""
        for start in range(0, len(tasks), _BATCH):
            batch = tasks[start : start + _BATCH]
            with self.studio.explained():
                done = self.studio.api.projects.import_tasks(
                    self.id, request=list(batch), request_options=_ONCE
                )
            if getattr(done, "import_", None) is None and done.task_count != len(batch):
                raise AskanceError(
                    f"Label Studio took {done.task_count} of {len(batch)} tasks; push again to send "
                    f"what is missing"
                )

    def guess(self, predictions: Sequence[Mapping[str, Any]], version: str) -> None:
        """Add pre-annotations to tasks that are there, and show those of this model."""
        with self.studio.explained():
            if predictions:
                self.studio.api.projects.import_predictions(
                    self.id, request=list(predictions), request_options=_ONCE
                )
            if self._version != version:
                self.studio.api.projects.update(self.id, model_version=version)
                self._version = version

    def uploaded(self, images: Sequence[tuple[bytes, str]]) -> list[str]:
        """Where the server shows each image (its content and media type), sent where it has it not."""
        names = [
            f"{hashlib.blake2b(content, digest_size=16).hexdigest()}.{kind.partition('/')[2]}"
            for content, kind in images
        ]
        there = self._uploads() if images else {}
        missing = {
            name: (name, content, kind)
            for name, (content, kind) in zip(names, images, strict=True)
            if name not in there
        }
        parts = list(missing.values())
        for start in range(0, len(parts), _UPLOADS):
            self._upload({part[0]: part for part in parts[start : start + _UPLOADS]})
        there = self._uploads() if missing else there
        return [there[name] for name in names]

    def _uploads(self) -> dict[str, str]:
        """Our name of every uploaded file → its address; the server puts letters of its own before."""
        with self.studio.explained():
            files = self.studio.api.files.list(self.id, all_=True)
        base = urlsplit(self.studio.url).path  # of a server that is not at its host's root
        return {each.file.rpartition("-")[2]: f"{base}/data/{each.file}" for each in files}

    def _upload(self, files: Mapping[str, tuple[str, bytes, str]]) -> None:
        # The SDK has no method for this request; its own client carries the token.
        with self.studio.explained():
            reply = self.studio.api._client_wrapper.httpx_client.request(
                f"api/projects/{self.id}/import",
                method="POST",
                params={"commit_to_project": False},
                files=dict(files),
                request_options=_ONCE,
            )
        if reply.status_code >= 300:
            try:
                body = reply.json()
            except ValueError:
                body = None
            raise InputError(self.studio.error_text(reply.status_code, body))

    def show_in_order(self) -> None:
        """A tab of the data manager that shows the highest priority first."""
        column, score = "tasks:data.priority", "tasks:data.score"
        hidden = [f"tasks:{name}" for name in _HIDDEN]
        api = self.studio.api
        with self.studio.explained():
            views = api.views.list(project=self.id)
            if any(plain(view.data).get("title") == TAB for view in views):
                return
            data = {
                "title": TAB,
                "ordering": [f"-{column}"],
                "columnsDisplayType": {column: "Number", score: "Number"},
                "hiddenColumns": {"explore": hidden, "labeling": hidden},
            }
            api.views.create(project=self.id, data=data, request_options=_ONCE)


def plain(value: Any) -> Any:
    """What the SDK returns, without its classes: which fields have one differs between its versions."""
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Mapping) or hasattr(value, "model_fields_set"):
        return {name: plain(each) for name, each in dict(value).items()}
    return [plain(each) for each in value] if isinstance(value, list) else value


def _checked_url(url: str) -> str:
    try:
        parts = urlsplit(url)
        sound = parts.scheme in ("http", "https") and parts.hostname and "@" not in parts.netloc
    except ValueError:
        sound = False
    if not sound:
        shown = "one with a name or password in it" if "@" in url else repr(url)
        raise InputError(
            f"--url must be the address of a Label Studio, like http://127.0.0.1:8080, got {shown}"
        )
    return url.rstrip("/")
