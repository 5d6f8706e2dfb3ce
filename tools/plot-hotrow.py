#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Draws docs/hotrow.svg from the figures that `make bench BENCH=hotrow` leaves in bench.json.

usage: tools/plot-hotrow.py build/bench.json > docs/hotrow.svg

Two rows of panels, one panel for each database: how long the slowest clients wait, and the cost of
each success. Lines differ by marker and dash, so that the plot can be read without colours.
"""
import json
import sys

sys.dont_write_bytecode = True
from svg import HIGH, TITLES, WIDE, draw, frame, line, log_axis, marker, on_log_scale, path, text

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


def read_figures(name):
    with open(name, encoding="utf-8") as file:
        figures = json.load(file)["figures"]
    table = {}
    for figure in figures:
        if figure["what"] == "hotrow":
            key = (figure["database"], figure["contender"])
            table.setdefault(key, {})[figure["clients"]] = figure
    if not table:
        sys.exit(f"{name}: no figures of BENCH=hotrow")
    return table


def draw_hot_row(table):
    clients = sorted({c for figures in table.values() for c in figures})

    def panel(database, row, x, y):
        key, _, low, high = row
        out = log_axis(x, y, low, high) + [frame(x, y)]
        at = {c: x + WIDE * (i + 0.5) / len(clients) for i, c in enumerate(clients)}
        for c in clients:
            out.append(line(at[c], y + HIGH, at[c], y + HIGH + 5, 'stroke="#555"'))
            out.append(text(at[c], y + HIGH + 18, c, 11))
        out.append(text(x + WIDE / 2, y + HIGH + 34, "clients", 11))
        for contender, _, shape, dash, colour in SCHEMES:
            figures = table.get((database, contender), {})
            points = [(at[c], on_log_scale(max(figures[c][key], low), low, high, y))
                      for c in clients if c in figures]
            out.append(path(points, colour, dash, 1.6 if dash else 2.4))
            out += [marker(shape, px, py, colour) for px, py in points]
        return out

    databases = [d for d in TITLES if any(key[0] == d for key in table)]
    return draw(databases, ROWS, panel, [scheme[1:] for scheme in SCHEMES],
                "One hot row: latency and attempts by scheme and number of clients",
                "One hot row, 2 ms of work between reading and writing")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__.strip())
    print(draw_hot_row(read_figures(sys.argv[1])))
