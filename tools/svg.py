# SPDX-License-Identifier: MIT
"""Shapes and panels of the plots in docs/, for the scripts beside it. Markers differ by shape, so
that a plot can be read without colours."""
import math

WIDE, HIGH, GAP_X, GAP_Y, LEFT, TOP = 250, 220, 62, 62, 78, 56
TITLES = {"postgres": "PostgreSQL", "mysql": "MariaDB", "sqlite": "SQLite"}


def text(x, y, words, size=12, anchor="middle", extra=""):
    return (f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}"{extra}>'
            f"{words}</text>")


def line(x1, y1, x2, y2, style):
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" {style}/>'


def path(points, colour, dash="", thick=1.6):
    at = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return (f'<polyline points="{at}" fill="none" stroke="{colour}" stroke-width="{thick}"'
            f' stroke-dasharray="{dash}"/>')


def marker(kind, x, y, colour):
    hollow = f'fill="white" stroke="{colour}" stroke-width="1.6"'
    if kind == "circle":
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" {hollow}/>'
    if kind == "disc":
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4.6" fill="{colour}"/>'
    if kind == "square":
        return f'<rect x="{x - 3.8:.1f}" y="{y - 3.8:.1f}" width="7.6" height="7.6" {hollow}/>'
    if kind == "triangle":
        return (f'<path d="M {x:.1f} {y - 5:.1f} L {x + 4.8:.1f} {y + 3.6:.1f} '
                f'L {x - 4.8:.1f} {y + 3.6:.1f} Z" {hollow}/>')
    return (f'<path d="M {x - 4:.1f} {y - 4:.1f} L {x + 4:.1f} {y + 4:.1f} M {x - 4:.1f} {y + 4:.1f} '
            f'L {x + 4:.1f} {y - 4:.1f}" stroke="{colour}" stroke-width="1.8"/>')


def number(value):
    return f"{value:g}" if value < 1000 else f"{value:,.0f}"


def frame(x, y):
    return f'<rect x="{x}" y="{y}" width="{WIDE}" height="{HIGH}" fill="none" stroke="#555"/>'


def on_log_scale(value, low, high, y):
    return y + HIGH * (1 - math.log(value / low) / math.log(high / low))


def log_axis(x, y, low, high):
    """Decades, with a fainter line at 2 and 5 of each."""
    out = []
    for decade in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1):
        for step in (1, 2, 5):
            value = step * 10.0**decade
            if not low <= value <= high:
                continue
            at = on_log_scale(value, low, high, y)
            out.append(line(x, at, x + WIDE, at, f'stroke="{"#bbb" if step == 1 else "#e6e6e6"}"'))
            if step == 1 or high / low < 1000:
                out.append(text(x - 6, at + 4, number(value), 11, "end"))
    return out


def round_up(value):
    """The least of 1, 2, 5, 10, 20 and so on that is not below value."""
    decade = 10.0 ** math.floor(math.log10(value)) if value > 0 else 1
    return next(step * decade for step in (1, 2, 5, 10) if step * decade >= value)


def linear_axis(x, y, high):
    out = []
    for i in range(6):
        at = y + HIGH * (1 - i / 5)
        out.append(line(x, at, x + WIDE, at, 'stroke="#ddd"'))
        out.append(text(x - 6, at + 4, number(high * i / 5), 11, "end"))
    return out


def legend(y, entries, columns=3):
    """Entries: words, marker or None, dash, colour."""
    out = []
    for i, (words, shape, dash, colour) in enumerate(entries):
        x, row = LEFT + (i % columns) * 280, y + (i // columns) * 22
        out.append(line(x, row, x + 40, row, f'stroke="{colour}" stroke-width="1.8" stroke-dasharray="{dash}"'))
        if shape:
            out.append(marker(shape, x + 20, row, colour))
        out.append(text(x + 48, row + 4, words, 12, "start"))
    return out


def by_clients(x, y, row, clients, contenders, figures_of):
    """A panel of rows like draw()'s, each with key, words, least and most: a line for each contender.
    It has its name first, and last its marker, dash and colour. figures_of(name): by clients."""
    key, _, low, high = row
    out = log_axis(x, y, low, high) + [frame(x, y)]
    at = {c: x + WIDE * (i + 0.5) / len(clients) for i, c in enumerate(clients)}
    for c in clients:
        out.append(line(at[c], y + HIGH, at[c], y + HIGH + 5, 'stroke="#555"'))
        out.append(text(at[c], y + HIGH + 18, c, 11))
    out.append(text(x + WIDE / 2, y + HIGH + 34, "clients", 11))
    for contender in contenders:
        figures, (shape, dash, colour) = figures_of(contender[0]), contender[-3:]
        points = [(at[c], on_log_scale(min(max(figures[c][key], low), high), low, high, y))
                  for c in clients if key in figures.get(c, {})]
        out.append(path(points, colour, dash, 1.6 if dash else 2.4))
        out += [marker(shape, px, py, colour) for px, py in points]
    return out


def draw(databases, rows, panel, entries, title, heading, titles=TITLES):
    """rows: of panels, each with its words second. panel(database, row, x, y) draws one. A column
    may be something else than a database: titles has the words above each."""
    width = LEFT + len(databases) * (WIDE + GAP_X)
    bottom = TOP + len(rows) * (HIGH + GAP_Y)
    columns = min(3, len(databases))
    height = bottom + 8 + 22 * math.ceil(len(entries) / columns)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
           f'font-family="sans-serif" fill="#111">',
           f"<title>{title}</title>",
           f'<rect width="{width}" height="{height}" fill="white"/>',
           text(width / 2, 22, heading, 15)]
    for r, row in enumerate(rows):
        y = TOP + r * (HIGH + GAP_Y)
        middle = y + HIGH / 2
        out.append(text(24, middle, row[1], 12, "middle", f' transform="rotate(-90 24 {middle})"'))
        for i, database in enumerate(databases):
            x = LEFT + i * (WIDE + GAP_X)
            if r == 0:
                out.append(text(x + WIDE / 2, y - 10, titles[database], 13))
            out += panel(database, row, x, y)
    out += legend(bottom + 14, entries, columns)
    return "\n".join(out + ["</svg>"])
