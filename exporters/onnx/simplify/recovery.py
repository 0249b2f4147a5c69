"""What patterns have in common that find an operator of ONNX in several nodes."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence

from xdsl.dialects.builtin import TensorType, UnrankedTensorType
from xdsl.ir import Attribute, Operation, SSAValue

from lowerdeck.dialects.core.types import element_type, is_float
from lowerdeck.dialects.onnx.ops import OnnxOp, latest_opset, op_class
from lowerdeck.dialects.records import record
from lowerdeck.exporters.onnx.simplify.known import Known
from lowerdeck.passes.machinery.driver import Match, Pattern, Rewriter


@record
class Recovered:
    """A node in place of several."""

    op_type: str
    operands: Sequence[SSAValue]
    properties: Mapping[str, Attribute]
    consumed: tuple[Operation, ...]
    """Those that it takes the place of, that with the result first."""

    @property
    def since(self) -> int:
        """The first opset that has the operator."""
        versions = range(1, (latest_opset("") or 0) + 1)
        return next(v for v in versions if op_class("", self.op_type, v) is not None)


class Recovery(Pattern[Recovered]):
    """A pattern that finds one operator. It needs an opset that has it."""

    roots = (OnnxOp,)

    def __init__(self, known: Known) -> None:
        self._known = known

    @abstractmethod
    def find(self, op: OnnxOp) -> Recovered | None:
        """The operator whose result is that of `op`, if there is one."""

    def found(self, op: OnnxOp) -> Recovered | None:
        """`find` for nodes that compute floats."""
        if op.domain or len(op.results) != 1:
            return None
        result = op.results[0]
        if not isinstance(result.type, TensorType | UnrankedTensorType):
            return None
        if not is_float(element_type(result)):
            return None
        return self.find(op)

    def match(self, op: OnnxOp) -> Match[Recovered] | None:
        found = self.found(op)
        if found is None or not self._known.has(found.op_type):
            return None
        return Match(found.consumed, f"a {found.op_type}", found)

    def rewrite(self, match: Match[Recovered], rewriter: Rewriter) -> None:
        found, types = match.data, match.root.result_types
        new = self._known.node(found.op_type, found.operands, types, found.properties)
        rewriter.replace(match.root, new)
