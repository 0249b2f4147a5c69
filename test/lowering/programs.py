"""
Small programs run in three ways: by the interpreter of core, by that of buffer, and as compiled C.

Many programs share one run of gcc: their C is included into one file.
"""

# Bodies of programs are lambdas, and numpy's limits have no types.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any, cast

import ml_dtypes
import numpy as np
from numpy.typing import NDArray
from xdsl.builder import ImplicitBuilder
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass

from lowerdeck.dialects.core.types import DimsAttr, Tensor, element_of, numpy_dtype, tensor
from lowerdeck.dialects.dims import Expr, ExprLike
from lowerdeck.dialects.interpret import Interpreter, find_function
from lowerdeck.dialects.interpret.buffer import run_entry
from lowerdeck.dialects.interpret.errors import InterpretError
from lowerdeck.lowering.emit_c.module import CArtifact, emit_c
from lowerdeck.lowering.entry.parallelize import ParallelizePass
from lowerdeck.lowering.entry.split_entry import SplitEntryPass
from lowerdeck.lowering.pipeline import Observer, run_to_phase
from lowerdeck.lowering.targets.base import MOST_STATEMENTS
from lowerdeck.passes.machinery.context import LowerdeckContext
from lowerdeck.passes.machinery.options import CompileOptions

from .libraries import build  # noqa: TID251  (these are tests, not the folder of sources)
from .together import MOST, can_be_joined, join  # noqa: TID251  (as above)

Array = NDArray[Any]
Body = Callable[..., "SSAValue | Operation | Sequence[SSAValue | Operation]"]

FLAGS = (
    "-std=c99",
    "-O0",
    "-ffp-contract=fast",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-Wall",
    "-Wextra",
    "-Werror",
)
"""Those of the product, but for the level of optimization, with every warning an error."""

VECTOR_FLAGS = (*FLAGS, "-march=native", "-Wno-psabi")
"""For vectors of any width: what the machine does not have, gcc makes of what it has."""

REFUSALS = (2, 13, 14)
"""Status codes for sizes of inputs that do not fit, and for sizes and indices from data."""

CANARY = 0x5C
"""The bytes around the memory that C is given."""
MARGIN = 64


def symbol(name: str) -> Expr:
    """A dimension symbol."""
    return Expr.symbol(name)


def typed(dtype: Any, *dims: ExprLike) -> Tensor:
    """The tensor type with the element type of a numpy dtype."""
    return tensor(element_of(np.dtype(dtype)), dims)


def module_of(types: Sequence[Attribute], body: Body) -> ModuleOp:
    """A module whose @main has arguments of `types` and returns what `body` builds of them."""
    block = Block(arg_types=types)
    with ImplicitBuilder(block):
        results = body(*block.args)
        single = isinstance(results, SSAValue | Operation)
        values = [SSAValue.get(value) for value in ([results] if single else results)]
        func.ReturnOp(*values)
    function = func.FuncOp("main", (list(types), [value.type for value in values]), Region(block))
    module = ModuleOp([function])
    module.verify()
    return module


