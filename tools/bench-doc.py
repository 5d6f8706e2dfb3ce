#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Rewrites the tables of docs/BENCHMARKS.md from the figures that `make bench` and
`make bench-peers` leave in bench.json and peers.json.

usage: tools/bench-doc.py docs/BENCHMARKS.md FILE.json…

A table stands between `<!-- figures: NAME -->` and `<!-- end -->`. Only the lines between them are
rewritten. A table stays as it is if the files have no figures for it. The names are in REGIONS.

Each table begins with the commit of its figures, the number of processors, the time of one
fdatasync, and the versions of the servers. The figures of a table may come from several files. All
of these must be of one commit, and only one of them may have a figure. After an error the document
is as it was.
"""
import importlib
import json
import re
import sys
import textwrap

sys.dont_write_bytecode = True
from svg import TITLES

peers = importlib.import_module("plot-peers")
head, row, short, known = peers.head, peers.row, peers.short, peers.known

COLUMNS = 100
BEGIN, END = re.compile(r"<!-- figures: (.+) -->"), "<!-- end -->"


class Run:
    """One file: what a run has measured, and on what."""

    def __init__(self, path):
        with open(path, encoding="utf-8") as file:
            content = json.load(file)
        self.path, self.commit, self.figures = path, content.get("commit"), content["figures"]
        self.fdatasync = self.processors = None
        self.servers = {}
        for figure in self.figures:
            self.learn(figure)
        if not self.commit or self.fdatasync is None or self.processors is None:
            sys.exit(f"{path}: it does not name its commit, its processors and its fdatasync")

    def learn(self, figure):
        figure["run"] = self
        if figure["what"] == "fdatasync_us":
            self.fdatasync = figure["value"]
        elif figure["what"] == "processors":
            self.processors = round(figure["value"])
        elif figure["what"] == "server":
            self.servers[figure["database"]] = server_name(figure["contender"])
        elif figure["contender"] == "round trips of rowlock's heartbeat":
            figure["what"] = "heartbeat trips"


def server_name(description):
    """The name and the version in "10.11.6-MariaDB-0, …" or "PostgreSQL 15.6 (Debian), …"."""
    maria = re.match(r"([\d.]+)-MariaDB", description)
    plain = re.match(r"\w+ [\d.]+", description)
    return f"MariaDB {maria[1]}" if maria else plain[0] if plain else description


def unique(values):
    return list(dict.fromkeys(values))


# ---- the figures of one table

class Figures:
    def __init__(self, figures):
        self.all = figures
        self.runs = unique(figure["run"] for figure in figures)
        self.whats = unique(figure["what"] for figure in figures)
        self.databases = [d for d in TITLES if any(f["database"] == d for f in figures)]
        self.by_key = {}
        for figure in figures:
            self.add(figure)

    def add(self, figure):
        key = (figure["database"], figure["what"], figure["contender"], many_of(figure))
        other = self.by_key.setdefault(key, figure)
        if other["run"] is not figure["run"] and figure["what"] != "promise":
            sys.exit(f"{other['run'].path} and {figure['run'].path}: both have {key}")

    def get(self, database, what, contender, many=None):
        return self.by_key.get((database, what, contender, many))

    def contenders(self, what, database=None):
        """In the order of each database. Those that only one has come where they are there."""
        out = []
        for one in [database] if database else self.databases:
            at = 0
            for figure in self.all:
                if figure["what"] == what and figure["database"] == one:
                    name = figure["contender"]
                    if name not in out:
                        out.insert(at, name)
                    at = out.index(name) + 1
        return out

    def many(self, what):
        """The numbers of clients, or of waiters."""
        return sorted({many_of(f) for f in self.all if f["what"] == what})

    def server(self, database):
        return ", ".join(unique(run.servers[database] for run in self.runs
                                if database in run.servers))

    def title(self, database):
        return "MySQL" if self.server(database).startswith("MySQL") else TITLES[database]

    def facts(self):
        """The first line of a region, wrapped if it is too long."""
        commits = unique(run.commit for run in self.runs)
        processors = unique(run.processors for run in self.runs)
        if len(commits) > 1 or len(processors) > 1:
            sys.exit(f"{', '.join(run.path for run in self.runs)}: "
                     "the figures of a table must be of one commit and one machine")
        times = sorted(round(run.fdatasync) for run in self.runs)
        words = [f"Commit {commits[0]}", counted(processors[0], "processor"),
                 f"fdatasync {'–'.join(unique(str(t) for t in (times[0], times[-1])))} µs"]
        words += [self.server(d) for d in self.databases]
        return textwrap.wrap(", ".join(words) + ".", COLUMNS, break_on_hyphens=False)


def many_of(figure):
    return figure.get("clients", figure.get("waiters"))


def counted(number, noun):
    return f"{number} {noun}{'' if number == 1 else 's'}"


# ---- cells

def rate(figure):
    return short(figure["per_second"]) if figure else "–"


def value(figure):
    return short(figure["value"]) if figure else "–"


def exact(figure):
    return f"{figure['value']:,.0f}" if figure else "–"


def ratio(figure):
    """The least and the most of the rounds are known if it was a contest, or if they are a list."""
    if not figure:
        return "–"
    if "ratio" in figure:
        return peers.ratio_cell(figure["ratio"], figure["ratio_low"], figure["ratio_high"])
    rounds = figure.get("rounds")
    return peers.ratio_cell(figure["value"], *((min(rounds), max(rounds)) if rounds else ()))


# ---- tables with a column for each database

def by_database(figures, first, rows):
    """rows: the first cells of each, and a function that makes the cell of a database."""
    out = head(first + [figures.title(d) for d in figures.databases])
    return out + [row(cells + [cell(d) for d in figures.databases]) for cells, cell in rows]


def cell_of(figures, form, what, contender, many=None):
    return lambda database: form(figures.get(database, what, contender, many))


def after_each_other(*tables):
    out = []
    for table in tables:
        out += ([""] if out and table else []) + table
    return out


def contest(what, unit):
    """rowlock's rate, and the ratio of it over the rates of the others."""
    def table(figures):
        rows = []
        for contender in figures.contenders(what):
            own = contender == "rowlock"
            for clients in figures.many(what):
                label = f"rowlock: {unit} a second" if own else f"over {contender}"
                cell = cell_of(figures, rate if own else ratio, what, contender, clients)
                rows.append(([label, str(clients)], cell))
        return by_database(figures, ["", "clients"], rows)
    return table


