"""Samples, budgets and the page that they make."""

from statistics import median, quantiles

OURS, TOOL, FLOOR = "ours", "tool", "floor"


def spread(samples):
    """(p10, p90)."""
    if len(samples) < 2:
        return samples[0], samples[0]
    tenths = quantiles(samples, n=10, method="inclusive")
    return tenths[0], tenths[-1]


class Samples:
    """Everything that was measured: by row, contender and round."""

    def __init__(self):
        self._by = {}
        self.round = 0

    def add(self, row, who, value):
        """Adds one of this round."""
        self._by.setdefault((row, who), []).append((self.round, value))

    def of(self, row, who):
        """All of a kind."""
        return [value for _, value in self._by.get((row, who), [])]

    def median(self, row, who):
        """Their median, or `None`."""
        return median(self.of(row, who)) if self.of(row, who) else None

    def ratio(self, row, over, under):
        """A contender's median over another's, or `None`."""
        a, b = self.median(row, over), self.median(row, under)
        return a / b if a is not None and b else None

    def ratios(self, row, over, under):
        """The same round by round."""
        rounds = [{}, {}]
        for by_round, who in zip(rounds, (over, under)):
            for at, value in self._by.get((row, who), []):
                by_round.setdefault(at, []).append(value)
        a, b = rounds
        return [median(a[at]) / median(b[at]) for at in a if at in b]


class Row:
    """A line of the table. `met` says of the samples whether the budget is kept, or `None` where
    that can't be said; `unit` suits its values; `pinned` budgets decide the exit code."""

    def __init__(self, key, what, unit, budget="", met=None, pinned=False):
        self.key, self.what, self.unit, self.budget, self.met, self.pinned = key, what, unit, budget, met, pinned

    def verdict(self, samples):
        """`met`, `missed`, or why there is none."""
        if self.met is None:
            return ""
        if not samples.of(self.key, OURS):
            return "not measured"
        met = self.met(samples, self.key)
        return "not comparable" if met is None else "met" if met else "**missed**"

    def broken(self, samples):
        """Is it a pinned budget that isn't kept?"""
        return self.pinned and self.verdict(samples) == "**missed**"

    def cell(self, samples, who):
        """Median and spread of a contender, in the unit that suits the median."""
        values = samples.of(self.key, who)
        if not values:
            return "–"
        scale, digits, unit = self.unit(median(values))
        middle, low, high = (f"{v * scale:.{digits}f}" for v in (median(values), *spread(values)))
        around = "" if low == middle == high else f" ({low}–{high})"
        return f"{middle}{unit}{around}"


# --- budgets: each a function of (samples, row) to kept, broken or unknown


def at_most(limit):
    """The median."""
    return lambda s, row: s.median(row, OURS) <= limit


def never_above(limit):
    """Every sample."""
    return lambda s, row: max(s.of(row, OURS)) <= limit


def times_faster(factor):
    """Than the tool."""
    return lambda s, row: None if (r := s.ratio(row, TOOL, OURS)) is None else r >= factor


def within(factor):
    """Of the floor."""
    return lambda s, row: None if (r := s.ratio(row, OURS, FLOOR)) is None else r <= factor


def part_of_tool(part):
    """Of the tool's."""
    return lambda s, row: None if (r := s.ratio(row, OURS, TOOL)) is None else r <= part


def no_slower(s, row):
    """The median isn't beyond the tool's own spread."""
    return s.median(row, OURS) <= spread(s.of(row, TOOL))[1] if s.of(row, TOOL) else None


def no_less(s, row):
    """Likewise, of a rate."""
    return s.median(row, OURS) >= spread(s.of(row, TOOL))[0] if s.of(row, TOOL) else None


def both(one, other):
    """Two budgets of one row; an unknown one leaves the whole unknown, unless the other is broken."""

    def met(s, row):
        said = one(s, row), other(s, row)
        return False if False in said else None if None in said else True

    return met


# --- units: the median to (scale, digits, unit)


def seconds(v):
    return (1, 2, " s") if v >= 0.1 else (1000, 1, " ms")


def rate(_):
    return 1, 0, " MB/s"


def memory(_):
    return 1 / 1024, 1, " MiB"


def size(_):
    return 1e-6, 0, " MB"


def count(v):
    return 1, 0 if v == int(v) else 1, ""


ROWS = [
    Row("fresh", "fresh attach", seconds, "≤ 2.5 × floor, ≥ 5 × faster", both(within(2.5), times_faster(5))),
    Row("again", "reconnect", seconds, "≥ 8 × faster", times_faster(8)),
    Row("cold", "ssh, cold", seconds, "no worse than the tool", no_slower),
    Row("mux", "ssh, multiplexed", seconds, "no worse than the tool", no_slower),
    Row("down", "100 MB down", rate, "no worse than the tool", no_less),
    Row("up", "100 MB up", rate, "no worse than the tool", no_less),
    Row("lost", "failed connects", count, "0", never_above(0)),
    Row("help", "`podbench --help`", seconds, "≤ 5 ms", at_most(0.005)),
    Row("rss", "agent, idle: RSS", memory, "≤ 3 MiB", at_most(3 * 1024)),
    Row("wakes", "agent, idle: voluntary switches in 5 s", count, "0", never_above(0)),
    Row("fresh-calls", "kubectl processes, fresh attach", count, "≤ 9", at_most(9), pinned=True),
    Row("fresh-chain", "kubectl in sequence, fresh attach", count, "≤ 5", at_most(5), pinned=True),
    Row("again-calls", "kubectl processes, reconnect", count, "≤ 4", at_most(4), pinned=True),
    Row("again-chain", "kubectl in sequence, reconnect", count),
    Row("again-writes", "kubectl writes, reconnect", count, "0", never_above(0), pinned=True),
    Row("full", "seat image, unpacked", size, "≤ 60 % of the tool's", part_of_tool(0.6)),
    Row("full-packed", "seat image, compressed", size),
    Row("slim", "slim seat image, unpacked", size),
    Row("slim-packed", "slim seat image, compressed", size),
]


def table(samples):
    """The Markdown table, its columns aligned."""
    lines = [["what", "budget", "podbench", "verdict", "the tool", "floor"]]
    for row in ROWS:
        cells = [row.cell(samples, who) for who in (OURS, TOOL, FLOOR)]
        lines.append([row.what, row.budget or "–", cells[0], row.verdict(samples) or "–", *cells[1:]])
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    lines.insert(1, ["-" * width for width in widths])
    return "\n".join("| " + " | ".join(c.ljust(w) for c, w in zip(line, widths)) + " |" for line in lines)


def ratios(samples):
    """The quotients that budgets speak of, as a list."""
    asked = [
        ("fresh attach / floor", "fresh", OURS, FLOOR),
        ("fresh attach: the tool / podbench", "fresh", TOOL, OURS),
        ("reconnect: the tool / podbench", "again", TOOL, OURS),
        ("ssh, cold: the tool / podbench", "cold", TOOL, OURS),
        ("seat image, unpacked: podbench / the tool", "full", OURS, TOOL),
    ]
    lines = []
    for words, row, over, under in asked:
        whole, rounds = samples.ratio(row, over, under), samples.ratios(row, over, under)
        if whole is None:
            lines.append(f"- {words}: not measured")
            continue
        low, high = spread(rounds)
        by_round = f" (round by round {low:.2f}–{high:.2f})" if len(rounds) > 1 else ""
        lines.append(f"- {words}: {whole:.2f}{by_round}")
    return "\n".join(lines)
