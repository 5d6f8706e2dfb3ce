# SPDX-License-Identifier: MIT
"""rowlock.exclusive() and rowlock.once()."""
from __future__ import annotations

import functools
import inspect
import json
import os
import re
import threading
from string import Formatter
from typing import (
    TYPE_CHECKING,
    Any,
    Callable,
    Coroutine,
    Optional,
    TypeVar,
    Union,
    cast,
    overload,
)

from .aio import AsyncLock, finished
from .claims import Once
from .database import Database, connect
from .errors import Busy, Error, Invalid
from .functions import ended, is_coroutine_function
from .handle import flag, must_be_free
from .lock import Lock

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")
Name = Union[str, Callable[..., str]]

_rlock = threading.RLock()
_default: Optional[Database] = None


def default_database() -> Database:
    """What decorators use without db: the database of ROWLOCK_URL, once for each process."""
    global _default
    if not os.environ.get("ROWLOCK_URL"):
        raise Invalid(
            "which database? Set ROWLOCK_URL, or give db=rowlock.connect(…). A lock in a file of "
            "this user excludes no other user and no other host: rowlock.connect() without a URL "
            "uses one",
            action="use a decorator without db",
        )
    with must_be_free(_rlock):
        if _default is None or _default._closed or _default._pid != os.getpid():
            _default = connect()
        return _default


def check_use(decorator: str, name: Any, function: Any = len) -> None:
    """Without parentheses the function comes as the name."""
    if inspect.isclass(function):
        raise TypeError(
            f"{function!r} is a class: decorate its methods, since a call of the class only makes "
            "an object"
        )
    if not ((isinstance(name, str) or callable(name)) and callable(function)):
        raise TypeError(f'write @rowlock.{decorator}("name") above the function')


def check_name(name: Name, function: Callable[..., Any]) -> None:
    """What the name has in braces must be arguments of the function."""
    if callable(name) or "{" not in name:
        return
    try:
        fields = [field for _, field, *_ in Formatter().parse(name) if field is not None]
        known = list(inspect.signature(function).parameters)
    except ValueError as error:
        raise Invalid(
            f"the name {name!r} cannot be made of the arguments of {function!r}: {error}"
        ) from None
    for field in fields:
        if re.split(r"[.\[]", field)[0] not in known:
            raise Invalid(
                f"the name {name!r} has {{{field}}}, and the arguments of {function!r} are "
                f"({', '.join(known)}): name one of them, or write {{{{ for a brace"
            )


def name_for(name: Name, function: Callable[..., Any], args: Any, kwargs: Any) -> str:
    """The name, with the arguments of the call where it has them in braces."""
    if callable(name):
        return name(*args, **kwargs)
    if "{" not in name:
        return name
    bound = inspect.signature(function).bind(*args, **kwargs)
    bound.apply_defaults()
    return name.format(**bound.arguments)


if TYPE_CHECKING:
    from typing_extensions import Literal, ParamSpec, Protocol

    P = ParamSpec("P")

    class Skipping(Protocol):
        """A call that is skipped returns None."""

        @overload
        def __call__(  # type: ignore
            self, function: Callable[P, Coroutine[Any, Any, T]]
        ) -> Callable[P, Coroutine[Any, Any, Optional[T]]]: ...

        @overload
        def __call__(self, function: Callable[P, T]) -> Callable[P, Optional[T]]: ...


@overload
def exclusive(
    name: Name,
    *,
    on_busy: Literal["skip"],
    db: Optional[Database] = None,
    pass_held: Literal[False] = False,
    **options: Any,
) -> Skipping: ...


@overload
def exclusive(
    name: Name,
    *,
    pass_held: Literal[True],
    db: Optional[Database] = None,
    on_busy: str = "raise",
    **options: Any,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]: ...


@overload
def exclusive(
    name: Name,
    *,
    db: Optional[Database] = None,
    on_busy: Literal["raise"] = "raise",
    pass_held: Literal[False] = False,
    **options: Any,
) -> Callable[[F], F]: ...


