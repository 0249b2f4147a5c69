"""The passes of lowering, their phases, and the whole way from an imported module to C."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from lowerdeck.dialects.errors import working_on
from lowerdeck.passes import pipeline as core_pipeline
from lowerdeck.passes.contracts import check_contract
from lowerdeck.passes.driver import is_enabled
from lowerdeck.passes.options import options_of
from lowerdeck.passes.pipeline import PassFactory, lazy
from lowerdeck.passes.provenance import source_file

PASSES: dict[str, PassFactory] = {
    "split-products": lazy("lowerdeck.lowering.split_products", "SplitProductsPass"),
    "form-kernels": lazy("lowerdeck.lowering.form_kernels", "FormKernelsPass"),
    "fuse-epilogue": lazy("lowerdeck.lowering.fuse_epilogue", "FuseEpiloguePass"),
    "assign-layouts": lazy("lowerdeck.lowering.assign_layouts", "AssignLayoutsPass"),
    "view-parts": lazy("lowerdeck.lowering.view_parts", "ViewPartsPass"),
    "fuse-bands": lazy("lowerdeck.lowering.fuse_bands", "FuseBandsPass"),
    "choose-schedules": lazy("lowerdeck.lowering.schedule.choose", "ChooseSchedulesPass"),
    "bufferize": lazy("lowerdeck.lowering.bufferize", "BufferizePass"),
    "expand-math": lazy("lowerdeck.lowering.expand_math", "ExpandMathPass"),
    "vectorize-loops": lazy("lowerdeck.lowering.schedule.loops", "VectorizeLoopsPass"),
    "tile": lazy("lowerdeck.lowering.schedule.tile", "TilePass"),
    "vectorize-lanes": lazy("lowerdeck.lowering.schedule.vectorize", "VectorizeLanesPass"),
    "unroll-tiles": lazy("lowerdeck.lowering.schedule.unroll", "UnrollTilesPass"),
    "prefetch": lazy("lowerdeck.lowering.schedule.prefetch", "PrefetchPass"),
    "compute-in-place": lazy("lowerdeck.lowering.compute_in_place", "ComputeInPlacePass"),
    "pack-weights": lazy("lowerdeck.lowering.pack_weights", "PackWeightsPass"),
    "parallelize": lazy("lowerdeck.lowering.parallelize", "ParallelizePass"),
    "plan-memory": lazy("lowerdeck.lowering.plan_memory", "PlanMemoryPass"),
    "split-driver": lazy("lowerdeck.lowering.split_driver", "SplitDriverPass"),
    "instrument": lazy("lowerdeck.lowering.instrument", "InstrumentPass"),
}
"""Every pass of lowering, by name."""

ALL_PASSES: dict[str, PassFactory] = {**core_pipeline.PASSES, **PASSES}
"""Every pass of the compiler, by name."""

PHASES: tuple[str, ...] = ("imported", "legal", "optimized", "kernels", "buffer", "scheduled")
"""The stages of a module, in order; `c` follows them."""

_SCHEDULING = [
    "vectorize-loops",
    "tile",
    "vectorize-lanes",
    "unroll-tiles",
    "prefetch",
    "compute-in-place",
]
"""What a kernel's schedule asks for, each step on what the one before has made; and which results
may lie over operands, which the loops as they are then decide."""

_ADDED: Mapping[str, list[str]] = {
    "kernels": [
        "split-products",
        "form-kernels",
        "fuse-epilogue",
        "assign-layouts",
        "view-parts",
        "fuse-bands",
        "choose-schedules",
    ],
    "buffer": ["bufferize", "expand-math", "pack-weights"],
}

Observer = Callable[[ModulePass | None, str], None]
"""Told of each pass before it runs (None at a phase's end), with the phase."""


def passes_of_phase(phase: str, threads: int = 1, *, profile: bool = False) -> list[str]:
    """The names of the passes that lead from the phase before to this one."""
    if phase != "scheduled":
        return _ADDED[phase] if phase in _ADDED else core_pipeline.passes_of_phase(phase)
    # Before memory is planned: what threads share must outlive their barriers.
    shared = ["parallelize"] if threads > 1 else []
    # After that, so that it finds the barriers and what each call turned out to be.
    timed = ["instrument"] if profile else []
    # Last, for no pass has to look into the parts then.
    return [*_SCHEDULING, *shared, "plan-memory", *timed, "split-driver"]


def run_to_phase(
    context: Context,
    module: ModuleOp,
    phase: str,
    observer: Observer | None = None,
    *,
    threads: int = 1,
    profile: bool = False,
) -> None:
    """
    Run every pass from `imported` up to a phase, and check each phase's contract.

    With `profile` the driver takes the time of each call.

    PassFailedException (or a subclass) if a pass cannot go on, InternalError if it has a fault;
    ValueError for an unknown phase.
    """
    for current in PHASES[: PHASES.index(phase) + 1]:
        for name in passes_of_phase(current, threads, profile=profile):
            pass_ = ALL_PASSES[name]()()
            if not is_enabled(pass_, options_of(context)):
                continue
            if observer is not None:
                observer(pass_, current)
            apply_pass(pass_, context, module)
        if observer is not None:
            observer(None, current)
        check_contract(module, current)


def apply_pass(pass_: ModulePass, context: Context, module: ModuleOp) -> None:
    """Apply a pass; InternalError with its name and the model's file if it has a fault."""

    def where() -> str:
        file = next(filter(None, map(source_file, module.walk())), "the module")
        return f"{file}: pass '{pass_.name}'"

    with working_on(where):
        pass_.apply(context, module)
