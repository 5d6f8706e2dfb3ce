#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Draws docs/hotrow.svg from the figures that `make bench BENCH=hotrow` leaves in bench.json.

usage: tools/plot-hotrow.py build/bench.json > docs/hotrow.svg

Two rows of panels, one panel for each database: how long the slowest clients wait, and the cost of
each success. Lines differ by marker and dash, so that the plot can be read without colours.
"""
import json
import math
import sys

sys.dont_write_bytecode = True
from svg import line, marker, number, text

TITLES = {"postgres": "PostgreSQL", "mysql": "MariaDB", "sqlite": "SQLite"}
# contender, name in the legend, marker, dash, colour
SCHEMES = [
    ("immediate retry", "immediate retry", "circle", "2 3", "#b2182b"),
    ("full jitter", "full jitter, 1–64 ms", "triangle", "7 4", "#d6760b"),
    ("lock first", "SELECT … FOR UPDATE (BEGIN IMMEDIATE)", "square", "10 3 2 3", "#5e5e5e"),
    ("rowlock_retry", "rowlock_retry", "disc", "", "#000000"),
    ("one atomic UPDATE", "one atomic UPDATE, without the work", "cross", "1 4", "#2166ac"),
]
ROWS = [
    ("p99_ms", "p99 latency of a success, ms (log)", 0.05, 10000),
    ("attempts", "attempts per success (log)", 0.8, 50),
]
LEFT, TOP, WIDE, HIGH, GAP_X, GAP_Y = 78, 56, 250, 220, 62, 62


def read_figures(path):
    with open(path, encoding="utf-8") as file:
        figures = json.load(file)["figures"]
    table = {}
    for figure in figures:
        if figure["what"] == "hotrow":
            key = (figure["database"], figure["contender"])
            table.setdefault(key, {})[figure["clients"]] = figure
    if not table:
        sys.exit(f"{path}: no figures of BENCH=hotrow")
    return table


def axis(x, y, low, high):
    """Decades, with a fainter line at 2 and 5 of each."""
    out = []
    for decade in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1):
        for step in (1, 2, 5):
            value = step * 10.0**decade
            if not low <= value <= high:
                continue
            at = place(value, low, high, y)
            out.append(line(x, at, x + WIDE, at, f'stroke="{"#bbb" if step == 1 else "#e6e6e6"}"'))
            if step == 1 or high / low < 1000:
                out.append(text(x - 6, at + 4, number(value), 11, "end"))
    return out


def place(value, low, high, y):
    return y + HIGH * (1 - math.log(value / low) / math.log(high / low))


def panel(table, database, row, x, y, clients):
    key, _, low, high = row
    out = axis(x, y, low, high)
    out.append(f'<rect x="{x}" y="{y}" width="{WIDE}" height="{HIGH}" fill="none" stroke="#555"/>')
    at = {c: x + WIDE * (i + 0.5) / len(clients) for i, c in enumerate(clients)}
    for c in clients:
        out.append(line(at[c], y + HIGH, at[c], y + HIGH + 5, 'stroke="#555"'))
        out.append(text(at[c], y + HIGH + 18, c, 11))
    out.append(text(x + WIDE / 2, y + HIGH + 34, "clients", 11))
    for contender, _, shape, dash, colour in SCHEMES:
        figures = table.get((database, contender), {})
        points = [(at[c], place(max(figures[c][key], low), low, high, y)) for c in clients if c in figures]
        path = " ".join(f"{px:.1f},{py:.1f}" for px, py in points)
        thick = 2.4 if not dash else 1.6
        out.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="{thick}"'
                   f' stroke-dasharray="{dash}"/>')
        out += [marker(shape, px, py, colour) for px, py in points]
    return out


def legend(y):
    out = []
    for i, (_, words, shape, dash, colour) in enumerate(SCHEMES):
        x, row = LEFT + (i % 3) * 280, y + (i // 3) * 22
        out.append(line(x, row, x + 40, row, f'stroke="{colour}" stroke-width="1.8" stroke-dasharray="{dash}"'))
        out.append(marker(shape, x + 20, row, colour))
        out.append(text(x + 48, row + 4, words, 12, "start"))
    return out


def draw(table):
    databases = [d for d in TITLES if any(key[0] == d for key in table)]
    clients = sorted({c for figures in table.values() for c in figures})
    width = LEFT + len(databases) * (WIDE + GAP_X)
    bottom = TOP + len(ROWS) * (HIGH + GAP_Y)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {bottom + 52}" '
           f'font-family="sans-serif" fill="#111">',
           "<title>One hot row: latency and attempts by scheme and number of clients</title>",
           f'<rect width="{width}" height="{bottom + 52}" fill="white"/>',
           text(width / 2, 22, "One hot row, 2 ms of work between reading and writing", 15)]
    for r, row in enumerate(ROWS):
        y = TOP + r * (HIGH + GAP_Y)
        middle = y + HIGH / 2
        out.append(text(24, middle, row[1], 12, "middle", f' transform="rotate(-90 24 {middle})"'))
        for i, database in enumerate(databases):
            x = LEFT + i * (WIDE + GAP_X)
            if r == 0:
                out.append(text(x + WIDE / 2, y - 10, TITLES[database], 13))
            out += panel(table, database, row, x, y, clients)
    out += legend(bottom + 14)
    return "\n".join(out + ["</svg>"])


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__.strip())
    print(draw(read_figures(sys.argv[1])))