@dataclass(eq=False)
class Program:
    """A module of core with inputs, in order, and how exact its results have to be."""

    name: str
    module: ModuleOp
    inputs: Sequence[Array]
    ulps: float = 4
    """Units in the last place that floats may differ by."""
    scale: float = 0.0
    """Differences are also measured against this times the largest result: sums cancel."""
    compare_core: bool = True
    """False where core leaves the result open, so only the two lower levels must agree."""
    runs_scheduled: bool = True
    """False where there are so many elements that only the C is run, not what it is printed of."""
    scheduling: Sequence[ModulePass] = ()
    """What is done to kernels before they run."""
    threads: int = 1
    most_statements: int = MOST_STATEMENTS
    """Of a function of the entry function."""
    may_fail: bool = False
    """True if dimensions may turn out not to fit; then all three ways must find that out."""
    is_refused: bool = False
    expected: list[Array] = field(default_factory=list[Array])
    parts: Sequence[Program] = ()
    """The programs that this is made of, whose inputs and results it has in order."""

    @property
    def named_inputs(self) -> dict[str, Array]:
        """The inputs under the names of nameless arguments."""
        return {str(k): value for k, value in enumerate(self.inputs)}

    def expect(self) -> None:
        """Find out what the results have to be, before the module is lowered."""
        function = find_function(self.module, "main")
        try:
            values = Interpreter().call(function, list(self.inputs))
            self.expected = [cast(Array, value) for value in values]
        except InterpretError:
            if not self.may_fail:
                raise
            self.is_refused = True

    def has_options_of(self, other: Program) -> bool:
        """True if modules of both are lowered in one way."""
        return type(self) is type(other) and all(
            getattr(self, each.name) == getattr(other, each.name)
            for each in fields(self)
            if each.name not in _OF_ONE_RUN
        )

    def is_lowered_like(self, other: Program) -> bool:
        """True if nothing is different but the inputs, and how results are compared."""
        return self.has_options_of(other) and self.module.is_structurally_equivalent(other.module)

    @property
    def can_be_joined(self) -> bool:
        """True if its module may become one with those of others."""
        return self.compare_core and not self.may_fail and can_be_joined(self.module)

    def lower(self, runs: Sequence[Program]) -> tuple[CArtifact, list[str]]:
        """
        The C, and what the interpreters disagree about on the inputs of `runs`: this one and those
        that are lowered like it.
        """
        others: dict[str, ModulePass | None] = {
            **dict.fromkeys(_UNTUNED),
            **{pass_.name: pass_ for pass_ in self.scheduling},
            # However small: these kernels have a few elements.
            "parallelize": ParallelizePass(worth=0),
            "split-entry": SplitEntryPass(self.most_statements),
        }
        observer = _Runs(runs)
        context = LowerdeckContext(options=CompileOptions(target="c99", threads=self.threads))
        run_to_phase(context, self.module, "scheduled", observer, after="optimized", instead=others)
        for program, results in zip(runs, observer.results, strict=True):
            if not (program.compare_core or program.is_refused):
                program.expected = results
        return emit_c(self.module, self.name, "native"), observer.problems

    def check_scheduled(self, runs: Sequence[Program]) -> list[str]:
        """What the lowered module does not compute as `runs` expect it."""
        self.module.verify()
        return [
            text
            for run in (runs if self.runs_scheduled else ())
            for text in run.differences(
                "scheduled",
                list(run_entry(self.module, run.named_inputs).values()),
                run.expected,
            )
        ]

    def differences(
        self, stage: str, found: Sequence[Array], expected: Sequence[Array], exact: bool = False
    ) -> list[str]:
        """One line for each result that is not as expected."""
        if self.parts:
            return self._differences_of_parts(stage, found, expected, exact)
        ulps = 0 if exact else self.ulps
        pairs = enumerate(zip(found, expected, strict=True))
        texts = [(k, difference(a, b, ulps, self.scale)) for k, (a, b) in pairs]
        return [f"{self.name}: {stage}: result {k}: {text}" for k, text in texts if text]

    def _differences_of_parts(
        self, stage: str, found: Sequence[Array], expected: Sequence[Array], exact: bool
    ) -> list[str]:
        texts: list[str] = []
        start = 0
        for part in self.parts:
            some = slice(start, start := start + len(part.expected))
            texts += part.differences(stage, found[some], expected[some], exact)
        return texts


_OF_ONE_RUN = frozenset(
    "name module inputs arrays ulps scale compare_core may_fail is_refused expected parts".split()
)
"""Fields of programs that lowering does not depend on; modules are compared as such."""

_UNTUNED = (
    "pack-products",
    "assign-layouts",
    "fuse-bands",
    "choose-strategies",
    "vectorize-loops",
)
"""What programs do without, so that plain loops are tested."""


class _Runs(Observer):
    """
    Runs programs of one module without and with loops and planned memory, and compares. Where core
    leaves results open, those with planned memory are compared to the ones before.
    """

    def __init__(self, programs: Sequence[Program]) -> None:
        self._programs = programs
        self.results: list[list[Array]] = [[] for _ in programs]
        self.problems: list[str] = []

    def before_pass(self, pass_: ModulePass, phase: str, module: ModuleOp) -> None:
        for number, program in enumerate(self._programs):
            if not program.compare_core and pass_.name == "plan-memory":
                self._run(number, "before planning", module, None, exact=False)
            elif program.compare_core and pass_.name == "lower-kernels":
                self._run(number, "before loops", module, program.expected, exact=False)

    def after_phase(self, phase: str, module: ModuleOp) -> None:
        if phase == "scheduled":
            module.verify()
            for number, (program, results) in enumerate(
                zip(self._programs, self.results, strict=True)
            ):
                expected = program.expected if program.compare_core else results
                self._run(number, "planned", module, expected, exact=not program.compare_core)

    def _run(
        self,
        number: int,
        stage: str,
        module: ModuleOp,
        expected: Sequence[Array] | None,
        *,
        exact: bool,
    ) -> None:
        program = self._programs[number]
        try:
            results = list(run_entry(module, program.named_inputs).values())
        except InterpretError:
            if not program.is_refused:
                raise
            return
        self.results[number] = results
        if program.is_refused:
            self.problems.append(f"{program.name}: {stage}: runs what core refuses")
        elif expected is not None:
            self.problems += program.differences(stage, results, expected, exact)


