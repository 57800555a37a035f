"""What a newcomer to `askance label` gets: accuracy on all unanswered items after 50 to 300 answers.

    ASKANCE_DATA=… python benchmarks/label_page.py photos --seed 0 --out /tmp/photos
    ASKANCE_DATA=… python benchmarks/label_page.py texts --seed 0 --out /tmp/texts

A real server with default settings is answered through its HTTP API with the true labels, by somebody
who is slower than the training. Photos are 2,000 of STL-10 (32×32), texts 3,000 of four newsgroups.
It prints a line of JSON at each number of answers.
"""

from __future__ import annotations

import argparse
import csv
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlencode
from urllib.request import Request, urlopen

import numpy as np
from PIL import Image

from askance.data.columns import read_parquet
from askance.data.load import data_folders
from askance.data.parquet import find

MARKS = (50, 100, 200, 300)
COUNTS = {"photos": 2_000, "texts": 3_000}
GROUPS = (1, 9, 13, 16)  # comp.graphics, rec.sport.baseball, sci.med, talk.politics.guns


def write_photos(folder: Path, count: int) -> tuple[list[str], dict[str, str]]:
    """STL-10's photos as PNG files; the arguments for `askance label`, and the truth."""
    import io

    table = read_parquet(find("stl10", data_folders())[0])
    rows = np.sort(np.random.default_rng(0).choice(table.num_rows, count, replace=False))
    (folder / "photos").mkdir(parents=True, exist_ok=True)
    truth = {}
    for row in rows.tolist():
        name = f"{row:05}.png"
        truth[name] = str(table["label"][row].as_py())
        Image.open(io.BytesIO(table["image"][row].as_py())).save(folder / "photos" / name)
    return ["--data", str(folder / "photos")], truth


def write_texts(folder: Path, count: int) -> tuple[list[str], dict[str, str]]:
    """Messages of four newsgroups, with their headers, as a CSV file."""
    table = read_parquet(find("20newsgroups", data_folders())[0])
    labels = np.array(table["label"].to_pylist())
    pool = np.flatnonzero(np.isin(labels, GROUPS))
    rows = np.sort(np.random.default_rng(0).choice(pool, min(count, len(pool)), replace=False))
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "texts.csv").open("w", newline="") as file:
        lines = csv.writer(file)
        lines.writerow(["key", "body"])
        for row in rows.tolist():
            lines.writerow([row, table["text"][row].as_py().replace("\x00", " ")])
    truth = {str(row): str(labels[row]) for row in rows.tolist()}
    return ["--data", str(folder / "texts.csv"), "--text", "body", "--id", "key"], truth


class Page:
    """The server's API, as the page uses it."""

    def __init__(self, address: str) -> None:
        self.address = address

    def get(self, path: str, **query: object) -> Any:
        return json.load(urlopen(f"{self.address}{path}?{urlencode(query)}"))

    def post(self, path: str, body: dict[str, object]) -> Any:
        headers = {"content-type": "application/json"}
        return json.load(urlopen(Request(self.address + path, json.dumps(body).encode(), headers)))

    @property
    def model(self) -> dict[str, Any]:
        return dict(self.get("api/state", annotator="Ada")["model"])

    def accuracy(self, truth: dict[str, str]) -> tuple[float, int]:
        """(share of right guesses, how many) of the items without an answer."""
        with urlopen(f"{self.address}api/export/predictions?format=jsonl") as lines:
            rows = [json.loads(line) for line in lines]
        return float(np.mean([row["class"] == truth[row["item"]] for row in rows])), len(rows)


def answer(page: Page, truth: dict[str, str]) -> None:
    """Answer until the last of the marks; print what the model knows at each."""
    state = page.get("api/state", annotator="Ada")
    ids = {one["name"]: one["id"] for one in state["classes"]}
    began = time.perf_counter()
    while page.model["preparing"] is not None or time.perf_counter() - began < 2:
        time.sleep(0.5)
    print(json.dumps({"prepared_after": round(time.perf_counter() - began, 1)}), flush=True)
    first: float | None = None
    for number in range(MARKS[-1]):
        while not (asked := page.get("api/questions", annotator="Ada", n=1)["questions"]):
            time.sleep(0.02)
        question = asked[0]
        said = ids[truth[question["item"]]]
        page.post(
            "api/answers",
            {"question": question["id"], "class": said, "annotator": "Ada",
             "token": f"answer-{number:06}"},
        )  # fmt: skip
        sent = time.perf_counter()
        while (model := page.model)["training"] or model["next_at"] == 0:
            time.sleep(0.02)
        if first is None and model["version"]:
            first = time.perf_counter() - sent
        if number + 1 in MARKS:
            share, left = page.accuracy(truth)
            line = {
                "answers": number + 1,
                "unanswered": left,
                "accuracy": round(100 * share, 1),
                "first_model_after": None if first is None else round(first, 2),
            }
            print(json.dumps(line), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=sorted(COUNTS))
    parser.add_argument("--count", type=int, help="items; 2,000 photos or 3,000 texts")
    parser.add_argument("--seed", default="0", help="of the project")
    parser.add_argument("--out", type=Path, required=True, help="a folder for data and project")
    options = parser.parse_args()
    write = {"photos": write_photos, "texts": write_texts}[options.what]
    arguments, truth = write(options.out, options.count or COUNTS[options.what])
    command = [
        sys.executable, "-m", "askance", "label", str(options.out / f"project-{options.seed}"),
        *arguments, "--classes", ",".join(sorted(set(truth.values()))), "--no-browser",
        "--port", "0", "--seed", options.seed,
    ]  # fmt: skip
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        answer(Page(server.stdout.readline().strip()), truth)
    finally:
        server.terminate()
        server.wait()


if __name__ == "__main__":
    main()
