"""Functions of integers as tables, which are computed here: all entries, or some to interpolate."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from xdsl.ir import SSAValue

from lowerdeck.dialects.core.tensor import GatherOp
from lowerdeck.dialects.core.types import element_type, i64
from lowerdeck.passes.legalize.builder import CoreBuilder
from lowerdeck.passes.legalize.common.requantize import away, type_range
from lowerdeck.passes.legalize.tensor_value import TensorValue

Function: TypeAlias = "Callable[[float], float]"


def entries(places: TensorValue, table: NDArray[Any] | SSAValue) -> TensorValue:
    """The entry of a table for each i64 place, from 0 on."""
    builder = places.builder
    values = table if isinstance(table, SSAValue) else builder.tensor(table)
    return TensorValue(builder, builder.add(GatherOp(values, places.value, 0, inside=True)))


def looked_up(builder: CoreBuilder, x: SSAValue, table: NDArray[Any]) -> SSAValue:
    """The entry of a table for each integer of eight bits; the first is for the least integer."""
    least, _ = type_range(element_type(x))
    return entries(TensorValue(builder, x).cast(i64) - least, table).value


def image_of(function: Function, x: float) -> float:
    """What a real function gives; infinite where Python has no number."""
    try:
        return function(x)
    except (OverflowError, ZeroDivisionError):
        return math.inf
    except ValueError:  # a logarithm of what is not positive
        return -math.inf


def entries_of(
    function: Function, integers: NDArray[np.int64], scale: float, to_scale: float, to_zero: int
) -> NDArray[np.float64]:
    """
    The integers that stand for a function of what others stand for, in f32, halves away from zero.
    """
    reals = (np.float32(scale) * integers.astype(np.float32)).astype(np.float32)
    with np.errstate(all="ignore"):
        images = np.array([image_of(function, float(x)) for x in reals], np.float32)
        inverse = np.float32(1) / np.float32(to_scale)
        scaled = away((images * inverse).astype(np.float32))
        total = (scaled + np.float32(to_zero)).astype(np.float64)
    # NaN is the least integer, as where the kernels convert it.
    return np.nan_to_num(total, nan=-np.inf)


# Tables of 513 entries


def table_of(
    function: Callable[[float], float],
    scale: float,
    zero: int,
    result_scale: float,
    result_zero: int = 0,
    real: type[np.floating[Any]] = np.float64,
) -> NDArray[np.int64]:
    """
    A function at 512 places and at the end, in f64 or f32, moved by half of the error that
    interpolation has in the middle.
    """

    def image(x: Any) -> Any:
        return real(image_of(function, float(x)))

    with np.errstate(all="ignore"):
        low, high = (real(scale) * real(end - zero) for end in (-32768, 32767))
        least, most = (real(result_scale) * real(end - result_zero) for end in (-32768, 32767))
        step, inverse = (high - low) / real(512), real(65536) / (most - least)
        entries: list[Any] = []
        for k in range(512):
            here = low + real(k) * step
            after = image(low + real(k + 1) * step) * inverse
            sample, middle = image(here) * inverse, image(here + step / real(2)) * inverse
            error = away((after + away(sample)) / real(2)) - away(middle)
            entries.append(away(sample) - away(error / real(2)))
        entries.append(away(image(high) * inverse))
        # NaN passes the kernel's limits, and the lower half of the integer that it becomes is 0.
        numbers = np.nan_to_num(np.array(entries, np.float64), nan=0, posinf=np.inf, neginf=-np.inf)
    return np.clip(numbers, -32768, 32767).astype(np.int64)


def interpolated(x: TensorValue, table: NDArray[np.int64]) -> TensorValue:
    """The function that a table stands for, of i32 from -32768 to 32767; slopes have 16 bits."""
    index = (x // 128 + 256).cast(i64)
    slopes = np.append(np.diff(table), 0).astype(np.int16).astype(np.int64)
    base, slope = (entries(index, each.astype(np.int32)) for each in (table, slopes))
    return base + (slope * (x % 128) + 64) // 128
