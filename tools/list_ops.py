"""`lowerdeck ops`: the operators of a model, and which of them can be compiled."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from lowerdeck.dialects.frameworks import Framework, framework_of
from lowerdeck.frontends import load_model, read_request
from lowerdeck.frontends.frontend import Request, Use, frontend_of
from lowerdeck.passes.legalize.support import Support
from lowerdeck.passes.machinery.options import CompileOptions
from lowerdeck.passes.machinery.provenance import source_names

_LISTED = 8
"""Nodes of an unsupported operator that are named before the rest is counted."""

_LEFT_OUT = "left out: no output needs it"


@dataclass
class Operator:
    """One operator at one version, as a model uses it."""

    domain: str
    op_type: str
    version: int | None
    """The version that introduced this form; None for an operator that is not known."""
    support: str | None
    """How it is compiled, or None."""
    nodes: list[str] = field(default_factory=list[str])
    next_step: str = ""
    """What to do if it is not supported."""

    @property
    def name(self) -> str:
        """The operator with its domain, if that is not the default one."""
        return f"{self.domain}.{self.op_type}" if self.domain else self.op_type

    def __str__(self) -> str:
        version = "" if self.version is None else str(self.version)
        text = (
            f"{len(self.nodes):6}  {self.name:<32} {version:>3}  {self.support or 'NOT SUPPORTED'}"
        )
        if self.support is not None:
            return text
        named = ", ".join(f"'{name}'" for name in self.nodes[:_LISTED])
        more = f" and {len(self.nodes) - _LISTED} more" if len(self.nodes) > _LISTED else ""
        step = f"; {self.next_step}" if self.next_step else ""
        return f"{text}: {named}{more}{step}"


def used_operators(path: str, options: CompileOptions) -> list[Operator]:
    """
    Every operator of the model at `path`, sorted by name: of a TensorFlow graph those that the
    outputs asked for need. FrontendError if the model is unreadable.
    """
    framework, request = read_request(
        path, options.outputs, options.input_shapes, options.import_options, options.fixed or {}
    )
    found: dict[tuple[str, str, int | None], Operator] = {}
    for owner, use in _uses(framework, request):
        support = owner.support()(use.domain, use.op_type, use.opset)
        if use.function:
            support = Support(f"function of {use.function}")
        operator = Operator(
            use.domain, use.op_type, support.version, support.how, next_step=support.next_step
        )
        key = (use.domain, use.op_type, support.version)
        found.setdefault(key, operator).nodes.append(use.node)
    return sorted(found.values(), key=lambda operator: (operator.domain, operator.op_type))


def left_out(operators: Sequence[Operator]) -> list[Operator]:
    """The operators of a model that compiles: those without support are in none of its C."""
    return [
        one if one.support is not None else replace(one, support=_LEFT_OUT, next_step="")
        for one in operators
    ]


def compiled_operators(path: str, options: CompileOptions) -> list[Operator]:
    """`used_operators` of a model that compiles."""
    return left_out(used_operators(path, options))


def _uses(framework: Framework | None, request: Request) -> Iterator[tuple[Framework, Use]]:
    """The nodes of a model; of IR text the ops that stand for nodes of any framework."""
    if framework is not None:
        for use in frontend_of(framework).inventory(request):
            yield framework, use
        return
    for op in load_model(request.path, outputs=request.outputs).walk():
        owner, op_type = framework_of(op), getattr(op, "op_type", None)
        if owner is None or op_type is None:
            continue
        domain, opset = getattr(op, "domain", ""), getattr(op, "since_version", None)
        for name in source_names(op) or [""]:
            yield owner, Use(op_type, name, domain, opset)
