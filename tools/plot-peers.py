#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Draws docs/peers.svg from the figures that `make bench-peers` leaves in peers.json, or writes its
tables. tools/bench-doc.py puts the same tables into docs/BENCHMARKS.md.

usage: tools/plot-peers.py build/peers.json… > docs/peers.svg
       tools/plot-peers.py --tables build/peers.json…

Several files are several parts: BENCH=pairs in one run, BENCH=handoff in another.
"""
import json
import math
import statistics
import sys
import textwrap

sys.dont_write_bytecode = True
from svg import line, marker, number, text

CLIENTS = (1, 8, 64)
TABLED = (1, 8, 64, 256)
WAITERS = (1, 16, 64)
SHAPES = ("circle", "triangle", "disc")
NAMES, TOP, ROW, WIDE, GAP, CELL = 214, 78, 28, 230, 56, 48
# The three marks of a row are one below the other.
STEP = 7


class Peers:
    """The figures of each peer, in the order in which they were measured."""

    def __init__(self, figures):
        self.promises, self.pairs, self.handoffs, self.rest, self.crash = {}, {}, {}, {}, {}
        self.python = {}
        for figure in figures:
            name, what = figure["contender"], figure["what"]
            if what == "promise":
                self.promises.setdefault(name, {}).update(figure)
            elif what == "pairs":
                self.pairs.setdefault(name, {})[figure["clients"]] = figure
            elif what == "handoff":
                self.handoffs.setdefault(name, {})[figure["waiters"]] = figure
            elif what == "rest":
                self.rest[name] = figure
            elif what == "crash":
                self.crash[name] = figure
            elif what == "python":
                self.python.setdefault(name, {})[figure["mode"]] = figure
        self.names = [n for n, p in self.promises.items() if "left out" not in p]
        self.absent = [n for n, p in self.promises.items() if "left out" in p]

    def stands(self, name):
        stands = self.crash.get(name, {}).get("stands")
        return {None: "–", 0: "lost", 1: "stands"}[None if stands is None else int(stands)]

    def ratio(self, one, clients, other, other_clients):
        """Of the rounds if both took turns, else of the medians, as text. None: not measured."""
        ours = self.pairs.get(one, {}).get(clients)
        theirs = self.pairs.get(other, {}).get(other_clients)
        if not ours or not theirs:
            return None
        if clients != other_clients:
            return ratio_cell(ours["per_second"] / theirs["per_second"])
        rounds = [a / b for a, b in zip(ours["rounds"], theirs["rounds"])]
        return ratio_cell(statistics.median(rounds), min(rounds), max(rounds))


def read_figures(paths):
    figures = []
    for path in paths:
        with open(path, encoding="utf-8") as file:
            figures += json.load(file)["figures"]
    return figures


# ---- the plot

class Axis:
    """A logarithmic axis from left to right. What lies beyond its ends is drawn there."""

    def __init__(self, x, low, high, title):
        self.x, self.low, self.high, self.title = x, low, high, title

    def at(self, value):
        share = math.log(max(value, self.low) / self.low) / math.log(self.high / self.low)
        return self.x + WIDE * min(share, 1)

    def draw(self, bottom):
        out = [text(self.x + WIDE / 2, TOP - 42, self.title, 13)]
        for decade in range(round(math.log10(self.low)), round(math.log10(self.high)) + 1):
            x = self.at(10.0**decade)
            out.append(line(x, TOP - 8, x, bottom, 'stroke="#bbb"'))
            out.append(text(x, TOP - 14, number(10.0**decade), 11))
        return out


def spread(axis, low, high, y):
    style = 'stroke="#777" stroke-width="1.2"'
    return line(axis.at(low), y, axis.at(high), y, style)


def draw_pairs(peers, name, axis, y):
    out, marks = [], []
    for i, (shape, clients) in enumerate(zip(SHAPES, CLIENTS)):
        figure = peers.pairs.get(name, {}).get(clients)
        if figure:
            at = y + (i - 1) * STEP
            out.append(spread(axis, figure["least"], figure["most"], at))
            marks.append(marker(shape, axis.at(figure["per_second"]), at, "#000"))
    return out + marks


def draw_handoffs(peers, name, axis, y):
    out, marks = [], []
    for i, (shape, waiters) in enumerate(zip(SHAPES, WAITERS)):
        figure = peers.handoffs.get(name, {}).get(waiters)
        if figure and "median_us" in figure:
            at = y + (i - 1) * STEP
            median, worst = figure["median_us"] / 1000, figure["p99_us"] / 1000
            out.append(spread(axis, median, worst, at))
            marks.append(marker(shape, axis.at(median), at, "#000"))
    return out + marks


def promise_cells(peers, name):
    promise = peers.promises[name]
    return ["no" if promise["lease"].startswith(("no", "a column")) else "yes",
            "no" if promise["token"] == "no" else "yes",
            "fair" if promise["order"] == "queue" else "poll",
            peers.stands(name)]


def draw(peers):
    bottom = TOP + ROW * len(peers.names)
    pairs = Axis(NAMES, 100, 100000, "pairs a second: median, least, most")
    handoffs = Axis(NAMES + WIDE + GAP, 0.01, 1000, "handoff, ms: median to 99th percentile")
    cells = NAMES + 2 * WIDE + GAP + 36
    width, height = cells + 4 * CELL, bottom + 44
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
           f'font-family="sans-serif" fill="#111">',
           "<title>rowlock beside its peers: pairs a second, handoffs, promises</title>",
           f'<rect width="{width}" height="{height}" fill="white"/>']
    for i in range(0, len(peers.names), 2):
        out.append(f'<rect x="0" y="{TOP + i * ROW}" width="{width}" height="{ROW}" '
                   'fill="#f2f2f2"/>')
    out += pairs.draw(bottom) + handoffs.draw(bottom)
    for i, words in enumerate(("lease", "token", "waiters", "kill -9")):
        out.append(text(cells + i * CELL + CELL / 2 - 8, TOP - 14, words, 11))
    for i, name in enumerate(peers.names):
        y = TOP + i * ROW + ROW / 2
        bold = ' font-weight="bold"' if name.startswith("rowlock") else ""
        out.append(text(NAMES - 12, y + 4, name, 12, "end", bold))
        out += draw_pairs(peers, name, pairs, y) + draw_handoffs(peers, name, handoffs, y)
        for j, words in enumerate(promise_cells(peers, name)):
            out.append(text(cells + j * CELL + CELL / 2 - 8, y + 4, words, 11))
    for i, shape in enumerate(SHAPES):
        x = NAMES + i * 190
        out.append(marker(shape, x + 6, bottom + 24, "#000"))
        words = f"{CLIENTS[i]} client{'s'[:i]}; {WAITERS[i]} waiter{'s'[:i]}"
        out.append(text(x + 18, bottom + 28, words, 12, "start"))
    return "\n".join(out + ["</svg>"])


# ---- the tables

def row(cells):
    return "| " + " | ".join(cells) + " |"


def head(cells):
    return [row(cells), "|" + "---|" * len(cells)]


def short(value):
    """Two digits: more would be the machine's noise."""
    if abs(value) < 0.005:
        return "0"
    digits = min(2, 1 - math.floor(math.log10(abs(value))))
    return f"{round(value, digits):,.{max(0, digits)}f}"


