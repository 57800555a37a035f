"""Every number of a page about the results, looked up in the section of RESULTS.md that it names.

A paragraph, list item or row of a table that has numbers links to the sections they are from
(`RESULTS.md#our-questions`); each number must be there, or be one there rounded.
"""

import re

LINK = re.compile(r"RESULTS\.md#([\w-]+)")
NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")
# Names that have digits, and the protocol's own words for an interval and a stage.
NAMES = re.compile(
    r"CIFAR-10|STL-10|CINIC-10|ResNet-18|VGG-16|20\s+Newsgroups|H200|(?<![\d.])95%"
    r"|[Rr]ounds 1–3|D²|Assumption 1"
)


def blocks(text):
    """Paragraphs, list items and rows of tables; fences, comments and headings have no numbers."""
    text = re.sub(r"(?ms)^```.*?^```$|<!--.*?-->|^#.*?$", "", text)
    for paragraph in re.split(r"\n\s*\n", text):
        yield from re.split(r"\n(?=\s*(?:[-*|]|\d+\.) )", paragraph)


def numbers(text):
    """As they are written, without signs, thousands' commas, code, addresses and names."""
    text = re.sub(r"`[^`]*`|\]\([^)]*\)|^\s*\d+\. ", " ", text)
    return [n.replace(",", "").rstrip(".") for n in NUMBER.findall(NAMES.sub(" ", text))]


def slug(title):
    return re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-")


def sections(results):
    """The numbers under each heading below the title, those of its sub-headings among them."""
    found = {}
    for match in re.finditer(r"(?m)^(##+) (.*)$", results):
        level = len(match[1])
        rest = results[match.end() :]
        end = re.search(rf"(?m)^#{{1,{level}}} ", rest)
        body = rest[: end.start()] if end else rest
        found[slug(match[2])] = {n.replace(",", "") for n in NUMBER.findall(body)}
    return found


def rounds_to(known, number):
    digits = len(number.partition(".")[2])
    return (
        digits > 0
        and len(known.partition(".")[2]) > digits
        and f"{float(known):.{digits}f}" == number
    )


def unsourced(text, results, *, linked_only=False):
    """Numbers that are not where their paragraph says they are, each with the paragraph."""
    known, missing = sections(results), []
    for block in blocks(text):
        anchors = LINK.findall(block)
        if linked_only and not anchors:
            continue
        there = set().union(*(known.get(anchor, set()) for anchor in anchors))
        missing += [(anchor, block) for anchor in anchors if anchor not in known]
        missing += [
            (number, block)
            for number in numbers(LINK.sub("", block))
            if number not in there and not any(rounds_to(one, number) for one in there)
        ]
    return missing
