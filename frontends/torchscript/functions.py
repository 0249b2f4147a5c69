"""
Functions that a program calls by name and that are no operators on tensors: questions about
tensors, conversions, lists and texts.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias, cast

from xdsl.dialects.builtin import ComplexType

from lowerdeck.dialects.core.types import f32, is_float
from lowerdeck.frontends.torchscript.archive import ELEMENTS
from lowerdeck.frontends.torchscript.operators import Operators, array_constant, describe
from lowerdeck.frontends.torchscript.values import (
    Device,
    Instance,
    Nothing,
    Number,
    RaisedError,
    Rows,
    ScriptError,
    Tensor,
    UnknownError,
    leaves,
)

LONGEST = 100_000
"""Items of a list, characters of a text."""

CODES = {element: number for number, element in ELEMENTS.items()}
"""The numbers that programs have for types of elements."""

_MOST_ROWS = 4096
"""Numbers of a tensor that becomes a list."""


class Caller(Operators):
    """What calls functions and operators by name."""

    @abstractmethod
    def builtin(self, name: str, args: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
        """What a function that is no one of the program gives."""

    def located(self, op_type: str) -> None:
        """Let ops that are made now come from an operator of a module."""


Call: TypeAlias = "Callable[..., Any]"

FUNCTIONS: dict[str, Call] = {}
"""By name: what each gives for a `Caller` and its arguments."""


def _function(*names: str) -> Callable[[Call], Call]:
    def enter(call: Call) -> Call:
        FUNCTIONS.update(dict.fromkeys(names, call))
        return call

    return enter


# Questions about tensors


@_function("size", "shape")
def _size(caller: Caller, x: Tensor, dim: Any = None) -> Any:
    if dim is None:
        return [caller.size(x, axis) for axis in range(len(caller.dims(x)))]
    if not isinstance(dim, int):
        raise ScriptError("the size of a dimension that depends on data")
    caller.located("size")
    return caller.size(x, dim)


@_function("dim", "ndim", "ndimension")
def _dim(caller: Caller, x: Tensor) -> int:
    return len(caller.dims(x))


@_function("numel", "nelement")
def _numel(caller: Caller, x: Tensor) -> Any:
    found: Any = 1
    for size in _size(caller, x):
        found = caller.builtin("torch.mul", [found, size], {})
    return found


@_function("len")
def _len(caller: Caller, x: Any) -> Any:
    if isinstance(x, Tensor):
        return caller.size(x, 0)
    found: Any = sum(not isinstance(item, Rows) for item in x)
    for item in x:
        if isinstance(item, Rows):
            count = caller.size(rows_of(item), 0)
            found = count if found == 0 else caller.builtin("torch.add", [found, count], {})
    return found


@_function("dtype")
def _dtype(caller: Caller, x: Tensor) -> int:
    return CODES[caller.element(x)]


@_function("is_floating_point")
def _is_floating(caller: Caller, x: Tensor) -> bool:
    return is_float(caller.element(x))


@_function("is_complex")
def _is_complex(caller: Caller, x: Tensor) -> bool:
    return isinstance(caller.element(x), ComplexType)


@_function("is_signed")
def _is_signed(caller: Caller, x: Tensor) -> bool:
    return not str(caller.element(x)).startswith(("ui", "i1"))


@_function("device")
def _device(caller: Caller, x: Any = "cpu", *_: Any) -> Device:
    del caller
    return Device(x if isinstance(x, str) else "cpu")


@_function("type")
def _type(caller: Caller, x: Any) -> str:
    del caller
    if not isinstance(x, Device):
        raise ScriptError(f"the type of {describe(x)}")
    return x.name.partition(":")[0]


@_function("layout")
def _zero(caller: Caller, *_: Any) -> int:
    del caller
    return 0


@_function("get_device")
def _no_device(caller: Caller, *_: Any) -> int:
    del caller
    return -1


@_function("is_contiguous")
def _is_contiguous(caller: Caller, x: Tensor, *_: Any) -> bool:
    del caller
    if not x.in_order:
        raise ScriptError("the question whether elements lie in order, which is not known")
    return True


@_function("requires_grad", "is_leaf")
def _requires_grad(caller: Caller, x: Any) -> bool:
    del caller
    return isinstance(x, Tensor) and x.requires_grad


@_function("is_grad_enabled", "is_scripting")
def _yes(caller: Caller, *_: Any) -> bool:
    del caller
    return True


@_function(
    *"is_autocast_enabled is_autocast_cpu_enabled is_cuda is_mkldnn "
    "is_sparse is_xla is_meta is_nested is_mps is_xpu is_vulkan is_ipu is_mtia is_maia is_conj "
    "is_neg is_inference is_hpu is_sparse_csr has_torch_function is_tracing".split()
)
def _no(caller: Caller, *_: Any) -> bool:
    del caller
    return False


@_function("is_same_size")
def _is_same_size(caller: Caller, a: Tensor, b: Tensor) -> Any:
    return caller.builtin("torch.eq", [_size(caller, a), _size(caller, b)], {})


@_function("warn", "grad", "set_grad_enabled", "_set_grad_enabled", "Print", "print")
def _none(caller: Caller, *_: Any, **__: Any) -> None:
    del caller


@_function("RaiseException")
def _raise(caller: Caller, message: Any = "", *_: Any) -> None:
    del caller
    raise RaisedError(message if isinstance(message, str) else "")


@_function("__is__")
def _is(caller: Caller, a: Any, b: Any) -> bool:
    del caller
    for one, other in ((a, b), (b, a)):
        if other is None:
            if isinstance(one, Nothing):
                raise UnknownError
            return one is None
    return a is b


@_function("__isnot__")
def _is_not(caller: Caller, a: Any, b: Any) -> bool:
    return not _is(caller, a, b)


@_function("data")
def _detached(caller: Caller, x: Tensor) -> Any:
    caller.located("detach")
    return caller.call("aten.detach", [x], {})


@_function("T")
def _transposed(caller: Caller, x: Tensor) -> Any:
    caller.located("T")
    return caller.call("aten.numpy_T", [x], {})


@_function("real")
def _real(caller: Caller, x: Tensor) -> Any:
    return caller.call("aten.real", [x], {}) if _is_complex(caller, x) else x


@_function("wait", "requires_grad_", "unchecked_unwrap_optional", "_unwrap_optional", "fork_value")
def _same(caller: Caller, x: Any, *_: Any) -> Any:
    del caller
    return x


# Conversions


def _scalar(caller: Caller, x: Any) -> Any:
    if isinstance(x, Tensor):
        return caller.item(x)
    if isinstance(x, str):
        try:
            return float(x)
        except ValueError:
            raise ScriptError(f"{x[:40]!r} as a number") from None
    return x


def _converted(caller: Caller, x: Any, kind: type[int | float | bool]) -> Any:
    x = _scalar(caller, x)
    if not isinstance(x, Number):
        return kind(x)
    if x.kind is kind:
        return x
    caller.located("to")
    code = {int: 4, float: 7, bool: 11}[kind]
    return caller.item(caller.call("aten.to", [caller.tensor(x.value), code], {}))


@_function("int", "Int", "IntImplicit")
def _to_int(caller: Caller, x: Any) -> Any:
    return _converted(caller, x, int)


@_function("float", "Float", "FloatImplicit")
def _to_float(caller: Caller, x: Any) -> Any:
    return _converted(caller, x, float)


@_function("bool", "Bool", "is_nonzero")
def _to_bool(caller: Caller, x: Any) -> Any:
    return _converted(caller, x, bool)


@_function("ScalarImplicit", "item")
def _item(caller: Caller, x: Tensor) -> Any:
    return caller.item(x)


@_function("NumToTensor", "scalar_to_tensor")
def _as_tensor(caller: Caller, x: Any, *_: Any) -> Tensor:
    return caller.tensor(caller.value_of(x), in_order=True)


@_function("tensor", "as_tensor")
def _tensor(
    caller: Caller, data: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """A new tensor of numbers, or of another one."""
    del device, requires_grad
    if isinstance(data, Tensor):
        caller.located("tensor")
        copy = caller.call("aten.clone", [data], {})
        return copy if dtype is None else caller.call("aten.to", [copy, dtype], {})
    element = None if dtype is None else ELEMENTS.get(dtype)
    if not any(isinstance(part, Number | Tensor) for part in leaves(data)):
        op = array_constant(data, element)
        caller.add(op)
        return caller.tensor(op.result, in_order=True)
    caller.located("tensor")
    made = _stacked(caller, data)
    if element is None and is_float(caller.element(made)):
        element = f32
    return made if element is None else caller.call("aten.to", [made, CODES[element]], {})


def _stacked(caller: Caller, data: Any) -> Tensor:
    if isinstance(data, list | tuple):
        rows = [_stacked(caller, one) for one in cast("Sequence[Any]", data)]
        return caller.call("aten.stack", [rows], {})
    return data if isinstance(data, Tensor) else caller.tensor(caller.value_of(data))


@_function("tolist")
def _to_list(caller: Caller, x: Tensor, *_: Any) -> Any:
    sizes = _size(caller, x)
    if not sizes:
        return caller.item(x)
    if not all(isinstance(size, int) for size in sizes) or math.prod(sizes) > _MOST_ROWS:
        raise ScriptError("the list of a tensor that is long or of an open size")
    rows = [caller.call("aten.select", [x, 0, k], {}) for k in range(sizes[0])]
    return [_to_list(caller, row) for row in rows]


@_function("__range_length")
def _range_length(caller: Caller, start: Any, end: Any, step: Any) -> Any:
    """How many numbers a range has."""
    if not isinstance(step, int) or step == 0:
        raise ScriptError("a range whose step is 0 or depends on data")
    if isinstance(start, int) and isinstance(end, int):
        return len(range(start, end, step))
    size = caller.builtin("torch.sub", [end, start] if step > 0 else [start, end], {})
    rounded = caller.builtin("torch.add", [size, abs(step) - 1], {})
    count = caller.builtin("torch.floordiv", [rounded, abs(step)], {})
    return caller.builtin("ops.prim.max", [count, 0], {})


@_function("__derive_index")
def _derived(caller: Caller, place: Any, start: Any, step: Any) -> Any:
    """A number of a range."""
    return caller.builtin("torch.add", [start, caller.builtin("torch.mul", [place, step], {})], {})


@_function("batch_norm")
def _batch_norm(caller: Caller, x: Tensor, *args: Any) -> Any:
    """That of a batch, whose statistics move, is one that gives them as results."""
    caller.located("batch_norm")
    weight, bias, mean, variance, training, momentum, eps, *_ = args
    if training is not True or mean is None:
        return caller.call("aten.batch_norm", [x, *args], {})
    values = [x, weight, bias, mean, variance, True, momentum, eps]
    name = "aten._native_batch_norm_legit_functional"
    found, _, _, *moved = caller.call(name, values, {})
    for into, value in zip((mean, variance), moved, strict=True):
        caller.write(into, caller.read(value))
    return found


# Lists and dictionaries


def _changed(caller: Caller, x: Any) -> list[Any]:
    if not isinstance(x, list):
        raise ScriptError(f"{describe(x)} in the place of a list")
    found = cast("list[Any]", x)
    if len(found) > LONGEST:
        raise ScriptError("a list that is too long")
    return caller.journal.list(found)


@_function("append")
def _append(caller: Caller, x: Any, item: Any) -> Any:
    _changed(caller, x).append(item)
    return x


@_function("extend", "add_")
def _extend(caller: Caller, x: Any, items: Any) -> Any:
    _changed(caller, x).extend(list(items))
    return x


# Lists of a length that only a run knows

KNOWS_ROWS = frozenset("append add_ extend len __getitem__ stack cat concat clear".split())
"""Functions that take lists of a length that only a run knows."""


def counts_in_a_run(value: Any) -> bool:
    """True for a list of a length that only a run knows."""
    is_list = isinstance(value, list | tuple)
    return is_list and any(isinstance(item, Rows) for item in cast("Sequence[Any]", value))


def rows_of(item: Rows) -> Tensor:
    """The tensor of all of them; ScriptError in the loop that adds them."""
    if item.tensor is None:
        raise ScriptError("a question about a list in the loop that makes it longer")
    return item.tensor


def joined_rows(caller: Caller, name: str, items: Sequence[Any], axis: Any = 0) -> Any:
    """The stack or concatenation of lists, one of which has rows: `cat` or `stack`."""
    is_stack = name == "stack"
    one = next(rows_of(item) for item in items if isinstance(item, Rows))
    rank = len(caller.dims(one)) - (not is_stack)
    if not isinstance(axis, int) or not -rank <= axis < rank:
        raise ScriptError(f"dimension {axis} of {rank}")
    axis %= rank
    parts: list[Any] = []
    for item in items:
        if not isinstance(item, Rows):
            parts.append(caller.call("aten.unsqueeze", [item, axis], {}) if is_stack else item)
            continue
        part = caller.call("aten.movedim", [rows_of(item), 0, axis], {}) if axis else item.tensor
        parts.append(part if is_stack else caller.call("aten.flatten", [part, axis, axis + 1], {}))
    if len(parts) == 1:
        return caller.call("aten.clone", parts, {})
    return caller.call("aten.cat", [parts, axis], {})


@_function("unbind")
def _unbound(caller: Caller, x: Any, axis: int = 0) -> list[Any]:
    """Views of the parts of a tensor, or the items of a list."""
    if not isinstance(x, Tensor):
        return [*cast("Sequence[Any]", x)]
    caller.located("unbind")
    if isinstance(caller.size(x, axis), Number):
        return [Rows(caller.call("aten.movedim", [x, axis, 0], {}))]
    return caller.call("aten.unbind", [x, axis], {})


@_function("insert")
def _insert(caller: Caller, x: Any, place: int, item: Any) -> None:
    _changed(caller, x).insert(place, item)


@_function("pop", "Delete")
def _pop(caller: Caller, x: Any, key: Any = -1, *default: Any) -> Any:
    if isinstance(x, dict):
        found = cast("dict[Any, Any]", x)
        if key not in found and default:
            return default[0]
        value = found[key]
        caller.journal.drop(found, key)
        return value
    return _changed(caller, x).pop(key)


@_function("remove")
def _remove(caller: Caller, x: Any, item: Any) -> None:
    _changed(caller, x).remove(item)


@_function("reverse")
def _reverse(caller: Caller, x: Any) -> None:
    _changed(caller, x).reverse()


@_function("sort")
def _sort(caller: Caller, x: Any, reverse: bool = False) -> None:
    _require_plain(x)
    _changed(caller, x).sort(reverse=reverse)


@_function("sorted")
def _sorted(caller: Caller, x: Any, reverse: bool = False) -> list[Any]:
    del caller
    _require_plain(x)
    return sorted(x, reverse=reverse)


def _require_plain(x: Any) -> None:
    if any(isinstance(part, Number | Tensor) for part in leaves(x)):
        raise ScriptError("the order of values that depend on data")


@_function("clear")
def _clear(caller: Caller, x: Any) -> None:
    if isinstance(x, dict):
        for key in list(cast("dict[Any, Any]", x)):
            caller.journal.drop(cast("dict[Any, Any]", x), key)
    else:
        _changed(caller, x).clear()


@_function("copy", "list")
def _copied(caller: Caller, x: Any, *_: Any) -> Any:
    del caller
    if isinstance(x, dict):
        return cast("Any", x).copy()
    return [*cast("Sequence[Any]", x)]


@_function("dict")
def _dict(caller: Caller, items: Any = ()) -> dict[Any, Any]:
    del caller
    return dict(items)


@_function("index")
def _index(caller: Caller, x: Any, item: Any) -> int:
    del caller
    _require_plain([x, item])
    return x.index(item)


@_function("count")
def _count(caller: Caller, x: Any, item: Any) -> int:
    del caller
    _require_plain([x, item])
    return x.count(item)


@_function("__contains__")
def _contains(caller: Caller, x: Any, item: Any) -> bool:
    del caller
    if isinstance(item, Number) or (isinstance(x, list) and not isinstance(item, Tensor)):
        _require_plain([item, x])
    return item in x


@_function("__getitem__")
def _get_item(caller: Caller, x: Any, key: Any) -> Any:
    if isinstance(x, Tensor):
        return caller.call("aten.select", [x, 0, key], {})
    if counts_in_a_run(x):
        if len(x) != 1:
            raise ScriptError("an item of a list whose length depends on data")
        return caller.call("aten.select", [rows_of(x[0]), 0, key], {})
    if isinstance(key, Number):
        items = [item for item in x if isinstance(item, Tensor)]
        if len(items) != len(x) or not items:
            raise ScriptError("an item of a list whose place depends on data")
        stacked = caller.call("aten.stack", [items], {})
        return caller.call("aten.select", [stacked, 0, key], {})
    if isinstance(x, Instance):
        return list(x.attributes.values())[key]
    return x[key]


@_function("_set_item")
def _set_item(caller: Caller, x: Any, key: Any, value: Any) -> Any:
    if isinstance(key, Number):
        raise ScriptError("an item of a list whose place depends on data")
    if isinstance(x, dict):
        caller.journal.set(cast("dict[Any, Any]", x), key, value)
    else:
        _changed(caller, x)[key] = value
    return cast("Any", x)


@_function("slice")
def _slice(caller: Caller, x: Any, start: Any = None, end: Any = None, step: Any = 1) -> Any:
    del caller
    return x[start:end:step]


@_function("keys")
def _keys(caller: Caller, x: Any) -> list[Any]:
    del caller
    return list(x.keys())


@_function("values")
def _values(caller: Caller, x: Any) -> list[Any]:
    del caller
    return list(x.values())


@_function("items")
def _items(caller: Caller, x: Any) -> list[Any]:
    del caller
    return [tuple(pair) for pair in x.items()]


@_function("get")
def _get(caller: Caller, x: Any, key: Any, default: Any = None) -> Any:
    del caller
    return x.get(key, default)


@_function("update")
def _update(caller: Caller, x: Any, other: Any) -> None:
    for key, value in dict(other).items():
        caller.journal.set(x, key, value)


@_function("setdefault")
def _set_default(caller: Caller, x: Any, key: Any, default: Any) -> Any:
    if key not in x:
        caller.journal.set(x, key, default)
    return x[key]


@_function("range")
def _range(caller: Caller, *args: int) -> list[int]:
    del caller
    numbers = range(*args)
    if len(numbers) > LONGEST:
        raise ScriptError("a list that is too long")
    return list(numbers)


@_function("sum")
def _sum(caller: Caller, x: Any) -> Any:
    found: Any = 0
    for item in x:
        found = caller.builtin("torch.add", [found, item], {})
    return found


@_function("any")
def _any(caller: Caller, x: Any) -> bool:
    del caller
    _require_plain(x)
    return any(x)


@_function("all")
def _all(caller: Caller, x: Any) -> bool:
    del caller
    _require_plain(x)
    return all(x)


# Texts


@_function("format", "percentFormat")
def _format(caller: Caller, text: str, *_: Any) -> str:
    """The text itself: only messages of errors are made of it."""
    del caller
    return text


@_function("str")
def _str(caller: Caller, x: Any) -> str:
    del caller
    if not isinstance(x, int | float | bool | str):
        raise ScriptError(f"the text of {describe(x)}")
    return str(x)


@_function("join")
def _join(caller: Caller, glue: str, items: Sequence[str]) -> str:
    del caller
    return glue.join(items)[:LONGEST]


def _text_method(name: str) -> Call:
    method: Call = getattr(str, name)

    def call(caller: Caller, *args: Any) -> Any:
        del caller
        return method(*args)

    return call


FUNCTIONS.update(
    {
        name: _text_method(name)
        for name in (
            "split strip lstrip rstrip lower upper startswith endswith find isdigit isalpha "
            "splitlines"
        ).split()
    }
)

ALSO_OPERATORS = frozenset(
    "add_ sum any all sort slice index split range copy count real clear remove tensor "
    "pop insert".split()
)
"""Functions of lists or texts that have the name of an operator on tensors."""