def exclusive(
    name: Name,
    *,
    db: Optional[Database] = None,
    on_busy: str = "raise",
    pass_held: bool = False,
    **options: Any,
) -> Any:
    """Decorates a function, or a coroutine function, that runs under a lock.

        @rowlock.exclusive("report {day}", on_busy="skip")
        def report(day): ...

    name       may name arguments of the function, or be a function of the same arguments
    db         None: that of rowlock.connect()
    on_busy    "raise": Busy or Timeout. "skip": the function is not called, and the result is None.
    pass_held  the function gets the lock that is held, as its argument `held`
    options    those of Database.lock()

    A generator, a context manager of contextlib and a plain function that returns a coroutine are
    refused with TypeError: their bodies would run after the lock was released.
    """
    check_use("exclusive", name)
    flag("pass_held", pass_held)
    if on_busy not in ("raise", "skip"):
        raise Invalid('on_busy is "raise" or "skip"')

    def decorate(function: F = None) -> F:  # type: ignore[assignment]
        check_use("exclusive", name, function)
        check_name(name, function)

        def lock_for(args: Any, kwargs: Any) -> Lock:
            given = {**kwargs, "held": None} if pass_held else kwargs
            named = name_for(name, function, args, given)
            return (db or default_database()).lock(named, **options)

        return under(function, "exclusive", lock_for, on_busy, pass_held)

    return decorate


def under(
    function: F,
    decorator: str,
    lock_for: Callable[[Any, Any], Lock],
    on_busy: str = "raise",
    pass_held: bool = False,
) -> F:
    """The function, whose calls hold the lock for their arguments."""
    check_use(decorator, "", function)
    asynchronous = is_coroutine_function(function)

    def more(held: Any) -> Any:
        return {"held": held} if pass_held else {}

    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        lock = lock_for(args, kwargs)
        entered = False
        try:
            with lock as held:
                entered = True
                return ended(function(*args, **kwargs, **more(held)))
        except Busy:
            if on_busy == "skip" and not entered:
                return None
            raise

    @functools.wraps(function)
    async def async_wrapper(*args: Any, **kwargs: Any) -> Any:
        lock = AsyncLock(lock_for(args, kwargs))
        try:
            held = await lock.acquire()
        except Busy:
            if on_busy == "skip":
                return None
            raise
        async with held:
            return ended(await function(*args, **kwargs, **more(held)))

    return cast(F, async_wrapper if asynchronous else wrapper)


def conclude(claimed: Once, value: Any) -> None:
    """Completes a key whose work was done, also if its result cannot be stored."""
    # If this fails, the key is not given back: the work would be repeated at once.
    claimed._settled = True
    try:
        claimed.complete(json.dumps(value))
        return
    except Exception as error:
        # What the database says is not about the value, unless it is too long.
        if isinstance(error, Error) and not isinstance(error, Invalid):
            raise
        wrong = error
    claimed.complete()
    raise TypeError(
        f"once key '{claimed.key}' is completed: the work was done, but its result of type "
        f"{type(value).__qualname__} cannot be stored as JSON: {wrong}"
    ) from wrong


def once(
    key: Name,
    *,
    db: Optional[Database] = None,
    fingerprint: Optional[str] = None,
    ttl: float = 60,
) -> Callable[[F], F]:
    """Decorates a function, or a coroutine function, that is done once for each key.

        @rowlock.once("order {number}")
        def charge(number): ...

    The result is stored as JSON. Later calls with the same key return it, and do not call the
    function. While another client is at it, the call raises Busy. A function that raises gives its
    key back. A result that cannot be stored raises TypeError after the key was completed: the work
    is done, and later calls return None. Generators are refused as by exclusive().
    """
    check_use("once", key)

    def decorate(function: F = None) -> F:  # type: ignore[assignment]
        check_use("once", key, function)
        check_name(key, function)
        asynchronous = is_coroutine_function(function)

        def claim(args: Any, kwargs: Any) -> Any:
            asked = name_for(key, function, args, kwargs)
            return (db or default_database()).once(asked, fingerprint=fingerprint, ttl=ttl)

        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            with claim(args, kwargs) as claimed:
                if not claimed.done:
                    conclude(claimed, ended(function(*args, **kwargs)))
                return json.loads(claimed.result or "null")

        @functools.wraps(function)
        async def async_wrapper(*args: Any, **kwargs: Any) -> Any:
            async with claim(args, kwargs) as claimed:
                if not claimed.done:
                    value = ended(await function(*args, **kwargs))
                    await finished(claimed.database, conclude, claimed, value)
                return json.loads(claimed.result or "null")

        return cast(F, async_wrapper if asynchronous else wrapper)

    return decorate
