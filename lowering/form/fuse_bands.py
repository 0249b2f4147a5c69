"""`fuse-bands`: a convolution and the depthwise one after it become one kernel, by row bands."""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, ModuleOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from lowerdeck.dialects.core.control_flow import KernelOp
from lowerdeck.dialects.core.layout import LayoutAttr
from lowerdeck.dialects.core.linear import ConvOp
from lowerdeck.dialects.core.types import static_shape
from lowerdeck.lowering.form.form_kernels import MAX_OPS
from lowerdeck.lowering.form.fuse_epilogue import fuse
from lowerdeck.lowering.strategies.bands import Bands, estimates, plans
from lowerdeck.lowering.strategies.base import Setting
from lowerdeck.lowering.strategies.conv_sums import can_be_blocked, is_depthwise
from lowerdeck.lowering.strategies.depthwise import can_be_blocked_depthwise
from lowerdeck.lowering.strategies.direct import Direct
from lowerdeck.lowering.strategies.facts import (
    anchors_of,
    is_constant,
    layout_in,
    layout_out,
    position_of,
)
from lowerdeck.lowering.strategies.registry import choose
from lowerdeck.passes.machinery.context import options_of, recorder_of
from lowerdeck.passes.machinery.driver import Match, Pattern, Rewriter, apply_patterns


def bands_input(kernel: KernelOp, setting: Setting) -> tuple[int, str] | None:
    """
    The position of the input whose kernel a depthwise convolution can absorb, and the reason, if
    that pays or is asked for; else None.
    """
    anchors = anchors_of(kernel)
    second = anchors[0] if anchors else None
    if not isinstance(second, ConvOp) or Bands.name in setting.disabled:
        return None
    position = position_of(kernel, second.input)
    if position is None:
        return None
    producer = kernel.inputs[position].owner
    if not isinstance(producer, KernelOp) or not _is_only_user(kernel, position):
        return None
    anchors = anchors_of(producer)
    first = anchors[0] if anchors else None
    if not isinstance(first, ConvOp) or not _is_plain(producer, first):
        return None
    result = layout_out(kernel)
    if not is_constant(kernel, second.weight):
        return None
    if not can_be_blocked_depthwise(second, layout_in(kernel, second.input), result):
        return None
    if Bands.name in setting.asked:
        is_possible = any(True for _ in plans(first, second, result.inner(1), setting))
        return (position, "asked for") if is_possible else None
    apart = choose(producer, setting)
    if apart is None or apart.schedule.strategy != Direct.name:
        # Another algorithm computes it with fewer multiply-adds.
        return None
    cycles = estimates(first, second, result.inner(1), setting)
    if cycles is None or cycles[0] >= cycles[1]:
        return None
    return position, f"{cycles[0]:.0f} cycles in bands, {cycles[1]:.0f} apart"


def _is_only_user(kernel: KernelOp, position: int) -> bool:
    """True if an input is computed by one kernel and used only by the convolution in this one."""
    value, argument = kernel.inputs[position], kernel.body.block.args[position]
    producer = value.owner
    assert isinstance(producer, KernelOp)
    size = len(list(producer.body.block.ops)) + len(list(kernel.body.block.ops))
    return (
        producer.parent is kernel.parent
        and len(producer.results) == len(kernel.results) == 1
        and len(list(value.uses)) == len(list(argument.uses)) == 1
        and producer.view is None
        and kernel.view is None
        and size <= MAX_OPS
    )


def _is_plain(kernel: KernelOp, op: ConvOp) -> bool:
    """True for a convolution over blocks of all channels that is the only one of its kernel."""
    convolutions = [other for other in kernel.body.block.ops if isinstance(other, ConvOp)]
    return (
        len(convolutions) == 1
        and op.groups.data == 1
        and not is_depthwise(op)
        and is_constant(kernel, op.weight)
        and static_shape(op.weight) is not None
        and can_be_blocked(op, layout_in(kernel, op.input), layout_out(kernel))
    )


def fuse_bands(kernel: KernelOp, position: int, rewriter: Rewriter) -> None:
    """Merge the kernel of an input and a depthwise convolution; layouts stay unchanged."""
    producer = kernel.inputs[position].owner
    assert isinstance(producer, KernelOp)
    layouts: dict[SSAValue, LayoutAttr] = {}
    for each in (producer, kernel):
        layouts.update((value, each.layout_at(k)) for k, value in enumerate(each.inputs))
    target = layout_out(kernel)
    fused = fuse(kernel, position, rewriter)
    own = [layouts[value] for value in fused.inputs]
    fused.properties["layouts"] = ArrayAttr([*own, target])


class FuseBands(Pattern[int]):
    """depthwise(conv(x)) in two kernels -> in one, by bands"""

    name = "fuse-bands"
    roots = (KernelOp,)

    def __init__(self, setting: Setting) -> None:
        self._setting = setting

    def match(self, op: KernelOp) -> Match[int] | None:
        if (found := bands_input(op, self._setting)) is None:
            return None
        position, reason = found
        producer = op.inputs[position].owner
        assert isinstance(producer, KernelOp)
        return Match((op, producer), reason, position)

    def rewrite(self, match: Match[int], rewriter: Rewriter) -> None:
        kernel = match.root
        assert isinstance(kernel, KernelOp)
        fuse_bands(kernel, match.data, rewriter)


class FuseBandsPass(ModulePass):
    """
    Let the kernel of a depthwise convolution absorb the convolution that produces its input.

    [the intermediate tensor has no other use; only maps follow the convolution in its kernel]

    The two then run by bands of rows, so that the intermediate rows stay in the cache of the thread
    that computes them. This is done only if they would not stay there otherwise, or several threads
    would meet between the two, and the gain exceeds the cost of bands, by sizes and the description
    of the target; and only if the convolution by itself would run as a direct sum, because another
    algorithm, such as Winograd's, would be faster.
    """

    name = "fuse-bands"
    optional = True

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        patterns = [FuseBands(Setting.of(options_of(ctx)))]
        apply_patterns(op, patterns, recorder_of(ctx), pass_name=self.name, recursive=False)
