"""Push, pull and sync against a server in memory: these run without Label Studio's SDK."""

from contextlib import nullcontext
from datetime import UTC, datetime
from types import SimpleNamespace

import pytest

from askance.integrations import label_studio
from askance.integrations.label_studio_server import Studio
from askance.integrations.label_studio_settings import Settings
from tests.label.worlds import CLASSES, open_features, truth

TRAINING = Settings({"features": "vector", "id": "name"}, {"batch": 4, "epochs": 1})


class MemoryStudio(Studio):
    """What `Studio` and `RemoteProject` call of a server that has one project."""

    def __init__(self):
        self.url, self.made, self.sent, self.guesses = "http://memory", [], [], []
        made, nothing = self.made, SimpleNamespace(list=lambda *_, **__: [])
        self.api = SimpleNamespace(
            projects=SimpleNamespace(
                list=lambda **_: made,
                create=self._create,
                get=lambda _: made[0],
                update=lambda _, **changes: vars(made[0]).update(changes),
                import_tasks=self._import_tasks,
                import_predictions=lambda *_, request, **__: self.guesses.extend(request),
            ),
            tasks=SimpleNamespace(list=lambda **_: self.sent),
            users=nothing,
            files=nothing,
            views=SimpleNamespace(list=lambda **_: [], create=lambda **_: None),
        )

    def explained(self):
        return nullcontext()

    def _create(self, title, label_config, **_):
        fields = {"id": 1, "created_at": datetime.now(UTC), "model_version": None}
        self.made.append(SimpleNamespace(title=title, label_config=label_config, **fields))
        return self.made[0]

    def _import_tasks(self, _, request, **__):
        for task in request:
            self.sent.append({"id": len(self.sent) + 1, "annotations": [], **task})
        return SimpleNamespace(task_count=len(request))

    def answer(self, tasks):
        """Somebody answers these tasks."""
        for task in tasks:
            choice = CLASSES[truth(int(task["data"]["item"].split()[1]))]
            result = {"from_name": "label", "value": {"choices": [choice]}}
            at = "2024-05-01T12:00:00Z"
            task["annotations"] = [
                {"id": task["id"], "completed_by": 1, "updated_at": at, "result": [result]}
            ]


@pytest.fixture
def project(tmp_path):
    open_features(tmp_path, repeat=0).close()
    return tmp_path / "project"


def test_questions_go_out_and_answers_come_back_once(project):
    studio = MemoryStudio()
    pushed = label_studio.push(project, studio, 6, settings=TRAINING)
    assert pushed.items == [task["data"]["item"] for task in studio.sent]
    assert (pushed.waiting, pushed.version, pushed.finished) == (6, 0, False)
    assert label_studio.push(project, studio, 6).items == []
    studio.answer(studio.sent[:5])
    pulled = label_studio.pull(project, studio)
    assert [answer.item for answer in pulled.answers.applied] == pushed.items[:5]
    pulled, pushed = label_studio.sync(project, studio, 8)
    assert (len(pulled.answers.unchanged), pulled.answers.applied) == (5, [])
    assert (pushed.version, pushed.waiting, len(pushed.items)) == (1, 8, 7)
    assert pushed.guesses == len(studio.guesses) == (studio.sent[5]["data"]["reason"] == "first")
    assert studio.made[0].model_version == "askance 1"
    studio.sent[0]["annotations"] = []
    assert label_studio.pull(project, studio).withdrawn == 1