def rows_a_second(what, unit):
    """The same of what has no clients. The ratio over the first of the others has a short name."""
    def ratio_over(figures, name):
        def cell(database):
            others = [c for c in figures.contenders(what, database) if c != "rowlock"]
            key = "ratio" if others[:1] == [name] else f"ratio, {name}"
            return ratio(figures.get(database, what, key))
        return cell

    def table(figures):
        rows = [([f"rowlock: {unit} a second"], cell_of(figures, value, what, "rowlock"))]
        rows += [([f"over {name}"], ratio_over(figures, name)) for name in figures.contenders(what)
                 if name != "rowlock" and not name.startswith("ratio")]
        for name in figures.contenders("heartbeat trips"):
            rows.append(([name], cell_of(figures, exact, "heartbeat trips", name)))
        return by_database(figures, [""], rows)
    return table


def numbers(label):
    def table(figures):
        return by_database(figures, [""], [
            ([label(what, contender)], cell_of(figures, exact, what, contender))
            for what in figures.whats for contender in figures.contenders(what)])
    return table


BATCHES = {"batch": "rows that follow each other",
           "scattered batch": "rows from all over the table",
           "batch over a network": "over a network with 1 ms round trips", "insert": "new rows"}


def batch_table(figures):
    def both(figure):
        return f"{rate(figure)}, {ratio(figure)}" if figure else "–"

    rows = []
    for what in (w for w in BATCHES if w in figures.whats):
        rows.append(([f"**{BATCHES[what]}**"], lambda database: ""))
        for contender in figures.contenders(what):
            own = contender.startswith("rowlock")
            label = f"`{contender}`" if own else contender
            rows.append(([label], cell_of(figures, rate if own else both, what, contender, 1)))
    return by_database(figures, [""], rows)


GROWTH = {"pairs": "acquire + release", "busy": "busy try", "list": "the grants of one name listed",
          "heartbeat": "100 leases from all over the table in one heartbeat"}
