"""SQLite files made to do harm, or to mislead: refused in words, and nothing of them is run."""

import sqlite3
from contextlib import closing

import pytest

from askance.errors import AskanceError, StoreError
from askance.experiments import export
from askance.experiments.packing import FILE as RESULTS
from askance.experiments.store import ResultStore
from askance.label.project import open_project
from askance.label.store import FILE as ANSWERS
from askance.label.store import ProjectStore
from tests.experiments import worlds as results_worlds
from tests.fuzz import watched
from tests.label.worlds import CLASSES, Person, client_of, features_file, open_features, options

ENDLESS = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n)"
ODD = [
    None,
    b"\xff\xfe",
    "text",
    "",
    -1,
    2**63 - 1,
    1e999,
    0.5,
    "../../x",
    '{"a":',
    "[" * 50_000,
    "null",
]


@pytest.fixture
def results(tmp_path):
    """A store of results, and what reads all of it."""
    with ResultStore.open(tmp_path / "results", results_worlds.spec()) as store:
        results_worlds.fill(store)

    def read():
        with ResultStore.read(tmp_path / "results") as store:
            store.spec, store.info, store.facts, store.runs, store.machines()
            store.sweep_results(), store.progress(), store.results(), store.rounds()
        export.table(tmp_path / "results")

    return tmp_path / "results" / RESULTS, read


@pytest.fixture
def project(tmp_path):
    """A labelling project with a model, and what opens it."""
    session = open_features(tmp_path, held_out=0.2)
    ann = Person(client_of(session))
    for question in ann.ask(6)["questions"]:
        ann.answer(question)
    session.scheduler.wait(1)
    session.close()

    def read():
        open_project(tmp_path / "project", features_file(tmp_path), CLASSES, options())[1].close()
        with ProjectStore.open(tmp_path / "project") as store:
            store.project(), store.encoders(), store.items(), store.versions(), store.picks()
            list(store.held_out_guesses()), store.annotations(), store.answers()

    return tmp_path / "project" / ANSWERS, read


@pytest.fixture(params=["results", "project"])
def store(request):
    return request.getfixturevalue(request.param)


def run(path, *statements):
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        for statement in statements:
            db.execute(statement)


def table_of(path):
    return "round" if path.name == RESULTS else "event"


def test_a_sound_one_is_read(store):
    store[1]()


def test_a_view_in_place_of_a_table_is_not_read(store, tmp_path):
    path, read = store
    table = table_of(path)
    run(
        path,
        f"ALTER TABLE {table} RENAME TO hidden",
        f"CREATE VIEW {table} AS {ENDLESS} SELECT hidden.* FROM hidden, n",
    )
    with pytest.raises(StoreError, match="would be run"), watched(tmp_path):
        read()


def test_a_trigger_of_somebody_elses_is_not_run(store, tmp_path):
    path, read = store
    table = table_of(path)
    run(
        path,
        f"CREATE TRIGGER sneaky AFTER INSERT ON {table} BEGIN "
        f"INSERT INTO {table} SELECT * FROM {table}; END",
    )
    with pytest.raises(StoreError, match="'sneaky', a trigger"), watched(tmp_path):
        read()


def test_a_virtual_table_is_not_read(store, tmp_path):
    path, read = store
    run(path, "CREATE VIRTUAL TABLE words USING fts5(word)")
    with pytest.raises(StoreError, match="would be run"), watched(tmp_path):
        read()


def test_our_own_trigger_changed_is_not_ours(project):
    path, read = project
    run(
        path,
        "DROP TRIGGER event_no_delete",
        "CREATE TRIGGER event_no_delete AFTER INSERT ON event BEGIN DELETE FROM pick; END",
    )
    with pytest.raises(StoreError, match="event_no_delete"):
        read()


def columns(path):
    with closing(sqlite3.connect(path)) as db:
        tables = [
            row[0] for row in db.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")
        ]
        return [
            (table, row[1])
            for table in tables
            for row in db.execute(f"PRAGMA table_info({table})")
            if db.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
        ]


def with_odd(path, table, column, value):
    """The value in every row of a column, with none of the table's own checks in the way."""
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        code = db.execute(
            "SELECT name, sql FROM sqlite_schema WHERE tbl_name = ? AND type = 'trigger'", (table,)
        ).fetchall()
        names = [row[1] for row in db.execute(f"PRAGMA table_info({table})")]
        db.execute(f"CREATE TABLE copy_of ({', '.join(names)})")
        db.execute(f"INSERT INTO copy_of SELECT * FROM {table}")
        db.execute(f"UPDATE copy_of SET {column} = ?", (value,))
        db.execute("PRAGMA legacy_alter_table = ON")
        views = db.execute("SELECT name, sql FROM sqlite_schema WHERE type = 'view'").fetchall()
        for name, _ in views:
            db.execute(f"DROP VIEW {name}")
        db.execute("PRAGMA foreign_keys = OFF")
        db.execute(f"DROP TABLE {table}")
        db.execute(f"ALTER TABLE copy_of RENAME TO {table}")
        for _, sql in [*code, *views]:
            db.execute(sql)


@pytest.mark.parametrize(
    "values", [ODD[:3], pytest.param(ODD, marks=pytest.mark.slow)], ids=["some", "all"]
)
def test_values_that_are_none_of_ours(store, tmp_path, values):
    path, read = store
    content, tried = path.read_bytes(), 0
    for table, column in columns(path):
        for value in values:
            path.write_bytes(content)
            with_odd(path, table, column, value)
            try:
                with watched(tmp_path):
                    read()
            except AskanceError as error:
                tried += len(str(error)) > 0
            except BaseException as error:
                raise AssertionError(
                    f"{table}.{column} = {str(value)[:40]!r}: {type(error).__name__}: {error}"
                ) from error
    assert tried
