"""What strides say: whether a tensor shows elements twice, and how far apart those of views lie."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from lowerdeck.dialects.pt2.ops import Pt2Op

_KEPT = frozenset(
    "alias detach lift lift_fresh contiguous to type_as dropout alpha_dropout feature_dropout "
    "positive pin_memory resolve_conj resolve_neg conj _conj narrow split split_with_sizes chunk "
    "tensor_split hsplit vsplit dsplit".split()
)
"""Views as far apart as the operand."""

_SEEN = frozenset(
    "view reshape flatten unflatten ravel view_as reshape_as _reshape_alias atleast_1d atleast_2d "
    "atleast_3d".split()
)
"""Views in another shape."""

_MOVES = "source", "destination"

_ARGUMENTS = (
    "dim", "dims", "step", "dim0", "dim1", "axis0", "axis1", "dim2", "dimension", "stride", *_MOVES
)  # fmt: skip
"""What strides depend on."""


def overlaps(sizes: Sequence[int], strides: Sequence[int]) -> bool:
    """True if two places of a tensor may be one: a stride is less than what the finer ones span."""
    if 0 in sizes:
        return False
    reach = 0
    for stride, size in sorted(zip(strides, sizes, strict=True)):
        if size > 1:
            if stride <= reach:
                return True
            reach += (size - 1) * stride
    return False


def is_contiguous(sizes: Sequence[int], strides: Sequence[int]) -> bool:
    """True if elements lie in the order of their indices, without gaps."""
    expected = 1
    for size, stride in reversed(list(zip(sizes, strides, strict=True))):
        if size != 1 and stride != expected:
            return 0 in sizes
        expected *= size
    return True


def can_view(sizes: Sequence[int], strides: Sequence[int], shape: Sequence[int]) -> bool:
    """True if a tensor of these sizes and strides can be seen in another shape without a copy."""
    return _viewed(sizes, strides, shape) is not None


def _viewed(sizes: Sequence[int], strides: Sequence[int], shape: Sequence[int]) -> list[int] | None:
    """
    The strides of another shape of a tensor; None where that needs a copy.

    Neighboring dimensions that lie one in the other are a chunk, and each dimension of the shape
    has to be a part of one.
    """
    if 0 in sizes:
        return [1] * len(shape)
    kept = [pair for pair in zip(sizes, strides, strict=True) if pair[0] != 1]
    chunks: list[tuple[int, int]] = []
    for k, (size, stride) in enumerate(kept):
        if k and kept[k - 1][1] == size * stride:
            chunks[-1] = chunks[-1][0] * size, stride
        else:
            chunks.append((size, stride))
    found: list[int] = []
    rest = step = 1
    for size in reversed(shape):
        if size != 1 and rest == 1:
            rest, step = chunks.pop() if chunks else (0, 1)
        if rest == 0 or rest % size:
            return None
        found.append(step)
        step *= size
        rest //= size
    return found[::-1] if rest == 1 else None


def strides_of_view(
    op: Pt2Op, sizes: Sequence[int], strides: Sequence[int], shape: Sequence[int]
) -> list[int] | None:
    """
    The strides of what a view shows of a tensor, by the shape of that; None where they are not
    known.
    """
    name, rank = op.op_type.split(".")[1], len(sizes)
    found = list(strides)
    if name in _KEPT:
        return found
    if name in _SEEN:
        return None if op.op_type == "aten.view.dtype" else _viewed(sizes, strides, shape)
    if name in ("expand", "expand_as", "broadcast_to"):
        pairs = zip(sizes, strides, shape[len(shape) - rank :], strict=True)
        return [0] * (len(shape) - rank) + [s if n == size else 0 for n, s, size in pairs]
    arguments = op.schema.arguments
    given: dict[str, Any] = {key: op.argument(key) for key in _ARGUMENTS if key in arguments}
    if not all(_is_plain(value) for value in given.values()):
        return None
    axis: Any = given.get("dim")
    match name:
        case "select" | "unbind":
            del found[axis]
        case "slice":
            found[axis] *= given["step"]
        case "unsqueeze":
            found.insert(axis % (rank + 1), 1)
        case "squeeze":
            dims = range(rank) if axis is None else _places(axis, rank)
            gone = [k for k in dims if sizes[k] == 1]
            found = [stride for k, stride in enumerate(found) if k not in gone]
        case "permute":
            found = [strides[k] for k in _places(given["dims"], rank)]
        case "transpose" | "swapdims" | "swapaxes" if rank:
            a, b = [given[k] for k in ("dim0", "dim1", "axis0", "axis1") if k in given]
            found[a], found[b] = strides[b], strides[a]
        case "numpy_T":
            found.reverse()
        case "t" | "mT" | "mH" | "adjoint" | "matrix_H":
            found = found[:-2] + found[-2:][::-1]
        case "movedim" | "moveaxis" if rank:
            source, into = (_places(given[key], rank) for key in _MOVES)
            found = [stride for k, stride in enumerate(strides) if k not in source]
            for place, k in sorted(zip(into, source, strict=True)):
                found.insert(place, strides[k])
        case "diagonal" | "linalg_diagonal":
            ends = [k for key in ("dim1", "dim2") for k in _places(given[key], rank)]
            found = [stride for k, stride in enumerate(strides) if k not in ends]
            found.append(sum(strides[k] for k in ends))
        case "unfold" if rank:
            (place,) = _places(given["dimension"], rank)
            found.append(strides[place])
            found[place] = strides[place] * given["step"]
        case "as_strided":
            found = list(given["stride"])
        case _:
            return None
    return found if len(found) == len(shape) else None


def _places(dims: Any, rank: int) -> list[int]:
    """One dimension, or several, from the front."""
    several = cast("list[int]", [dims] if isinstance(dims, int) else dims)
    return [k % rank for k in several]


def _is_plain(value: Any) -> bool:
    """True for what is known of arguments: numbers, lists of them, and nothing."""
    items = cast("list[Any]", value) if isinstance(value, list) else [value]
    return all(item is None or isinstance(item, int) for item in items)