SCANS = {"growth, list of all, us a row": "list of all",
         "growth, sweep, us a row": "sweep that finds nothing"}
FEW_ROWS = "1,000 rows"


def rows_in(label):
    return int(re.sub(r"\D", "", label))


def growth_tables(figures):
    sizes = [what.rsplit(", ", 1)[1] for what in figures.whats if what.endswith(" rows")]
    most = max(sizes, key=rows_in)
    named = f"{rows_in(most):,} rows"
    ratios, rates, scans = [], [], []
    for key, title in GROWTH.items():
        what = f"growth {key}, {most}"
        for clients in figures.many(what):
            label = [f"{title}, {counted(clients, 'client')}"]
            ratios.append((label, cell_of(figures, ratio, what, FEW_ROWS, clients)))
            if key == "pairs":
                rates.append((label, cell_of(figures, rate, what, most, clients)))
    for what, title in SCANS.items():
        for label in sorted(figures.contenders(what), key=rows_in):
            cells = [f"{title}, {rows_in(label):,} rows"]
            scans.append((cells, cell_of(figures, value, what, label)))
    return after_each_other(
        by_database(figures, [f"the rate with {named} over that with {FEW_ROWS}"], ratios),
        by_database(figures, [f"pairs a second with {named}"], rates),
        by_database(figures, ["µs for each row"], scans))


def rest_table(figures):
    def cell(figure):
        return "–" if not figure else ", ".join([
            known(figure, "statements_per_second"), known(figure, "server_cpu_percent", " %"),
            known(figure, "client_cpu_percent", " %")])

    return by_database(figures, [""], [
        ([f"{contender}, {waiters} waiters"], cell_of(figures, cell, "rest", contender, waiters))
        for contender in figures.contenders("rest") for waiters in figures.many("rest")])


# ---- tables with a row for each database

def two_ways(other, ours, label):
    """Two ways of rowlock itself: (contender, name). ours was the first contender."""
    def table(figures):
        out = head(["", "clients", f"{other[1]}, pairs/s", f"{ours[1]}, pairs/s",
                    f"{ours[1]} over {other[1]}",
                    f"client's user time, µs for a pair: {other[1]} / {ours[1]}"])
        for database in figures.databases:
            for what in figures.whats:
                for many in figures.many(what):
                    pair = [figures.get(database, what, way[0], many) for way in (other, ours)]
                    if all(pair):
                        cpu = " / ".join(short(f["client_user_cpu_us"]) for f in pair)
                        out.append(row([figures.title(database) + label(what), str(many),
                                        rate(pair[0]), rate(pair[1]), ratio(pair[0]), cpu]))
        return out
    return table


def waiting(figures, what, title, cell):
    lines = figures.many(what)
    out = head([title] + [counted(n, "waiter") for n in lines])
    for database in figures.databases:
        for contender in figures.contenders(what, database):
            cells = [cell(figures.get(database, what, contender, n) or {}) for n in lines]
            if any(text != "–" for text in cells):
                out.append(row([f"{figures.title(database)}, {contender}"] + cells))
    return out


def handoffs(what, key, title):
    def tables(figures):
        return after_each_other(
            waiting(figures, what, "ms, median / 99th percentile", peers.handoff_cell),
            waiting(figures, what, title, lambda figure: known(figure, key)))
    return tables


def hotrow_table(figures):
    most = figures.many("hotrow")[-1]
    out = head([f"{most} clients", "successes/s", "attempts", "p50 ms", "p99 ms", "max ms"])
    for database in figures.databases:
        for contender in figures.contenders("hotrow", database):
            figure = figures.get(database, "hotrow", contender, most)
            keys = ("per_second", "attempts", "p50_ms", "p99_ms", "max_ms")
            name = f"**`{contender}`**" if contender.startswith("rowlock") else contender
            out.append(row([f"{figures.title(database)}, {name}"] +
                           [known(figure, key) for key in keys]))
    return out


def of_peers(*parts):
    def tables(figures):
        all_peers = peers.Peers(figures.all)
        return after_each_other(*(part(all_peers) for part in parts))
    return tables


# ---- regions

