"""
What a user of the generated C sees: the header, the checks of `NAME_run`, the build file, the
example program, and the same facts as JSON for bindings.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from string import Template

import numpy as np

from lowerdeck.dialects.buffer.enums import Requirement
from lowerdeck.dialects.buffer.types import RefType
from lowerdeck.dialects.core.types import numpy_dtype
from lowerdeck.dialects.dims import Expr, constants
from lowerdeck.dialects.sizes import is_never_negative
from lowerdeck.lowering.abi import ABI, argument_fields
from lowerdeck.lowering.emit_c.identifiers import identifier, names_of_model
from lowerdeck.lowering.emit_c.writer import (
    CWriter,
    bare_symbols,
    c_bytes,
    c_expr,
    comment,
    dims_text,
    needs_runtime,
    storage_type,
    string_literal,
)
from lowerdeck.lowering.entry.conditions import Condition
from lowerdeck.lowering.targets import GCC_FLAGS, compiler_flags

RUNTIME = Path(__file__).parent.parent / "runtime"
"""The C that we wrote by hand."""

ARGUMENTS_AFTER_TENSORS = """\
  const void *weights; /* {weights} */
  size_t weights_size;
  void *workspace; /* {workspace} */
  size_t workspace_size;
  lowerdeck_pool *pool; /* NULL: one thread */
  const lowerdeck_allocator *allocator; /* {allocator} */
