"""
Calls a compiled model from Python: the C interface, as `NAME.json` describes it, through ctypes.

Every field of the arguments is 64 bits wide, so the struct is an array of integers: a call writes
addresses and sizes into it and nothing else. Input arrays are passed as they lie in memory.
"""

from __future__ import annotations

import ctypes
import math
import mmap
import os
import sys
import tempfile
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from lowerdeck.dialects.errors import LowerdeckError
from lowerdeck.lowering.abi import ABI, STATE
from lowerdeck.metadata import (
    Dimension,
    StateInfo,
    Symbols,
    TensorInfo,
    argument_fields_of,
    dimensions_of,
    evaluated,
    tensor_info,
)
from lowerdeck.profile import KernelEvent, Profile, Profiler

Array = NDArray[Any]

OUTPUT_CAPACITY = 3
"""The status for an output that is too small (lowerdeck.h)."""
INPUT_DIMS = 2
"""The status where the dimensions of inputs are not what the model requires."""

DATA_DO_NOT_FIT = (2, 13, 14)
"""The statuses for sizes and indices, computed from data, that do not fit."""

_FIRST_CAPACITY = 1024
"""Elements to begin with where the size of an output depends on data."""

_LINE = 64
"""Bytes of a line of the L1 cache, and of the longest vectors: slower where they cross two."""
_LINES_FROM = 4096
"""Bytes from which results begin at such a line: for less the call is what takes time."""

_NO_ELEMENTS = np.zeros(64, np.uint8)
"""Where an empty input lies: with NULL, one that has a default would be left out."""

_ALONE: list[Array] = [np.empty(0, np.uint8)]
_UNUSED = sys.getrefcount(_ALONE[0])
"""References to what a list alone holds: its own, and what asking in this way adds."""
_MOST_KEPT = 2
"""Results of which the memory is kept, for each output: who replaces one by the next needs two."""

_NOT_PROFILED = "the model was not compiled with profile=True (--profile)"

_first_of, _address_of = ctypes.c_char.from_buffer, ctypes.addressof
"""The first byte of an array, and where something of C lies."""

_MAX_PLANS = 256
"""Combinations of input shapes to remember."""

SHIM = """\
/* What the Python binding adds to the library of a model. */
#define _POSIX_C_SOURCE 199309L
#include "{model}"

#include <stdlib.h>
#include <time.h>

static void *lowerdeck_binding_allocate(void *context, size_t size) {{
  (void)context;
  return malloc(size);
}}

static void lowerdeck_binding_release(void *context, void *memory) {{
  (void)context;
  free(memory);
}}

const lowerdeck_allocator lowerdeck_binding_allocator = {{
    lowerdeck_binding_allocate, lowerdeck_binding_release, NULL}};

const char *lowerdeck_binding_status_text(int status) {{ return lowerdeck_status_text(status); }}

int64_t lowerdeck_binding_clock(void) {{
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}}

/* Of one run at a time: when each of its marks was, and the slot that it counted for, or -1. The
   count of a slot grows after the clock was read, so the next mark finds out. */
struct {{
  int64_t (*slots)[2];
  int64_t slot_count;
  int64_t *counts;
  int64_t (*events)[2];
  int64_t capacity, size, next;
}} lowerdeck_binding_trace;

int64_t lowerdeck_binding_tracing_clock(void) {{
  const int64_t now = lowerdeck_binding_clock(), size = lowerdeck_binding_trace.size;
  lowerdeck_binding_trace.size += 1;
  for (int64_t k = 0; k < lowerdeck_binding_trace.slot_count; k += 1) {{
    const int64_t slot = (lowerdeck_binding_trace.next + k) % lowerdeck_binding_trace.slot_count;
    if (lowerdeck_binding_trace.slots[slot][1] == lowerdeck_binding_trace.counts[slot]) continue;
    lowerdeck_binding_trace.counts[slot] += 1;
    lowerdeck_binding_trace.next = slot + 1;
    if (size > 0 && size <= lowerdeck_binding_trace.capacity) {{
      lowerdeck_binding_trace.events[size - 1][1] = slot;
    }}
    break;
  }}
  if (size < lowerdeck_binding_trace.capacity) {{
    lowerdeck_binding_trace.events[size][0] = now;
    lowerdeck_binding_trace.events[size][1] = -1;
  }}
  return lowerdeck_binding_clock();
}}
"""
"""`{model}` is the C of a model, or its header where that C is compiled by itself."""


