"""
NAME_fault of the header: which of the arguments a status is about.

It is `static inline`, so that a program that does not call it holds nothing of it. It looks at the
arguments again, in the order of the checks of `NAME_run`: a status says no more than itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from lowerdeck.lowering.abi import AFTER_TENSORS, STATE
from lowerdeck.lowering.emit_c.interface import Interface, Port, size_of_input
from lowerdeck.lowering.emit_c.writer import bare_symbols, string_literal

_ERROR = "LOWERDECK_ERROR"


def fault_function(i: Interface) -> list[str]:
    """The lines of its definition."""
    i = _unmistakable(i)
    cases = {
        "NULL": [*_null(i)],
        "INPUT_DIMS": [*_input_dims(i)],
        "OUTPUT_CAPACITY": [*map(_capacity, i.outputs)],
        "ALIGNMENT": [*_alignment(i)],
        "OVERLAP": _overlap(i),
    }
    lines = [
        '/* What in `args` a status of the run is about, such as "x: dims[1] is not 3"; empty if',
        "   that cannot be told from them. For the -1 of the workspace's size, ask for that of",
        f"   {_ERROR}_INPUT_DIMS. */",
        f"static inline const char *{i.name}_fault(const {i.name}_args *args, int status) {{",
        '  if (args == NULL) return "args is NULL";',
        "  switch (status) {",
    ]
    for status, tests in cases.items():
        if tests:
            lines += [f"    case {_ERROR}_{status}:"]
            lines += [f"      {test}" for test in tests]
            lines += ["      break;"]
    lines += [
        f"    case {_ERROR}_WORKSPACE_SIZE:",
        '      return "workspace_size";',
        f"    case {_ERROR}_WEIGHTS_SIZE:",
        '      return "weights_size";',
        f"    case {_ERROR}_WEIGHTS_MAGIC:",
        f"    case {_ERROR}_WEIGHTS_VERSION:",
        f"    case {_ERROR}_WEIGHTS_MODEL:",
        '      return "weights";',
        f"    case {_ERROR}_NO_ALLOCATOR:",
        f"    case {_ERROR}_OUT_OF_MEMORY:",
        '      return "allocator";',
        f"    case {_ERROR}_SHAPE_MISMATCH:",
        f"    case {_ERROR}_INDEX_OUT_OF_RANGE:",
        '      return "sizes or values of the inputs; lowerdeck run names the node";',
        "    default:",
        "      break;",
        "  }",
        '  return "";',
        "}",
        "",
    ]
    return lines


def _unmistakable(i: Interface) -> Interface:
    """Tensors are told by their names, those with the name of another argument by their fields."""
    fields = {*AFTER_TENSORS, STATE, *(port.field for port in (*i.inputs, *i.outputs))}

    def told(port: Port) -> Port:
        is_other = port.name != port.field and port.name in fields
        return replace(port, name=port.field) if is_other else port

    return replace(i, inputs=tuple(map(told, i.inputs)), outputs=tuple(map(told, i.outputs)))


def _if(condition: str, text: str) -> str:
    return f"if ({condition}) return {string_literal(text)};"


def _elements(port: Port) -> str:
    """Of an input with a default where the caller gives it."""
    return f"lowerdeck_elements(args->{port.field}.dims, {len(port.type.dims.data)})"


def _null(i: Interface) -> Iterator[str]:
    for port in (*i.inputs, *i.outputs):
        if port.default is not None:
            continue
        yield _if(
            f"args->{port.field}.data == NULL && {_elements(port)} != 0", f"{port.name}: data"
        )
    if i.weights_size and not i.embeds_weights:
        yield _if("args->weights == NULL", "weights")
    if i.states:
        yield _if("args->state == NULL", "state")
    if i.workspace != 0 and not i.has_workspace:
        yield _if("args->workspace == NULL", "workspace")


def _input_dims(i: Interface) -> Iterator[str]:
    """Of sizes that are computed from others nothing is said but if there is only one of them."""
    found = bare_symbols([port.type for port in i.inputs])
    rest: list[str] = []
    for number, port in enumerate(i.inputs):
        for axis, dim in enumerate(port.type.dims.data):
            size, text = size_of_input(port, axis), f"{port.name}: dims[{axis}]"
            if found.get(str(dim)) == (number, axis):
                yield _if(f"{size} < 0", f"{text} is negative")
            elif dim.value is not None:
                yield _if(f"{size} != {dim.value}", f"{text} is not {dim.value}")
            elif (place := found.get(str(dim))) is not None:
                first, other = i.inputs[place[0]], place[1]
                expected = size_of_input(first, other)
                whose = "" if first is port else f" of {first.name}"
                yield _if(f"{size} != {expected}", f"{text} is not dims[{other}]{whose}")
            else:
                rest.append(f"{text} is not {dim}")
    sizes = {
        symbol: size_of_input(i.inputs[number], axis) for symbol, (number, axis) in found.items()
    }
    for condition, text in i.conditions:
        if condition.ask is None:
            rest.append(text)
        else:
            yield _if(condition.ask.c_failure(sizes), text)
    for port in i.inputs:
        for axis, default in enumerate(port.default or ()):
            if port.type.dims.data[axis].value is None:
                yield _if(
                    f"args->{port.field}.data == NULL && {size_of_input(port, axis)} != {default}",
                    f"{port.name}: data is NULL, and dims[{axis}] is not {default}",
                )
    if len(rest) == 1:
        yield f"return {string_literal(rest[0])};"


def _capacity(port: Port) -> str:
    """The dimensions that the output needs have been written."""
    return _if(f"args->{port.field}.capacity < {_elements(port)}", f"{port.name}: capacity")


def _alignment(i: Interface) -> Iterator[str]:
    for port in (*i.inputs, *i.outputs):
        if (size := port.type.item_size) > 1:
            yield _if(f"(uintptr_t)args->{port.field}.data % {size} != 0", f"{port.name}: data")
    if i.weights_size:
        yield _if("(uintptr_t)args->weights % 8 != 0", "weights")
    if i.states:
        yield _if(f"(uintptr_t)args->state % {i.state_alignment} != 0", "state")


def _overlap(i: Interface) -> list[str]:
    """The first of what the run writes that shares memory with anything else."""
    known = bare_symbols([port.type for port in i.inputs]).keys()
    written = [
        _span(port, known=all(dim.symbols <= known for dim in port.type.dims.data))
        for port in i.outputs
    ]
    names = [f"{port.name}: data" for port in i.outputs]
    if i.workspace != 0:
        written.append("{args->workspace, (int64_t)args->workspace_size}")
        names.append("workspace")
    if i.states:
        written.append("{args->state, (int64_t)sizeof *args->state}")
        names.append("state")
    read = [_span(port, known=True) for port in i.inputs]
    if i.weights_size and not i.embeds_weights:
        read.append(f"{{args->weights, {i.weights_size}}}")
    if not written:
        return []
    return [
        "{",
        f"  const lowerdeck_span spans[] = {{{', '.join([*written, *read])}}};",
        f"  const char *const names[] = {{{', '.join(map(string_literal, names))}}};",
        f"  const int first = lowerdeck_first_overlap(spans, {len(written)}, "
        f"{len(written) + len(read)});",
        f"  if (first < {len(written)}) return names[first];",
        "}",
    ]


def _span(port: Port, *, known: bool) -> str:
    size = _elements(port) if known else f"args->{port.field}.capacity"
    return f"{{args->{port.field}.data, {size} * {port.type.item_size}}}"
