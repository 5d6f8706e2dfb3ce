# SPDX-License-Identifier: MIT
"""Calls of the library that call back. An exception of the callback is raised by the call."""
from __future__ import annotations

import threading
from typing import Any, Callable, Optional

from ._rowlock import ffi

running = threading.local()


class Call:
    """A call of the library. Its callbacks get the owner from the context."""

    def __init__(self, owner: Any) -> None:
        self.context = ffi.new_handle(owner)
        self.error: Optional[BaseException] = None

    def run(self, function: Callable[..., int], *arguments: Any) -> int:
        outer = getattr(running, "call", None)
        running.call = self
        try:
            result = function(*arguments)
        finally:
            running.call = outer
        error, self.error = self.error, None
        if error is not None:
            raise error
        return result


def keep(kind: object, error: BaseException, trace: object) -> None:
    """A signal handler may raise before the first line of a callback, so cffi tells us."""
    running.call.error = error


def callback(stop: Optional[int] = None) -> Any:
    """A decorator. stop is the result that ends the call after an exception."""
    return ffi.def_extern(error=stop, onerror=keep)
