"""What commands take: groups of options, and help that says what each option is."""

from dataclasses import dataclass
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

from askance.cli import app
from askance.cli.options import grouped


@dataclass(frozen=True)
class Shape:
    width: Annotated[int, typer.Option("--wide", help="Width.")]
    height: Annotated[int, typer.Option(help="Height.", min=1)] = 2


@dataclass(frozen=True)
class Paint:
    colours: Annotated[list[str] | None, typer.Option()] = None
    matt: bool = False


def draw(*arguments):
    made = []
    command = typer.Typer()

    @command.command()
    @grouped
    def draw(
        *,
        title: Annotated[str, typer.Argument()] = "none",
        shape: Shape,
        times: int = 1,
        paint: Paint,
    ) -> int:
        """Draw it."""
        made.append((title, shape, times, paint))
        return 0

    result = CliRunner().invoke(command, list(arguments))
    return result, made


def test_the_fields_of_a_group_are_options():
    result, made = draw("a", "--wide", "3", "--times", "4", "--colours", "x", "--colours", "y")
    assert result.exit_code == 0, result.output
    assert made == [("a", Shape(3, 2), 4, Paint(["x", "y"]))]
    assert draw("--wide", "3", "--height", "5", "--matt")[1] == [
        ("none", Shape(3, 5), 1, Paint(None, matt=True))
    ]


def test_the_options_of_a_group_are_checked_and_in_the_help():
    for wrong in ([], ["--wide", "x"], ["--wide", "3", "--height", "0"], ["--shape", "3"]):
        result, made = draw(*wrong)
        assert (result.exit_code, made) == (2, [])
    text = " ".join(draw("--help")[0].output.split())
    assert "Draw it." in text
    places = [text.index(f"--{name}") for name in ("wide", "height", "times", "colours", "matt")]
    assert places == sorted(places)


def commands(group, path=()):
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, (*path, name))
        else:
            yield pytest.param(command, id=" ".join((*path, name)))


HELP = {
    "seed": "Random seed.",
    "engine": "Where to run: local or ray.",
    "device": "Device: ",
    "epochs": "Epochs ",
    "learning_rate": "Learning rate ",
}


@pytest.mark.parametrize("command", list(commands(typer.main.get_command(app))))
def test_help_says_what_an_option_is(command):
    for option in command.params:
        words = getattr(option, "help", None)
        assert words, option.name
        assert not words.startswith("Of "), option.name
        assert words.startswith(HELP.get(option.name, "")), option.name
