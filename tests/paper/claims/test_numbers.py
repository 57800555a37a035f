"""The check of the pages' numbers can fail, and does where it should."""

import pytest

from tests.paper.claims.numbers import numbers, sections, slug, unsourced

RESULTS = """
# Page

## The paper's claims

| grad | −0.44 \\[−1.63, 0.77\\] | 7 experiments × 5 seeds |

## Studies

### cost: seconds

entropy 1,234.56

## Notes

Nothing.
"""
LINK = "[claims](../results/paper/RESULTS.md#the-papers-claims)"


@pytest.mark.parametrize(
    "text",
    [
        f"grad is 0.44 points behind ({LINK}), from −1.63 to +0.77, over 7 experiments.",
        f"`grad` gains −0.44 (−1.63 to 0.77), or {LINK} loses 0.44 points (interval −0.77 to 1.63).",
        f"With `grad` it is 0.44 points (95%\n  interval −0.77 to 1.63) less ({LINK}).",
        f"On CIFAR-10 with ResNet-18 about 0.4 points ({LINK}), 95% interval.",
        f"- `run 99 seeds` is code ({LINK})\n- no numbers here",
        "[cost](RESULTS.md#studies): 1,234.56 seconds, or 1234.6",
        "[cost](RESULTS.md#cost-seconds): 1,234.56 seconds",
        "On Banking77 ([track](../results/pretrained/README.md#notes)) nothing.",
        "```console\n$ askance run --seeds 7\n```\n\nWords alone.",
    ],
)
def test_numbers_that_are_there_are_found(text):
    assert unsourced(text, RESULTS) == []


@pytest.mark.parametrize(
    ("text", "number"),
    [
        (f"grad is 0.45 points behind ({LINK})", "0.45"),
        (f"grad is 0.5 points behind ({LINK})", "0.5"),
        (f"over 8 experiments ({LINK})", "8"),
        (f"1,234.56 seconds are elsewhere ({LINK})", "1234.56"),
        (f"{LINK}\n\n0.44 in a paragraph that says no place", "0.44"),
        (f"- one ({LINK})\n- two: 0.44", "0.44"),
        ("On SST-2 ([track](../results/pretrained/README.md#notes)) 0.44 points.", "0.44"),
        ("[gone](RESULTS.md#no-such-section)", "no-such-section"),
        ("[all of it](RESULTS.md#page)", "page"),
        (f"zero digits round nothing: 1 ({LINK})", "1"),
        (f"grad is −1.63 to −0.77 ({LINK})", "−0.77"),
        (f"grad is +0.44 ({LINK})", "+0.44"),
        (f"`grad` is 0.44 points (−0.77 to 0.77) behind ({LINK})", "0.44 (−0.77 to 0.77)"),
        (f"`grad` is 1.63 points (−0.77 to 1.63) behind ({LINK})", "1.63 (−0.77 to 1.63)"),
        (f"`badge`, not `powergrad`: 0.44 (−0.77 to 1.63) ({LINK})", "0.44 (−0.77 to 1.63)"),
    ],
)
def test_a_wrong_number_is_named(text, number):
    assert [wrong for wrong, _ in unsourced(text, RESULTS)] == [number]


def test_a_page_may_hold_other_numbers_where_it_links_to_no_results():
    text = f"25,000 points in 0.05 s.\n\ngrad: 0.46 ({LINK})"
    assert [wrong for wrong, _ in unsourced(text, RESULTS, linked_only=True)] == ["0.46"]


def test_anchors_and_numbers():
    assert slug("The paper's claims") == "the-papers-claims"
    assert slug("Points above random, by experiment") == "points-above-random-by-experiment"
    assert sections(RESULTS)["studies"].split()[-1] == "1,234.56"
    assert numbers("1. first, 2,000 of −3.5%; VGG-16") == ["2000", "−3.5"]
    assert numbers("a 95% interval; 62.95% on 20\n  Newsgroups") == ["62.95"]


TRACK = """
## Over `random`, in the mean

| over random | all rounds | first third | last third |
| --- | --: | --: | --: |
| margin | +2.8 \\[1.0, 4.6\\] | +3.0 \\[2.0, 4.0\\] | +3.1 |
| grad-cover ‡ | −4.8 | +3.0 | −2.0 \\[−3.0, −1.0\\] |
"""
MEAN = "([track](../results/pretrained/README.md#over-random-in-the-mean))"


@pytest.mark.parametrize(
    "text",
    [
        f"`margin` gains 2.8 points (1.0 to 4.6) {MEAN}.",
        f"In the first third `margin` gains 3.0 points, in the last third 3.1 {MEAN}.",
        f"`grad-cover` gains −4.8. In the last third it is −2.0 (−3.0 to −1.0) {MEAN}.",
        f"| texts | `margin` | 2.8 points {MEAN} |",
    ],
)
def test_numbers_of_the_track_are_those_of_their_cell(text):
    assert unsourced(text, TRACK) == []


@pytest.mark.parametrize(
    "text",
    [
        f"`margin` gains 3.0 points {MEAN}.",  # of another column
        f"In the last third `margin` gains 3.0 points {MEAN}.",
        f"`grad-cover` gains 2.8 points {MEAN}.",  # of another rule
        f"`grad-cover` gains 4.8 points {MEAN}.",  # of another sign
        f"`margin` gains 2.8 points (2.0 to 4.0) {MEAN}.",
        f"`badge` gains 2.8 points {MEAN}.",
        f"`margin` gains 2.8 points {MEAN}, as ([claims](../results/paper/RESULTS.md#claims)) says.",
    ],
)
def test_a_number_of_the_track_from_another_cell_is_seen(text):
    assert unsourced(text, TRACK + "\n## Claims\n\n2.8") != []
