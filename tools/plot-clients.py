#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Draws docs/peers-clients.svg from the figures that `make bench-peers` leaves in peers.json.

usage: tools/plot-clients.py build/peers.json > docs/peers-clients.svg

Two rows of panels: pairs a second, and processor time of the server for each pair, by the number of
clients. Left rowlock, right the others beside rowlock's pool. Lines differ by marker and dash, so
that the plot can be read without colours.
"""
import json
import sys

sys.dont_write_bytecode = True
from svg import by_clients, draw

# contender, marker, dash, colour
OURS = [
    ("rowlock's pool, PostgreSQL", "disc", "", "#000000"),
    ("rowlock's pool, MariaDB", "square", "", "#2166ac"),
    ("rowlock, PostgreSQL", "circle", "7 4", "#000000"),
    ("rowlock, MariaDB", "triangle", "7 4", "#2166ac"),
    ("rowlock, SQLite", "cross", "2 3", "#5e5e5e"),
]
THEIRS = [
    ("Redis, everysec", "circle", "2 3", "#b2182b"),
    ("Redis, always", "triangle", "7 4", "#b2182b"),
    ("etcd", "square", "10 3 2 3", "#d6760b"),
    ("ZooKeeper", "cross", "1 4", "#5e5e5e"),
]
COLUMNS = {"ours": OURS, "theirs": OURS[:1] + THEIRS}
TITLES = {"ours": "rowlock", "theirs": "others, beside rowlock's pool"}
ROWS = [("per_second", "pairs a second (log)", 100, 100000),
        ("server_us", "server, µs a pair (log)", 10, 10000)]


def read_figures(name):
    with open(name, encoding="utf-8") as file:
        figures = json.load(file)["figures"]
    table = {}
    for figure in figures:
        if figure["what"] == "pairs":
            table.setdefault(figure["contender"], {})[figure["clients"]] = figure
    if not table:
        sys.exit(f"{name}: no figures of BENCH=pairs of peers")
    return table


def draw_clients(table):
    clients = sorted({c for figures in table.values() for c in figures})

    def panel(column, row, x, y):
        return by_clients(x, y, row, clients, COLUMNS[column], lambda name: table.get(name, {}))

    return draw(list(COLUMNS), ROWS, panel, OURS + THEIRS,
                "Pairs a second and their cost, by number of clients",
                "Acquire + release, each client on a lock of its own", TITLES)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__.strip())
    print(draw_clients(read_figures(sys.argv[1])))
