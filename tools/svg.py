# SPDX-License-Identifier: MIT
"""Shapes of the plots in docs/, for the scripts beside it. Markers differ by shape, so that a plot
can be read without colours."""


def text(x, y, words, size=12, anchor="middle", extra=""):
    return (f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}"{extra}>'
            f"{words}</text>")


def line(x1, y1, x2, y2, style):
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" {style}/>'


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
