"""Kernels that are finished once: the C is that of a compiler that keeps nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue

from lowerdeck import kernel_files
from lowerdeck.dialects.core import elementwise as e
from lowerdeck.dialects.core.constant import ConstantOp
from lowerdeck.dialects.core.linear import MatmulOp
from lowerdeck.dialects.core.reduce import SoftmaxOp
from lowerdeck.dialects.dims import Expr
from lowerdeck.dialects.errors import InternalError
from lowerdeck.dialects.walking import all_ops
from lowerdeck.kernel_files import KernelFiles
from lowerdeck.lowering.buffers import finishing
from lowerdeck.lowering.buffers.finishing import Memory
from lowerdeck.lowering.emit_c.module import emit_c
from lowerdeck.lowering.loops.peel import PeelPass
from lowerdeck.lowering.pipeline import Observer, run_to_phase
from lowerdeck.lowering.strategies import registry
from lowerdeck.lowering.strategies.registry import STRATEGIES
from lowerdeck.passes.machinery.context import KernelStore, LowerdeckContext
from lowerdeck.passes.machinery.options import CompileOptions
from lowerdeck.passes.machinery.provenance import derive, source_location

from .programs import module_of, typed  # noqa: TID251  (these are tests)
from .toy_strategy import Toy  # noqa: TID251  (as above)

TARGET = "x86-64-v3"


class Counting(Memory):
    """Counts what is found, and what is not."""

    def __init__(self) -> None:
        super().__init__(1 << 20)
        self.found = self.missed = 0

    def get(self, key: bytes) -> bytes | None:
        data = super().get(key)
        self.found += data is not None
        self.missed += data is None
        return data


@pytest.fixture(autouse=True)
def memory(monkeypatch: pytest.MonkeyPatch) -> Counting:
    """The memory of a process that has compiled nothing."""
    memory = Counting()
    monkeypatch.setattr(finishing, "MEMORY", memory)
    return memory


def number(value: float) -> SSAValue:
    return ConstantOp.of(np.array(value, np.float32)).result


def network(
    x: SSAValue, scale: float = 3.0, names: Sequence[str] = ("exp", "product", "softmax")
) -> SSAValue:
    """Three kernels, the last one of which is a map of its own."""
    weights = ConstantOp.of(np.arange(256, dtype=np.float32).reshape(16, 16))
    ops = [e.ExpOp(x), MatmulOp(x, weights.result)]
    scaled = e.MulOp(ops[1].results[0], number(scale))
    ops += [scaled, SoftmaxOp(scaled.result, 1), e.AddOp(x, ops[0].results[0])]
    last = e.DivOp(ops[3].results[0], ops[4].results[0])
    for op, name in zip(ops, [names[0], names[1], names[1], names[2], names[0]], strict=True):
        op.location = source_location(name, "net.onnx")
    last.location = derive([ops[3].location, ops[4].location])
    return last.result


def made(body: Callable[[SSAValue], SSAValue] = network, rows: Any = 5) -> ModuleOp:
    return module_of([typed(np.float32, rows, 16)], body)


def compiled(
    module: ModuleOp,
    observer: Observer | None = None,
    *,
    store: KernelStore | None = None,
    target: str = TARGET,
    disable: Sequence[str] = (),
) -> str:
    """The C; an observer watches kernels, so each of them is lowered then."""
    options = CompileOptions(target=target, disable=disable)
    context = LowerdeckContext(options=options, kernels=store)
    watching = () if observer is None else (observer,)
    run_to_phase(context, module, "scheduled", *watching, after="optimized")
    module.verify()
    return emit_c(module, "m", target).files["m.c"]


@pytest.mark.parametrize("rows", [5, Expr.symbol("n")])
@pytest.mark.parametrize("target", [TARGET, "c99"])
def test_c_is_the_same_however_it_came_about(
    rows: Any, target: str, memory: Counting, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = KernelFiles(str(tmp_path))
    wanted = compiled(made(rows=rows), Observer(), target=target)
    assert (memory.found, memory.missed) == (0, 0)
    assert compiled(made(rows=rows), store=files, target=target) == wanted
    kernels = memory.missed
    assert (memory.found, kernels) == (0, len(list(tmp_path.iterdir())))
    assert compiled(made(rows=rows), store=files, target=target) == wanted
    assert (memory.found, memory.missed) == (kernels, kernels)
    other = Counting()  # as in another process
    monkeypatch.setattr(finishing, "MEMORY", other)
    monkeypatch.setattr(finishing, "lower", None)
    assert compiled(made(rows=rows), store=files, target=target) == wanted
    assert (other.found, other.missed) == (0, kernels)


def test_a_model_that_differs_in_a_layer_pays_for_it(memory: Counting) -> None:
    compiled(made())
    kernels = memory.missed

    def deeper(x: SSAValue) -> SSAValue:
        return e.TanhOp(MatmulOp(network(x), number_matrix()).result).result

    def number_matrix() -> SSAValue:
        return ConstantOp.of(np.ones((16, 24), np.float32)).result

    wanted = compiled(made(deeper), Observer())
    assert compiled(made(deeper)) == wanted
    assert memory.found >= kernels - 1
    assert memory.missed <= kernels + 2


def test_what_is_in_a_kernel_tells_kernels_apart() -> None:
    """Numbers to the bit, the target, and which passes run."""
    texts: set[str] = set()
    for scale in (0.0, -0.0, 3.0):

        def body(x: SSAValue, scale: float = scale) -> SSAValue:
            return network(x, scale)

        texts.add(wanted := compiled(made(body), Observer()))
        assert compiled(made(body)) == wanted
    for target in ("c99", "aarch64"):
        texts.add(wanted := compiled(made(), Observer(), target=target))
        assert compiled(made(), target=target) == wanted
    texts.add(wanted := compiled(made(), Observer(), disable=["vectorize-loops"]))
    assert compiled(made(), disable=["vectorize-loops"]) == wanted
    assert len(texts) == 6


def places(module: ModuleOp) -> list[str]:
    return [str(op.location) for op in all_ops(module)]


def test_locations_are_those_of_the_kernel_that_asks() -> None:
    for names in (("a", "b", "c"), ("d", "e", "f"), ("g", "g", "h"), ("i", "j", "j")):

        def body(x: SSAValue, names: Sequence[str] = names) -> SSAValue:
            return network(x, names=names)

        module, wanted = made(body), made(body)
        assert compiled(module) == compiled(wanted, Observer())
        assert places(module) == places(wanted)


def cut(data: bytes, start: int, end: int | None) -> bytes:
    return data[start:end]


def changed(data: bytes) -> bytes:
    return data[:40] + bytes([data[40] ^ 1]) + data[41:]


def longer(data: bytes) -> bytes:
    return data + b"\0"


@pytest.mark.parametrize(
    "damage",
    [
        *(
            partial(cut, start=start, end=end)
            for start, end in ((0, 0), (0, 20), (0, -1), (1, None))
        ),
        changed,
        longer,
    ],
)
def test_damaged_files_count_as_missing(
    damage: Callable[[bytes], bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = KernelFiles(str(tmp_path))
    wanted = compiled(made(), store=files)
    whole = {path: path.read_bytes() for path in tmp_path.iterdir()}
    for path, data in whole.items():
        path.write_bytes(damage(data))
    monkeypatch.setattr(finishing, "MEMORY", Counting())
    assert compiled(made(), store=files) == wanted
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == whole


def test_files_that_cannot_be_used_stop_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    wanted = compiled(made(), Observer())
    assert compiled(made(), store=KernelFiles(str(tmp_path / "file"))) == wanted


def test_another_users_files_are_not_read(tmp_path: Path) -> None:
    files = KernelFiles(str(tmp_path))
    files.put(b"\1" * 32, b"data")
    assert files.get(b"\1" * 32) == b"data"
    (path,) = tmp_path.iterdir()
    path.chmod(0o666)
    assert files.get(b"\1" * 32) is None


def test_files_of_another_compiler_are_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    KernelFiles(str(tmp_path)).put(b"\1" * 32, b"data")
    monkeypatch.setattr(kernel_files, "compiler_identity", lambda: "edited")
    assert KernelFiles(str(tmp_path)).get(b"\1" * 32) is None


def test_files_are_written_at_the_same_time(tmp_path: Path) -> None:
    data = bytes(range(256)) * 64

    def use(number: int) -> bool:
        files = KernelFiles(str(tmp_path))
        for key in (b"\1" * 32, b"\2" * 32) * 20:
            files.put(key, data)
            if files.get(key) not in (data, None):
                return False
            if number == 0:
                kernel_files.remove_oldest(str(tmp_path), len(data) + 32)
        return True

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(use, range(4))) == [True] * 4
    assert all(not path.name.startswith(".") for path in tmp_path.iterdir())


def test_oldest_files_go(tmp_path: Path) -> None:
    files = KernelFiles(str(tmp_path))
    for key in (b"\1" * 32, b"\2" * 32):
        files.put(key, b"data")
    size = sum(path.stat().st_size for path in tmp_path.iterdir())
    kernel_files.remove_oldest(str(tmp_path), size)
    assert len(list(tmp_path.iterdir())) == 2
    kernel_files.remove_oldest(str(tmp_path), size - 1)
    assert len(list(tmp_path.iterdir())) == 1


def test_memory_is_bounded() -> None:
    memory = Memory(10)
    for key in (b"a", b"b", b"a", b"c"):
        memory.put(key, b"1234")
    assert [memory.get(key) for key in (b"a", b"b", b"c")] == [b"1234", None, b"1234"]


def added(x: SSAValue, y: SSAValue) -> SSAValue:
    return e.AddOp(x, y).result


def test_strategies_from_outside_are_asked_each_time(
    memory: Counting, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What they do may change under the same name."""
    asked: list[str] = []

    class Asked(Toy):
        def lower(self, k: Any, schedule: Any) -> None:
            asked.append(self.name)
            super().lower(k, schedule)

    monkeypatch.setattr(registry, "STRATEGIES", [*STRATEGIES, Asked()])
    for _ in range(2):
        compiled(module_of([typed(np.float32, 7)] * 2, added))
    assert asked == ["toy", "toy"]
    assert (memory.found, memory.missed) == (0, 0)


def test_a_fault_names_its_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise RuntimeError("no")

    monkeypatch.setattr(PeelPass, "run", fail)
    with pytest.raises(InternalError, match=r"net\.onnx: pass 'peel': RuntimeError: no"):
        compiled(made())
