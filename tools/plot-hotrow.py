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
from svg import TITLES, by_clients, draw

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
        return by_clients(x, y, row, clients, SCHEMES, lambda name: table.get((database, name), {}))

    databases = [d for d in TITLES if any(key[0] == d for key in table)]
    return draw(databases, ROWS, panel, [scheme[1:] for scheme in SCHEMES],
                "One hot row: latency and attempts by scheme and number of clients",
                "One hot row, 2 ms of work between reading and writing")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__.strip())
    print(draw_hot_row(read_figures(sys.argv[1])))
