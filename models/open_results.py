"""
What PaddlePaddle leaves open, by operator: an output that depends on it is not compared.

It is consulted where an output differs. The program is run once more, operator by operator; what an
operator gives is open if one of `KINDS` says so of it and of what it reads, and so is what is
computed from open values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray
from xdsl.ir import Operation, SSAValue

from lowerdeck.compiler import CompileOptions, import_and_lower
from lowerdeck.dialects.core.names import value_names
from lowerdeck.dialects.interpret import Interpreter, find_function
from lowerdeck.dialects.paddle.ops import PaddleOp

if TYPE_CHECKING:
    from models.corpus import Arrays, Case

Array = NDArray[Any]


def _has_nan(array: Array) -> bool:
    return array.dtype.kind == "f" and bool(np.isnan(array).any())


def extremum_of_nan(op: PaddleOp, operands: Sequence[Array]) -> bool:
    """
    The largest of several numbers of which one is NaN. PaddlePaddle takes vectors of the processor,
    whose comparisons keep or lose a NaN by its place and by how many numbers there are.
    """
    is_norm = op.schema.target == "p_norm" and np.isinf(op.argument("porder"))
    return (is_norm or op.schema.target in ("max", "min", "amax", "amin")) and _has_nan(operands[0])


def slice_behind_the_end(op: PaddleOp, operands: Sequence[Array]) -> bool:
    """
    A `strided_slice` of a ProgramDesc that begins behind the end or is empty: version 2.6 computes
    a size of one or more nevertheless and reads memory that is not the tensor's.
    """
    if op.schema.target != "strided_slice" or not op.is_old:
        return False
    given = [_whole(op.argument(name)) for name in ("axes", "starts", "ends")]
    if not all(given):
        return False
    sizes = [operands[0].shape[axis] for axis in given[0]]
    return any(
        min(max(start + size * (start < 0), 0), size) >= min(end + size * (end < 0), size)
        for size, start, end in zip(sizes, *given[1:], strict=True)
    )


def _whole(argument: Any) -> list[int]:
    """A list of plain numbers; an empty one if it is none."""
    numbers = cast("list[Any]", argument) if isinstance(argument, list) else []
    return numbers if all(type(number) is int for number in numbers) else []


def sum_of_nothing(op: PaddleOp, operands: Sequence[Array]) -> bool:
    """An `add_n` of empty tensors in version 2.6: it leaves the result without memory or shape."""
    is_sum = op.schema.target == "add_n" and op.is_old
    return is_sum and all(not array.size for array in operands)


_JUMPS = frozenset("ceil floor round trunc sign floor_divide remainder".split())
_EXACT = _JUMPS | frozenset(
    "abs assign cast concat expand flip gather reshape scale slice squeeze stack tile transpose "
    "unsqueeze where".split()
)


def jump(op: PaddleOp, operands: Sequence[Array]) -> bool:
    """
    A step between integers of computed numbers that are one of them but for the last bits: whoever
    rounds otherwise before is on the other side.
    """
    x = operands[0]
    source = op.operands[0].owner
    if op.schema.target not in _JUMPS or x.dtype.kind != "f":
        return False
    if not isinstance(source, PaddleOp) or source.schema.target in _EXACT:
        return False
    with np.errstate(all="ignore"):
        near = np.abs(2 * x - np.round(2 * x)) <= 4 * np.finfo(x.dtype).eps * np.maximum(1, abs(x))
    return bool(near.any())


_STEEP: Mapping[str, Callable[[Array], Array]] = {
    "digamma": lambda x: (x < 0.5) & _is_near(x, np.round(x), 1e-3) & (x != np.round(x)),
    "tan": lambda x: _is_near(x / np.pi, np.floor(x / np.pi) + 0.5, 1e-3),
    **dict.fromkeys(
        ("asin", "acos", "atanh", "acosh"), lambda x: _is_near(np.abs(x), np.ones_like(x), 1e-5)
    ),
}
"""Where a function is so steep that the last bits of its argument decide its result."""


def _is_near(x: Array, place: Array, distance: float) -> Array:
    return np.abs(x - place) < distance * np.maximum(1, np.abs(x))


def pole(op: PaddleOp, operands: Sequence[Array]) -> bool:
    """A function of a computed number next to a pole, of its own or of its derivative."""
    x, source = operands[0], op.operands[0].owner
    is_steep = _STEEP.get(op.schema.target)
    if is_steep is None or x.dtype.kind != "f":
        return False
    if not isinstance(source, PaddleOp) or source.schema.target in _EXACT:
        return False
    with np.errstate(all="ignore"):
        return bool(is_steep(x).any())


Kind = Callable[[PaddleOp, Sequence[Array]], bool]

KINDS: Mapping[str, Kind] = {
    "an extremum of numbers and NaN": extremum_of_nan,
    "a slice behind the end": slice_behind_the_end,
    "a sum of empty tensors": sum_of_nothing,
    "a step between numbers that are equal but for the last bits": jump,
    "a pole next to a number": pole,
}
"""By what is said of the output."""


def open_outputs(case: Case, inputs: Arrays) -> Mapping[str, str]:
    """The outputs that are open for certain inputs, and why."""
    options = CompileOptions(outputs=case.outputs, input_shapes=case.input_shapes)
    module, _ = import_and_lower(str(case.model), "imported", options)
    function = find_function(module, "main")
    block = function.body.block
    names = value_names(function.arg_attrs, len(block.args))
    given = case.named(inputs, names)
    arguments = [given[name] for name in names]
    values: dict[SSAValue, Any] = dict(zip(block.args, arguments, strict=True))
    reasons: dict[SSAValue, str] = {}

    def observe(op: Operation, results: Sequence[Any]) -> None:
        reason = next((reasons[value] for value in op.operands if value in reasons), "")
        reason = reason or _reason(op, [values.get(value) for value in op.operands])
        values.update(zip(op.results, results, strict=False))
        place: Operation | None = op if reason else None
        while (
            place is not None
        ):  # what a loop or branch gives is open as soon as something in it is
            reasons.update((result, reason) for result in place.results)
            place = place.parent_op()

    Interpreter(observe=observe).call(function, arguments)
    assert block.last_op is not None
    outputs = zip(case.outputs, block.last_op.operands, strict=False)
    return {name: reasons[value] for name, value in outputs if value in reasons}


def _reason(op: Operation, operands: Sequence[Any]) -> str:
    if not isinstance(op, PaddleOp) or not operands:
        return ""
    if not all(isinstance(array, np.ndarray) for array in operands):
        return ""
    return next((text for text, is_open in KINDS.items() if is_open(op, operands)), "")