def ratio_cell(median, least=None, most=None):
    """The brackets hold the least and the most of the rounds, if they are known."""
    def digits(value):
        return f"{value:,.{2 if value < 9.995 else 1 if value < 99.95 else 0}f}"
    if least is None or most is None:
        return digits(median)
    return f"{digits(median)} ({digits(least)}–{digits(most)})"


def pairs_cell(figure):
    if not figure:
        return "–"
    return f"{short(figure['per_second'])} ({short(figure['least'])}–{short(figure['most'])})"


def promises_table(peers):
    out = head(["", "lease", "token", "on the disk at the grant", "after kill -9"])
    for name in peers.names:
        promise = peers.promises[name]
        out.append(row([name, promise["lease"], promise["token"], promise["durable"],
                        peers.stands(name)]))
    return out


def pairs_table(peers):
    out = head([""] + [f"{c} client{'s' if c > 1 else ''}" for c in TABLED] + ["p99, 64"])
    for name in peers.names:
        of = peers.pairs.get(name, {})
        worst = f"{short(of[64]['p99_us'] / 1000)} ms" if 64 in of else "–"
        out.append(row([name] + [pairs_cell(of.get(c)) for c in TABLED] + [worst]))
    return out


def costs_table(peers):
    out = head([""] + [f"{c} client{'s' if c > 1 else ''}" for c in TABLED])
    for name in peers.names:
        of = peers.pairs.get(name, {})
        if any("server_us" in figure for figure in of.values()):
            out.append(row([name] + [known(of.get(c, {}), "server_us") for c in TABLED]))
    return out


