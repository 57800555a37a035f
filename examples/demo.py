"""Run the `digits` experiment, with the default rule among the others, and write a report of it.

python examples/demo.py            # leaves demo/store.sqlite and demo/report.html
"""

from __future__ import annotations

import sys
from pathlib import Path

from askance import strategies
from askance.advice import reason
from askance.cli import main as askance
from askance.experiments import spec

FOLDER = Path("demo")


def main() -> int:
    compared = [rule.label for rule in spec.load("digits").strategies]
    rules = ",".join(dict.fromkeys([*compared, strategies.default().name]))
    code = askance(["run", "digits", "--strategies", rules, "--out", str(FOLDER)])
    if code == 0:
        path = FOLDER / "report.html"
        code = askance(["report", str(FOLDER), "--out", str(path)])
        print(reason())
        print(f"Open this in a browser: {path.resolve()}")
    return code


if __name__ == "__main__":
    # Worker processes import this file too: only the first process runs the demo.
    sys.exit(main())
