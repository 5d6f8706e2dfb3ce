#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Records a run of `make demo`, and draws it as an animated SVG. What make prints while it builds
is left out. The host is called web1 meanwhile. A viewer without animation shows the last screen.

usage: tools/record-demo.py > docs/demo.svg
"""
import html
import os
import pty
import re
import sys
import time

sys.dont_write_bytecode = True
from svg import text

COMMAND = ["make", "demo"]
# It plays twice as fast as it ran. The last screen stays for REST seconds.
SPEED, REST = 2, 6
ROWS, COLUMNS, LINE, LETTER, SIZE, LEFT, TOP = 27, 100, 17, 7.83, 13, 14, 30
INK, HEAD, DIM = "#d0d7de", "#ffffff", "#8b949e"
# Each who speaks has a colour, in the order in which they come.
COLOURS = ("#7ee787", "#79c0ff", "#ff9b8e", "#e3b341", "#d2a8ff")


def record():
    """Runs the command in a terminal. Returns its lines with the time of each."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.execvp("unshare", ["unshare", "--map-root-user", "--uts", "sh", "-c", 'hostname web1 && exec "$@"', "-", *COMMAND])
    lines, rest = [], b""
    while True:
        try:
            data = os.read(terminal, 4096)
        # Linux says EIO when the program has ended.
        except OSError:
            data = b""
        if not data:
            break
        *whole, rest = (rest + data).split(b"\n")
        lines += [(time.monotonic(), line.decode().rstrip("\r")) for line in whole]
    if os.waitpid(pid, 0)[1] != 0:
        sys.exit("\n".join(line for _, line in lines) + f"\n{' '.join(COMMAND)} failed")
    return lines


def screens(lines):
    """The lines from the demo's first, by times that begin at 0: (seconds, [line, …])."""
    first = next(i for i, (_, line) in enumerate(lines) if line.startswith("1. "))
    out = [(0, ["$ " + " ".join(COMMAND), ""])]
    for at, line in lines[first:]:
        at = 0.8 + (at - lines[first][0]) / SPEED
        # What comes within a twentieth of a second is seen at once.
        if at - out[-1][0] < 0.05:
            out[-1][1].append(line)
        else:
            out.append((at, [line]))
    return out


def styled(line, colours):
    speaker = re.match(r"( +)(\w+)(: )(.*)", line)
    if speaker:
        indent, who, colon, words = (html.escape(part, quote=False) for part in speaker.groups())
        colour = colours.setdefault(who, COLOURS[len(colours) % len(COLOURS)])
        return f'{indent}<tspan fill="{colour}">{who}{colon}</tspan>{words}'
    fill = HEAD if re.match(r"\d\. |What you saw| *\$ ", line) else DIM if "LEASE LEFT" in line else INK
    words = html.escape(line, quote=False)
    return words if fill == INK else f'<tspan fill="{fill}">{words}</tspan>'


def draw(shown):
    width, height = 2 * LEFT + COLUMNS * LETTER, TOP + ROWS * LINE + 12
    whole = shown[-1][0] + REST
    colours, groups, frames, scroll, row = {}, [], [], [], 0
    for i, (at, lines) in enumerate(shown):
        share, out = 100 * at / whole, []
        for line in lines:
            if line:
                out.append(text(LEFT, TOP + (row + 1) * LINE, styled(line, colours), SIZE, "start"))
            row += 1
        groups.append(f'<g style="animation-name:s{i}">' + "\n".join(out) + "</g>")
        frames.append(f"@keyframes s{i}{{0%{{opacity:0}}{share:.2f}%{{opacity:1}}}}")
        lift = LINE * max(0, row - ROWS)
        scroll.append(f"{share:.2f}%{{transform:translateY(-{lift}px)}}")
    style = "\n".join([
        f"text{{white-space:pre}}g{{animation:{whole:.1f}s step-end infinite}}", *frames[1:],
        f"@keyframes lift{{{''.join(scroll)}}}",
        "@media(prefers-reduced-motion:reduce){g{animation:none!important}}"])
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" fill="{INK}"'
        ' xml:space="preserve" font-family="DejaVu Sans Mono,Menlo,Consolas,monospace">',
        "<title>make demo: one of two rivals waits; a killed holder's lock goes on to the next</title>",
        f"<style>{style}</style>",
        f'<clipPath id="screen"><rect y="{TOP + 5}" width="{width:.0f}" height="{height}"/></clipPath>',
        f'<rect width="{width:.0f}" height="{height}" rx="8" fill="#161b22"/>',
        text(width / 2, 19, f"{' '.join(COMMAND)}: a recorded run, twice as fast", 11, "middle",
             f' fill="{DIM}"'),
        f'<g clip-path="url(#screen)"><g style="animation-name:lift" transform="translate(0 -{lift})">',
        *groups, "</g></g></svg>"])


if __name__ == "__main__":
    if sys.argv[1:]:
        sys.exit(__doc__.strip())
    print(draw(screens(record())))
