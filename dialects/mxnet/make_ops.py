"""
Writes `ops.txt`: the operators of an installed MXNet, with their inputs, arguments and other names.

    python dialects/mxnet/make_ops.py > dialects/mxnet/ops.txt

MXNet is needed for this alone. Gradients and what updates weights are left out.
"""

from __future__ import annotations

import ctypes
import re
import sys
from importlib import import_module
from typing import Any

_LEFT_OUT = re.compile(r"_backward|_update|^_NDArray$|^_Native$|^Custom|^_set_value|_copyto")
_UNDOCUMENTED = {
    "_npi_concatenate": [
        ("data", "NDArray-or-Symbol[]"),
        ("num_args", "int, required"),
        ("axis", "int or None, optional, default='0'"),
    ],
    "_npi_norm": [
        ("data", "NDArray-or-Symbol"),
        ("ord", "double, optional, default=2"),
        ("axis", "Shape or None, optional, default=None"),
        ("keepdims", "boolean, optional, default=0"),
        ("flag", "int, optional, default=-1"),
    ],
    "_linspace": [
        ("start", "double, required"),
        ("stop", "double, required"),
        ("num", "int, required"),
        ("endpoint", "boolean, optional, default=1"),
        ("ctx", "string, optional, default=''"),
        ("dtype", "string, optional, default=float32"),
    ],
}
"""Arguments where MXNet lists those of another operator."""

_SUBGRAPHS = ("fn", "func", "cond", "then_branch", "else_branch")
_TYPES = (
    (r"\{", "text"),
    (r"string", "text"),
    (r"ptr|real_t", "text"),
    (r"tuple of <(float|double)>", "numbers"),
    (r"tuple of <Shape", "shapes"),
    (r"Shape|tuple of <long>", "shape"),
    (r"int|long", "int"),
    (r"float|double", "float"),
    (r"boolean", "bool"),
    (r", ", "text"),
)


def _argument(name: str, declared: str) -> str:
    """`name:type`, with `=default` if it may be left out."""
    kind = next(kind for pattern, kind in _TYPES if re.match(pattern, declared))
    found = re.search(r"default=(.*)$", declared)
    if found is None:
        return f"{name}:{kind}"
    return f"{name}:{kind}={found[1].strip().strip(chr(39)).replace(' ', '')}"


def _line(names: list[str], arguments: list[tuple[str, str]]) -> str:
    inputs: list[str] = []
    plain: list[str] = []
    for name, declared in arguments:
        if declared == "Symbol" and name in _SUBGRAPHS:
            continue
        if re.match(r"NDArray|Symbol|^$", declared):
            inputs.append(name + ("[]" if "[]" in declared else ""))
        else:
            plain.append(_argument(name, declared))
    return f"{' '.join(names)} ({' '.join(inputs)}; {' '.join(plain)})"


def _operators() -> dict[int, tuple[list[str], list[tuple[str, str]]]]:
    """Names, the one that files have first, and arguments of each operator."""
    base: Any = import_module("mxnet").base
    library, check = base._LIB, base.check_call
    count, listed = base.mx_uint(), ctypes.POINTER(ctypes.c_char_p)()
    check(library.MXListAllOpNames(ctypes.byref(count), ctypes.byref(listed)))
    found: dict[int, tuple[list[str], list[tuple[str, str]]]] = {}
    for name in sorted(base.py_str(listed[k]) for k in range(count.value)):
        handle, number = base.OpHandle(), base.mx_uint()
        texts = [ctypes.c_char_p() for _ in range(4)]
        lists = [ctypes.POINTER(ctypes.c_char_p)() for _ in range(3)]
        check(library.NNGetOpHandle(base.c_str(name), ctypes.byref(handle)))
        places = [*texts[:2], number, *lists, *texts[2:]]
        check(library.MXSymbolGetAtomicSymbolInfo(handle, *map(ctypes.byref, places)))
        real = base.py_str(texts[0].value)
        names, arguments = lists[:2]
        known = [(base.py_str(names[k]), base.py_str(arguments[k])) for k in range(number.value)]
        known = _UNDOCUMENTED.get(real, known)
        count_name = base.py_str(texts[2].value)
        if count_name and count_name not in dict(known):
            known.append((count_name, "int"))
        found.setdefault(handle.value, ([real], known))
        if name != real:
            found[handle.value][0].append(name)
    return found


def main() -> None:
    """Print the table."""
    found = _operators().values()
    lines = [_line(*entry) for entry in found if not any(map(_LEFT_OUT.search, entry[0]))]
    sys.stdout.write("\n".join(sorted(lines)) + "\n")


if __name__ == "__main__":
    main()