def python_table(peers):
    out = head(["", "32 threads", "500 tasks"])
    for name, of in peers.python.items():
        out.append(row([name] + [pairs_cell(of.get(mode)) for mode in ("threads", "tasks")]))
    return out


def handoff_cell(figure):
    if not figure or "median_us" not in figure:
        return "–"
    return f"{short(figure['median_us'] / 1000)} / {short(figure['p99_us'] / 1000)}"


def known(figure, key, unit=""):
    return f"{short(figure[key])}{unit}" if key in figure else "–"


def waits_table(peers):
    out = head(["", "order of waiters"] + [f"{w} waiter{'s' if w > 1 else ''}" for w in WAITERS] +
               ["statements a handoff, 64", "at rest, statements/s", "server CPU", "connections"])
    for name in peers.names:
        if name not in peers.handoffs:
            continue
        of, rest = peers.handoffs[name], peers.rest.get(name, {})
        out.append(row([name, peers.promises[name]["order"]] +
                       [handoff_cell(of.get(w)) for w in WAITERS] +
                       [known(of.get(64, {}), "statements"), known(rest, "statements_per_second"),
                        known(rest, "server_cpu_percent", " %"),
                        f"{rest['connections']:.0f}" if "connections" in rest else "–"]))
    return out


def ratios(peers):
    pool, mysql_pool = "rowlock's pool, PostgreSQL", "rowlock's pool, MariaDB"
    out = []
    for one, clients, other, other_clients in (
            (pool, 64, "rowlock, PostgreSQL", 64), (pool, 64, "bare INSERT + DELETE", 8),
            (pool, 64, "Redis, always", 64), (pool, 1, "rowlock, PostgreSQL", 1),
            (mysql_pool, 64, "rowlock, MariaDB", 64), (mysql_pool, 64, "Redis, always", 64),
            (mysql_pool, 1, "rowlock, MariaDB", 1)):
        ratio = peers.ratio(one, clients, other, other_clients)
        if ratio is not None:
            out.append(f"- {one}, {clients}, over {other}, {other_clients}: {ratio}")
    return out


def left_out(peers):
    return textwrap.wrap("Left out: " + "; ".join(peers.absent), 100) if peers.absent else []


def tables(peers):
    parts = [promises_table(peers), pairs_table(peers), costs_table(peers), python_table(peers),
             waits_table(peers), ratios(peers)]
    return "\n\n".join("\n".join(part) for part in parts + [left_out(peers)] if part)


if __name__ == "__main__":
    files = [word for word in sys.argv[1:] if word != "--tables"]
    if not files:
        sys.exit(__doc__.strip())
    print((draw if files == sys.argv[1:] else tables)(Peers(read_figures(files))))