class RunError(LowerdeckError, RuntimeError):
    """A run of a compiled model failed; `status` is that of lowerdeck.h."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


@dataclass(frozen=True)
class State:
    """All that one instance of a model remembers: the struct of C."""

    infos: tuple[StateInfo, ...]
    memory: Array
    """Its bytes."""

    def copy(self) -> State | None:
        """Another one with the same in it; None if nothing is remembered."""
        return State(self.infos, self.memory.copy()) if self.infos else None

    def arrays(self) -> dict[str, Array]:
        """What is in it, by name: views."""
        return {each.info.name: self._part(each) for each in self.infos}

    def _part(self, each: StateInfo) -> Array:
        shape = tuple(int(size) for size in each.info.shape)
        size = math.prod(shape) * each.info.dtype.itemsize
        part = self.memory[each.offset : each.offset + size]
        return part.view(each.info.dtype).reshape(shape)


@dataclass
class _Plan:
    """What follows from the shapes of the inputs."""

    words: list[tuple[int, int]]
    """Position in the arguments, and value."""
    shapes: list[tuple[int, ...] | None]
    """Of the outputs; None where it depends on data."""
    capacities: list[int]
    """Elements to allocate for each output."""
    workspace: int
    outputs: list[tuple[tuple[int, ...], np.dtype[Any], int, int]] | None
    """
    The shape and type of each output, the position of its address, and the bytes within which it
    begins with a line of the cache, 0 for a small one; None if one depends on data, is empty or is
    of a type that buffers cannot have.
    """


class _Slot:
    """The arguments of one call at a time."""

    def __init__(self, size: int) -> None:
        self.words = (ctypes.c_int64 * size)()
        self.plan: _Plan | None = None
        self.workspace: Array = np.empty(0, np.uint8)
        self._kept: dict[int, list[Array]] = {}

    def memory(self, output: int, size: int) -> Array:
        """
        So many bytes for an output, those of an earlier call if nobody refers to them any more:
        memory that the system has just given is slow to write for the first time.
        """
        kept = self._kept.get(output)
        if kept is None:
            kept = self._kept[output] = []
        for k in range(len(kept)):
            # A variable for the array would be one more reference.
            if kept[k].size == size and sys.getrefcount(kept[k]) == _UNUSED:
                return kept[k]
        del kept[: 1 - _MOST_KEPT]
        kept.append(np.empty(size, np.uint8))
        return kept[-1]


class Binding:
    """
    A model in a loaded library. Calls may run concurrently; each has its own workspace.

    OSError if the library or the weights cannot be loaded.
    """

    def __init__(
        self, folder: str, metadata: Mapping[str, Any], library: str, threads: int = 1
    ) -> None:
        if metadata["abi"] != ABI or ctypes.sizeof(ctypes.c_void_p) != 8:
            raise OSError(f"{folder}: made for ABI {metadata['abi']}, this is {ABI} with 64 bits")
        self.inputs = tuple(tensor_info(port) for port in metadata["inputs"])
        self.outputs = tuple(tensor_info(port) for port in metadata["outputs"])
        self.workspace: int | str = metadata["workspace"]
        self._input_dims = [dimensions_of(info.shape) for info in self.inputs]
        self._conditions = [
            (Dimension(left), predicate, Dimension(right), text)
            for left, predicate, right, text in metadata.get("conditions", ())
        ]
        self._output_dims = [dimensions_of(info.shape) for info in self.outputs]
        self._fields = argument_fields_of(metadata)
        inputs, outputs = ([port["field"] for port in metadata[k]] for k in ("inputs", "outputs"))
        self._input_at = [self._fields[f"{field}.data"] for field in inputs]
        self._input_dims_at = [self._fields[f"{field}.dims"] for field in inputs]
        self._ports = [
            (info, info.dtype, position)
            for info, position in zip(self.inputs, self._input_at, strict=True)
        ]
        self._default_at = [
            position
            for info, position in zip(self.inputs, self._input_at, strict=True)
            if info.default is not None
        ]
        self._output_at = [self._fields[f"{field}.data"] for field in outputs]
        self._capacity_at = [self._fields[f"{field}.capacity"] for field in outputs]
        self._output_dims_at = [self._fields[f"{field}.dims"] for field in outputs]
        name = metadata["name"]
        loaded = _loaded(library)
        self._run: Callable[..., int] = _function(loaded, f"{name}_run", ctypes.c_int)
        self._workspace_size = _function(loaded, f"{name}_workspace_size", ctypes.c_int64)
        self._status_text = loaded.lowerdeck_binding_status_text
        self._status_text.restype = ctypes.c_char_p
        self.states = tuple(
            StateInfo(tensor_info(port), port["after"], port["offset"])
            for port in metadata.get("states", ())
        )
        self._state_size: int = metadata.get("state_size", 0)
        if self.states:
            self._reset = _function(loaded, f"{name}_reset", None)
        self._weights: Array = np.empty(0, np.uint8)
        if metadata["weights_size"] and not metadata["embeds_weights"]:
            self._weights = _mapped(os.path.join(folder, f"{name}.weights"), metadata)
        allocator = ctypes.c_byte.in_dll(loaded, "lowerdeck_binding_allocator")
        self._allocator = ctypes.addressof(allocator)
        self._pool = self._make_pool(loaded, threads) if threads > 1 else 0
        slots: Sequence[Mapping[str, Any]] | None = metadata.get("profile")
        self._profiler = (
            None if slots is None else Profiler(loaded, slots, threads, self._fields["profile"])
        )
        self._plans: dict[tuple[tuple[int, ...], ...], _Plan] = {}
        self._free: list[_Slot] = []

    def _make_pool(self, library: ctypes.CDLL, threads: int) -> int:
        """The threads, which end with this object. OSError if they cannot be had."""
        create = _function(library, "lowerdeck_pool_create", ctypes.c_void_p)
        if not (pool := create(threads)):
            raise OSError(f"cannot start {threads} threads")
        destroy = _function(library, "lowerdeck_pool_destroy", None)
        weakref.finalize(self, destroy, ctypes.c_void_p(pool))
        return pool

    def _new_slot(self) -> _Slot:
        slot = _Slot(max(self._fields.values()) + 1)
        words, fields = slot.words, self._fields
        words[fields["weights"]] = _address(self._weights)
        words[fields["weights_size"]] = self._weights.size
        words[fields["pool"]] = self._pool
        words[fields["allocator"]] = self._allocator
        return slot

    def new_state(self) -> State:
        """A state as it is before the first run."""
        state = State(self.states, np.zeros(self._state_size, np.uint8))
        self.reset(state)
        return state

    def reset(self, state: State) -> None:
        """Let a state be what it is before the first run."""
        if self.states:
            self._reset(ctypes.c_void_p(_address(state.memory)))

    def run(self, inputs: Sequence[Array | None], state: State | None = None) -> list[Array]:
        """
        The outputs for inputs in order, None for one that is left out, and for a state, which
        becomes the next one.

        ValueError for inputs that do not fit the model, RunError if the run fails.
        """
        # A call of a small model takes little longer than what Python does here.
        try:
            slot = self._free.pop()
        except IndexError:
            slot = self._new_slot()
        words = slot.words
        arrays: list[Any] = list(inputs)
        if len(arrays) != len(self._ports):
            raise ValueError(f"{len(arrays)} inputs for a model with {len(self._ports)}")
        for number, (info, dtype, position) in enumerate(self._ports):
            array = arrays[number]
            try:
                if array.dtype is dtype and array.flags.carray:
                    words[position] = _address_of(_first_of(array))
                    continue
            except (AttributeError, ValueError, TypeError):
                pass  # empty, of a type that buffers cannot have, or no array
            array = arrays[number] = self._checked(array, info)
            words[position] = self._input_address(array, inputs[number], info)
        plan = self._plan_for(tuple([array.shape for array in arrays]))
        if slot.plan is not plan:
            self._apply(plan, slot)
        if state is not None:
            words[self._fields[STATE]] = _address(state.memory)
        outputs: list[Array] = []
        if plan.outputs is None:
            outputs = self._call(plan, slot)
        else:
            for shape, dtype, position, room in plan.outputs:
                array: Any = slot.memory(position, room) if room else np.empty(shape, dtype)
                address = _address_of(_first_of(array))
                if room:
                    shift = -address % _LINE
                    address, array = address + shift, np.ndarray(shape, dtype, array, shift)
                words[position] = address
                outputs.append(array)
            if status := self._run(words):
                raise self._error(status)
        self._free.append(slot)
        return outputs

    def _input_address(self, array: Array, given: Array | None, info: TensorInfo) -> int:
        """What C gets for an input: NULL only if it was left out."""
        if info.default is None:
            return _address(array)
        return 0 if given is None else _address(array) or _address(_NO_ELEMENTS)

    def prepare(self, inputs: Sequence[Array | None], state: State | None = None) -> PreparedCall:
        """
        A call that reads `inputs` (in order) where they lie and writes the same outputs each time;
        each run goes on from the state that the one before has left.

        The model runs once here, which finds sizes that depend on data. ValueError for inputs that
        do not fit the model or would have to be copied, RunError if the run fails.
        """
        arrays = [
            self._checked(array, info) for array, info in zip(inputs, self.inputs, strict=True)
        ]
        for array, given, info in zip(arrays, inputs, self.inputs):
            if array is not given and given is not None:
                raise ValueError(f"input '{info.name}' is not a contiguous, aligned array")
        plan, slot = self._plan_for(tuple(array.shape for array in arrays)), self._new_slot()
        self._apply(plan, slot)
        for array, given, (info, _, position) in zip(arrays, inputs, self._ports, strict=True):
            slot.words[position] = self._input_address(array, given, info)
        if state is not None:
            slot.words[self._fields[STATE]] = _address(state.memory)
            arrays.append(state.memory)
        written = partial(self._written, self._run_into_new(plan, slot), plan, slot)
        return PreparedCall(self._run, slot.words, arrays, self._error, written)

    def _shapes(self, inputs: Sequence[Array | None]) -> list[tuple[int, ...]]:
        pairs = zip(inputs, self.inputs, strict=True)
        return [info.default or () if array is None else array.shape for array, info in pairs]

    def profile(
        self, inputs: Sequence[Array | None], seconds: float, state: State | None = None
    ) -> Profile:
        """
        The times of kernels in runs that take about so many seconds, and five at least.

        ValueError if the model was not compiled to take them, and as `prepare`.
        """
        profiler, call = self._profiler_of(), self.prepare(inputs, state)
        return profiler.profile(call, seconds, self._bind_symbols(self._shapes(inputs)))

    def trace(
        self, inputs: Sequence[Array | None], seconds: float, state: State | None = None
    ) -> list[KernelEvent]:
        """
        The calls of kernels in the fastest of the runs that take about so many seconds.

        ValueError as `profile`.
        """
        return self._profiler_of().trace(self.prepare(inputs, state), seconds)

    def _profiler_of(self) -> Profiler:
        if self._profiler is None:
            raise ValueError(_NOT_PROFILED)
        return self._profiler

    def _checked(self, value: object, info: TensorInfo) -> Array:
        """
        The array as C reads it: copied only if it is not contiguous or not aligned. Of an input
        that is left out (None), one of its shape.
        """
        if value is None and info.default is not None:
            return np.broadcast_to(np.zeros((), info.dtype), info.default)
        array = cast(Array, value if isinstance(value, np.ndarray) else np.asarray(value))
        if array.dtype is not info.dtype and array.dtype != info.dtype:
            raise ValueError(
                f"input '{info.name}' has the dtype {array.dtype}, expected {info.dtype}; "
                f"array.astype('{info.dtype}') converts it"
            )
        flags = array.flags
        if not (flags.c_contiguous and flags.aligned):
            return np.require(array, requirements=["C", "A"])
        return array

    def workspace_for(self, shapes: Sequence[tuple[int, ...]]) -> int:
        """Bytes of workspace for inputs of these shapes; ValueError if the model has others."""
        return self._plan_for(tuple(shapes)).workspace

    def _plan_for(self, shapes: tuple[tuple[int, ...], ...]) -> _Plan:
        plan = self._plans.get(shapes)
        if plan is None:
            if len(self._plans) >= _MAX_PLANS:
                self._plans.clear()
            plan = self._plans[shapes] = self._make_plan(shapes)
        return plan

    def _make_plan(self, shapes: Sequence[tuple[int, ...]]) -> _Plan:
        symbols = self._bind_symbols(shapes)
        self._require(symbols)
        words: list[tuple[int, int]] = []
        for position, shape in zip(self._input_dims_at, shapes, strict=True):
            words += [(position + axis, size) for axis, size in enumerate(shape)]
        results: list[tuple[int, ...] | None] = []
        for dims in self._output_dims:
            known = all(isinstance(d, int) or d.symbols <= symbols.keys() for d in dims)
            results.append(evaluated(dims, symbols) if known else None)
        capacities = [_FIRST_CAPACITY if s is None else math.prod(s) for s in results]
        words += list(zip(self._capacity_at, capacities, strict=True))
        outputs = [
            (shape, info.dtype, position, _room(shape, info.dtype))
            for shape, info, position in zip(results, self.outputs, self._output_at, strict=True)
            if shape is not None and math.prod(shape) and info.dtype.kind != "V"
        ]
        is_plain = len(outputs) == len(results)
        workspace = self._workspace_bytes(words)
        return _Plan(words, results, capacities, workspace, outputs if is_plain else None)

    def _bind_symbols(self, shapes: Sequence[tuple[int, ...]]) -> dict[str, int]:
        """The symbols' values; ValueError if the shapes are not those of the model."""
        symbols: dict[str, int] = {}
        for info, dims, shape in zip(self.inputs, self._input_dims, shapes, strict=True):
            if len(shape) != len(dims):
                raise ValueError(_shape_error(info, shape, None))
            for dim, size in zip(dims, shape, strict=True):
                if isinstance(dim, Dimension) and dim.is_symbol:
                    symbols.setdefault(dim.text, size)
        for info, dims, shape in zip(self.inputs, self._input_dims, shapes, strict=True):
            if (expected := evaluated(dims, symbols)) != shape:
                raise ValueError(_shape_error(info, shape, expected))
        return symbols

    def _workspace_bytes(self, words: Sequence[tuple[int, int]]) -> int:
        if isinstance(self.workspace, int):
            return self.workspace
        slot = self._new_slot()
        for position, value in words:
            slot.words[position] = value
        for position in self._default_at:  # the dims count as they are
            slot.words[position] = _address(_NO_ELEMENTS)
        return self._workspace_size(slot.words)

    def _apply(self, plan: _Plan, slot: _Slot) -> None:
        words = slot.words
        for position, value in plan.words:
            words[position] = value
        if slot.workspace.size < plan.workspace:
            slot.workspace = np.empty(plan.workspace, np.uint8)
        words[self._fields["workspace"]] = _address(slot.workspace)
        words[self._fields["workspace_size"]] = slot.workspace.size
        slot.plan = plan

    def _call(self, plan: _Plan, slot: _Slot) -> list[Array]:
        return self._written(self._run_into_new(plan, slot), plan, slot)

    def _run_into_new(self, plan: _Plan, slot: _Slot) -> list[Array]:
        """Run with new arrays for the outputs; returns them with all the room that they have."""
        words = slot.words
        while True:
            outputs: list[Array] = []
            for k, info in enumerate(self.outputs):
                shape = plan.shapes[k]
                array = _new_array((plan.capacities[k],) if shape is None else shape, info.dtype)
                words[self._output_at[k]] = _address(array)
                words[self._capacity_at[k]] = array.size
                outputs.append(array)
            status = self._run(words)
            if status == 0:
                return outputs
            if status != OUTPUT_CAPACITY or not self._grow(plan, slot):
                raise self._error(status)

    def _error(self, status: int) -> RunError:
        return RunError(status, self._status_text(status).decode())

    def _require(self, symbols: Symbols) -> None:
        """What the model requires of the dimensions of inputs, as its C does; RunError if not."""
        for left, predicate, right, text in self._conditions:
            if not is_met(left.evaluate(symbols), predicate, right.evaluate(symbols)):
                raise RunError(INPUT_DIMS, f"{self._error(INPUT_DIMS)}: {text}")

    def _written(self, outputs: Sequence[Array], plan: _Plan, slot: _Slot) -> list[Array]:
        return [self._cut(array, k, plan, slot) for k, array in enumerate(outputs)]

    def _cut(self, array: Array, k: int, plan: _Plan, slot: _Slot) -> Array:
        """The part of an output that was written, where only the run knows its size."""
        if plan.shapes[k] is not None:
            return array
        shape = self._written_dims(k, slot)
        return array[: math.prod(shape)].reshape(shape)

    def _written_dims(self, k: int, slot: _Slot) -> list[int]:
        start = self._output_dims_at[k]
        return list(slot.words[start : start + self.outputs[k].rank])

    def _grow(self, plan: _Plan, slot: _Slot) -> bool:
        """Make room for the dimensions that the run has written; False if there is enough."""
        grown = False
        for k, shape in enumerate(plan.shapes):
            if shape is None and (size := math.prod(self._written_dims(k, slot))) > 0:
                grown = grown or size > plan.capacities[k]
                plan.capacities[k] = max(plan.capacities[k], size)
        return grown


