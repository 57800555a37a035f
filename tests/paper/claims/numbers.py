"""Every number of a page about the results, looked up in the section of a page that it names.

A paragraph, list item or row of a table that has numbers links to the sections they are from, of the
paper's results, the pretrained track's or those by which the default was chosen
(`RESULTS.md#our-questions`, `pretrained/README.md#by-experiment`, `default/README.md#the-decision`);
each number must be there, or be one there rounded, with the sign it is written with, if
it is. A number with its interval, "0.66 points (−0.01 to 1.41)", must stand so in one cell, as it is or
turned round ("behind" for "ahead"); and where the cell's row names rules, the rule that was named last
before the number must be one of them.

Two kinds are looked up in the very cell. In how many experiments a rule is "significantly above random"
or below it must stand in the row of the rule that was named last, after "they are" or "each is" in the
rows of all that were named. In a table whose first column
names experiments ("CIFAR-10: LeNet, VGG-16"), the numbers of a linked cell are, in order, those of the
linked table's rows, in the column of the rule that the heading names.

Of the pretrained track and of the default, whose tables have a row a rule, every number is looked up in
its cell: of the rule named last, in the column that its sentence names ("in the last third"), else in
the first.
"""

import re

from askance import strategies

LINK = re.compile(r"(?:RESULTS|(?:pretrained|default)/README)\.md#([\w-]+)")
_N = r"[−+]?\d+(?:,\d{3})*(?:\.\d+)?"
NUMBER = re.compile(_N)
# Names that have digits, and the protocol's own words for an interval and a stage.
NAMES = re.compile(
    r"CIFAR-10|STL-10|CINIC-10|SST-2|Banking77|CLINC150|ResNet-18|VGG-16|20\s+Newsgroups|H200"
    r"|(?<![\d.])95%"
    r"|[Rr]ounds 1–3|D²|Assumption 1"
)
TOLD = re.compile(rf"({_N})([^()\d]*)\(\s*(?:interval\s+)?({_N})\s+to\s+({_N})\)")
CELL = re.compile(rf"({_N}) \\?\[({_N}|−?∞), ({_N}|−?∞)\\?\]")
COUNT = re.compile(
    r"significantly (above|below)\s+random in (\d+) experiments of (\d+)"
    r"(?:\s+and\s+below\s+it\s+in\s+(\d+))?"
)
TRACK = re.compile(r"(?:pretrained|default)/README\.md#([\w-]+)")
LINKED = re.compile(r"\[([^\]]*)\]\([^)]*(?:RESULTS|(?:pretrained|default)/README)\.md#([\w-]+)\)")
RULE = re.compile(r"(?<![\w-])(" + "|".join(map(re.escape, strategies.names())) + r")(?![\w-])")


def blocks(text):
    """Paragraphs, list items and rows of tables; fences, comments and headings have no numbers."""
    text = re.sub(r"(?ms)^```.*?^```$|<!--.*?-->|^#.*?$", "", text)
    for paragraph in re.split(r"\n\s*\n", text):
        yield from re.split(r"\n(?=\s*(?:[-*|]|\d+\.) )", paragraph)


def plain(text):
    """Without addresses and names; code that names a rule is a word like any other."""
    text = re.sub(r"\]\([^)]*\)|^\s*\d+\. ", " ", text)
    text = re.sub(r"`([^`]*)`", lambda code: code[1] if RULE.fullmatch(code[1]) else " ", text)
    return NAMES.sub(" ", text)


def value(written):
    """As it is written, without thousands' commas; a plus says no more than no sign."""
    return written.replace(",", "").removeprefix("+")


def numbers(text):
    """As they are written, signs and all; those told with an interval are not among them."""
    return [n.replace(",", "") for n in NUMBER.findall(TOLD.sub(" ", plain(text)))]


def slug(title):
    return re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-")


def sections(results):
    """The text under each heading below the title, that of its sub-headings with it."""
    by_title = {}
    for match in re.finditer(r"(?m)^(##+) (.*)$", results):
        level = len(match[1])
        rest = results[match.end() :]
        end = re.search(rf"(?m)^#{{1,{level}}} ", rest)
        by_title[slug(match[2])] = rest[: end.start()] if end else rest
    return by_title


def is_there(number, known):
    """Whether one of the known numbers is this one, or is when it is rounded."""
    signed, size = number[0] in "−+", value(number).removeprefix("−")
    digits = len(size.partition(".")[2])
    for one in known:
        if signed and (number[0] == "−") != one.startswith("−"):
            continue
        exact = one.removeprefix("−")
        finer = 0 < digits < len(exact.partition(".")[2])
        if exact == size or (finer and f"{float(exact):.{digits}f}" == size):
            return True
    return False


def opposite(written):
    return written.removeprefix("−") if written.startswith("−") else f"−{written}"


def intervals(text):
    """Of every number told with its interval: it, both ends, and the rule named last before it."""
    text = plain(text)
    for match in TOLD.finditer(text):
        named = RULE.findall(text[: match.start()])
        yield match[1], value(match[3]), value(match[4]), named[-1] if named else None


def _same(number, known):
    """Signs count where one is written."""
    signed, negative = number[0] in "−+", known.startswith("−")
    return value(number).removeprefix("−") == known.removeprefix("−") and (
        not signed or (number[0] == "−") == negative
    )


def grid(text):
    """The first table of a section: {row's name: {column: cell}}."""
    first = re.search(r"(?m)(?:^\|.*\n?)+", text)
    lines = [line.strip("| ").split(" | ") for line in first[0].splitlines()] if first else []
    if len(lines) < 3:
        return {}
    head = [cell.strip() for cell in lines[0]]
    return {row[0].strip(): dict(zip(head, row, strict=False)) for row in lines[2:]}