def difference(found: Array, expected: Array, ulps: float, scale: float = 0.0) -> str | None:
    """What differs, or None: integers equal, NaN and infinities where expected, floats close."""
    if (found.dtype, found.shape) != (expected.dtype, expected.shape):
        return f"{found.dtype}{found.shape} instead of {expected.dtype}{expected.shape}"
    if not found.size:
        return None
    if expected.dtype.kind in "iub":
        wrong = found != expected
    else:
        info = ml_dtypes.finfo(expected.dtype)
        a, b = found.astype(np.float64), expected.astype(np.float64)
        with np.errstate(all="ignore"):
            finite = np.abs(b[np.isfinite(b)])
            magnitude = np.maximum(np.abs(b), scale * finite.max(initial=0.0))
            # Results below the smallest normal number may be flushed on the way.
            allowed = ulps * float(info.eps) * magnitude + (float(info.tiny) if ulps else 0.0)
            close = (np.abs(a - b) <= allowed) | (a == b) | (np.isnan(a) & np.isnan(b))
            overflow = (np.abs(b) * (1 + ulps * float(info.eps)) > float(info.max)) & np.isinf(a)
        wrong = ~(close | (overflow & np.isfinite(b) & (np.sign(a) == np.sign(b))))
    if not wrong.any():
        return None
    place = tuple(int(k) for k in np.argwhere(wrong)[0])
    count = int(np.count_nonzero(wrong))
    return f"{found[place]!r} instead of {expected[place]!r} at {place}, {count} wrong"