@dataclass(frozen=True)
class PreparedCall:
    """
    A call whose arrays stay where they are; `Binding.prepare` makes it.

    It has a workspace of its own and is for one thread at a time. `run(arguments)` is the call of
    C itself, which returns a status, for callers that are not Python.
    """

    run: Callable[..., int]
    arguments: ctypes.Array[ctypes.c_int64]
    _inputs: Sequence[Array]
    """Kept because C has their addresses."""
    _error: Callable[[int], RunError]
    _written: Callable[[], list[Array]]

    def __call__(self) -> None:
        """Run; RunError if it fails, also because an output has outgrown its array."""
        if status := self.run(self.arguments):
            raise self._error(status)

    @property
    def outputs(self) -> list[Array]:
        """What the last run has written, in order: arrays that the next run overwrites."""
        return self._written()


def _loaded(path: str) -> ctypes.CDLL:
    """
    The library at `path` as it is now.

    A loader asked for a path that it has loaded before does not look at the file again, so it is
    given one that never was.
    """
    with tempfile.TemporaryDirectory(prefix="lowerdeck-") as folder:
        link = os.path.join(folder, os.path.basename(folder))
        os.symlink(os.path.abspath(path), link)
        return ctypes.CDLL(link)


def _mapped(path: str, metadata: Mapping[str, Any]) -> Array:
    """The weights; ValueError if they are not as many bytes as the model has."""
    with open(path, "rb") as file:
        size, expected = os.fstat(file.fileno()).st_size, metadata["weights_size"]
        if size != expected:
            raise ValueError(f"{path}: has {size} bytes, expected {expected}")
        return np.frombuffer(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ), np.uint8)