class Region:
    """needs and takes: patterns of "what". There is no table without a figure that it needs."""

    def __init__(self, table, needs, takes="", of_peers=False):
        self.table, self.of_peers = table, of_peers
        self.needs, self.takes = re.compile(needs), re.compile(f"{needs}|{takes}")

    def select(self, runs):
        out = []
        for run in runs:
            mine = [f for f in run.figures if (f["database"] == "peers") == self.of_peers]
            found = [f for f in mine if self.takes.fullmatch(f["what"])]
            # A run tells of each peer what it promises, and which peers it has left out.
            out += found and found + [f for f in mine if f["what"] == "promise"]
        return out if any(self.needs.fullmatch(f["what"]) for f in out) else []

    def lines(self, runs):
        """None: the files have no figures for it."""
        selected = self.select(runs)
        if not selected:
            return None
        figures = Figures(selected)
        table = self.table(figures)
        return figures.facts() + [""] + table if table else None


POOL = two_ways(("rowlock", "a connection each"), ("rowlock's pool", "pool"),
                lambda what: "" if what == "pool" else ", 1 ms round trips")
QUORUM = two_ways(("rowlock", "one server"), ("rowlock's quorum of three", "quorum of three"),
                  lambda what: "")

REGIONS = {
    "pairs": Region(contest("pairs", "pairs"), "pairs"),
    "network": Region(contest("pairs over a network", "pairs"), "pairs over a network"),
    "busy": Region(contest("busy", "tries"), "busy"),
    "renew": Region(contest("renew", "renewals"), "renew"),
    "heartbeat": Region(rows_a_second("heartbeat", "leases"), "heartbeat", "heartbeat trips"),
    "trips": Region(numbers(lambda what, contender: contender), "round trips"),
    "log": Region(numbers(lambda what, contender: f"{what.replace('log of ', '')}, {contender}"),
                  "log of .*"),
    "pool": Region(POOL, "pool", "pool over a network"),
    "quorum": Region(QUORUM, "quorum over a network"),
    "sweep": Region(rows_a_second("sweep", "rows"), "sweep"),
    "handoff": Region(handoffs("handoff", "statements", "statements for each handoff"), "handoff"),
    "network handoff": Region(handoffs("network handoff", "round_trips", "median, in round trips"),
                              "network handoff"),
    "rest": Region(rest_table, "rest"),
    "growth": Region(growth_tables, "growth .*", "growth, .*"),
    "batch": Region(batch_table, "batch", "scattered batch|batch over a network|insert"),
    "hotrow": Region(hotrow_table, "hotrow"),
    "peers promises": Region(of_peers(peers.promises_table), "crash", of_peers=True),
    "peers pairs": Region(of_peers(peers.pairs_table, peers.left_out), "pairs", of_peers=True),
    "peers costs": Region(of_peers(peers.costs_table), "pairs", of_peers=True),
    "peers python": Region(of_peers(peers.python_table), "python", of_peers=True),
    "peers ratios": Region(of_peers(peers.ratios), "pairs", of_peers=True),
    "peers waiting": Region(of_peers(peers.waits_table), "handoff", "rest", of_peers=True),
}


# ---- the document

def rewrite(path, lines, runs):
    """The new lines of the document, and what became of each region."""
    out, names, done = [], {}, 0
    for i, line in enumerate(lines):
        begin = BEGIN.fullmatch(line)
        if begin:
            name = begin[1]
            end = next((k for k in range(i + 1, len(lines))
                        if lines[k] == END or BEGIN.fullmatch(lines[k])), None)
            if name not in REGIONS or name in names or end is None or lines[end] != END:
                sys.exit(f"{path}:{i + 1}: {name}: it is unknown, here twice, or has no end")
            made = REGIONS[name].lines(runs)
            names[name] = made[0] if made else None
            out += lines[done:i + 1] + (["", *made, ""] if made else lines[i + 1:end])
            done = end
    return out + lines[done:], names


def main(path, files):
    runs = [Run(file) for file in files]
    with open(path, encoding="utf-8") as file:
        lines = file.read().split("\n")
    lines, names = rewrite(path, lines, runs)
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(lines))
    for name, facts in names.items():
        print(f"{name}: {facts or 'left as it is'}")
    for name in (n for n in REGIONS if n not in names and REGIONS[n].select(runs)):
        print(f"{name}: {path} has no such table")


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__.strip())
    main(sys.argv[1], sys.argv[2:])
