"""
How a kernel runs is computed from facts of the machine: no number is set in the sources of plans,
strategies, nests and costs, but those that algorithms and formats have (`nests/exact.py`). What the
descriptions of targets say besides the machine counts, too: there it would have no source either.
"""

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2] / "lowering"
ROOMS = ("strategies", "form", "nests", "cost")
DESCRIPTIONS = ("base", "x86", "aarch64", "cortex", "c99")
SOURCES = sorted(
    [path for room in ROOMS for path in (ROOT / room).glob("*.py")]
    + [ROOT / "targets" / f"{name}.py" for name in DESCRIPTIONS]
)

PLAIN = {0, 1, 2}

LEFT = {
    "form/assign_layouts.py": 1,
    "form/form_kernels.py": 9,
    "form/merge_dims.py": 1,
    "form/merge_narrow.py": 2,
    "form/pack_products.py": 2,
    "form/pad_columns.py": 5,
    "form/repeat_elements.py": 1,
    "form/split_pools.py": 2,
    "form/spread_phases.py": 3,
    "form/tabulate_bytes.py": 1,
    "nests/selection.py": 2,
    "nests/sums.py": 1,
    "nests/taps.py": 1,
    "nests/top_k.py": 18,
    "strategies/bands.py": 1,
    "strategies/blocked_attention.py": 2,
    "strategies/conv_lines.py": 1,
    "strategies/costs.py": 5,
    "strategies/depthwise_words.py": 2,
    "strategies/direct.py": 5,
    "strategies/dot_products.py": 1,
    "strategies/facts.py": 3,
    "strategies/line_plans.py": 20,
    "strategies/line_windows.py": 2,
    "strategies/map_squares.py": 4,
    "strategies/pool_passes.py": 2,
    "strategies/rows.py": 2,
    "strategies/separable_pool.py": 14,
    "strategies/streamed_matmul.py": 7,
    "strategies/taps.py": 1,
    "strategies/tiled_matmul.py": 3,
    "strategies/weight_sizes.py": 2,
    "strategies/window_products.py": 4,
    "strategies/winograd.py": 8,
    "strategies/winograd_transforms.py": 1,
    "targets/aarch64.py": 1,
    "targets/base.py": 43,
    "targets/cortex.py": 2,
    "targets/x86.py": 13,
}
"""By file, how many are left that are set by hand: these numbers only ever go down."""


def _is_exact(annotation: ast.expr) -> bool:
    return isinstance(annotation, ast.Subscript) and ast.unparse(annotation.value) == "Exact"


def _numbers(node: ast.AST) -> Iterator[ast.Constant]:
    """All numbers but those that are plain, and those in constants that are declared exact."""
    if isinstance(node, ast.AnnAssign) and _is_exact(node.annotation):
        return
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        if node.value not in PLAIN:
            yield node
    for child in ast.iter_child_nodes(node):
        yield from _numbers(child)


def test_numbers_set_by_hand_only_go_down() -> None:
    found = Counter(
        {
            path.relative_to(ROOT).as_posix(): len(list(_numbers(ast.parse(path.read_text()))))
            for path in SOURCES
        }
    )
    assert dict(+found) == LEFT


def test_exact_numbers_have_a_reason() -> None:
    """A text follows each of them."""
    without: list[str] = []
    for path in SOURCES:
        body = ast.parse(path.read_text()).body
        for node, after in zip(body, [*body[1:], None], strict=True):
            if isinstance(node, ast.AnnAssign) and _is_exact(node.annotation):
                match after:
                    case ast.Expr(value=ast.Constant(value=str())):
                        pass
                    case _:
                        without.append(f"{path.name}: {ast.unparse(node)}")
    assert without == []


@pytest.mark.parametrize(
    ("line", "count"),
    [
        ("_BIAS: Exact[int] = 1 << 62", 0),
        ("x[-1] + 2 * y - 1.0 + True", 0),
        ("MOST = 16", 1),
        ("MOST: int = 16", 1),
        ("MOST: Final = 1 << 18", 1),
        ("sizes = cache * 3 // 4", 2),
        ("def f(most=-3): ...", 1),
        ('"""16"""', 0),
    ],
)
def test_the_rule_sees_numbers(line: str, count: int) -> None:
    assert len(list(_numbers(ast.parse(line)))) == count
