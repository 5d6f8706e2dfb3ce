#!/usr/bin/env python3
"""screen.py ROWS COLUMNS prints the screen of a terminal that has received the bytes on standard
input, and tells on standard error if it does not know one of them."""

import re
import sys

import pyte


class Screen(pyte.Screen):
    def draw(self, data):
        super().draw(data)
        # Not so in pyte: where lines do not wrap, the cursor stays in the last column.
        if pyte.modes.DECAWM not in self.mode:
            self.cursor.x = min(self.cursor.x, self.columns - 1)

    def debug(self, *what, **_):
        print("unknown", *what, file=sys.stderr)


# Of these two pyte does not know that they concern the keyboard.
sent = re.sub(rb"\x1b[=>]", b"", sys.stdin.buffer.read())
assert not re.search("[\x80-\x9f]", sent.decode(errors="ignore")), "a control character"
screen = Screen(int(sys.argv[2]), int(sys.argv[1]))
pyte.ByteStream(screen).feed(sent)
print("\n".join(screen.display))
