"""Vectors of elements that lie apart or in another order."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import IntegerType
from xdsl.ir import Attribute

from lowerdeck.dialects.buffer.vector import factors_of, vector_type
from lowerdeck.lowering.emit_c.vector_types import STEMS, VectorFunction, memory_name, type_name
from lowerdeck.lowering.targets.isa import Isa


def transpose_name(scalar: Attribute, lanes: int, rows: int) -> str:
    """The C function that transposes as many vectors as they have lanes, or interleaves others."""
    name = type_name(scalar, lanes)
    return f"{name}_transpose" if rows == lanes else f"{name}_interleave{rows}"


def selection(scalar: Attribute, lanes: int) -> VectorFunction:
    """One of two values in each lane, by a mask."""
    name, bits = type_name(scalar, lanes), type_name(IntegerType(8 * STEMS[scalar][2]), lanes)
    chosen = f"  return ({name})((mask & ({bits})a) | (~mask & ({bits})b));"
    return VectorFunction(name, ((bits, "mask"), (name, "a"), (name, "b")), [chosen])


def strided_load(scalar: Attribute, lanes: int, stride: int) -> str:
    """
    Of elements some way apart: vectors side by side, the last of which ends with the last element,
    are merged one after the other.
    """
    stem, c_type, _ = STEMS[scalar]
    name = f"lowerdeck_{stem}x{lanes}"
    starts = [min(part * lanes, (lanes - 1) * (stride - 1)) for part in range(stride)]
    lines = [
        f"static inline {name} {name}_load{stride}(const void *memory) {{",
        f"  const {c_type} *const x = memory;",
    ]
    lines += [
        f"  const {name} v{part} = *(const {name}_at *)(x + {start});"
        for part, start in enumerate(starts)
    ]
    done, merged = 0, "v0"
    for part, start in enumerate(starts[1:], 1):
        places: list[str] = []
        for lane in range(lanes):
            place = lane * stride
            if part == 1 and place < lanes:
                places.append(str(place))
            elif part > 1 and lane < done:
                places.append(str(lane))
            else:
                is_here = place < start + lanes
                places.append(str(lanes + place - start) if is_here else "-1")
        merged_too = f"__builtin_shufflevector({merged}, v{part}, {', '.join(places)})"
        lines.append(f"  const {name} r{part} =\n      {merged_too};")
        done, merged = (start + lanes - 1) // stride + 1, f"r{part}"
    return "\n".join([*lines, f"  return {merged};", "}", ""])


def gather(scalar: Attribute, lanes: int) -> str:
    """Of elements far apart: one by one."""
    name, c_type = type_name(scalar, lanes), STEMS[scalar][1]
    elements = [f"x[{lane} * distance]" for lane in range(lanes)]
    rows = [", ".join(elements[first : first + 4]) for first in range(0, lanes, 4)]
    return (
        f"static inline {name} {name}_gather(const void *memory, int64_t distance) {{\n"
        f"  const {c_type} *const x = memory;\n"
        f"  return ({name}){{{(',' + chr(10) + '      ').join(rows)}}};\n}}\n"
    )


def scatter(scalar: Attribute, lanes: int) -> VectorFunction:
    """To elements some way apart: one by one."""
    name, c_type = type_name(scalar, lanes), STEMS[scalar][1]
    lines = [f"  {c_type} *const x = memory;"]
    lines += [f"  x[{lane} * distance] = v[{lane}];" for lane in range(lanes)]
    return VectorFunction(
        "void", (("void *", "memory"), ("int64_t", "distance"), (name, "v")), lines
    )


def look_up(lanes: int, isa: Isa) -> VectorFunction:
    """Entries of a table: of both halves, one of which is chosen by the highest bit of a lane."""
    name = type_name(IntegerType(8), lanes)
    builtin = isa.lookups.get(lanes)
    entries = [f"t[(uint8_t)x[{lane}]]" for lane in range(lanes)]
    rows = [", ".join(entries[first : first + 4]) for first in range(0, lanes, 4)]
    plain = [
        "  const int8_t *const t = table;",
        f"  return ({name}){{{(',' + chr(10) + '      ').join(rows)}}};",
    ]
    if builtin is None:
        return VectorFunction(name, ((name, "x"), ("const void *", "table")), plain)
    own = [
        "  typedef int8_t part __attribute__((vector_size(64), aligned(1), may_alias));",
        *(f"  const part t{k} = ((const part *)table)[{k}];" for k in range(4)),
        f"  {name} low = x, high = x;",
        f"  {builtin.call};",
        f"  return {name}_select(x < 0, high, low);",
    ]
    body = [f"#if {builtin.condition}", *own, "#else", *plain, "#endif"]
    calls = frozenset({f"{name}_select"})
    return VectorFunction(name, ((name, "x"), ("const void *", "table")), body, calls)


def repetition(scalar: Attribute, lanes: int, times: int) -> str:
    """Of fewer elements, each some times."""
    name, (_, c_type, size) = type_name(scalar, lanes), STEMS[scalar]
    places = ", ".join(str(lane // times) for lane in range(lanes))
    return f"""static inline {name} {name}_repeat{times}(const void *memory) {{
  typedef {c_type} part
      __attribute__((vector_size({lanes // times * size}), aligned({size}), may_alias));
  const part x = *(const part *)memory;
  return __builtin_shufflevector(x, x, {places});
}}
"""


# Transposes


def transpose(scalar: Attribute, lanes: int, rows: int) -> str:
    """
    Of a square in memory: parts of rows that lie beside the diagonal change places, first halves,
    then quarters in each half, and so on.
    """
    name, lines = type_name(scalar, lanes), _begin_of_rows(scalar, lanes, rows)
    step, distance = 0, lanes // 2
    while distance:
        for row in range(lanes):
            first, second = row & ~distance, row | distance
            # A lane of the second row has a number behind those of the first one.
            chosen = [
                lane & ~distance | row & distance | (lanes if lane & distance else 0)
                for lane in range(lanes)
            ]
            moved = ", ".join(map(str, chosen))
            lines.append(
                f"  const {name} r{step + 1}_{row} =\n"
                f"      __builtin_shufflevector(r{step}_{first}, r{step}_{second}, {moved});"
            )
        step, distance = step + 1, distance // 2
    return "\n".join([*lines, *_end_of_rows(scalar, lanes, [f"r{step}_{k}" for k in range(rows)])])


def interleave(scalar: Attribute, lanes: int, rows: int) -> str:
    """
    The first elements of all rows in memory, then the second ones, and so on: by each prime factor
    of the number of rows, so many of them, as far apart as they can be, become one long one.
    """
    name, lines = type_name(scalar, lanes), _begin_of_rows(scalar, lanes, rows)
    long = [[f"r0_{row}"] for row in range(rows)]
    for step, factor in enumerate(factors_of(rows), 1):
        apart = len(long) // factor
        joined: list[list[str]] = []
        for first in range(apart):
            parts = long[first::apart]
            joined.append([])
            for number in range(len(parts[0]) * factor):
                result = f"r{step}_{first}_{number}"
                lines += _merged(name, lanes, parts, number, result)
                joined[-1].append(result)
        long = joined
    return "\n".join([*lines, *_end_of_rows(scalar, lanes, long[0])])


def _merged(
    name: str, lanes: int, parts: Sequence[Sequence[str]], number: int, result: str
) -> list[str]:
    """A vector of elements that are taken from some rows of vectors in turn."""
    count, lines = len(parts), list[str]()
    # Each row gives neighbors, of one of its vectors.
    places = [divmod(number * lanes + lane, count) for lane in range(lanes)]
    merged = ""
    for part, vectors in enumerate(parts):
        own = [place for place, source in places if source == part]
        vector = vectors[own[0] // lanes] if own else vectors[0]
        if not part:
            merged = vector
            continue
        chosen: list[int] = []
        for lane, (place, source) in enumerate(places):
            if source == part:
                chosen.append(lanes + place % lanes)
            elif source > part:
                chosen.append(-1)
            else:
                chosen.append(place % lanes if part == 1 else lane)
        after = result if part == count - 1 else f"{result}_{part}"
        moved = ", ".join(map(str, chosen))
        shuffled = f"__builtin_shufflevector({merged}, {vector}, {moved})"
        lines.append(f"  const {name} {after} =\n      {shuffled};")
        merged = after
    return lines


def _begin_of_rows(scalar: Attribute, lanes: int, rows: int) -> list[str]:
    """
    A function that loads vectors side by side in memory, `r0_0` and so on. Where it is part of its
    caller the memory is registers; compilers take it for too large if it has several callers.
    """
    name, memory = type_name(scalar, lanes), memory_name(vector_type(scalar, lanes))
    return [
        "static inline __attribute__((always_inline))",
        f"void {transpose_name(scalar, lanes, rows)}(void *memory) {{",
        f"  {STEMS[scalar][1]} *const all = memory;",
        *(
            f"  const {name} r0_{row} = *(const {memory} *)(all + {row * lanes});"
            for row in range(rows)
        ),
    ]


def _end_of_rows(scalar: Attribute, lanes: int, values: Sequence[str]) -> list[str]:
    """Vectors are stored to where others have been loaded."""
    memory = memory_name(vector_type(scalar, lanes))
    stores = (
        f"  *({memory} *)(all + {row * lanes}) = {value};" for row, value in enumerate(values)
    )
    return [*stores, "}", ""]
