"""Run the `digits` experiment and write a report of what came of it.

python examples/demo.py            # leaves demo/store.sqlite and demo/report.html
"""

from __future__ import annotations

import sys
from pathlib import Path

from askance.cli import main as askance

FOLDER = Path("demo")


def main() -> int:
    code = askance(["run", "digits", "--out", str(FOLDER)])
    if code == 0:
        path = FOLDER / "report.html"
        code = askance(["report", str(FOLDER), "--out", str(path)])
        print(f"Open this in a browser: {path.resolve()}")
    return code


if __name__ == "__main__":
    # Worker processes import this file too: only the first process runs the demo.
    sys.exit(main())
