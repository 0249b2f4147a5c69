"""
A framework that nobody has: one file, registered once, and everything works with it.

Its models are texts: a line `toy SIZE`, then operators, one a line, each of what the one before it
gives. `double` doubles, `add` adds the option `--amount`, or one.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import (
    FileLineColLoc,
    FloatAttr,
    FunctionType,
    IntAttr,
    ModuleOp,
    NameLoc,
    StringAttr,
    f32,
)
from xdsl.ir import Attribute, Block, Dialect, Operation, Region, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.passes import ModulePass
from xdsl.traits import Pure

import lowerdeck
from lowerdeck.dialects import frameworks
from lowerdeck.dialects.core.constant import ConstantOp
from lowerdeck.dialects.core.elementwise import AddOp
from lowerdeck.dialects.core.types import tensor
from lowerdeck.dialects.frameworks import Framework, ImportOption, register
from lowerdeck.frontends.errors import FrontendError
from lowerdeck.frontends.frontend import FileFormat, Frontend, Request, Use
from lowerdeck.passes.fold.cse import CsePass
from lowerdeck.passes.legalize.support import Support
from lowerdeck.plugins import temporarily
from lowerdeck.tools.lowerdeck import main as lowerdeck_main
from lowerdeck.tools.opt_tool import main as opt_tool

# The dialect


class ToyOp(IRDLOperation):
    """One operator."""

    input = operand_def()
    result = result_def()
    traits = traits_def(Pure())

    @property
    def op_type(self) -> str:
        """The framework's own name."""
        return self.name.removeprefix("toy.")


@irdl_op_definition
class DoubleOp(ToyOp):
    """x + x"""

    name = "toy.double"


@irdl_op_definition
class AddAmountOp(ToyOp):
    """x + amount"""

    name = "toy.add"
    amount = prop_def(FloatAttr)


def run_op(op: Operation, args: Sequence[Any], run_region: object) -> list[Any]:
    """The interpreter."""
    match op:
        case AddAmountOp():
            return [args[0] + np.float32(op.amount.value.data)]
        case _:
            return [args[0] + args[0]]


# The frontend


def _operators(request: Request) -> list[str]:
    return Path(request.path).read_text().split("\n")[1:-1]


def load(request: Request) -> ModuleOp:
    """One op for one operator."""
    size = int(Path(request.path).read_text().split()[1])
    type_: Attribute = tensor(f32, [size])
    block = Block(arg_types=[type_])
    value: SSAValue = block.args[0]
    file = FileLineColLoc(StringAttr(request.path), IntAttr(0), IntAttr(0))
    for number, op_type in enumerate(_operators(request)):
        if op_type == "double":
            op: ToyOp = DoubleOp.create(operands=[value], result_types=[type_])
        elif op_type == "add":
            amount = FloatAttr(float(request.options.get("amount", "1")), f32)
            op = AddAmountOp.create(
                operands=[value], result_types=[type_], properties={"amount": amount}
            )
        else:
            raise FrontendError.of_file(request.path, f"there is no operator '{op_type}'")
        op.location = NameLoc(StringAttr(f"node_{number}"), file)
        block.add_op(op)
        value = op.result
    block.add_op(func.ReturnOp(value))
    function = func.FuncOp("main", FunctionType.from_lists([type_], [type_]), Region(block))
    return ModuleOp([function])


def inventory(request: Request) -> Iterator[Use]:
    """Also of operators that there are not."""
    for number, op_type in enumerate(_operators(request)):
        yield Use(op_type, f"node_{number}")


# The legalization


@dataclass(frozen=True)
class LegalizeToyPass(ModulePass):
    """toy -> core"""

    name = "legalize-toy"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for inner in list(op.walk()):
            if isinstance(inner, ToyOp) and inner.parent is not None:
                other = inner.input
                if isinstance(inner, AddAmountOp):
                    amount = np.full(1, inner.amount.value.data, np.float32)
                    constant = ConstantOp.of(amount)
                    inner.parent.insert_op_before(constant, inner)
                    other = constant.result
                new = AddOp(inner.input, other)
                new.location = inner.location
                inner.parent.insert_op_before(new, inner)
                inner.result.replace_all_uses_with(new.result)
                inner.detach()
                inner.erase()


def support(domain: str, op_type: str, opset: int | None) -> Support:
    """How an operator is compiled."""
    is_known = op_type in ("double", "add")
    return Support("legalized") if is_known else Support(None, next_step="write another model")


TOY = Framework(
    "toy",
    dialect=lambda: Dialect("toy", [DoubleOp, AddAmountOp], []),
    frontend=lambda: Frontend(
        files="toys (.toy)",
        formats=(FileFormat("toy", ".toy"),),
        load=load,
        inventory=inventory,
    ),
    interpreter=lambda: run_op,
    legalization={"legalize-toy": lambda: LegalizeToyPass},
    support=lambda: support,
    options=(ImportOption("amount", "X", "what `add` adds"),),
)


# The tests


