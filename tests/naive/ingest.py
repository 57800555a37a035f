"""Answers from outside, decided row by row straight from the words of `askance.label.ingest`.

A person's standing acts are a list of (item, label, token), oldest first; a label of None is a skip.
"""


class World:
    def __init__(self, items, classes):
        self.items, self.classes = list(items), list(classes)
        self.acts = {}  # person → their standing acts
        self.open = []  # (person, item) of questions without an act
        self.tokens = {}  # token → (item, label, person), for ever

    def ask(self, who, item):
        self.open.append((who, item))

    def answers_of(self, who, item):
        return [act for act in self.acts.get(who, []) if act[0] == item and act[1] is not None]

    def skips_of(self, who, item):
        return [act for act in self.acts.get(who, []) if act[0] == item and act[1] is None]

    def act(self, who, item, label):
        self.open.remove((who, item))
        self.acts.setdefault(who, []).append((item, label))

    def undo(self, who):
        item, _ = self.acts[who].pop()
        self.open.append((who, item))

    def spelt(self, label):
        return next((name for name in self.classes if name.lower() == label.lower()), None)

    def ingest(self, rows, replace, add_classes):
        """One word a row; `rows` are (item, label, person, token)."""
        formed = [self._formed(row, add_classes) for row in rows]
        fresh = [ok and self._before(row) is None for row, ok in zip(rows, formed, strict=True)]
        others = [row for row, ok in zip(rows, fresh, strict=True) if ok]
        # Whom their token refuses has no say in what the others mean.
        voices = [row for row in others if not self._token_means_more(row, others)]
        verdicts, seen = [], []
        for row, ok, new in zip(rows, formed, fresh, strict=True):
            if not ok:
                verdicts.append("refused")
            elif not new:
                verdicts.append(self._before(row))
            elif self._token_means_more(row, others) or self._contradicted(row, voices):
                verdicts.append("refused")
            elif any(self._same(row, one) for one in seen):
                verdicts.append("unchanged")
            else:
                verdicts.append(None)
                seen.append(row)
        return [
            self._apply(row, replace) if verdict is None else verdict
            for row, verdict in zip(rows, verdicts, strict=True)
        ]

    def _formed(self, row, add_classes):
        item, label, _, _ = row
        known = label is None or self.spelt(label) is not None or add_classes
        return item in self.items and known

    def _before(self, row):
        item, label, who, token = row
        if token is None or token not in self.tokens:
            return None
        then = self.tokens[token]
        return "unchanged" if then == (item, label and label.lower(), who) else "refused"

    def _token_means_more(self, row, others):
        return row[3] is not None and any(
            one[3] == row[3] and not self._same(one, row) for one in others
        )

    def _contradicted(self, row, others):
        return any(
            (one[0], one[2]) == (row[0], row[2]) and not self._same(one, row) for one in others
        )

    def _same(self, one, other):
        return (one[0], one[2]) == (other[0], other[2]) and (one[1] and one[1].lower()) == (
            other[1] and other[1].lower()
        )

    def _apply(self, row, replace):
        item, label, who, token = row
        mine = self.acts.setdefault(who, [])
        answers, skips = self.answers_of(who, item), self.skips_of(who, item)
        count = 1
        if answers:
            if label is not None and answers[-1][1].lower() == label.lower():
                return "unchanged"
            if not replace:
                return "refused"
            gone = answers if label is None else answers[-1:]
            for act in gone:
                place = max(i for i, one in enumerate(mine) if one == act)
                del mine[place]
            count = len(gone)
        elif skips:
            if label is None:
                return "unchanged"
            place = max(i for i, one in enumerate(mine) if one == (item, None))
            del mine[place]
        elif (who, item) in self.open:
            self.open.remove((who, item))
        if label is not None and self.spelt(label) is None:
            self.classes.append(label)
        name = None if label is None else self.spelt(label)
        mine.extend([(item, name)] * count)
        if token is not None:
            self.tokens[token] = (item, label and label.lower(), who)
        return "applied"
