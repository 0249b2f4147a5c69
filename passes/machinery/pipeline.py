"""
The passes by name, and the order in which the compiler runs them.

Passes are imported when they are used. Lowering registers its own in `lowerdeck.lowering.pipeline`.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Collection, Iterator, Mapping, MutableMapping
from pathlib import Path

from lowerdeck.dialects.frameworks import LEGALIZATION, PassFactory, lazy


def _found() -> Iterator[tuple[str, PassFactory]]:
    """
    The passes in the rooms beside this one: `fuse/fuse_norm.py` holds `fuse-norm` if it defines
    `FuseNormPass`. Read, not imported.
    """
    passes = Path(__file__).parents[1]
    for path in sorted(passes.glob("*/*.py")):
        room, words = path.parent.name, path.stem.split("_")
        name = "".join(word.capitalize() for word in words) + "Pass"
        if f"\nclass {name}(" in path.read_text(encoding="utf-8"):
            yield "-".join(words), lazy(f"passes.{room}.{path.stem}", name)


PASSES: MutableMapping[str, PassFactory] = ChainMap(dict(_found()), LEGALIZATION)
"""Every pass of this package: `PASSES["cse"]()` is the class `CsePass`."""


def legalize() -> list[str]:
    """`imported` -> `legal`: every quirk of the framework made explicit."""
    return [
        # Each leaves what is of other frameworks alone.
        *LEGALIZATION,
        # Legalization infers as it goes; loops and branches may leave types to settle.
        "infer-shapes",
        # After it, for decompositions go by types. Operators of plugins that have none stay.
        "decompose-custom",
        # By names, which stay; but every framework has a function now.
        "tie-states",
    ]


def pre() -> list[str]:
    """Clean up after legalization, which builds what is simplest to build."""
    return [
        # Before fold, which makes floats of quantized weights.
        "fuse-quantized",
        # Then what is known: constants decide branches, shapes and what is left to simplify.
        "fold",
        # After fold, which knows the sizes of weights, and only of what is used; before all that
        # sizes decide.
        "dce",
        "fix-input-sizes",
        # Before simplify, which adds up constants that meet, and cse, for which order counts.
        "reorder-binary",
        "simplify",
        # Simplified ops are equal more often. What has become unused goes next.
        "cse",
        "dce",
        # After dce, which leaves only what loops need. First what an iteration is.
        "count-iterations",
        # Of loops that have no trip count then; after which their counters can be numbered.
        "count-scans",
        "count-iterations",
        "loop-to-scan",
        # Before hoist-products, for which biases and weights have to be outside.
        "hoist-invariants",
        "hoist-products",
        # The parts of weights are constants, too, and numbers of iterations are sizes.
        "fold",
        # Counters and conditions are not used any more.
        "dce",
    ]


def opt() -> list[str]:
    """`optimized`: fewer ops by formulas."""
    return [
        # Before fuse: transposes stand between ops that make one formula.
        "cancel-transpose",
        # After cancel-transpose, which needs to see where a transpose ends: then transposes stand
        # where they separate as few ops as possible.
        "sink-transpose",
        # Before fuse: what follows the joined parts belongs to one convolution then. It may be
        # behind the transpose of the parts, which has become one.
        "fuse-grouped-conv",
        "sink-transpose",
        # Joined weights are constants again, of which what follows becomes part.
        "fold",
        "fuse",
        # After it, which takes factors into the matrix.
        "select-rows",
        # After it, which has made weights and biases of scales and shifts of channels.
        "drop-zero-channels",
        # Before sink-reshape, which would take maps from where they are recognized.
        "pair-elements",
        # After fuse, whose formulas have reshapes where exporters put them.
        "sink-reshape",
        # After fuse, which leaves filters the products that they are.
        "separate-conv",
        # After fuse: whole formulas are easier to pass, and no batch normalization stands between
        # convolutions; before merge-products, which ties what needs all rows to what may need few.
        "move-stride",
        "hoist-crop",
        # After sink-reshape: what is joined is next to what computes it. Before fold, for weights.
        "merge-duplicates",
        # The formulas leave constants to compute and producers that are equal now.
        "fold",
        "simplify",
        # After simplify: the transposes around heads hide what attention reads until they cancel.
        "merge-products",
        # After all that makes constants of scales and linear ops of quantization.
        "fold-quantize",
        # After fold: weights are constant by now. Before cse: what shares an order reads one copy.
        "absorb-channel-shuffle",
        "cse",
        "dce",
    ]


def fast() -> list[str]:
    """What `--fast-math` adds between `opt` and `post`."""
    return [
        # After fuse, which knows formulas by what they are, not by what is left of them here.
        "fast-math",
        "fold",
        "simplify",
        "cse",
        "dce",
    ]


def small() -> list[str]:
    """What `--small-weights` adds before `post`."""
    # After all folding, which makes constants of transposes.
    return ["share-transposed"]


def quantized() -> list[str]:
    """What `--precision` adds before `post`."""
    return [
        # After all formulas and folding, as quantized values hide them.
        "observe-layers",
        "switch-layers",
        "quantize-layers",
        # Before fuse-quantized: pools and reshapes of bytes stand before the product no more.
        "fold-quantize",
        # The form that quantized models have; from here on they are alike.
        "fuse-quantized",
        "fold",
        "simplify",
        "fold-quantize",
        "cse",
        "dce",
    ]


def narrow() -> list[str]:
    """What `--weight-format` and `--precision bf16` add before `post`."""
    return [
        # Before narrow-weights, which stores in bf16 what these leave.
        "halve-products",
        # After all folding, which would widen constants again; equal tables are one by then.
        "narrow-weights",
    ]


def post() -> list[str]:
    """The last passes on core before kernels are formed."""
    return [
        # Lowering reads types; passes above may have made them more precise.
        "infer-shapes",
    ]


STAGES: Mapping[str, Callable[[], list[str]]] = {"pre": pre, "opt": opt, "post": post}
"""The parts of the way to `optimized`, which a pipeline can name."""


def passes_before_export(stages: Collection[str] = ("pre", "opt", "post")) -> list[str]:
    """
    From `legal` to what an exporter converts whose framework has more layers than `optimized` has
    ops: formulas become ops, but nothing is folded into weights. `stages` are not disabled.
    """
    return [
        *(pre() if "pre" in stages else []),
        # After pre, which has found the number of iterations; fold cleans up behind it.
        "unroll-loops",
        "fold",
        "simplify",
        # Models with channels last lose the transposes around each of their ops.
        "cancel-transpose",
        # Those that are left go to the end, where there is one of them, and not two around an op.
        "sink-any-transpose",
        # Before channel shuffles and activations: the parts of a grouped convolution are one layer.
        "fuse-grouped-conv",
        "fuse-channel-shuffle",
        "fuse-activation",
        "fuse-norm",
        "fuse-softmax",
        # After fuse-norm, whose formulas have constants: no Scale layer behind another is left.
        "merge-linear",
        "fold",
        "simplify",
        "cse",
        "dce",
        *post(),
    ]


_ADDED: Mapping[str, Callable[[], list[str]]] = {
    "imported": list,
    "legal": legalize,
    "optimized": lambda: [name for stage in STAGES.values() for name in stage()],
}
"""What each phase of this package adds to the one before it."""


def passes_of_phase(phase: str) -> list[str]:
    """The names of the passes of one phase; KeyError if the phase belongs to lowering."""
    return _ADDED[phase]()
