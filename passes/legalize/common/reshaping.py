"""Shapes by codes, as MXNet writes them."""

from __future__ import annotations

from collections.abc import Sequence

from lowerdeck.dialects.dims import Expr, product
from lowerdeck.passes.legalize.legalizer import Legalizer


def by_codes(builder: Legalizer, dims: Sequence[Expr], codes: Sequence[int]) -> list[Expr | None]:
    """
    The sizes that codes stand for: 0 the size there, -1 what is left (None), -2 all sizes from
    there on, -3 two sizes as one, -4 one size as the next two; -5 leaves out a size of one.
    """
    found: list[Expr | None] = []
    place = 0

    def take(count: int) -> Sequence[Expr]:
        nonlocal place
        place += count
        if place > len(dims):
            builder.refuse(f"'shape' {list(codes)} for {len(dims)} dimensions", "fewer")
        return dims[place - count : place]

    rest = list(codes)
    while rest:
        code, rest = rest[0], rest[1:]
        match code:
            case 0:
                found += take(1)
            case -1:
                found.append(None)
                place += 1
            case -2:
                found += take(max(len(dims) - place, 0))
            case -3:
                found.append(product(take(2)))
            case -5:
                take(1)
            case -4:
                (dim,) = take(1)
                first, second = _split(builder, dim, rest[:2])
                found += [first, second]
                rest = rest[2:]
            case _:
                found.append(Expr.const(_size(builder, code)))
                place += 1
    return found


def _size(builder: Legalizer, code: int) -> int:
    if code < 0:
        builder.refuse(f"{code} in 'shape'", "sizes and codes from -4 on")
    return code


def _split(builder: Legalizer, dim: Expr, sizes: Sequence[int]) -> tuple[Expr, Expr]:
    """A dimension as two, of which one may be -1."""
    if len(sizes) != 2 or list(sizes) == [-1, -1]:
        builder.refuse(f"-4 with {list(sizes)}", "two sizes after it")
    first, second = sizes
    if first == -1:
        return dim // _size(builder, second), Expr.const(second)
    if second == -1:
        return Expr.const(first), dim // _size(builder, first)
    return Expr.const(_size(builder, first)), Expr.const(_size(builder, second))


def completed(builder: Legalizer, dims: Sequence[Expr], sizes: Sequence[Expr | None]) -> list[Expr]:
    """Sizes with that which is left."""
    known = [size for size in sizes if size is not None]
    missing = len(sizes) - len(known)
    if missing > 1:
        builder.refuse("two sizes of -1", "one")
    if not missing:
        return known
    shared = list(dims)
    divisor: list[Expr] = []
    for size in known:
        if size.value != 1 and size in shared:
            shared.remove(size)
        else:
            divisor.append(size)
    if product(divisor) == 0:
        builder.refuse("a size of -1 beside one of 0", "sizes")
    left = product(shared) // product(divisor)
    return [left if size is None else size for size in sizes]


# Those of mxnet.numpy


_NPX_CODES = {-2: 0, -3: -5, -4: -2, -5: -3, -6: -4}
"""Codes of numpy's reshape as those of the older one."""


def by_numpy_codes(
    builder: Legalizer, dims: Sequence[Expr], codes: Sequence[int], is_back: bool
) -> list[Expr | None]:
    """
    As `by_codes`: -1 is what is left, -2 the size there, -3 leaves out a size of one, -4 all sizes
    from there on, -5 two sizes as one, -6 one size as the next two; counted from the back or not.
    """
    groups = _groups(codes)
    if is_back:
        groups = [[group[0], *group[:0:-1]] for group in groups[::-1]]
    plain = [n for code, *sizes in groups for n in (_NPX_CODES.get(code, code), *sizes)]
    found = by_codes(builder, dims[::-1] if is_back else dims, plain)
    return found[::-1] if is_back else found


def _groups(codes: Sequence[int]) -> list[list[int]]:
    """Each code with the sizes that belong to it."""
    groups: list[list[int]] = []
    rest = list(codes)
    while rest:
        length = 3 if rest[0] == -6 else 1
        groups.append(rest[:length])
        rest = rest[length:]
    return groups
