"""
Kernels that are finished once: their loops, and what the passes on functions make of these.

What a kernel becomes depends on what it computes, the layouts and schedule that it has, the target
and the compiler. Equal kernels, of all models of a process and of others through a store of files,
are therefore lowered once. Names are no part of it, and where a kernel comes from neither: the
finished function gets the locations of the kernel that asks.

What plugins add may change under the same name, so kernels with operators or strategies from
outside are always lowered anew.
"""

from __future__ import annotations

import hashlib
import marshal
import re
from collections import OrderedDict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from typing import cast

from xdsl.ir import Attribute

from lowerdeck.dialects.buffer import kernel
from lowerdeck.dialects.core.custom import CustomOp
from lowerdeck.dialects.errors import working_on
from lowerdeck.dialects.records import record
from lowerdeck.dialects.walking import all_ops
from lowerdeck.lowering.buffers import coding
from lowerdeck.lowering.loops.function_pass import FunctionPass
from lowerdeck.lowering.strategies.registry import lower_kernel, strategy_named
from lowerdeck.lowering.targets.base import Target
from lowerdeck.passes.machinery.context import KernelStore
from lowerdeck.passes.machinery.provenance import source_file
from lowerdeck.passes.machinery.structure import region_key

_NAME = ("sym_name",)
_ADDRESS = re.compile(" at 0x[0-9a-f]+")


class Memory:
    """A `KernelStore` that holds so many bytes; what was not used for longest goes first."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._size = 0
        self._data: OrderedDict[bytes, bytes] = OrderedDict()

    def get(self, key: bytes) -> bytes | None:
        """What was put there, if it still is."""
        if (data := self._data.get(key)) is not None:
            self._data.move_to_end(key)
        return data

    def put(self, key: bytes, data: bytes) -> None:
        """Keep what is found by a key."""
        self._size += len(data) - len(self._data.pop(key, b""))
        self._data[key] = data
        while self._size > self._most:
            self._size -= len(self._data.popitem(last=False)[1])


MEMORY = Memory(12 << 20)
"""The kernels of this process: those of some large models."""


@record
class Loops:
    """A kernel as loops."""

    function: kernel.FuncOp
    identity: Hashable
    """Equal for kernels whose loops, as they were lowered, are the same."""
    can_fail: bool
    """True if it may set the status of the run."""


def lower(op: kernel.BufferKernelOp) -> Loops:
    """The loops of a kernel, over scalars."""
    function = lower_kernel(op)
    can_fail = any(isinstance(inner, kernel.CheckIndexOp) for inner in all_ops(function))
    return Loops(function, _identity(function), can_fail)


def _identity(function: kernel.FuncOp) -> Hashable:
    # Kernels may differ in details that do not affect loops, such as the names of symbols.
    facts = len(function.symbols), function.outputs.data
    try:
        return hashlib.sha256(repr(facts).encode() + coding.encode_region(function.body)).digest()
    except coding.UncodableError:
        return (facts, region_key(function.body, {}))


class Finisher:
    """Lowers kernels and runs passes on their functions, or finds what became of equal ones."""

    def __init__(
        self, passes: Sequence[FunctionPass], target: Target, store: KernelStore | None
    ) -> None:
        self._passes = passes
        self._target = target
        self._store = store
        # The order of the elements of sets is another one in another process, as are addresses.
        known = replace(target, features=frozenset(), processors=frozenset())
        specs = [str(pass_.pipeline_pass_spec()) for pass_ in passes]
        self._setting = _ADDRESS.sub("", repr((known, specs))).encode()

    def finish(self, op: kernel.BufferKernelOp) -> Loops:
        """The finished function of a kernel."""
        ops = all_ops(op)
        places: dict[Attribute, int] = {}
        for number, each in enumerate(ops):
            places.setdefault(each.location, number)
        if (key := self._key(op, places)) is None:
            return self._made(op)
        if (data := self._find(key)) is not None:
            identity, can_fail, code = marshal.loads(data)
            function = cast("kernel.FuncOp", coding.decode(code, [o.location for o in ops]))
            function.properties["sym_name"] = op.sym_name
            return Loops(function, identity, can_fail)
        loops = self._made(op)
        try:
            code = coding.encode(loops.function, places, without=_NAME)
        except coding.UncodableError:
            return loops
        assert isinstance(loops.identity, bytes)  # or there would be no code
        data = marshal.dumps((loops.identity, loops.can_fail, code), 2)
        MEMORY.put(key, data)
        if self._store is not None:
            self._store.put(key, data)
        return loops

    def _key(self, op: kernel.BufferKernelOp, places: Mapping[Attribute, int]) -> bytes | None:
        """By which an equal kernel is known; None for one that is always lowered anew."""
        if not _is_ours(op):
            return None
        try:
            content = coding.encode(op, places, without=_NAME)
        except coding.UncodableError:
            return None
        return hashlib.sha256(self._setting + content).digest()

    def _find(self, key: bytes) -> bytes | None:
        if (data := MEMORY.get(key)) is not None or self._store is None:
            return data
        if (data := self._store.get(key)) is not None:
            MEMORY.put(key, data)
        return data

    def _made(self, op: kernel.BufferKernelOp) -> Loops:
        loops = lower(op)
        for pass_ in self._passes:
            with working_on(lambda name=pass_.name: f"{_file(loops.function)}: pass '{name}'"):
                pass_.run(loops.function, self._target)
        return loops


def _is_ours(op: kernel.BufferKernelOp) -> bool:
    """True if what a kernel becomes is up to the compiler alone."""
    if any(isinstance(inner, CustomOp) for inner in op.body.block.ops):
        return False
    strategy = None if op.schedule is None else strategy_named(op.schedule.data.strategy)
    return strategy is None or type(strategy).__module__.startswith("lowerdeck.")


def _file(function: kernel.FuncOp) -> str:
    return next(filter(None, map(source_file, all_ops(function))), "the module")
