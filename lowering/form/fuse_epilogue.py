"""`fuse-epilogue`: the maps after a convolution, product, pool or reduction join its kernel."""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass

from lowerdeck.dialects.core.constant import ConstantOp
from lowerdeck.dialects.core.control_flow import KernelOp, YieldOp, yielded
from lowerdeck.dialects.core.elementwise import ELEMENTWISE
from lowerdeck.dialects.core.linear import ConvOp, MatmulOp
from lowerdeck.dialects.core.tensor import ConcatOp
from lowerdeck.dialects.core.types import dims_of, element_type, is_integer
from lowerdeck.lowering.form.form_kernels import MAX_OPS, is_joined_at_front
from lowerdeck.lowering.nests import ACCUMULATING, ALONE, ANCHORS
from lowerdeck.lowering.strategies.depthwise_words import has_words
from lowerdeck.lowering.strategies.exact_winograd import has_exact_tiles
from lowerdeck.lowering.targets import target_named
from lowerdeck.lowering.targets.base import Target
from lowerdeck.passes.machinery.context import options_of, recorder_of
from lowerdeck.passes.machinery.driver import Match, Pattern, Rewriter, apply_patterns
from lowerdeck.passes.machinery.provenance import derive


def _epilogue_input(kernel: KernelOp, target: Target) -> int | None:
    """The position of the input whose kernel can absorb a kernel of maps."""
    if len(kernel.results) != 1 or not all(map(_is_map, kernel.body.block.ops)):
        return None
    candidates = range(len(kernel.inputs))
    return next((k for k in candidates if _can_take_in(kernel.inputs[k], kernel, target)), None)


def _is_map(op: Operation) -> bool:
    return isinstance(op, (*ELEMENTWISE, ConstantOp, YieldOp))


def _can_take_in(value: SSAValue, kernel: KernelOp, target: Target) -> bool:
    """True if the result of a kernel with a root op is used only by maps of the same shape."""
    producer, (result,) = value.owner, kernel.results
    if not isinstance(producer, KernelOp) or producer.parent is not kernel.parent:
        return False
    if len(producer.results) != 1 or any(use.operation is not kernel for use in value.uses):
        return False
    ops = list(producer.body.block.ops)
    anchor = next((op for op in ops if type(op) in ANCHORS), None)
    if anchor is None or type(anchor) in ALONE or dims_of(value) != dims_of(result):
        return False
    if isinstance(anchor, ConcatOp) and is_joined_at_front(anchor):
        return False
    if len(ops) + len(list(kernel.body.block.ops)) > MAX_OPS:
        return False
    # A root op that accumulates in the output needs an output of its own type. Tiles of products of
    # integers are in registers, and sums of some convolutions, too.
    own = element_type(value)
    is_in_registers = is_integer(own) and (
        (isinstance(anchor, MatmulOp) and target.lanes_of(own) > 1)
        or (isinstance(anchor, MatmulOp | ConvOp) and target.has_scalar_sums)
        or (isinstance(anchor, ConvOp) and has_words(anchor, target))
        or (isinstance(anchor, ConvOp) and has_exact_tiles(anchor, target))
    )
    # So are those of a convolution of lines that it copies.
    is_of_lines = isinstance(anchor, ConvOp) and isinstance(anchor.input.owner, Operation)
    is_kept = is_in_registers or is_of_lines
    return type(anchor) not in ACCUMULATING or own == element_type(result) or is_kept


def fuse(kernel: KernelOp, position: int, rewriter: Rewriter) -> KernelOp:
    """Merge the kernel of an input and the kernel that is its only user; returns the result."""
    value = kernel.inputs[position]
    producer = value.owner
    assert isinstance(producer, KernelOp)
    others = [other for other in kernel.inputs if other is not value]
    inputs = list(dict.fromkeys([*producer.inputs, *others]))
    block = Block(arg_types=[each.type for each in inputs])
    arguments: dict[SSAValue, SSAValue] = dict(zip(inputs, block.args, strict=True))
    (first,) = _copy(producer, [arguments[each] for each in producer.inputs], block)
    last = _copy(kernel, [arguments.get(each, first) for each in kernel.inputs], block)
    block.add_op(YieldOp(last))
    fused = KernelOp(producer.sym_name.data, inputs, Region(block))
    fused.location = derive([producer.location, kernel.location])
    rewriter.insert_before(kernel, fused)
    rewriter.replace(kernel, fused)
    rewriter.erase(producer)
    return fused


def _copy(kernel: KernelOp, arguments: list[SSAValue], block: Block) -> list[SSAValue]:
    """Append the ops of a kernel to a block; returns the values that it yields."""
    values: dict[SSAValue, SSAValue] = dict(zip(kernel.body.block.args, arguments, strict=True))
    for op in kernel.body.block.ops:
        if isinstance(op, YieldOp):
            continue
        copy = op.clone(values)
        copy.location = op.location
        block.add_op(copy)
    return [values[value] for value in yielded(kernel.body)]


class FuseEpilogue(Pattern[int]):
    """kernel(maps)(kernel(anchor)(x)) -> kernel(maps o anchor)(x)"""

    name = "fuse-epilogue"
    roots = (KernelOp,)

    def __init__(self, target: Target) -> None:
        self._target = target

    def match(self, op: KernelOp) -> Match[int] | None:
        if (position := _epilogue_input(op, self._target)) is None:
            return None
        producer = op.inputs[position].owner
        assert isinstance(producer, KernelOp)
        return Match((op, producer), f"behind {producer.sym_name.data}", position)

    def rewrite(self, match: Match[int], rewriter: Rewriter) -> None:
        kernel = match.root
        assert isinstance(kernel, KernelOp)
        fuse(kernel, match.data, rewriter)


class FuseEpiloguePass(ModulePass):
    """
    Let the kernel of a convolution, product, pool or reduction absorb the maps after it.

    The maps have the shape of its result, and that result has no other use: they are computed
    right before the result is stored. They may end in another element type only behind ops that do
    not accumulate in their result, such as products of integers on targets with vectors, and
    convolutions of integers that add up in registers. Of several such inputs (a sum of two
    convolutions) the first is taken.
    """

    name = "fuse-epilogue"
    optional = True

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        patterns = [FuseEpilogue(target_named(options_of(ctx).target))]
        apply_patterns(op, patterns, recorder_of(ctx), pass_name=self.name, recursive=False)
