#!/usr/bin/env python3
# Which states and next steps of the library were reached, and how often: each name of an enum of
# src, with the runs of the places that give it. Places that compare with it or branch on it do not
# count. `make simulate-states` calls it.
#
# usage: llvm-cov export PROGRAM ... | tools/states.py HEADER...
import json
import re
import sys

NAME = re.compile(r"\bRLK_[A-Z0-9_]+\b")
COMMENT = re.compile(r"/\*.*?\*/", re.S)


def find_enums(headers):
    for path in headers:
        text = COMMENT.sub("", open(path).read())
        for enum, body in re.findall(r"\benum (rlk_\w+) \{(.*?)\}", text, re.S):
            for name in NAME.findall(body):
                yield name, enum


def runs_at(segments, line, column):
    """The runs of the innermost region around this place."""
    runs = 0
    for at in segments:
        if (at[0], at[1]) > (line, column):
            break
        runs = at[2] if at[3] else 0
    return runs


def is_given(text, begin, end):
    before, after = text[:begin].rstrip(), text[end:].lstrip()
    compares = before.endswith(("==", "!=", "case", "[", "<", ">")) or after.startswith(("==", "!="))
    return not compares and text.strip() != "/*"


enum_of = dict(find_enums(sys.argv[1:]))
reached = {}
for file in json.load(sys.stdin)["data"][0]["files"]:
    if not re.search(r"/src/(?!drivers/(mysql|postgres)|api|cli)", file["filename"]):
        continue
    code = COMMENT.sub(lambda m: re.sub(r"[^\n]", " ", m[0]), open(file["filename"]).read())
    for number, text in enumerate(code.split("\n"), 1):
        for match in NAME.finditer(text):
            if match[0] in enum_of and is_given(text, *match.span()):
                runs = runs_at(file["segments"], number, match.start() + 1)
                reached[match[0]] = reached.get(match[0], 0) + runs
for name, enum in enum_of.items():
    if name in reached:
        print(f"{enum:18} {name:28} {reached[name]:12}{'' if reached[name] else '  never'}")