@pytest.fixture(autouse=True)
def toy() -> Generator[None]:
    """Registered for one test."""
    known, passes = set(frameworks.FRAMEWORKS), set(frameworks.LEGALIZATION)
    register(TOY)
    yield
    for name in frameworks.FRAMEWORKS.keys() - known:
        del frameworks.FRAMEWORKS[name]
    for name in frameworks.LEGALIZATION.keys() - passes:
        del frameworks.LEGALIZATION[name]


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "model.toy"
    path.write_text("toy 3\nadd\ndouble\n")
    return path


X = np.array([1, 2, 4], np.float32)


def test_compiled(model: Path) -> None:
    np.testing.assert_array_equal(lowerdeck.compile(model, cache=False)(X)[0], 2 * (X + 1))


def test_options_are_in_the_key_of_the_cache(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOWERDECK_CACHE", str(tmp_path / "cache"))
    for amount in ("1", "3", "1"):
        found = lowerdeck.compile(model, amount=amount)(X)[0]
        np.testing.assert_array_equal(found, 2 * (X + float(amount)))


def test_commands(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    inputs, outputs = tmp_path / "in.npz", tmp_path / "out.npz"
    arrays: dict[str, Any] = {"0": X}
    np.savez(inputs, **arrays)
    options = ["--inputs", str(inputs), "--outputs", str(outputs), "--amount", "2"]
    for way in ([], ["--interpret"]):
        assert lowerdeck_main(["run", str(model), *options, *way]) == 0
        with np.load(outputs) as file:
            np.testing.assert_array_equal(file["0"], 2 * (X + 2))
    assert lowerdeck_main(["ops", str(model)]) == 0
    assert "double" in capsys.readouterr().out


def test_an_option_of_a_plugin_has_no_flag(
    tmp_path: Path, model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The command line is read before the plugin is."""
    for name in list(frameworks.FRAMEWORKS):
        if name == TOY.name:
            del frameworks.FRAMEWORKS[name], frameworks.LEGALIZATION["legalize-toy"]
    (tmp_path / "plugin.py").write_text(
        "import sys\nfrom lowerdeck.plugins import Plugin\n"
        f"PLUGIN = Plugin(frameworks=[sys.modules[{__name__!r}].TOY])\n"
    )
    inputs = tmp_path / "in.npz"
    arrays: dict[str, Any] = {"0": X}
    np.savez(inputs, **arrays)
    command = ["run", str(model), "--inputs", str(inputs), "--outputs", str(tmp_path / "out.npz")]
    command += ["--load", str(tmp_path / "plugin.py")]
    with temporarily():
        assert lowerdeck_main([*command, "--import-option", "amount=5"]) == 0
        with np.load(tmp_path / "out.npz") as file:
            np.testing.assert_array_equal(file["0"], 2 * (X + 5))
        assert lowerdeck_main([*command, "--import-option", "amuont=5"]) == 1
        assert (
            "expected NAME=VALUE, NAME one of import_weights, optional, weights"
            in capsys.readouterr().err
        )
        assert opt_tool([str(model), *command[-2:], "-p", "legalize-toy"]) == 0
        assert "core.add" in capsys.readouterr().out


def test_inventory_of_what_is_not_known(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model.write_text("toy 3\nhalve\ndouble\n")
    assert lowerdeck_main(["ops", str(model)]) == 1
    out = capsys.readouterr().out
    assert "halve" in out
    assert "NOT SUPPORTED: 'node_0'; write another model" in out


def test_checked_after_each_pass(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert opt_tool([str(model), "--compile-to=c", "--check-each", "--amount=4"]) == 0
    assert "int model_run(" in capsys.readouterr().out


def test_text_of_the_dialect(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert opt_tool([str(model)]) == 0
    text = tmp_path / "text"
    text.write_text(capsys.readouterr().out)
    assert "toy.double" in text.read_text()
    assert opt_tool([str(text), "-p", "legalize-toy"]) == 0
    assert "toy." not in capsys.readouterr().out


def test_passes_know_what_is_missing_before_them(
    model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert opt_tool([str(model), "-p", "simplify"]) == 1
    err = capsys.readouterr().err
    assert "found toy ops; " in err
    assert "run legalize-toy before simplify" in err
    assert CsePass.works_on_all_dialects
    assert opt_tool([str(model), "-p", "cse"]) == 0


def test_the_contract_names_the_pass(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def forgetful(self: LegalizeToyPass, ctx: Context, op: ModuleOp) -> None:
        """Leaves all as it is."""

    monkeypatch.setattr(LegalizeToyPass, "apply", forgetful)
    with pytest.raises(Exception, match="legalize-toy should have converted it"):
        lowerdeck.compile(model, cache=False)


def test_options_of_other_frameworks_are_refused(model: Path) -> None:
    with pytest.raises(FrontendError, match="tags choose among the graphs of a SavedModel only"):
        lowerdeck.compile(model, tags=["serve"], cache=False)
    with pytest.raises(TypeError, match="amuont"):
        lowerdeck.compile(model, amuont="1")


def test_messages_name_the_format(tmp_path: Path) -> None:
    (tmp_path / "other").write_bytes(b"\x00\x01")
    with pytest.raises(FrontendError, match=r"toys \(.toy\)"):
        lowerdeck.compile(tmp_path / "other")
