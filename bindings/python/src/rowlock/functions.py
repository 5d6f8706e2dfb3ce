# SPDX-License-Identifier: MIT
"""Which functions may run under a lock, a key or a transaction: those that end with their call."""
from __future__ import annotations

import contextlib
import functools
import inspect
from typing import Any

REFUSED = "the body of a generator runs after the call, when nothing is held: use `with` inside it"
MANAGER = (
    "the body of a context manager runs after the call, when nothing is held: use `with` inside "
    "it, around its `yield`"
)
MANAGERS = (contextlib._GeneratorContextManager, contextlib._AsyncGeneratorContextManager)
# What contextlib makes of a generator function always has one of these.
MAKERS = [
    make(print).__code__  # type: ignore
    for make in (contextlib.contextmanager, contextlib.asynccontextmanager)
]


def is_coroutine_function(function: Any) -> bool:
    """Also for objects with such a __call__. Raises TypeError for generators."""
    if isinstance(function, staticmethod):
        function = function.__func__
    while isinstance(function, functools.partial):
        function = function.func
    for one in (function, getattr(type(function), "__call__", None)):
        if inspect.isgeneratorfunction(one) or inspect.isasyncgenfunction(one):
            raise TypeError(f"{function!r}: {REFUSED}")
        if getattr(one, "__code__", None) in MAKERS:
            raise TypeError(f"{function!r}: {MANAGER}")
        if inspect.iscoroutinefunction(one):
            return True
    return False


def ended(value: Any) -> Any:
    """What a call returned. Raises TypeError if its work is still to come, and ends that."""
    if isinstance(value, MANAGERS):
        raise TypeError(MANAGER)
    generator = inspect.isgenerator(value) or inspect.isasyncgen(value)
    if not generator and not inspect.isawaitable(value):
        return value
    # An asynchronous generator that was not begun needs no end. A task is cancelled.
    end = getattr(value, "close", None) or getattr(value, "cancel", None)
    if end is not None:
        end()
    if generator:
        raise TypeError(REFUSED)
    raise TypeError(
        f"the function returned an awaitable ({type(value).__qualname__}), which would run when "
        "nothing is held: make it an `async def`, and await inside it"
    )
