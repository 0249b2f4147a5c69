"""
What kernels took by which schedules: a database that campaigns of tuning write, on any number of
machines, and that compilations read.
"""

from __future__ import annotations

import math
import os
import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import astuple, dataclass, fields
from typing import Any

__all__ = ["Database", "DatabaseError", "Setting", "Time"]

_MAGIC = b"SQLite format 3\0"
_VERSION = 1

GAIN = 0.02
"""What a schedule must save to be taken instead of the best by estimate: less is noise."""


class DatabaseError(ValueError):
    """A file is no database of schedules of this version."""


@dataclass(frozen=True)
class Setting:
    """Where and by what times were taken."""

    target: str
    processor: str
    compiler: str
    """The C compiler."""
    revision: str
    """That of this compiler."""


@dataclass(frozen=True)
class Time:
    """What a kernel takes by one schedule."""

    kernel: str
    """Its key, as `lowerdeck.tune.kernel_key` gives it."""
    target: str
    processor: str
    compiler: str
    revision: str
    candidate: str
    """The schedule, with the shapes that it is for."""
    rank: int
    """Its place by estimate; 0 is what is taken without a database."""
    seconds: float
    """The median."""
    spread: float
    """Half of its interval of 95 %, as a part of it."""


_COLUMNS = [field.name for field in fields(Time)]
_KEY = _COLUMNS[:6]
_CREATE = (
    "CREATE TABLE IF NOT EXISTS times (kernel TEXT, target TEXT, processor TEXT, compiler TEXT, "
    "revision TEXT, candidate TEXT, rank INTEGER, seconds REAL, spread REAL, "
    f"PRIMARY KEY ({', '.join(_KEY)}))"
)
_INSERT = (
    f"INSERT INTO times ({', '.join(_COLUMNS)}) VALUES ({', '.join('?' * len(_COLUMNS))}) "
    f"ON CONFLICT ({', '.join(_KEY)}) DO UPDATE SET rank = excluded.rank, "
    "seconds = excluded.seconds, spread = excluded.spread WHERE excluded.spread < spread"
)


class Database:
    """
    An SQLite file of times, made by `create` where there is none.

    DatabaseError if a file is something else, OSError if it is not there.
    """

    def __init__(self, path: str | os.PathLike[str], *, create: bool = False) -> None:
        self.path = os.fspath(path)
        if create and not os.path.exists(self.path):
            with self._open() as opened, opened:
                opened.execute(_CREATE)
                opened.execute(f"PRAGMA user_version = {_VERSION}")
        elif not is_database(self.path):
            raise DatabaseError(f"{self.path}: is no database of schedules")
        with self._open() as opened:
            (version,) = _read(self.path, opened, "PRAGMA user_version")[0]
            names = [row[1] for row in _read(self.path, opened, "PRAGMA table_info(times)")]
        if version != _VERSION or names != _COLUMNS:
            raise DatabaseError(f"{self.path}: holds no schedules of this version ({_VERSION})")

    def _open(self) -> Any:
        return closing(sqlite3.connect(self.path, timeout=60))

    def add(self, times: Iterable[Time]) -> None:
        """Add times; of one that is there already, the one with the smaller interval stays."""
        with self._open() as opened, opened:
            opened.executemany(_INSERT, [astuple(time) for time in times])

    def times(self, target: str | None = None) -> list[Time]:
        """All times, in order; or those for a target."""
        query = f"SELECT {', '.join(_COLUMNS)} FROM times"
        query += "" if target is None else " WHERE target = ?"
        with self._open() as opened:
            given = () if target is None else (target,)
            rows = _read(self.path, opened, f"{query} ORDER BY {', '.join(_KEY)}", given)
        return [Time(*row) for row in rows]

    def measured(self, setting: Setting) -> set[str]:
        """The keys of kernels of which there are times, of this very setting."""
        return {
            time.kernel
            for time in self.times(setting.target)
            if (time.processor, time.compiler, time.revision)
            == (setting.processor, setting.compiler, setting.revision)
        }

    def merge(self, other: Database) -> int:
        """Add the times of another database; returns how many that has."""
        times = other.times()
        self.add(times)
        return len(times)

    def best(
        self, offered: Mapping[str, Sequence[str]], target: str, processor: str
    ) -> dict[str, str]:
        """
        By key of a kernel the schedule that is faster than the best by estimate, among those that
        are `offered`; only where there is one, and intervals do not let it be chance. Of several
        processors this one counts alone, if it was measured; else the mean over all of them.
        """
        known: defaultdict[str, list[Time]] = defaultdict(list)
        for time in self.times(target):
            if time.candidate in offered.get(time.kernel, ()):
                known[time.kernel].append(time)
        found: dict[str, str] = {}
        for kernel, times in known.items():
            own = [time for time in times if time.processor == processor]
            faster = {
                candidate: share
                for candidate, (share, most) in _shares(own or times).items()
                if share < 1 - GAIN and most < 1
            }
            if faster:
                found[kernel] = min(faster, key=lambda name: (faster[name], name))
        return found


def _shares(times: Iterable[Time]) -> dict[str, tuple[float, float]]:
    """
    By candidate its time by that of the best by estimate, in the mean over settings; and the same
    where all are at the worse ends of their intervals.
    """
    settings: defaultdict[tuple[str, ...], list[Time]] = defaultdict(list)
    for time in times:
        settings[time.processor, time.compiler, time.revision].append(time)
    logarithms: defaultdict[str, list[tuple[float, float]]] = defaultdict(list)
    for own in settings.values():
        if by_rule := next((time for time in own if time.rank == 0 and time.seconds), None):
            for time in own:
                share = math.log(time.seconds / by_rule.seconds)
                doubt = math.log1p(time.spread) - math.log1p(-min(by_rule.spread, 0.99))
                logarithms[time.candidate].append((share, share + doubt))
    return {
        name: (_mean([share for share, _ in own]), _mean([most for _, most in own]))
        for name, own in logarithms.items()
    }


def _mean(logarithms: Sequence[float]) -> float:
    return math.exp(sum(logarithms) / len(logarithms))


def _read(path: str, opened: Any, query: str, given: Sequence[Any] = ()) -> list[Any]:
    try:
        return opened.execute(query, given).fetchall()
    except sqlite3.DatabaseError as error:
        raise DatabaseError(f"{path}: {error}") from None


def is_database(path: str) -> bool:
    """Whether a file looks like one; OSError if it cannot be read."""
    with open(path, "rb") as file:
        return file.read(len(_MAGIC)) == _MAGIC