def is_met(left: int, predicate: str, right: int) -> bool:
    """True if sizes are as a condition of a model's description wants them."""
    if predicate == "le":
        return left <= right
    return left == right or (predicate == "broadcast" and left == 1)


def _function(library: ctypes.CDLL, name: str, result: Any) -> Callable[..., int]:
    try:
        function = getattr(library, name)
    except AttributeError as error:
        raise OSError(f"the library is not that of the model: {error}") from None
    function.restype = result
    return function


def _new_array(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """An array for results, at the start of a line of the cache unless it is small."""
    if not (size := _room(shape, dtype)):
        return np.empty(shape, dtype)
    room = np.empty(size, np.uint8)
    return np.ndarray(shape, dtype, cast(Any, room), -_address(room) % _LINE)


def _room(shape: tuple[int, ...], dtype: np.dtype[Any]) -> int:
    """Bytes in which an array lies at the start of a line; 0 if it is too small to matter."""
    size = math.prod(shape) * dtype.itemsize
    return 0 if size < _LINES_FROM else size + _LINE


def _address(array: Array) -> int:
    """Where the elements begin."""
    if array.size and array.flags.writeable and array.dtype.kind != "V":
        return _address_of(_first_of(cast(Any, array)))
    # The general way takes ten times as long: for arrays that are read-only, empty, or of a type
    # that buffers cannot have.
    return array.ctypes.data if array.size else 0


def _shape_error(info: TensorInfo, shape: Sequence[int], expected: Sequence[int] | None) -> str:
    described = f"[{', '.join(map(str, info.shape))}]"
    if expected is not None and any(isinstance(size, str) for size in info.shape):
        described = f"{described} = {list(expected)}"
    return f"input '{info.name}' has the shape {list(shape)}, expected {described}"
