"""The decision of results/default/CHOOSING.md, step by step from its words."""

import numpy as np
from scipy import stats


def decide(rows, tracks, candidates):
    """(order, {rule: experiments in which it is significantly below random}, {track: {rule: gain}}).

    Args:
        rows: {(experiment, rule, seed, round): (accuracy, whether the network did not train)}.
        tracks: {track: {experiment: dataset}}, the encoder's track last.
    """
    untrained = {(e, seed, r) for (e, _, seed, r), (_, bad) in rows.items() if bad}
    experiments = [(track, name) for track, names in tracks.items() for name in names]

    def mean_accuracy(name, rule, seed):
        kept = []
        for (e, who, s, r), (accuracy, _) in rows.items():
            if (e, who, s) == (name, rule, seed) and r > 0 and (e, s, r) not in untrained:
                kept.append(accuracy)
        return float(np.mean(kept)) if kept else None

    gains, p_values = {}, {}
    for _, name in experiments:
        seeds = sorted({s for (e, _, s, _) in rows if e == name})
        random = {seed: mean_accuracy(name, "random", seed) for seed in seeds}
        for rule in candidates:
            mine = {seed: mean_accuracy(name, rule, seed) for seed in seeds}
            both = [seed for seed in seeds if mine[seed] is not None and random[seed] is not None]
            a, b = [mine[seed] for seed in both], [random[seed] for seed in both]
            gains[name, rule] = float(np.mean([x - y for x, y in zip(a, b, strict=True)]))
            p_values[name, rule] = float(stats.ttest_rel(a, b).pvalue)

    out = {}
    left = len(p_values)
    for (name, rule), p in sorted(p_values.items(), key=lambda item: item[1]):
        if p > 0.05 / left:
            break
        left -= 1
        if gains[name, rule] < 0:
            out.setdefault(rule, set()).add(name)

    on_track = {}
    for track, names in tracks.items():
        for rule in candidates:
            by_dataset = {}
            for name, dataset in names.items():
                by_dataset.setdefault(dataset, []).append(gains[name, rule])
            means = [sum(each) / len(each) for each in by_dataset.values()]
            on_track.setdefault(track, {})[rule] = sum(means) / len(means)

    def ranked(rules):
        def rank(track, rule):
            better = [o for o in rules if on_track[track][o] > on_track[track][rule]]
            same = [o for o in rules if on_track[track][o] == on_track[track][rule]]
            return len(better) + (len(same) + 1) / 2

        mean = {rule: sum(rank(t, rule) for t in tracks) / len(tracks) for rule in rules}
        return mean, [*tracks][-1]

    stays = [rule for rule in candidates if rule not in out]
    order = []
    for rules in (stays, [rule for rule in candidates if rule in out]):
        mean, last = ranked(rules)
        order += sorted(rules, key=lambda r: (len(out.get(r, ())), mean[r], -on_track[last][r]))
    return order, out, on_track
