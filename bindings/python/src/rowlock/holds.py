# SPDX-License-Identifier: MIT
"""Which locks the threads and tasks of this process hold: none may wait for itself."""
from __future__ import annotations

import asyncio
import concurrent.futures.thread
import threading
import weakref
from typing import TYPE_CHECKING, Any, Dict, List, Optional, Tuple

from ._rowlock import lib
from .errors import Deadlock

if TYPE_CHECKING:
    from .lock import Acquiring, Held, Lock

# A lock's name, and a weak reference to a thread or a task.
Key = Tuple[str, Any]
FOREVER = int(lib.ROWLOCK_FOREVER)


def this_thread() -> Any:
    return weakref.ref(threading.current_thread())


def this_task() -> Any:
    """None outside of a task."""
    if asyncio._get_running_loop() is None:
        return None
    task = asyncio.current_task()
    return task and weakref.ref(task)


def is_executor_thread() -> bool:
    """Such a thread runs one piece of work after the other, for different callers.

    What it runs tells it. The executor notes its threads only after it has started them.
    """
    work = getattr(concurrent.futures.thread, "_worker", None)
    return work is not None and getattr(threading.current_thread(), "_target", None) is work


class Hold:
    """A lock that is held, and who acquired it."""

    def __init__(self, held: Held, lock: Lock) -> None:
        options = lock.options
        self.held = weakref.ref(held)
        self.token = held.token
        self.permits: int = options["permits"]
        # It does not end by itself.
        self.lasts = lock.renew and not (options["max_hold_ms"] or options["progress_ms"])
        self.handed_over = is_executor_thread()
        self.keys: List[Key] = [(held.name, this_thread())]
        task = this_task()
        if task is not None:
            self.keys.append((held.name, task))

    def stands(self) -> bool:
        """Whether the one that acquired it is sure to have it still."""
        held = self.held()
        if held is None:
            return self.lasts and not self.handed_over
        inside = held._entered or not self.handed_over
        return self.lasts and inside and not held.lost.is_set()


class Holds:
    """The locks that are held through one database.

    It uses no mutex: a key's entries are added by its own thread. A hold that another thread
    removes at the same moment may take a new one along, which is then not noticed by check().
    """

    def __init__(self) -> None:
        self.by_key: Dict[Key, Dict[Acquiring, Hold]] = {}
        self.by_token: Dict[Tuple[str, int], Hold] = {}

    def add(self, acquiring: Acquiring, hold: Hold) -> None:
        acquiring.hold = hold
        for key in hold.keys:
            self.by_key.setdefault(key, {})[acquiring] = hold
        self.by_token[acquiring.name, hold.token] = hold

    def remove(self, acquiring: Acquiring) -> None:
        hold = acquiring.hold
        if hold is None:
            return
        for key in hold.keys:
            of_key = self.by_key.get(key, {})
            of_key.pop(acquiring, None)
            if not of_key:
                self.by_key.pop(key, None)
        self.by_token.pop((acquiring.name, hold.token), None)
        # The last: a signal handler may raise before, and then this is called again.
        acquiring.hold = None

    def check(self, lock: Lock, of_task: bool) -> None:
        """Raises Deadlock if this thread, or this task, would wait for itself without end.

        A wait that has an end is a Timeout, whose text says who holds the lock. With an owner of
        its own a client is granted what it holds.
        """
        database, permits = lock.database, lock.options["permits"]
        database._check()
        if lock.options["wait_ms"] != FOREVER or database._target.limits["owner"] is not None:
            return
        who = this_task() if of_task else this_thread()
        found = self.by_key.get((lock.name, who))
        if not found:
            return
        holds = [hold for hold in list(found.values()) if hold.stands()]
        against = [hold for hold in holds if permits == 0 or hold.permits == 0]
        if permits > 0 and len(holds) >= permits:
            against += [hold for hold in holds if hold.permits == permits]
        if against:
            raise Deadlock(
                f"this {'task' if of_task else 'thread'} holds it already, with token "
                f"{against[0].token}, and would wait for itself: use what it holds, or release "
                "that first",
                action=f"acquire lock '{lock.name}'",
            )

    def whose(self, name: str, token: int, task: Any) -> str:
        """Who holds it, in words for this task, or else for this thread."""
        hold = self.by_token.get((name, token))
        if hold is None:
            return "another owner"
        if (name, task or this_thread()) in hold.keys:
            return "this task" if task else "this thread"
        return "this program"
