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
# pyte obeys some of these, and drops others.
plain = "[\0\b\t\n\r\x0e\x0f -~\xa0-\ufffc\U00010000-\U0010ffff]|\x1b[\\[M()78HD]|\x1b$"
strange = re.sub(plain, "", sent.decode(errors="replace"))
if strange:
    print("strange:", ascii(strange), file=sys.stderr)
screen = Screen(int(sys.argv[2]), int(sys.argv[1]))
pyte.ByteStream(screen).feed(sent)
print("\n".join(screen.display))