def counts(block, known):
    """Of every "significantly above random in …": it, and whether each named rule's row has it."""
    rows = grid(known.get("every-rule-against-random", ""))
    text = plain(block)
    for match in COUNT.finditer(text):
        side, many, of, below = match.groups()
        wanted = {f"significantly {side} in": many}
        if below is not None:
            wanted["significantly below in"] = below
        before = [rule for rule in RULE.findall(text[: match.start()]) if rule != "random"]
        every = re.search(r"(?i)\b(?:each is|they are)\s+$", text[: match.start()])
        named = set(before if every else before[-1:])
        right = bool(named) and all(
            all(rows.get(rule, {}).get(column) == value for column, value in wanted.items())
            and rows[rule]["n"].startswith(f"{of} experiment")
            for rule in named
        )
        yield match[0], right


def experiments(cell):
    """Those that a cell names: "CIFAR-10: LeNet, VGG-16" is cifar10-lenet and cifar10-vgg16."""
    data, _, networks = cell.replace(": ", ", ").partition(", ")
    spoken = {"poker hands": "pokerhand"}
    dataset = spoken.get(data.strip(), re.sub(r"[^a-z0-9]", "", data.lower()))
    return [f"{dataset}-{re.sub(r'[^a-z0-9]', '', one.lower())}" for one in networks.split(",")]


def linked_cells(text, known):
    """Of every linked cell of a table of experiments: what is written, and whether it is right."""
    for table in re.findall(r"(?m)(?:^\|.*\n)+", text + "\n"):
        heading, *lines = table.splitlines()
        rules = [RULE.search(column) for column in heading.strip("| ").split(" | ")]
        if not heading.startswith("| experiment"):
            continue
        for line in lines[1:]:
            name, *cells = line.strip("| ").split(" | ")
            for cell, rule in zip(cells, rules[1:], strict=True):
                for written, anchor in LINKED.findall(cell):
                    rows = grid(known.get(anchor, ""))
                    there = [rows.get(one, {}).get(rule[0], "") for one in experiments(name)]
                    found = [NUMBER.findall(one)[:1] for one in there]
                    values = [[value(n)] for n in NUMBER.findall(written)]
                    signs = [[n[0] == "−"] for n in NUMBER.findall(written)]
                    right = values == [[value(n) for n in one] for one in found] and signs == [
                        [n[0] == "−" for n in one] for one in found
                    ]
                    yield f"{name}: {written}", right


def track_cells(text, known):
    """Of every number from the pretrained track: what is written, and whether its cell has it."""
    for block in blocks(text):
        anchors = TRACK.findall(block)
        tables = [grid(known.get(anchor, "")) for anchor in anchors]
        tables = [rows for rows in tables if any(RULE.match(row) for row in rows)]
        if not tables:
            continue
        alone = len(LINK.findall(block)) == len(anchors)  # else a number may be from elsewhere
        prose = plain(LINK.sub("", block))
        told = {match.start(): match for match in TOLD.finditer(prose)}
        ends = {match.start(place) for match in told.values() for place in (3, 4)}
        for match in NUMBER.finditer(prose):
            if match.start() in ends:
                continue
            before = prose[: match.start()]
            rule = [rule for rule in RULE.findall(before) if rule != "random"][-1:]
            wanted = [
                match[0],
                *(told[match.start()].groups()[2:] if match.start() in told else ()),
            ]
            sentence = re.split(r"[.:|]\s", before)[-1]
            cells = [_cell(rows, rule, sentence)[: len(wanted)] for rows in tables]
            yield f"{match[0]} of {rule}", alone and list(map(value, wanted)) in cells


def _cell(rows, rule, sentence):
    """The numbers of a rule's cell, in the column that a sentence names last, else in the first."""
    row = next((cells for name, cells in rows.items() if name.split()[:1] == rule), {})
    columns = list(row)[1:]
    named = sorted((name for name in columns if name in sentence), key=sentence.rfind)
    return (
        [value(n) for n in NUMBER.findall(row[(named or columns)[-1 if named else 0]])]
        if row
        else []
    )


def is_a_cell(told, text):
    number, low, high, rule = told
    for line in text.splitlines():
        rules = set(RULE.findall(line))
        for match in CELL.finditer(line):
            cell = tuple(map(value, match.groups()))
            turned = tuple(map(opposite, (cell[0], cell[2], cell[1])))
            alike = any((low, high) == one[1:] and _same(number, one[0]) for one in (cell, turned))
            if alike and (not rules or rule is None or rule in rules):
                return True
    return False


def unsourced(text, results, *, linked_only=False):
    """Numbers that are not where their paragraph says they are, each with the paragraph."""
    known, missing = sections(results), []
    for block in blocks(text):
        anchors = LINK.findall(block)
        if linked_only and not anchors:
            continue
        missing += [(anchor, block) for anchor in anchors if anchor not in known]
        there = "\n".join(known.get(anchor, "") for anchor in anchors)
        values = {value(n) for n in NUMBER.findall(there)}
        block_ = LINK.sub("", block)
        missing += [(n, block) for n in numbers(block_) if not is_there(n, values)]
        missing += [
            (f"{told[0]} ({told[1]} to {told[2]})", block)
            for told in intervals(block_)
            if not is_a_cell(told, there)
        ]
        missing += [(words, block) for words, right in counts(block, known) if not right]
    missing += [(words, words) for words, right in linked_cells(text, known) if not right]
    missing += [(words, words) for words, right in track_cells(text, known) if not right]
    return missing
