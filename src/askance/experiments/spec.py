"""An experiment's description: what decides its numbers, and nothing else.

It is written in TOML:

    name = "mine"
    dataset = "digits"               # a name, or a path to your own: "./birds", "flowers.csv"
    label = "species"                # of a table of your own: its label column
    text = "review"                  # of a table of your own: its column of texts
    features = ["age", "emb"]        # or its columns of numbers, or of lists of them; "e*": all with e
    encoder = "minilm"               # texts or images become a pretrained encoder's features
    model = "mlp"                    # or "package.module:function"; "linear" suits an encoder
    strategies = ["random", "grad", {name = "powergrad", beta = 1.0}]
    seeds = 5                        # 0 to 4; or which: "5-24"
    pool = 0.8                       # each seed sees its own random 80% of the pool; all, if left out
    precision = "float32"            # float32, tf32, bf16 or float64

    stop = ["stable-predictions", {name = "plateau", gain = 0.01}]   # where each would have stopped

    [schedule]
    batch = 20                       # of the initial set, and of every query
    rounds = 10                      # acquisitions; rounds 0 to 10 are trained and stored
    first = "random"                 # the initial set: at random, or by "maxherding" on the inputs

    [recipe]
    epochs = 30
    batch_size = 8                   # from here on, the values where a key is left out
    momentum = 0.9
    learning_rates = [1e-4, 5e-4, 1e-3, 5e-3, 1e-2]   # one value: no sweep

    [imbalance]                      # makes some classes rare in the pool, the test stays as it is
    rare = 5                         # how many; which, a draw named for the dataset says
    keep = 0.1                       # the share of their items that is kept

    [model_options]                  # arguments of the model
    [oracle]                         # kind = "truth", or another and its numbers
    kind = "truth"
"""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from askance import strategies
from askance._io.filenames import is_path
from askance.errors import SpecError, UnknownError
from askance.experiments import parts
from askance.experiments.dotted import dotted
from askance.experiments.parts import RecipeSpec, Schedule
from askance.experiments.reader import Node, Pairs, read
from askance.experiments.seeds import seeds_of
from askance.experiments.strategy_spec import StrategySpec, label_of
from askance.training import Precision

# Folders of experiments that can be named: ours, and those that packages below this one register.
_FOLDERS: list[Traversable] = [
    files("askance.experiments") / folder for folder in ("shipped", "pretrained")
]
# What says how many runs there are, and not what any of them is.
EXTENSIBLE = ("strategies", "seeds")
# What says what is reported of the runs, and decides no number of them.
REPORTED = ("name", "stop")
# What is compared, and for how many labels, where a spec with an encoder or features does not say it.
_ON_FEATURES: dict[str, Any] = {
    "model": "linear",
    "strategies": list(
        dict.fromkeys(["random", "margin", "badge", "powergrad", strategies.default().name])
    ),
    "schedule": {"batch": 20, "rounds": 9},
}


@dataclass(frozen=True)
class Spec:
    """One experiment.

    `seeds` is how many, 0 to n − 1, or which, as in "5-24". `file` is the spec's own, where it has one:
    a relative dataset path starts in its folder.
    """

    name: parts.Name
    dataset: parts.DatasetName
    model: parts.ModelName
    strategies: parts.Strategies
    schedule: Schedule
    recipe: RecipeSpec
    seeds: parts.Seeds = 5
    precision: Precision = "float32"
    label: parts.Column | None = None
    text: parts.Column | None = None
    features: parts.Columns | None = None
    encoder: parts.EncoderName | None = None
    pool: parts.Share | None = None
    imbalance: parts.Rare | None = None
    stop: parts.Stops = ()
    model_options: Pairs = ()
    oracle: parts.Oracle = (("kind", "truth"),)
    file: Path | None = field(default=None, compare=False)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], source: str = "spec", text: str = "") -> Spec:
        """The spec of a parsed TOML, or of `to_dict()`, checked. An error names `source`, and the line
        where there is the `text` of the file."""
        node = Node(source, _with_defaults(data), text, cls)
        spec: Spec = read(cls, node)
        for key in ("label", "text", "features"):
            if getattr(spec, key) is not None and spec.data_path is None:
                raise node[key].error(
                    f"{key} is for a table of your own; {spec.dataset!r} knows its columns"
                )
        for key in ("text", "encoder"):
            if getattr(spec, key) is not None and spec.features is not None:
                raise node[key].error(
                    f"features are numbers to learn from as they are: leave {key} out, or features"
                )
        return spec

    @property
    def folder(self) -> Path | None:
        """Where the spec's file lies."""
        return None if self.file is None else self.file.parent

    @property
    def data_path(self) -> Path | None:
        """Where the data lies if it is your own; None for a dataset with a name."""
        if not is_path(self.dataset):
            return None
        return (self.folder or Path()) / Path(self.dataset).expanduser()

    @property
    def hash(self) -> str:
        """A hash of everything that decides the numbers: not the name, nor the order of strategies."""
        return hash_of(self.to_dict())

    @property
    def identity(self) -> str:
        """The hash without strategies and seeds: specs with one identity are one experiment, with more
        or fewer runs."""
        return hash_of({k: v for k, v in self.to_dict().items() if k not in EXTENSIBLE})

    def runs(self) -> list[tuple[str, StrategySpec, int]]:
        """Every (label, strategy, seed), strategy by strategy."""
        seeds = seeds_of(self.seeds)
        return [(rule.label, rule, seed) for rule in self.strategies for seed in seeds]

    def override(
        self,
        strategies: Iterable[str | Mapping[str, Any] | StrategySpec] | None = None,
        seeds: int | str | None = None,
        rounds: int | None = None,
        precision: str | None = None,
    ) -> Spec:
        """The same experiment with some values replaced, checked again."""
        data = self.to_dict()
        if strategies is not None:
            data["strategies"] = [strategies] if isinstance(strategies, str) else list(strategies)
        if rounds is not None:
            data["schedule"]["rounds"] = rounds
        data |= {k: v for k, v in (("seeds", seeds), ("precision", precision)) if v is not None}
        return replace(Spec.from_dict(data, f"{self.name}, as changed"), file=self.file)

    def to_dict(self) -> dict[str, Any]:
        """As TOML or JSON holds it; `from_dict` gives the same spec back."""
        return {
            "name": self.name,
            "dataset": self.dataset,
            **{
                key: value
                for key in ("label", "text", "features", "encoder")
                if (value := _plain(getattr(self, key))) is not None
            },
            "model": self.model,
            "strategies": [rule.to_dict() for rule in self.strategies],
            "seeds": self.seeds,
            "precision": self.precision,
            **({} if self.pool is None else {"pool": self.pool}),
            "schedule": self.schedule.to_dict(),
            "recipe": vars(self.recipe) | {"learning_rates": list(self.recipe.learning_rates)},
            **({} if self.imbalance is None else {"imbalance": dict(self.imbalance)}),
            **({"stop": [rule.to_dict() for rule in self.stop]} if self.stop else {}),
            "model_options": dict(self.model_options),
            "oracle": dict(self.oracle),
        }


