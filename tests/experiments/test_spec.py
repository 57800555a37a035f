"""A spec is what its file says, or an error that says where it is wrong."""

import copy
import json
import re

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from askance import strategies
from askance._io.filenames import is_safe
from askance.errors import SpecError
from askance.experiments import spec as specs
from askance.experiments.spec import Spec
from askance.experiments.strategy_spec import StrategySpec
from tests.experiments.worlds import TOML, spec

FIVE = {"random", "entropy", "badge", "kcenter", "grad"}


def differences(one, other):
    return list(specs.differences(one.to_dict(), other.to_dict()).values())


def written(tmp_path, text):
    path = tmp_path / "mine.toml"
    path.write_text(text)
    return path


def test_digits_ships():
    digits = specs.load("digits")
    assert (digits.dataset, digits.model, digits.precision) == ("digits", "mlp", "float32")
    assert (digits.schedule.batch, digits.schedule.rounds, digits.recipe.epochs) == (20, 10, 30)
    assert {rule.label for rule in digits.strategies} == FIVE | {"powergrad"}
    assert len(digits.runs()) == 30


def test_the_experiments_of_a_registered_folder_have_names(tmp_path, monkeypatch):
    monkeypatch.setattr(specs, "_FOLDERS", [*specs._FOLDERS])
    written(tmp_path, TOML)
    (tmp_path / "notes.txt").write_text("no experiment")
    before = specs.names()
    specs.register(tmp_path)
    specs.register(tmp_path)
    assert specs.names() == sorted([*before, "mine"])
    assert specs.load("mine") == spec()
    assert specs.load("mine").folder is None


def test_a_file_says_what_its_dict_says(tmp_path):
    assert specs.load(written(tmp_path, TOML)) == spec()
    assert specs.load(str(written(tmp_path, TOML.replace("\n", "\r\n")))) == spec()
    (tmp_path / "bom.toml").write_bytes(b"\xef\xbb\xbf" + TOML.encode())
    assert specs.load(tmp_path / "bom.toml") == spec()


def test_own_data_lies_beside_the_file(tmp_path):
    text = TOML.replace('"digits"', '"birds.csv"\nlabel = "species"')
    mine = specs.load(written(tmp_path, text))
    assert (mine.data_path, mine.label) == (tmp_path / "birds.csv", "species")
    assert mine.override(seeds=1).data_path == tmp_path / "birds.csv"
    assert spec().data_path is None
    # Where the file lies decides no number.
    assert spec(dataset="birds.csv", label="species").hash == mine.hash


