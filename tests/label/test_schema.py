"""Schemathesis over the API: whatever comes in, nothing breaks."""

from collections import Counter

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings

from askance.label.app import create_app
from tests.label.worlds import BASE, PORT, Person, client_of, open_features


@pytest.fixture(scope="module")
def session(tmp_path_factory):
    session = open_features(tmp_path_factory.mktemp("schema"), epochs=1, batch=4)
    Person(client_of(session)).work(8, session)
    yield session
    session.close()


def explored(session, examples):
    """Every operation with `examples` drawn requests; how often each status came."""
    app = create_app(session, port=PORT)
    client = client_of(session)
    schema = schemathesis.openapi.from_dict(client.get("/api/openapi.json").json())
    schema.location = f"{BASE}/api/openapi.json"
    seen = Counter()
    operations = [operation.ok() for operation in schema.get_all_operations()]
    assert len(operations) >= 10
    for operation in operations:

        @given(case=operation.as_strategy())
        @settings(
            max_examples=examples,
            deadline=None,
            database=None,
            derandomize=True,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        def ask(case):
            reply = case.call(base_url=BASE, app=app, headers={"host": f"127.0.0.1:{PORT}"})
            assert reply.status_code < 500, (reply.status_code, reply.text, case)
            if reply.status_code >= 400:
                assert set(reply.json()["error"]) == {"code", "message"}
            seen[reply.status_code] += 1

        ask()
    return seen


def test_nothing_breaks(session):
    seen = explored(session, 15)
    assert seen[200] > 10
    assert seen[422] > 10


@pytest.mark.slow
def test_nothing_breaks_long(session):
    seen = explored(session, 1000)
    assert seen[200] > 500