"""


@dataclass(frozen=True)
class Port:
    """An input or output: its tensor name, its C field, its type."""

    name: str
    field: str
    type: RefType
    default: tuple[int, ...] | None = None
    """The sizes of what an input is if the caller leaves it out; None if it has to be given."""
    default_offset: int = 0
    """Where its elements lie in the weights."""
    classes: tuple[str, ...] = ()
    """What the numbers in an output stand for, where these are classes with names."""

    @property
    def rank(self) -> int:
        """Entries of the C array of dimensions; a scalar has one that is not used."""
        return max(len(self.type.dims.data), 1)

    @property
    def data(self) -> str:
        """The address of its elements."""
        return f"args->{self.field}.data"


@dataclass(frozen=True, kw_only=True)
class StatePort(Port):
    """One state: `name` is that of the input that holds it before a call, `field` of the struct."""

    after: str
    """The output that holds it after the call."""
    initial: bytes | None
    """What it holds before the first call; None for zeros."""
    offset: int
    """In bytes, in the struct."""

    @property
    def data(self) -> str:
        """The address of its elements."""
        return f"args->state->{self.field}"

    @property
    def elements(self) -> int:
        """Their number; one, if there are none, for C has no empty arrays."""
        return max(self.type.elements.value or 0, 1)


@dataclass(frozen=True, kw_only=True)
class Interface:
    """Everything that the C interface of one model depends on."""

    name: str
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    unused_inputs: list[str]
    """Inputs of the model that no output needs, and the C does not have."""
    states: tuple[StatePort, ...]
    """What is remembered: no inputs and outputs of the C, but fields of the struct `NAME_state`."""
    conditions: tuple[tuple[Condition, str], ...]
    """What is required of the inputs' dimensions, and what is said where they fail it."""
    workspace: Expr
    """Bytes, without the slack for alignment."""
    weights_size: int
    """Bytes with the header; 0 if there are no constants."""
    weights_header: bytes
    allocated: tuple[str, ...]
    """The source nodes whose results come from the caller's allocator."""
    needs_allocator: bool
    is_parallel: bool
    """It was compiled for a pool of threads, and comes with one."""
    shares_work: bool
    """There is something in it that threads share; if not, the pool is ignored."""
    embeds_weights: bool
    """The constants are part of the C, so that none need be loaded."""
    target: str
    has_workspace: bool = False
    """The C has a workspace of its own, which is used where the caller gives none."""
    slots: tuple[dict[str, object], ...] | None = None
    """What the entry function takes the time of, for JSON; None if it takes none."""
    live: int | None = None
    """The largest sum of bytes of buffers in use at once; None if it is no number."""
    stack: int = 0
    """The bytes of stack that a run takes, at most."""
    row_major: int | None = None
    """The same for the values in them, without padding."""

    @property
    def workspace_bytes(self) -> Expr:
        """What the caller has to provide: room to align the start, too."""
        return self.workspace if self.workspace == 0 else self.workspace + 64

    @property
    def state_alignment(self) -> int:
        """Of the struct `NAME_state`, in bytes."""
        return max((port.type.item_size for port in self.states), default=1)

    @property
    def state_size(self) -> int:
        """The bytes of the struct `NAME_state`; 0 if nothing is remembered."""
        last = self.states[-1] if self.states else None
        end = 0 if last is None else last.offset + last.elements * last.type.item_size
        return -(-end // self.state_alignment) * self.state_alignment


def size_of_input(port: Port, axis: int) -> str:
    """The C form of a dimension; of an input that was left out, it is that of the default."""
    given = f"args->{port.field}.dims[{axis}]"
    if port.default is None or not port.default[axis]:
        return given
    return f"lowerdeck_given(args->{port.field}.data, {given}, {port.default[axis]})"


def make_ports(names: Sequence[str], types: Sequence[RefType], taken: set[str]) -> tuple[Port, ...]:
    """Ports with C fields that are different from all others."""
    ports = zip(names, types, strict=True)
    return tuple(Port(name, identifier(name, taken), type_) for name, type_ in ports)


def make_states(
    states: Sequence[tuple[str, str, bytes | None]], types: Sequence[RefType], name: str
) -> tuple[StatePort, ...]:
    """The fields of `NAME_state`, where a C compiler puts them."""
    taken, ports, end = names_of_model(name), list[StatePort](), 0
    for (before, after, initial), type_ in zip(states, types, strict=True):
        start = -(-end // type_.item_size) * type_.item_size
        field = identifier(before, taken)
        ports.append(StatePort(before, field, type_, after=after, initial=initial, offset=start))
        end = start + ports[-1].elements * type_.item_size
    return tuple(ports)


def header(i: Interface, functions: Sequence[str]) -> str:
    """NAME.h, with the lines of functions that it defines."""
    guard = f"{i.name.upper()}_H"
    lines = [
        f"/* {i.name}: generated by lowerdeck for target {i.target}. */",
        f"#ifndef {guard}",
        f"#define {guard}",
        "",
        '#include "lowerdeck.h"',
        *(['#include "lowerdeck_profile.h"'] if i.slots is not None else []),
        "",
        "#ifdef __cplusplus",
        'extern "C" {',
        "#endif",
        "",
    ]
    if (size := i.workspace_bytes.value) is not None:
        lines += [f"#define {i.name.upper()}_WORKSPACE_SIZE {size}"]
    lines += [
        f"#define {i.name.upper()}_WEIGHTS_SIZE {i.weights_size}",
        f"#define {i.name.upper()}_STACK_SIZE {i.stack} /* of a run, in optimized code, at most */",
        "",
    ]
    if i.embeds_weights:
        lines += [
            "/* The weights; they are used where `weights` of the arguments is NULL. */",
            f"extern const uint64_t {i.name}_weights[{i.weights_size // 8}];",
            "",
        ]
    lines += _state_struct(i)
    lines += [f"typedef struct {i.name}_args {{"]
    for port in i.inputs:
        data = f"const {storage_type(port.type.element)} *data; int64_t dims[{port.rank}];"
        lines.append(f"  struct {{ {data} }} {port.field}; {_port_comment(port)}")
    for port in i.outputs:
        data = f"{storage_type(port.type.element)} *data;"
        lines.append(
            f"  struct {{ {data} int64_t capacity; int64_t dims[{port.rank}]; }} {port.field}; "
            f"{_port_comment(port)}"
        )
    if i.states:
        lines.append(
            f"  {i.name}_state *state; /* as {i.name}_reset or the last run has left it */"
        )
    weights = "NULL: those of the program" if i.embeds_weights else f"of {i.name}.weights"
    allocator = "needed: sizes depend on data" if i.needs_allocator else "may be NULL"
    workspace = f"{i.name}_workspace_size() bytes; need not be initialized"
    if i.has_workspace:
        workspace += "; NULL: that of the program, for one run at a time"
    texts = {"weights": weights, "allocator": allocator, "workspace": workspace}
    lines += [ARGUMENTS_AFTER_TENSORS.format(**texts).rstrip()]
    if i.slots is not None:
        lines.append(
            f"  const lowerdeck_profile *profile; /* room for {len(i.slots)} slots, or NULL */"
        )
    lines += [
        f"}} {i.name}_args;",
        "",
        "/* The bytes of workspace for the inputs' dimensions in `args`; -1 if they do not fit. */",
        f"int64_t {i.name}_workspace_size(const {i.name}_args *args);",
        "",
        "/* Run the model on inputs of which data and all dims, also those that never change, are",
        "   set. Capacities count elements; the outputs' dims are written. Returns a status of",
        f"   lowerdeck.h. Threads may run one model at once, each with its own {_own(i)}. */",
        f"int {i.name}_run({i.name}_args *args);",
        "",
        *_output_dims_declaration(i),
        *_class_declarations(i),
        *functions,
        "#ifdef __cplusplus",
        "}",
        "#endif",
        "",
        "#endif",
        "",
    ]
    return "\n".join(lines)


def _class_declarations(i: Interface) -> list[str]:
    """The names of classes that outputs number."""
    lines: list[str] = []
    for port in i.outputs:
        if port.classes:
            lines += [
                comment(f"the classes that the numbers in {port.name} stand for"),
                f"extern const char *const {_class_table(i, port)};",
                "",
            ]
    return lines


def _class_table(i: Interface, port: Port) -> str:
    return f"{i.name}_{port.field}_classes[{len(port.classes)}]"


def class_tables(i: Interface) -> list[str]:
    """The definitions of these."""
    return [
        f"const char *const {_class_table(i, port)} = {{"
        f"{', '.join(map(string_literal, port.classes))}}};\n"
        for port in i.outputs
        if port.classes
    ]


def _own(i: Interface) -> str:
    return "workspace and state" if i.states else "workspace"


def _state_struct(i: Interface) -> list[str]:
    """What the model remembers, as a type of the caller's memory, and its first values."""
    if not i.states:
        return []
    fields = [
        f"  {storage_type(port.type.element)} {port.field}[{port.elements}]; {_port_comment(port)}"
        for port in i.states
    ]
    return [
        "/* What the model remembers from one run to the next. The caller owns it, and may read,",
        "   change, copy and keep it between runs; each instance of the model has one. */",
        f"typedef struct {i.name}_state {{",
        *fields,
        f"}} {i.name}_state;",
        "",
        "/* Let a state be what it is before the first run. Also after a run that has failed once",
        "   its arguments had been checked: it may have changed a part. */",
        f"void {i.name}_reset({i.name}_state *state);",
        "",
    ]


def reset_function(i: Interface) -> str:
    """The definition of NAME_reset."""
    head = f"void {i.name}_reset({i.name}_state *state) {{"
    lines = ["  if (state == NULL) return;", *map(_first_value, i.states)]
    return "\n".join([head, *lines, "}", ""])


def _first_value(port: StatePort) -> str:
    """The statement that makes a state what it is before the first run."""
    place, bytes_ = f"state->{port.field}", port.initial or b""
    if not any(bytes_):
        return f"  memset({place}, 0, sizeof {place});"
    words = np.frombuffer(bytes_, f"<u{port.type.item_size}")
    type_ = f"uint{8 * port.type.item_size}_t"
    if np.all(words == words[0]):
        return "\n".join(
            [
                f"  for (int64_t k = 0; k < {port.elements}; k++) {{",
                f"    const {type_} value = 0x{int(words[0]):x};",
                f"    memcpy(&{place}[k], &value, sizeof value);",
                "  }",
            ]
        )
    numbers = ", ".join(f"0x{int(word):x}" for word in words)
    return "\n".join(
        [
            "  {",
            f"    static const {type_} values[] = {{{numbers}}};",
            f"    memcpy({place}, values, sizeof values);",
            "  }",
        ]
    )


def _port_comment(port: Port) -> str:
    text = f"{port.name}: {dims_text(port.type)}"
    if port.default is not None:
        sizes = ", ".join(map(str, port.default))
        text += f"; may be NULL: the default, of [{sizes}], dims are these or 0"
    return comment(text)


def read_dimensions(i: Interface, c: CWriter) -> None:
    """Bind the symbols of the inputs' dimensions, which have been checked."""
    for symbol, (number, axis) in bare_symbols([port.type for port in i.inputs]).items():
        name = c.bind_symbol(symbol)
        c.sizes.add(symbol)
        c.line(f"const int64_t {name} = {size_of_input(i.inputs[number], axis)};")
        c.line(f"(void){name};")


def check_dimensions(i: Interface, c: CWriter, failure: str) -> None:
    """Bind the symbols of the inputs' dimensions and check all the others against them."""
    found = bare_symbols([port.type for port in i.inputs])
    # First, so that sums of dimensions are no problem.
    for port in i.inputs:
        if port.type.elements.value is None:
            size = f"lowerdeck_bytes(args->{port.field}.dims, {port.rank}, {port.type.item_size})"
            c.line(f"if ({size} < 0) return {failure};")
    for symbol, (number, axis) in found.items():
        name = c.bind_symbol(symbol)
        c.sizes.add(symbol)
        c.line(f"const int64_t {name} = {size_of_input(i.inputs[number], axis)};")
        c.line(f"if ({name} < 0) return {failure};")
    for number, port in enumerate(i.inputs):
        for axis, dim in enumerate(port.type.dims.data):
            if found.get(str(dim)) != (number, axis):
                expected = c.size(dim)
                c.line(f"if ({size_of_input(port, axis)} != {expected}) return {failure};")
    for condition, _ in i.conditions:
        c.line(f"if (!({c_condition(condition, c)})) return {failure};")


def c_condition(condition: Condition, c: CWriter) -> str:
    """The C form of a relation of sizes."""
    left, right = c.size(condition.left), c.size(condition.right)
    equal, within = f"({left}) == ({right})", f"({left}) <= ({right})"
    if not condition.left.symbols | condition.right.symbols <= c.sizes:
        equal, within = f"lowerdeck_equal({left}, {right})", f"lowerdeck_within({left}, {right})"
    if condition.predicate is Requirement.BROADCAST:
        return f"{equal} || ({left}) == 1"
    return equal if condition.predicate is Requirement.EQ else within


def workspace_function(i: Interface) -> str:
    """The definition of NAME_workspace_size."""
    c = CWriter(names_of_model(i.name))
    c.line("if (args == NULL) return -1;")
    check_dimensions(i, c, "-1")
    needed = c.short_size(i.workspace_bytes)
    if i.workspace_bytes.value is None:
        needed = f"lowerdeck_max({needed}, -1)"
    c.line(f"return {needed};")
    head = f"int64_t {i.name}_workspace_size(const {i.name}_args *args) {{"
    return "\n".join([head, *c.lines, "}", ""])


def has_output_dims(i: Interface) -> bool:
    """True if there are outputs whose dimensions depend on those of inputs."""
    return any(_follows_from_inputs(port, i) and not _is_fixed(port) for port in i.outputs)


def _is_fixed(port: Port) -> bool:
    return constants(port.type.dims.data) is not None


def _follows_from_inputs(port: Port, i: Interface) -> bool:
    known = bare_symbols([port.type for port in i.inputs]).keys()
    return all(dim.symbols <= known for dim in port.type.dims.data)


def _output_dims_declaration(i: Interface) -> list[str]:
    if not has_output_dims(i):
        return []
    return [
        "/* Write the outputs' dims for the inputs' dims in `args`, -1 where they depend on data.",
        "   Returns a status; nothing else is looked at. */",
        f"int {i.name}_output_dims({i.name}_args *args);",
        "",
    ]


def output_dims_function(i: Interface) -> str:
    """The definition of NAME_output_dims."""
    c = CWriter(names_of_model(i.name))
    c.line("if (args == NULL) return LOWERDECK_ERROR_NULL;")
    check_dimensions(i, c, "LOWERDECK_ERROR_INPUT_DIMS")
    for port in i.outputs:
        for axis, dim in enumerate(port.type.dims.data):
            is_known = dim.symbols <= c.symbols.keys()
            size = c.size(dim) if is_known else "-1"
            if is_known and not is_never_negative(dim):
                size = f"lowerdeck_max({size}, -1)"
            c.line(f"args->{port.field}.dims[{axis}] = {size};")
    c.line("return LOWERDECK_OK;")
    return "\n".join([f"int {i.name}_output_dims({i.name}_args *args) {{", *c.lines, "}", ""])


def check_function(i: Interface) -> str:
    """The definition of NAME_check: everything that can be said before the run."""
    c = CWriter(names_of_model(i.name))
    check_dimensions(i, c, "LOWERDECK_ERROR_INPUT_DIMS")
    _check_arguments(i, c)
    c.line("return LOWERDECK_OK;")
    return "\n".join([f"static int {i.name}_check({i.name}_args *args) {{", *c.lines, "}", ""])


def _check_arguments(i: Interface, c: CWriter) -> None:
    for port in i.inputs:
        if port.default is None:
            _check_pointer(port, c)
        else:
            _check_default(port, c)
    known = [port for port in i.outputs if _is_known(port, c)]
    # All of them before any is too small: one call tells what all outputs need.
    for port in known:
        _write_dims(port, c)
    for port in known:
        _check_room(port, c)
    if i.weights_size:
        _check_weights(i, c)
    if i.states:
        c.line("if (args->state == NULL) return LOWERDECK_ERROR_NULL;")
        if (size := i.state_alignment) > 1:
            c.line(f"if ((uintptr_t)args->state % {size} != 0) return LOWERDECK_ERROR_ALIGNMENT;")
    if i.workspace != 0:
        needed = c.short_size(i.workspace_bytes)
        c.line(
            f"if (args->workspace_size < (size_t)({needed})) return LOWERDECK_ERROR_WORKSPACE_SIZE;"
        )
        c.line("if (args->workspace == NULL) return LOWERDECK_ERROR_NULL;")
    if i.needs_allocator:
        c.line("if (args->allocator == NULL) return LOWERDECK_ERROR_NO_ALLOCATOR;")
    _check_overlaps(i, c)


def _is_known(port: Port, c: CWriter) -> bool:
    return all(dim.symbols <= c.symbols.keys() for dim in port.type.dims.data)


def write_output_dims(port: Port, c: CWriter, only: str = "") -> None:
    """
    Write an output's dimensions (after `only`, a C condition); check that it has room for them,
    and its pointer.
    """
    _write_dims(port, c, only)
    _check_room(port, c)


def _write_dims(port: Port, c: CWriter, only: str = "") -> None:
    for axis, dim in enumerate(port.type.dims.data):
        c.line(f"{only}args->{port.field}.dims[{axis}] = {c.size(dim)};")


def _check_room(port: Port, c: CWriter) -> None:
    elements = c_bytes(port.type.dims.data, 1, c.size)
    if port.type.elements.value is None:
        count = c.fresh(f"{port.field}_elements")
        c.line(f"const int64_t {count} = {elements};")
        c.line(f"if ({count} < 0) return LOWERDECK_ERROR_SHAPE_MISMATCH;")
        elements = count
    c.line(f"if (args->{port.field}.capacity < {elements}) return LOWERDECK_ERROR_OUTPUT_CAPACITY;")
    _check_pointer(port, c)


def _check_pointer(port: Port, c: CWriter) -> None:
    data = f"args->{port.field}.data"
    dims = port.type.dims.data
    empty = "" if port.type.elements.value else f"{c_bytes(dims, 1, c.size)} != 0 && "
    c.line(f"if ({empty}{data} == NULL) return LOWERDECK_ERROR_NULL;")
    _check_alignment(port, c)


def _check_alignment(port: Port, c: CWriter) -> None:
    if (size := port.type.item_size) > 1:
        address = f"(uintptr_t)args->{port.field}.data"
        c.line(f"if ({address} % {size} != 0) return LOWERDECK_ERROR_ALIGNMENT;")


def _check_default(port: Port, c: CWriter) -> None:
    """An input without data is the default, so it has its sizes."""
    for axis, size in enumerate(port.default or ()):
        if port.type.dims.data[axis].value is None:
            other = f"{size_of_input(port, axis)} != {size}"
            c.line(
                f"if (args->{port.field}.data == NULL && {other}) "
                "return LOWERDECK_ERROR_INPUT_DIMS;"
            )
    _check_alignment(port, c)


def _check_weights(i: Interface, c: CWriter) -> None:
    """Size, magic, version, and what identifies the model, each with its own status."""
    c.line(f"if (args->weights_size < {i.weights_size}) return LOWERDECK_ERROR_WEIGHTS_SIZE;")
    c.line("if (args->weights == NULL) return LOWERDECK_ERROR_NULL;")
    c.line("if ((uintptr_t)args->weights % 8 != 0) return LOWERDECK_ERROR_ALIGNMENT;")
    known = f"{i.name}_weights_header"
    c.line("const char *const head = (const char *)args->weights;")
    c.line(f"if (memcmp(head, {known}, 8) != 0) return LOWERDECK_ERROR_WEIGHTS_MAGIC;")
    # As a number: on a machine of the other byte order it is not that of the weights.
    c.line("uint32_t version;")
    c.line("memcpy(&version, head + 8, sizeof version);")
    c.line("if (version != LOWERDECK_ABI) return LOWERDECK_ERROR_WEIGHTS_VERSION;")
    model = f"memcmp(head + 12, {known} + 8, sizeof {known} - 8)"
    c.line(f"if ({model} != 0) return LOWERDECK_ERROR_WEIGHTS_MODEL;")


def known_of_weights(i: Interface) -> bytes:
    """What the weights begin with, but for the numbers, which have the byte order of a machine."""
    return i.weights_header[:8] + i.weights_header[12:56]


def _check_overlaps(i: Interface, c: CWriter) -> None:
    """
    What the run writes shares no memory with anything else that it writes or reads.

    The spans stand in a table, so that the code grows with the ports and not with their pairs.
    """
    written = [_span(port, c) for port in i.outputs]
    if i.workspace != 0:
        written.append("{args->workspace, (int64_t)args->workspace_size}")
    if i.states:
        written.append("{args->state, (int64_t)sizeof *args->state}")
    read = [_span(port, c) for port in i.inputs]
    if i.weights_size:
        read.append(f"{{args->weights, {i.weights_size}}}")
    spans = ", ".join([*written, *read])
    if not written:
        return
    c.line(f"const lowerdeck_span spans[] = {{{spans}}};")
    c.line(
        f"if (lowerdeck_first_overlap(spans, {len(written)}, {len(written) + len(read)}) "
        f"< {len(written)}) "
        "return LOWERDECK_ERROR_OVERLAP;"
    )


def _span(port: Port, c: CWriter) -> str:
    """Where the elements of a port lie: all it has room for if their number is not known yet."""
    data = f"args->{port.field}.data"
    if _is_known(port, c):
        return f"{{{data}, {c_bytes(port.type.dims.data, port.type.item_size, c.size)}}}"
    return f"{{{data}, lowerdeck_mul(args->{port.field}.capacity, {port.type.item_size})}}"


def sources(i: Interface) -> list[str]:
    """The C files to compile."""
    weights = [weights_source(i.name)] if i.embeds_weights else []
    return [f"{i.name}.c", *weights, *(["lowerdeck_pool.c"] if i.is_parallel else [])]


def weights_source(name: str) -> str:
    """The file that holds embedded weights."""
    return f"{name}_weights.c"


def libraries(i: Interface) -> list[str]:
    """The libraries to link with."""
    return ["m", *(["pthread"] if i.is_parallel else [])]


def cmake(i: Interface) -> str:
    """CMakeLists.txt: the model as a library, which can be installed, and the example program."""
    flags = " ".join(
        f"$<$<C_COMPILER_ID:GNU>:{flag}>" if flag in GCC_FLAGS else flag
        for flag in compiler_flags(i.target)
        if not flag.startswith("-std=")
    )
    # As flags: without them, a model that is called `m` is meant.
    flags_of_libraries = [f"-l{library}" for library in libraries(i)]
    return "\n".join(
        [
            f"# {i.name}: generated by lowerdeck for target {i.target}.",
            "cmake_minimum_required(VERSION 3.14)",
            f"project({i.name} C)",
            "include(GNUInstallDirs)",
            # For the whole build: what a part of it installs goes by the type of the whole.
            "if(NOT CMAKE_BUILD_TYPE AND CMAKE_SOURCE_DIR STREQUAL CMAKE_CURRENT_SOURCE_DIR)",
            "  set(CMAKE_BUILD_TYPE Release)",
            "endif()",
            f"add_library({i.name} {' '.join(sources(i))})",
            f"target_include_directories({i.name} PUBLIC",
            "  $<BUILD_INTERFACE:${CMAKE_CURRENT_SOURCE_DIR}>",
            "  $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)",
            f"set_target_properties({i.name} PROPERTIES C_STANDARD 99)",
            # CMake knows no flag for C99 of Microsoft's compiler, but for C11.
            "if(MSVC)",
            f"  set_target_properties({i.name} PROPERTIES C_STANDARD 11)",
            "endif()",
            "if(NOT MSVC)",
            f"  target_link_libraries({i.name} PUBLIC {' '.join(flags_of_libraries)})",
            f"  target_compile_options({i.name} PRIVATE {flags})",
            "endif()",
            # Part of another project, the library alone is wanted.
            "if(CMAKE_SOURCE_DIR STREQUAL CMAKE_CURRENT_SOURCE_DIR)",
            f"  add_executable({i.name}_example example.c)",
            f"  target_link_libraries({i.name}_example {i.name})",
            "endif()",
            # For find_package and the target lowerdeck::NAME.
            f"install(TARGETS {i.name} EXPORT {i.name}-config)",
            f"install(FILES {' '.join(_public_headers(i))} TYPE INCLUDE)",
            *_installed_weights(i),
            f"install(EXPORT {i.name}-config NAMESPACE lowerdeck::",
            f"  DESTINATION ${{CMAKE_INSTALL_LIBDIR}}/cmake/{i.name})",
            "",
        ]
    )


def _public_headers(i: Interface) -> list[str]:
    """What programs that call the model include."""
    pool = ["lowerdeck_pool.h"] if i.is_parallel else []
    profile = ["lowerdeck_profile.h"] if i.slots is not None else []
    return [f"{i.name}.h", "lowerdeck.h", *pool, *profile]


def _installed_weights(i: Interface) -> list[str]:
    if i.embeds_weights or not i.weights_size:
        return []
    return [f"install(FILES {i.name}.weights DESTINATION ${{CMAKE_INSTALL_DATADIR}}/{i.name})"]


_EXAMPLE_NAMES = (
    *("main", "argc", "argv", "args", "allocator", "allocate", "release", "read_file", "path"),
    *("weights", "workspace", "workspace_size", "status", "state", "k"),
    *("malloc", "calloc", "free", "atoll", "printf", "fprintf", "stderr"),
)
"""What the example program calls something else."""


_READ_WEIGHTS = """\
  const char *const path = argc > 1 ? argv[1] : "{name}.weights";
  void *const weights = read_file(path, &args.weights_size);
  if (weights == NULL) {{
    fprintf(stderr, "cannot read %s\\n", path);
    return 1;
  }}
  args.weights = weights;
"""
_NO_WEIGHTS = "  (void)argc;\n  (void)argv;\n  (void)read_file;\n"


def example(i: Interface) -> str:
    """example.c: load the weights, run once on zeros, print the first elements."""
    loads_weights = i.weights_size > 0 and not i.embeds_weights
    names = dict.fromkeys(
        name for port in i.inputs for dim in port.type.dims.data for name in sorted(dim.symbols)
    )
    taken = {*_EXAMPLE_NAMES, *names_of_model(i.name)}
    symbols = {name: identifier(name, taken) for name in names}
    arguments = ["the weights file"] if loads_weights else []
    arguments += [f"the dimension {symbol} (or 1)" for symbol in symbols.values()]
    sizes = [
        f"  const int64_t {symbol} = argc > {place} ? atoll(argv[{place}]) : 1;"
        for place, symbol in enumerate(symbols.values(), 2 if loads_weights else 1)
    ]
    ports = [*(_make_input(port, symbols) for port in i.inputs)]
    ports += [_make_output(port, symbols) for port in i.outputs]
    printed = [expr for port in i.inputs for expr in (port.type.elements, *port.type.dims.data)]
    printed += [port.type.elements for port in i.outputs if _is_of(port, symbols)]
    results = [line for port in i.outputs for line in _print_output(port)]
    # Compilers warn of a cast that drops `const`.
    results += [f"  free((void *)(uintptr_t)args.{port.field}.data);" for port in i.inputs]
    results += [f"  free(args.{port.field}.data);" for port in i.outputs]
    return Template((RUNTIME / "example.c.in").read_text()).substitute(
        name=i.name,
        usage=f" * Arguments: {', '.join(arguments)}.\n" if arguments else "",
        include='#include "lowerdeck_runtime.h"\n' if any(map(needs_runtime, printed)) else "",
        weights=_READ_WEIGHTS.format(name=i.name) if loads_weights else _NO_WEIGHTS,
        ports="".join(f"{line}\n" for line in (*sizes, *ports, *_state_of_example(i))),
        results="".join(f"{line}\n" for line in results),
        release="  free(weights);\n" if loads_weights else "",
    )


def _state_of_example(i: Interface) -> list[str]:
    if not i.states:
        return []
    return [
        f"  static {i.name}_state state;",
        f"  {i.name}_reset(&state);",
        "  args.state = &state;",
    ]


def _is_of(port: Port, symbols: Mapping[str, str]) -> bool:
    """True if the number of elements depends on nothing but these."""
    return port.type.elements.symbols <= symbols.keys()


def _make_input(port: Port, symbols: Mapping[str, str]) -> str:
    if port.default is not None and _is_fixed(port):
        return f"  /* args.{port.field} is left out, so it is the default. */"
    dims = (
        f"\n  args.{port.field}.dims[{axis}] = {c_expr(dim, symbols)};"
        for axis, dim in enumerate(port.type.dims.data)
    )
    return _allocate(port, c_expr(port.type.elements, symbols)) + "".join(dims)


def _make_output(port: Port, symbols: Mapping[str, str]) -> str:
    """Room for as many elements as there will be, or for many if that is not known."""
    elements = c_expr(port.type.elements, symbols) if _is_of(port, symbols) else "1 << 22"
    return f"  args.{port.field}.capacity = {elements};\n{_allocate(port, elements)}"


def _allocate(port: Port, elements: str) -> str:
    return f"  args.{port.field}.data = calloc((size_t)({elements}) + 1, {_size(port)});"


def _size(port: Port) -> str:
    return f"sizeof *args.{port.field}.data"


def _print_output(port: Port) -> list[str]:
    is_plain = numpy_dtype(port.type.element).kind in "iubf"
    count = " * ".join(f"args.{port.field}.dims[{k}]" for k in range(len(port.type.dims.data)))
    value = f"(double)args.{port.field}.data[k]"
    return [
        f'  printf("%s:", {string_literal(port.name)});',
        f"  for (int64_t k = 0; k < 8 && k < {count or '1'}; k++) "
        + (f'printf(" %g", {value});' if is_plain else f'printf(" %g", {value}); /* bits */'),
        '  printf("\\n");',
    ]


def metadata(i: Interface) -> dict[str, object]:
    """The interface as JSON, for bindings."""
    profile = {} if i.slots is None else {"profile": list(i.slots)}
    ranks = [{port.field: len(port.type.dims.data) for port in p} for p in (i.inputs, i.outputs)]
    return {
        **profile,
        "name": i.name,
        "abi": ABI,
        "target": i.target,
        "inputs": [_port_data(port) for port in i.inputs],
        "outputs": [_port_data(port) for port in i.outputs],
        "arguments": argument_fields(*ranks, has_state=bool(i.states)),
        "unused_inputs": i.unused_inputs,
        "states": [
            {**_port_data(port), "after": port.after, "offset": port.offset} for port in i.states
        ],
        "state_size": i.state_size,
        "conditions": [
            [str(each.left), each.predicate.value, str(each.right), text]
            for each, text in i.conditions
        ],
        "workspace": number(i.workspace_bytes),
        "memory": {
            "arena": number(i.workspace),
            "live": i.live,
            "row_major": i.row_major,
            "stack": i.stack,
        },
        "weights_size": i.weights_size,
        "weights_header": i.weights_header.hex(),
        "embeds_weights": i.embeds_weights,
        "needs_allocator": i.needs_allocator,
        "allocated": list(i.allocated),
        "is_parallel": i.is_parallel,
        "sources": sources(i),
        "cflags": compiler_flags(i.target),
        "libraries": libraries(i),
    }


def _port_data(port: Port) -> dict[str, object]:
    dtype = numpy_dtype(port.type.element)
    return {
        "name": port.name,
        "field": port.field,
        "dtype": dtype.name,
        "dims": [number(dim) for dim in port.type.dims.data],
        **({} if port.default is None else {"default": list(port.default)}),
        **({"classes": list(port.classes)} if port.classes else {}),
    }


def number(expr: Expr) -> int | str:
    return expr.value if expr.value is not None else str(expr)
