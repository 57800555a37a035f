"""Time and memory of a rule in two source trees, in turns: what a change gains on a busy machine.

    git worktree add ../before HEAD~1
    python benchmarks/turns.py ../before . --only W,copies --rules badge,kcenter

Each turn is a process of its own for either tree, as in `acquisition.py`; a ratio is the second tree's
over the first's in the same turn.
"""

from __future__ import annotations

import statistics
import tempfile
from pathlib import Path
from typing import Any

from measuring import parser, run_script
from workloads import SPECS, build, save

LIMIT = "60"


def measure(tree: Path, rule: str, folder: str, picks: int) -> dict[str, Any]:
    """One cell of `acquisition.py` with the package of that tree."""
    script = Path(__file__).with_name("acquisition.py")
    cell = run_script(script, "--child", rule, "askance", folder, picks, LIMIT, tree=tree)
    if "predicted" in cell:
        raise SystemExit(f"{rule} in {tree} would take {cell['predicted']:.0f} s, over {LIMIT}")
    return cell


def main() -> None:
    arguments = parser(__doc__)
    arguments.add_argument("trees", nargs=2, type=Path)
    arguments.add_argument("--only", default="W", help="workloads, by comma")
    arguments.add_argument("--rules", default="badge", help="rules, by comma")
    arguments.add_argument("--turns", type=int, default=7)
    options = arguments.parse_args()
    for name in options.only.split(","):
        work, labeled_logits = build(SPECS[name])
        with tempfile.TemporaryDirectory() as folder:
            save(work, labeled_logits, Path(folder))
            for rule in options.rules.split(","):
                turns = [
                    [measure(tree, rule, folder, SPECS[name].picks) for tree in options.trees]
                    for _ in range(options.turns)
                ]
                print(name, rule, summary(turns), flush=True)


def summary(turns: list[list[dict[str, Any]]]) -> str:
    """The ratio's median and range, and what either tree took."""
    ratios = [after["seconds"] / before["seconds"] for before, after in turns]
    trees = list(zip(*turns, strict=True))
    seconds = [statistics.median(cell["seconds"] for cell in tree) for tree in trees]
    memory = [statistics.median(cell["memory"] for cell in tree) / 1e6 for tree in trees]
    same = all(before.get("picks") == after.get("picks") for before, after in turns)
    return (
        f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f}, n = {len(ratios)}); "
        f"{seconds[0]:.4f} and {seconds[1]:.4f} s, {memory[0]:.0f} and {memory[1]:.0f} MB, "
        f"picks {'the same' if same else 'differ'}"
    )


if __name__ == "__main__":
    main()