def write_artifact(artifact: CArtifact, folder: Path) -> None:
    """All files of a model, and its weights."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in artifact.files.items():
        (folder / name).write_text(text)
    (folder / f"{artifact.name}.weights").write_bytes(weights_of(artifact))


def weights_of(artifact: CArtifact) -> bytes:
    """The contents of the weights file."""
    return b"".join(bytes(chunk) for chunk in artifact.weight_chunks())


def write_unit(artifacts: Sequence[CArtifact], folder: Path) -> list[Path]:
    """The sources of a library with all models, whose C is one file."""
    lines: list[str] = []
    for artifact in artifacts:
        write_artifact(artifact, folder)
        lines.append(f'#include "{artifact.name}.c"')
    unit, pool = folder / "all.c", folder / "lowerdeck_pool.c"
    unit.write_text("\n".join([*lines, ""]))
    # A second copy of the pool's code would define its functions again.
    return [unit, pool] if pool.exists() else [unit]


def compile_all(
    artifacts: Sequence[CArtifact], folder: Path, flags: Sequence[str] = FLAGS, cc: str = "gcc"
) -> ctypes.CDLL:
    """One library with all models."""
    library = folder / "all.so"
    build([cc, *flags, "-shared", "-fPIC"], write_unit(artifacts, folder), library)
    return ctypes.CDLL(str(library))


class Margined:
    """Memory at an aligned address with bytes around it that must stay as they are."""

    def __init__(self, size: int, fill: int = 0xA3) -> None:
        self._bytes = np.full(size + 3 * MARGIN, CANARY, np.uint8)
        start = -self._bytes.ctypes.data % MARGIN + MARGIN
        self.memory = self._bytes[start : start + size]
        self.memory[:] = fill
        self._start = start

    @property
    def address(self) -> int:
        """Of the memory itself."""
        return self._bytes.ctypes.data + self._start

    @property
    def is_intact(self) -> bool:
        """True if nothing was written around the memory."""
        end = self._start + self.memory.size
        return bool((self._bytes[: self._start] == CANARY).all()) and bool(
            (self._bytes[end:] == CANARY).all()
        )


AllocateType = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)
ReleaseType = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)


class Allocator:
    """A `lowerdeck_allocator` that counts, and that fails from a given call on."""

    def __init__(self, fail_at: int | None = None) -> None:
        self.calls = 0
        self.live: dict[int, Any] = {}
        self._fail_at = fail_at
        # Python objects must live as long as C may call them.
        self._allocate = AllocateType(self._on_allocate)
        self._release = ReleaseType(self._on_release)
        functions = [
            ctypes.cast(self._allocate, ctypes.c_void_p).value or 0,
            ctypes.cast(self._release, ctypes.c_void_p).value or 0,
        ]
        self._words = (ctypes.c_int64 * 3)(*functions, 0)

    @property
    def address(self) -> int:
        """Of the struct."""
        return ctypes.addressof(self._words)

    def _on_allocate(self, context: int | None, size: int) -> int | None:
        self.calls += 1
        if self._fail_at is not None and self.calls >= self._fail_at:
            return None
        memory = Margined(size)
        self.live[memory.address] = memory
        return memory.address

    def _on_release(self, context: int | None, memory: int) -> None:
        assert self.live.pop(memory).is_intact


class Call:
    """
    The arguments of one call of NAME_run; every field has 64 bits.

    `fields` gives the position of `NAME.data`, `NAME.dims`, `NAME.capacity`, `weights`, ...
    """

    def __init__(self, library: ctypes.CDLL, artifact: CArtifact) -> None:
        self.library, self.artifact = library, artifact
        self.fields = cast("dict[str, int]", artifact.metadata["arguments"])
        self.words = (ctypes.c_int64 * (max(self.fields.values()) + 1))()
        self.keep: list[Any] = []
        self.outputs: list[Margined] = []
        self.workspace: Margined | None = None

    def ports(self, kind: str) -> list[dict[str, Any]]:
        """What the description says of all inputs, or of all outputs."""
        return cast("list[dict[str, Any]]", self.artifact.metadata[kind])

    def __setitem__(self, name: str, value: int) -> None:
        self.words[self.fields[name]] = value

    def __getitem__(self, name: str) -> int:
        return self.words[self.fields[name]]

    def dims(self, name: str, rank: int) -> list[int]:
        """The dimensions that a field holds."""
        start = self.fields[f"{name}.dims"]
        return list(self.words[start : start + rank])

    def prepare(self, inputs: Sequence[Array], capacities: Sequence[int]) -> Call:
        """Fill in everything that a good call needs."""
        for port, value in zip(self.ports("inputs"), inputs, strict=True):
            memory = Margined(value.nbytes)
            memory.memory[:] = np.ascontiguousarray(value).reshape(-1).view(np.uint8)
            self.keep.append(memory)
            self[f"{port['field']}.data"] = memory.address
            start = self.fields[f"{port['field']}.dims"]
            self.words[start : start + value.ndim] = list(value.shape)
        for port, capacity in zip(self.ports("outputs"), capacities, strict=True):
            memory = Margined(capacity * _dtype(port).itemsize)
            self.outputs.append(memory)
            self[f"{port['field']}.data"] = memory.address
            self[f"{port['field']}.capacity"] = capacity
        weights = weights_of(self.artifact)
        memory = Margined(len(weights))
        memory.memory[:] = np.frombuffer(weights, np.uint8)
        self.keep.append(memory)
        self["weights"], self["weights_size"] = memory.address, len(weights)
        size = self.workspace_size()
        if size >= 0:
            self.workspace = Margined(size)
            self["workspace"], self["workspace_size"] = self.workspace.address, size
        if self.artifact.metadata["needs_allocator"]:
            self.allocator = Allocator()
            self["allocator"] = self.allocator.address
        return self

    def workspace_size(self) -> int:
        """What NAME_workspace_size returns for the dimensions set."""
        function = getattr(self.library, f"{self.artifact.name}_workspace_size")
        function.restype = ctypes.c_int64
        return function(ctypes.byref(self.words))

    def run(self) -> int:
        """The status of NAME_run; nothing may have been written around the memory given."""
        status = getattr(self.library, f"{self.artifact.name}_run")(ctypes.byref(self.words))
        memory = [*self.outputs, *self.keep, *([self.workspace] if self.workspace else [])]
        assert all(part.is_intact for part in memory), "memory outside of the buffers was written"
        return status

    def results(self) -> list[Array]:
        """The outputs, of the dimensions that the run wrote."""
        results: list[Array] = []
        for port, memory in zip(self.ports("outputs"), self.outputs, strict=True):
            shape = self.dims(port["field"], len(port["dims"]))
            dtype = _dtype(port)
            size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
            results.append(memory.memory[:size].view(dtype).reshape(shape))
        return results


def _dtype(port: Mapping[str, Any]) -> np.dtype[Any]:
    names = {"bfloat16": np.dtype(ml_dtypes.bfloat16)}
    return names.get(port["dtype"]) or np.dtype(port["dtype"])


def _groups(programs: Sequence[Program]) -> list[list[Program]]:
    """Programs that differ in their inputs only, together."""
    alike: dict[object, list[list[Program]]] = {}
    groups: list[list[Program]] = []
    for program in programs:
        # Constants of the same bytes are equivalent whatever their shapes.
        ops = tuple((op.name, tuple(op.result_types)) for op in program.module.walk())
        known = alike.setdefault(ops, [])
        group = next((g for g in known if program.is_lowered_like(g[0])), None)
        if group is None:
            groups.append([program])
            known.append(groups[-1])
        else:
            group.append(program)
    return groups


def _joined(groups: Sequence[list[Program]]) -> list[list[Program]]:
    """Groups with as many runs, of programs with the same options, as one."""
    sets: list[list[list[Program]]] = []
    for group in groups:
        first = group[0]
        fitting = (
            each
            for each in sets
            if len(each) < MOST
            and len(each[0]) == len(group)
            and each[0][0].can_be_joined
            and first.has_options_of(each[0][0])
        )
        among = next(fitting, None) if first.can_be_joined else None
        if among is None:
            sets.append([group])
        else:
            among.append(group)
    return [each[0] if len(each) == 1 else _one(each) for each in sets]


def _one(groups: Sequence[Sequence[Program]]) -> list[Program]:
    """The runs of a program that is made of several."""
    first = groups[0][0]
    module = join([group[0].module for group in groups])
    return [
        replace(
            first,
            module=module,
            name=f"{first.name}_{number}" if number else first.name,
            inputs=[value for part in parts for value in part.inputs],
            expected=[value for part in parts for value in part.expected],
            parts=parts,
        )
        for number, parts in enumerate(zip(*groups, strict=True))
    ]


Outcome = tuple[int, list[Array]]
"""The status that a program ends with, and its results if that is zero."""


@dataclass(eq=False)
class Suite:
    """Programs that are compiled together."""

    folder: Path
    programs: list[Program] = field(default_factory=list[Program])
    flags: Sequence[str] = FLAGS
    is_turn: Callable[[int, int], bool] = lambda number, count: True
    """Whether a module is lowered here, of its number and that of all; the others are dropped."""
    together: bool = True
    """Whether modules become parts of larger ones where that changes nothing in them."""

    def add(self, types: Sequence[Attribute], body: Body, *inputs: Array, **options: Any) -> None:
        """One more program."""
        name = f"p{len(self.programs)}"
        self.programs.append(Program(name, module_of(types, body), inputs, **options))

    def on(self, body: Body, *inputs: Array, **options: Any) -> None:
        """One more program on inputs of static shape."""
        self.add([typed(value.dtype, *value.shape) for value in inputs], body, *inputs, **options)

    @cached_property
    def lowered(self) -> list[tuple[Program, CArtifact, list[str]]]:
        """
        Each program with its C and what the interpreters disagree about. Those that are the same
        but for their inputs have one module and one C.
        """
        groups = _groups(self.programs)
        groups = [group for k, group in enumerate(groups) if self.is_turn(k, len(groups))]
        here = {program for group in groups for program in group}
        self.programs = [program for program in self.programs if program in here]
        for program in self.programs:
            program.expect()
        if self.together:
            groups = _joined(groups)
            self.programs = [program for group in groups for program in group]
        found: dict[Program, tuple[CArtifact, list[str]]] = {}
        for group in groups:
            artifact, problems = group[0].lower(group)
            for program in group:
                program.module = group[0].module
                found[program] = artifact, [] if found.keys() & group else problems
        return [(program, *found[program]) for program in self.programs]

    @property
    def artifacts(self) -> list[CArtifact]:
        """The C of all programs, each once."""
        return list({artifact.name: artifact for _, artifact, _ in self.lowered}.values())

    def outcomes(self) -> list[Outcome]:
        """The status and the results of each program, run as C."""
        library = compile_all(self.artifacts, self.folder, self.flags)
        return [self._outcome(library, program, artifact) for program, artifact, _ in self.lowered]

    def _outcome(self, library: ctypes.CDLL, program: Program, artifact: CArtifact) -> Outcome:
        outputs = cast(Sequence[object], artifact.metadata["outputs"])
        capacities = [value.size for value in program.expected] or [1 << 16] * len(outputs)
        call = Call(library, artifact).prepare(program.inputs, capacities)
        status = call.run()
        return status, [] if status else call.results()

    def check(self) -> None:
        """Fail with everything that differs between the three ways."""
        problems: list[str] = []
        for (program, _, found), (status, results) in zip(
            self.lowered, self.outcomes(), strict=True
        ):
            problems += found
            if program.is_refused and status not in REFUSALS:
                problems.append(f"{program.name}: C: status {status} for what core refuses")
            elif not program.is_refused and status != 0:
                problems.append(f"{program.name}: C: status {status}")
            elif not program.is_refused:
                problems += program.differences("C", results, program.expected)
        assert not problems, "\n".join(problems)


__all__ = ["Call", "DimsAttr", "Program", "Suite", "module_of", "numpy_dtype", "symbol", "typed"]
