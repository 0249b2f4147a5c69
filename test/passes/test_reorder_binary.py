"""`reorder-binary`: what its text forms do not show, which is how often it rewrites."""

from xdsl.dialects.builtin import Builtin
from xdsl.dialects.func import Func
from xdsl.parser import Parser

from lowerdeck.dialects.core import Core
from lowerdeck.passes.fold.reorder_binary import ReorderBinaryPass
from lowerdeck.passes.machinery.context import LowerdeckContext, recorder_of
from lowerdeck.passes.machinery.options import CompileOptions


def test_a_sum_of_many_constants_is_rewritten_as_a_whole() -> None:
    """Not once for each of its parts, which would take time that is quadratic in its length."""
    context = LowerdeckContext(options=CompileOptions(target="c99"))
    for dialect in (Builtin, Func, Core):
        context.load_dialect(dialect)
    count = 12
    sums = "\n".join(
        f"%c{i} = core.constant dense<{i + 1}> : tensor<2xi32>\n"
        f"%v{i + 1} = core.add %v{i}, %c{i} : (tensor<2xi32>, tensor<2xi32>) -> tensor<2xi32>"
        for i in range(count)
    )
    text = f"""
    func.func @main(%v0 : tensor<2xi32>) -> tensor<2xi32> {{
      {sums}
      func.return %v{count} : tensor<2xi32>
    }}"""
    module = Parser(context, text).parse_module()
    ReorderBinaryPass().apply(context, module)
    recorder = recorder_of(context)
    assert [n for (name, _), n in recorder.statistics.items() if name == "reorder-binary"] == [1]
