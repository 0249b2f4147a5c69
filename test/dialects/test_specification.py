"""Docstrings of ops specify them: constraints are checked under their labels, examples verify."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from xdsl.dialects.arith import Arith
from xdsl.dialects.builtin import Builtin
from xdsl.ir import Dialect, Operation
from xdsl.parser import Parser
from xdsl.utils.exceptions import VerifyException

from lowerdeck.dialects.buffer import Buffer
from lowerdeck.dialects.core import Core
from lowerdeck.passes.machinery.context import LowerdeckContext
from lowerdeck.tools.gen_docs import specification

FOLDER = Path(__file__).parent
DIALECTS = [Core, Buffer]
OPS = [op for dialect in DIALECTS for op in dialect.operations]
CASE = re.compile(r"// CHECK: op '(\S+)': .* \(([CT]\d+)\)\n")
CHECKS = {"require", "require_axis", "require_same_element", "require_broadcast", "window_sizes"}
LABEL = re.compile(r"[CT]\d+|label")


def name_of(value: type[Operation] | Dialect) -> str:
    return value.name


@pytest.mark.parametrize("dialect", DIALECTS, ids=name_of)
def test_every_constraint_has_a_negative_case(dialect: Dialect) -> None:
    """A case's error message ends with the label, so it fails by that check and no other."""
    stated = {(op.name, label) for op in dialect.operations for label in own_constraints(op)}
    shown = {(op, label) for op, label in negative_cases(dialect) if label[0] == "C"}
    assert sorted(stated - shown) == [], "no case in the file"
    assert sorted(shown - stated) == [], "not in a docstring"


def test_every_constraint_of_all_ops_has_a_negative_case() -> None:
    stated = {label for op in Core.operations for label in specification(op).constraints}
    shown = {label for _, label in negative_cases(Core)}
    assert {label for label in stated ^ shown if label[0] == "T"} == set()


def negative_cases(dialect: Dialect) -> list[tuple[str, str]]:
    """The op and the label in each error that the dialect's textual tests expect."""
    files = FOLDER.glob(f"{dialect.name}*_invalid.mlir")
    return [case for path in files for case in CASE.findall(path.read_text())]


def own_constraints(op: type[Operation]) -> list[str]:
    return [label for label in specification(op).constraints if label[0] == "C"]


@pytest.mark.parametrize("op", OPS, ids=name_of)
def test_constraints_are_numbered_in_order(op: type[Operation]) -> None:
    labels = own_constraints(op)
    assert labels == [f"C{number}" for number in range(1, len(labels) + 1)]


@pytest.mark.parametrize("op", OPS, ids=name_of)
def test_examples_verify(op: type[Operation]) -> None:
    found = specification(op)
    assert found.text
    assert found.examples, f"the docstring of {op.name} has no example"
    names: list[str] = []
    for example in found.examples:
        for parsed in parsed_ops(example):
            parsed.verify()
            names += [inner.name for inner in parsed.walk()]
    assert op.name in names


def parsed_ops(text: str) -> Iterator[Operation]:
    """The ops of an example; what it does not define may be any value."""
    context = LowerdeckContext()
    for dialect in (*DIALECTS, Builtin, Arith):
        context.load_dialect(dialect)
    parser = Parser(context, text)
    while (op := parser.parse_optional_operation()) is not None:
        yield op
    assert parser.pos >= len(text.rstrip()), f"cannot read {text[parser.pos :]}"


@pytest.mark.parametrize(
    "path",
    sorted(
        path
        for name in ("core", "buffer")
        for path in FOLDER.parents[1].glob(f"dialects/{name}/*.py")
    ),
    ids=lambda path: f"{path.parent.name}/{path.name}",
)
def test_every_check_names_its_constraint(path: Path) -> None:
    unlabeled = [
        f"{path.name}:{node.lineno}"
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and not is_labeled(node)
    ]
    assert unlabeled == []


def is_labeled(call: ast.Call) -> bool:
    """True if a call checks nothing, or the label of what it checks."""
    if not isinstance(call.func, ast.Name) or call.func.id not in CHECKS:
        return True
    last = call.args[-1]
    text = last.value if isinstance(last, ast.Constant) else getattr(last, "id", "")
    return LABEL.fullmatch(str(text)) is not None


def test_a_check_without_a_label_is_noticed() -> None:
    calls = ["require(a, 'no')", "require(a, 'no', 'C1')", "require_axis(k, n, label)", "ints(a)"]
    parsed = [ast.parse(call, mode="eval").body for call in calls]
    assert [is_labeled(call) for call in parsed if isinstance(call, ast.Call)] == [
        False,
        True,
        True,
        True,
    ]


def test_an_example_that_does_not_verify_is_noticed() -> None:
    wrong = "%y = core.exp %x : (tensor<2xi32>) -> tensor<2xi32>"
    with pytest.raises(VerifyException, match=r"\(C1\)"):
        next(parsed_ops(wrong)).verify()
