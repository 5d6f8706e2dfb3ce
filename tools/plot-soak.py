#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Draws docs/soak.svg from the samples that `make soak` leaves in soak.json.

usage: tools/plot-soak.py build/soak.json > docs/soak.svg

Three rows of panels, one panel for each database: tables with their indexes, dead rows (SQLite: the
write-ahead log), and the client's memory.
"""
import json
import sys

sys.dont_write_bytecode = True
from svg import HIGH, TITLES, WIDE, draw, frame, linear_axis, number, path, round_up, text

# contender, name in the legend, dash, colour
SIDES = [
    ("rowlock", "rowlock", "", "#000000"),
    ("bare INSERT + DELETE", "one client of bare INSERT + DELETE", "2 3", "#b2182b"),
]
ROWS = [
    (("tables_mb", "indexes_mb"), "tables and indexes, MB"),
    (("dead_rows", "wal_mb"), "dead rows (SQLite: WAL, MB)"),
    (("client_mb",), "memory of the client, MB"),
]


def read_samples(name):
    with open(name, encoding="utf-8") as file:
        figures = json.load(file)["figures"]
    series = {}
    for figure in figures:
        if figure["what"] == "soak":
            series.setdefault((figure["database"], figure["contender"]), []).append(figure)
    if not series:
        sys.exit(f"{name}: no samples of a soak")
    return series


def draw_soak(series):
    def panel(database, row, x, y):
        lines = {}
        for side, *_ in SIDES:
            samples = series.get((database, side), [])
            lines[side] = [(s["second"], sum(s.get(key, 0) for key in row[0])) for s in samples
                           if any(key in s for key in row[0])]
        points = [point for side in lines.values() for point in side]
        last = max(s["second"] for side, *_ in SIDES for s in series.get((database, side), []))
        high = round_up(max((value for _, value in points), default=1) or 1)
        out = linear_axis(x, y, high) + [frame(x, y)]
        for i in range(5):
            out.append(text(x + WIDE * i / 4, y + HIGH + 18, number(round(last * i / 4)), 11))
        out.append(text(x + WIDE / 2, y + HIGH + 34, "seconds", 11))
        for side, _, dash, colour in SIDES:
            at = [(x + WIDE * second / last, y + HIGH * (1 - value / high))
                  for second, value in lines[side]]
            out.append(path(at, colour, dash, 1.6))
        return out

    databases = [d for d in TITLES if any(key[0] == d for key in series)]
    return draw(databases, ROWS, panel,
                [(words, None, dash, colour) for _, words, dash, colour in SIDES],
                "Soak: sizes while locks come and go", "Sizes while locks of 100,000 names come and go")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__.strip())
    print(draw_soak(read_samples(sys.argv[1])))