# Each: what is replaced in TOML by what, the line, and the words of the error.
WRONG = {
    "unknown key": ("seeds = 2", "sedes = 2", 5, "unknown key 'sedes'; did you mean 'seeds'"),
    "in a table": ("batch = 4", "bach = 4", 8, "unknown key 'schedule.bach'; did you mean 'batch'"),
    "quoted": ("batch = 4", '"bat ch" = 4', 8, "did you mean 'batch'"),
    "dotted": ("[recipe]\nepochs", "[recipe]\nother.epoch = 3\nepochs", 12, "'recipe.other'"),
    "of another table": ("seeds = 2", "epochs = 2", 5, r"it belongs in \[recipe\]"),
    "of the top": ("epochs = 1", "epochs = 1\nseeds = 3", 13, "it belongs at the top of the file"),
    "near another table's": ("seeds = 2", "epoch = 2", 5, r"did you mean 'epochs', in \[recipe\]"),
    "near the top's": (
        "epochs = 1", "epochs = 1\nsedes = 3", 13, "did you mean 'seeds', at the top of the file",
    ),
    "like no other": ("seeds = 2", "zzz = 2", 5, "known: name, dataset, model"),
    "inline table": (
        '"random", "grad"]', '"random",\n {name = "powergrad", bta = 1}]', 5, "did you mean 'beta'",
    ),
    "nested option": (
        '"grad"]', '{name = "powergrad", grad.bais = true}]', 4, "did you mean 'bias'",
    ),
    "first": ("rounds = 3", 'rounds = 3\nfirst = "badge"', 10, "badge has not what it needs .features"),
    "batch": ("batch = 4", "batch = 0", 8, "schedule.batch must be a whole number ≥ 1, got 0"),
    "rounds": ("rounds = 3", "rounds = -1", 9, "a whole number ≥ 0, got -1"),
    "rounds type": ("rounds = 3", "rounds = 3.0", 9, r"a whole number ≥ 0, got 3\.0"),
    "rounds bool": ("rounds = 3", "rounds = true", 9, "got True"),
    "rounds huge": ("rounds = 3", "rounds = 99999999999999999999", 9, "a whole number"),
    "epochs": ("epochs = 1", "epochs = 0", 12, "recipe.epochs must be a whole number ≥ 1"),
    "rate zero": ("[0.01, 0.1]", "[0.01, 0]", 13, "learning_rates.1 must be a number > 0, got 0"),
    "rate nan": ("[0.01, 0.1]", "[nan]", 13, "learning_rates.0 must be a number > 0, got nan"),
    "rate inf": ("[0.01, 0.1]", "[inf]", 13, "learning_rates.0 must be a number > 0, got inf"),
    "rates no list": ("[0.01, 0.1]", "0.01", 13, "list of different numbers > 0, got 0.01"),
    "rates none": ("[0.01, 0.1]", "[]", 13, "different numbers > 0"),
    "rates twice": ("[0.01, 0.1]", "[1, 1.0]", 13, "different numbers > 0"),
    "momentum": ("epochs = 1", "epochs = 1\nmomentum = 1", 13, r"a number in \[0, 1\), got 1"),
    "batch size": ("epochs = 1", "epochs = 1\nbatch_size = 0", 13, "recipe.batch_size must be"),
    "seeds": ("seeds = 2", "seeds = 0", 5, "seeds must be a whole number ≥ 1, or which seeds .*got 0"),
    "seeds range": ("seeds = 2", 'seeds = "9-5"', 5, "'9-5' falls; write 5-9"),
    "seeds list": ("seeds = 2", "seeds = [0, 1]", 5, "seeds must be a whole number"),
    "precision": ("seeds = 2", 'precision = "fp16"', 5, "one of float32, tf32, bf16, float64"),
    "no rules": ('["random", "grad"]', "[]", 4, "one or more strategies"),
    "rule twice": ('"random", "grad"]', '"grad",\n"grad"]', 5, "'grad' is there twice"),
    "rule twice over": ('"grad"]', '"powergrad",\n{name="powergrad", beta=2}]', 5, "there twice"),
    "rule": ('"grad"]', '\n"gard"]', 5, "unknown strategy 'gard': did you mean 'grad'"),
    "rule type": ('"grad"]', "\n3]", 5, "a strategy's name, or a table such as"),
    "rule nameless": ('"grad"]', "\n{beta = 1}]", 5, "'strategies.1.name' is missing"),
    "option type": ('"grad"]', '\n{name = "grad", bias = 1}]', 5, "must be true or false, got 1"),
    "option value": ('"grad"]', '\n{name = "powergrad", beta = -1}]', 5, "beta must be a finite"),
    "options at odds": (
        '"grad"]', '\n{name = "grad", bias = false, parameters = "all"}]', 5, "bias=False is an option",
    ),
    "option no list": ('"grad"]', '\n{name = "grad", parameters = 5}]', 5, "not iterable"),
    "option table": ('"grad"]', '\n{name = "grad", bias = {a = 1}}]', 5, "must be true or false"),
    "name": ('"small"', '"a/b"', 1, "a name of letters, digits"),
    **{
        f"name {said}": ('"small"', f'"{given}"', 1, "that can be a folder's: it begins with")
        for said, given in {
            "upwards": "../../x", "of dots": "..", "hidden": ".x", "like an option": "-x",
            "ending in a dot": "x.", "of a device": "NUL.txt", "too long": "x" * 101,
        }.items()
    },
    "name type": ('"small"', "3", 1, "name must be a name of letters"),
    "dataset": ('"digits"', '"digit"', 2, "unknown dataset 'digit': did you mean 'digits'"),
    "label": ("seeds = 2", 'label = "y"', 5, "label is for a table of your own"),
    "model": ('"mlp"', '"lennet"', 3, "unknown model 'lennet': did you mean 'lenet'"),
    "model spelt": ('"mlp"', '"a.b:c:d"', 3, "'package.module:function'"),
    "oracle": ("[recipe]", "[oracle]\nrate = 0.1\n[recipe]", 11, "'oracle.kind' is missing"),
    "oracle type": ("[recipe]", '[oracle]\nkind="noisy"\nrate="x"\n[recipe]', 13, "must be a number"),
    "oracle kind": ("[recipe]", '[oracle]\nkind="nosy"\n[recipe]', 12, "did you mean 'noisy'"),
    "oracle option": (
        "[recipe]", '[oracle]\nkind="noisy"\nrates=1\n[recipe]', 13, "did you mean 'rate'",
    ),
    "oracle value": (
        "[recipe]", '[oracle]\nkind="noisy"\nrate=2\n[recipe]', 13, "must be a probability, got 2.0",
    ),
    "oracle lacks": ("[recipe]", '[oracle]\nkind="noisy"\n[recipe]', 12, "'noisy' needs rate"),
    "model option": ("[recipe]", "[model_options]\nday = 1979-05-27\n[recipe]", 12, "must be text"),
    "table": ("[schedule]\nbatch = 4\nrounds = 3", "schedule = 5", 7, r"must be a table \[schedule\]"),
    "missing in table": ("rounds = 3\n", "", 7, "'schedule.rounds' is missing; expected a whole"),
    "syntax": ("seeds = 2", "seeds = = 2", 5, "not valid TOML: Invalid value"),
    "key twice": ("seeds = 2", "seeds = 2\nseeds = 3", 6, "not valid TOML"),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_is_refused_with_its_line(case, tmp_path):
    old, new, line, words = WRONG[case]
    assert old in TOML
    path = written(tmp_path, TOML.replace(old, new, 1))
    with pytest.raises(SpecError, match=rf"mine.toml, line {line}\b.*: .*{words}"):
        specs.load(path)


@pytest.mark.parametrize("key", ["name", "dataset", "model", "strategies", "schedule", "recipe"])
def test_a_missing_key_is_named(key):
    data = spec().to_dict()
    del data[key]
    with pytest.raises(SpecError, match=f"spec: '{key}' is missing; expected"):
        Spec.from_dict(data)


def test_what_is_no_toml_is_refused(tmp_path):
    with pytest.raises(SpecError, match=r"line 14: not valid TOML: .*[Uu]n"):
        specs.load(written(tmp_path, TOML + 'x = "'))
    (tmp_path / "latin.toml").write_bytes(b'name = "a"\nmodel = "\xff"')
    with pytest.raises(SpecError, match=r"latin.toml, line 2: not UTF-8"):
        specs.load(tmp_path / "latin.toml")
    with pytest.raises(SpecError, match=r"cannot read .*none.toml: No such file"):
        specs.load(tmp_path / "none.toml")
    with pytest.raises(SpecError, match="Is a directory"):
        specs.load(tmp_path)


def test_an_experiment_that_does_not_ship():
    with pytest.raises(SpecError, match=r"unknown experiment 'digts': did you mean 'digits'"):
        specs.load("digts")


def test_a_models_own_function_is_taken_on_trust():
    assert spec(model="my_pkg.nets:make").model == "my_pkg.nets:make"


def test_override_checks_what_it_is_given():
    changed = spec().override(strategies=["entropy"], seeds=3, rounds=1, precision="bf16")
    assert [label for label, _, _ in changed.runs()] == ["entropy"] * 3
    assert (changed.schedule.rounds, changed.precision) == (1, "bf16")
    assert spec().override() == spec()
    with pytest.raises(SpecError, match="small, as changed: seeds must be"):
        spec().override(seeds=0)
    with pytest.raises(SpecError, match="did you mean 'entropy'"):
        spec().override(strategies=["entrpy"])


def test_labels_and_rules():
    entry = {"name": "powergrad", "grad": {"reference_size": 9}, "beta": 1}
    rule = StrategySpec.of(entry)
    assert rule.label == "powergrad(beta=1.0, grad.reference_size=9)"
    assert rule.build() == strategies.get(
        "powergrad", beta=1.0, grad=strategies.get("grad", reference_size=9)
    )
    listed = StrategySpec.of({"name": "grad", "parameters": ["fc", "out"]})
    assert listed.label == "grad(parameters=['fc', 'out'])"
    assert listed.build().parameters == ("fc", "out")


def test_differences_name_both_values():
    other = spec(seeds=3, schedule={"batch": 5, "rounds": 3}, strategies=["grad", "random"])
    assert differences(spec(), other) == ["seeds: 2 → 3", "schedule.batch: 4 → 5"]
    own = spec(dataset="./a.csv", label="y")
    assert differences(own, spec()) == ['dataset: "./a.csv" → "digits"', 'label: "y" → none']


RULES = st.sampled_from(
    ["random", "entropy", "badge", {"name": "powergrad", "beta": 0.5},
     {"name": "grad", "bias": False}, {"name": "powergrad", "grad": {"reference_size": 3}}]
)  # fmt: skip
RATES = st.floats(1e-6, 1.0)
SPECS = st.fixed_dictionaries(
    {
        "name": st.from_regex(r"[a-z0-9][a-z_.-]{0,5}", fullmatch=True).filter(is_safe),
        "dataset": st.sampled_from(["digits", "svhn", "./mine", "a.csv"]),
        "model": st.sampled_from(["mlp", "lenet", "a.b:c"]),
        "strategies": st.lists(RULES, min_size=1, max_size=4, unique_by=json.dumps),
        "schedule": st.fixed_dictionaries(
            {"batch": st.integers(1, 999), "rounds": st.integers(0, 99)}
        ),
        "recipe": st.fixed_dictionaries(
            {"epochs": st.integers(1, 99)},
            optional={
                "batch_size": st.integers(1, 99),
                "momentum": st.floats(0, 0.99) | st.just(0),
                "learning_rates": st.lists(RATES, min_size=1, max_size=4, unique=True),
            },
        ),
    },
    optional={
        "pool": st.floats(0.01, 0.99),
        "seeds": st.integers(1, 9) | st.sampled_from(["5-24", "0,3", "7"]),
        "precision": st.sampled_from(["float32", "tf32", "bf16", "float64"]),
        "model_options": st.dictionaries(
            st.sampled_from(["stem", "width"]),
            st.booleans() | st.integers(0, 9) | st.text(max_size=3) | st.lists(st.integers(0, 9)),
        ),
        "oracle": st.just({"kind": "truth"})
        | st.fixed_dictionaries(
            {"kind": st.sampled_from(["noisy", "abstaining"]), "rate": st.floats(0, 1)},
            optional={"seed": st.integers(0, 9)},
        ),
    },
)


def toml(data):
    """As a person would write it: plain keys first, then tables."""

    def value(v):
        if isinstance(v, dict):
            return "{" + ", ".join(f"{k} = {value(x)}" for k, x in v.items()) + "}"
        if isinstance(v, list):
            return "[" + ", ".join(map(value, v)) + "]"
        return json.dumps(v, ensure_ascii=False).replace("\x7f", "\\u007f")

    plain = [f"{k} = {value(v)}" for k, v in data.items() if not isinstance(v, dict)]
    for key, table in data.items():
        if isinstance(table, dict):
            plain += [f"[{key}]", *(f"{k} = {value(v)}" for k, v in table.items())]
    return "\n".join(plain)


@given(SPECS)
def test_a_spec_goes_to_toml_and_json_and_back(tmp_path_factory, data):
    drawn = Spec.from_dict(data)
    assert Spec.from_dict(drawn.to_dict()) == drawn
    assert Spec.from_dict(json.loads(json.dumps(drawn.to_dict()))) == drawn
    path = tmp_path_factory.getbasetemp() / "drawn.toml"
    path.write_text(toml(data), encoding="utf-8")
    assert specs.load(path) == drawn
    assert specs.load(path).hash == drawn.hash
    again = Spec.from_dict(drawn.to_dict())
    assert hash(again) == hash(drawn)
    assert {drawn, again} == {drawn}
    changed = drawn.override(rounds=drawn.schedule.rounds + 1)
    assert len({drawn, again, changed}) == 2


@given(SPECS, SPECS)
def test_the_hash_is_of_what_decides_and_of_that_alone(one, other):
    one, other = Spec.from_dict(one), Spec.from_dict(other)
    deciding = [line for line in differences(one, other) if not line.startswith("name:")]
    assert (one.hash == other.hash) == (not deciding)
    kept = [line for line in deciding if not re.match("(strategies|seeds):", line)]
    assert (one.identity == other.identity) == (not kept)


@given(SPECS, st.data())
def test_any_one_change_shows_in_the_hash(data, draw):
    before = Spec.from_dict(data)
    key = draw.draw(st.sampled_from(["batch", "rounds", "epochs", "batch_size", "seeds"]))
    changed = copy.deepcopy(before.to_dict())
    table = next(t for t in (changed, changed["schedule"], changed["recipe"]) if key in t)
    table[key] = "31" if isinstance(table[key], str) else table[key] + 1
    after = Spec.from_dict(changed)
    assert after.hash != before.hash
    assert (after.identity == before.identity) == (key == "seeds")
    assert len(differences(before, after)) == 1


@given(SPECS, st.randoms())
def test_order_of_strategies_and_name_decide_nothing(data, random):
    shuffled = {**data, "strategies": random.sample(data["strategies"], len(data["strategies"]))}
    assume(data["name"] != "other")
    assert Spec.from_dict({**shuffled, "name": "other"}).hash == Spec.from_dict(data).hash
    assert differences(Spec.from_dict(shuffled), Spec.from_dict(data)) == []


def test_an_imbalance_is_part_of_a_spec_where_it_is_there(tmp_path):
    mine = specs.load(written(tmp_path, TOML + "\n[imbalance]\nrare = 3\n"))
    assert mine.to_dict()["imbalance"] == {"rare": 3, "keep": 0.1}
    assert Spec.from_dict(mine.to_dict()) == mine
    assert "imbalance" not in spec().to_dict()
    assert differences(spec(), mine) == ["imbalance.rare: none → 3", "imbalance.keep: none → 0.1"]
    assert mine.identity != spec().identity


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("rare = 0", "imbalance.rare must be a whole number ≥ 1, got 0"),
        ("keep = 0.5", "'imbalance.rare' is missing"),
        ("rare = 2\nkeep = 1.0", "imbalance.keep must be a number between 0 and 1"),
        ("rare = 2\nkept = 0.1", "unknown key 'imbalance.kept'; known: rare, keep"),
    ],
)
def test_an_imbalance_that_cannot_be_is_refused(tmp_path, table, message):
    with pytest.raises(SpecError, match=re.escape(message)):
        specs.load(written(tmp_path, f"{TOML}\n[imbalance]\n{table}\n"))


def test_a_random_start_is_the_same_experiment_written_or_not():
    plain, said = spec(), spec(schedule={"batch": 4, "rounds": 3, "first": "random"})
    covering = spec(schedule={"batch": 4, "rounds": 3, "first": "maxherding"})
    assert plain.to_dict() == said.to_dict()
    assert plain.hash == said.hash != covering.hash
    assert Spec.from_dict(covering.to_dict()).schedule.first == "maxherding"


def test_a_part_of_the_pool_is_another_experiment_and_survives():
    whole, part = spec(), spec(pool=0.8)
    assert "pool" not in whole.to_dict()
    assert part.identity != whole.identity
    assert Spec.from_dict(part.to_dict()).pool == 0.8
    for wrong in (0, 1, 1.5, True, "half"):
        with pytest.raises(SpecError, match="pool must be a number between 0 and 1"):
            spec(pool=wrong)