def _with_defaults(data: Mapping[str, Any]) -> Mapping[str, Any]:
    """The spec with what one on features need not say: a few lines do for data of your own."""
    filled = dict(data)
    if "encoder" in filled or "features" in filled:
        path = Path(str(filled.get("dataset", "")))
        filled = _ON_FEATURES | {"name": path.stem or path.name} | filled
    if filled.get("model") == "linear":  # solved, so it has no recipe
        filled.setdefault("recipe", {"epochs": 1, "learning_rates": [1.0]})
    return filled


def _plain(value: Any) -> Any:
    """As TOML and JSON hold it: a list for a tuple."""
    return list(value) if isinstance(value, tuple) else value


def hash_of(data: Mapping[str, Any]) -> str:
    """The hash of a spec as a dict: of canonical JSON, without what decides no number, in no order of
    strategies."""
    decisive = {key: value for key, value in data.items() if key not in REPORTED}
    if "strategies" in decisive:
        decisive["strategies"] = sorted(map(label_of, decisive["strategies"]))
    text = json.dumps(decisive, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return blake2b(text.encode(), digest_size=16).hexdigest()


def differences(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, str]:
    """Where two specs differ, as dicts: dotted key to "key: value → other value"."""
    left, right = (
        _flat({key: value for key, value in data.items() if key != "stop"}) for data in (one, other)
    )
    keys = [*left, *(key for key in right if key not in left)]
    return {
        key: f"{key}: {left.get(key, 'none')} → {right.get(key, 'none')}"
        for key in keys
        if left.get(key) != right.get(key)
    }


def load(name_or_path: str | os.PathLike[str]) -> Spec:
    """The shipped spec of that name, or the one in a TOML file."""
    text = os.fspath(name_or_path)
    shipped = isinstance(name_or_path, str) and not (text.endswith(".toml") or is_path(text))
    files_by_name = _shipped()
    if shipped and text not in files_by_name:
        error = UnknownError.of("experiment", text, names())
        raise SpecError(f"{error}; or give the path of a file that ends in .toml")
    try:
        file = files_by_name[text] if shipped else Path(text)
        content = file.read_bytes().decode("utf-8-sig")
    except OSError as error:
        reason = error.strerror or error
        raise SpecError(f"cannot read {text}: {reason}; expected a TOML file") from None
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise SpecError(f"{text}, line {line}: not UTF-8 text, so not TOML") from None
    content = content.replace("\r\n", "\n")
    try:
        data = tomllib.loads(content)
    except tomllib.TOMLDecodeError as error:
        raise _syntax_error(text, content, str(error)) from None
    except RecursionError:
        raise SpecError(f"{text}: lists or tables are in one another too deeply") from None
    own = None if shipped else Path(text).absolute()
    return replace(Spec.from_dict(data, text, content), file=own)


def names() -> list[str]:
    """The experiments that can be loaded by name, in alphabetical order."""
    return sorted(_shipped())


def register(folder: Traversable) -> None:
    """Let the experiments of a folder of TOML files be loaded by name."""
    if folder not in _FOLDERS:
        _FOLDERS.append(folder)


def _shipped() -> dict[str, Traversable]:
    """The files of the registered folders, by the name of the experiment."""
    return {
        path.name.removesuffix(".toml"): path
        for folder in _FOLDERS
        for path in folder.iterdir()
        if path.name.endswith(".toml")
    }


def _flat(data: Mapping[str, Any]) -> dict[str, str]:
    """Dotted keys to values as text. Strategies are sorted: their order decides nothing."""
    flat = {key: json.dumps(value) for key, value in dotted(data).items()}
    if "strategies" in flat:
        flat["strategies"] = ", ".join(sorted(map(label_of, data["strategies"])))
    return flat


def _syntax_error(name: str, content: str, message: str) -> SpecError:
    """`tomllib` ends its messages with "(at line 3, column 5)" or "(at end of document)"."""
    what, _, where = message.rpartition(" (at ")
    place = re.match(r"line (\d+), column (\d+)", where)
    line = place[1] if place else str(content.rstrip("\n").count("\n") + 1)
    column = f", column {place[2]}" if place else ""
    return SpecError(f"{name}, line {line}{column}: not valid TOML: {what}")
