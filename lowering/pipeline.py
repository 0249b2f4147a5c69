"""
The passes of lowering, their phases, and the runner that all use: from an imported module to C.
"""

from __future__ import annotations

import re
from collections import ChainMap
from collections.abc import Collection, Iterable, Iterator, Mapping, MutableMapping
from difflib import get_close_matches
from typing import TYPE_CHECKING, ClassVar, cast, get_args, get_type_hints

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.utils.arg_spec import ArgSpec, parse_pipeline
from xdsl.utils.exceptions import ArgSpecParseError

from lowerdeck.dialects.errors import PluginFault, plugin_of, working_on
from lowerdeck.dialects.frameworks import EXPORT, FRAMEWORKS, Export, PassFactory, exports, lazy
from lowerdeck.dialects.verification import problems_of
from lowerdeck.dialects.walking import all_ops
from lowerdeck.lowering.targets import machine_fault, target_names
from lowerdeck.passes.machinery import pipeline as core_pipeline
from lowerdeck.passes.machinery.context import options_of
from lowerdeck.passes.machinery.contracts import PHASES, check_contract
from lowerdeck.passes.machinery.driver import is_enabled
from lowerdeck.passes.machinery.options import (
    PRECISIONS,
    WEIGHT_FORMATS,
    CompileOptions,
    OptionError,
    is_weight_format,
    regexes_of,
)
from lowerdeck.passes.machinery.provenance import describe, source_file
from lowerdeck.passes.machinery.stages import Stage

if TYPE_CHECKING:
    from lowerdeck.lowering.loops.function_pass import FunctionPass

PASSES: dict[str, PassFactory] = {
    "halve-attention": lazy("lowering.form.halve_attention", "HalveAttentionPass"),
    "halve-convs": lazy("lowering.form.halve_convs", "HalveConvsPass"),
    "shorten-erf": lazy("lowering.form.shorten_erf", "ShortenErfPass"),
    "tabulate-bytes": lazy("lowering.form.tabulate_bytes", "TabulateBytesPass"),
    "merge-narrow": lazy("lowering.form.merge_narrow", "MergeNarrowPass"),
    "turn-products": lazy("lowering.form.turn_products", "TurnProductsPass"),
    "pad-columns": lazy("lowering.form.pad_columns", "PadColumnsPass"),
    "pack-products": lazy("lowering.form.pack_products", "PackProductsPass"),
    "widen-half": lazy("lowering.form.widen_half", "WidenHalfPass"),
    "repeat-channels": lazy("lowering.form.repeat_channels", "RepeatChannelsPass"),
    "scale-channels": lazy("lowering.form.scale_channels", "ScaleChannelsPass"),
    "multiply-windows": lazy("lowering.form.multiply_windows", "MultiplyWindowsPass"),
    "spread-phases": lazy("lowering.form.spread_phases", "SpreadPhasesPass"),
    "split-pools": lazy("lowering.form.split_pools", "SplitPoolsPass"),
    "settle-indices": lazy("lowering.form.settle_indices", "SettleIndicesPass"),
    "settle-factors": lazy("lowering.form.settle_factors", "SettleFactorsPass"),
    "settle-exponents": lazy("lowering.form.settle_exponents", "SettleExponentsPass"),
    "form-kernels": lazy("lowering.form.form_kernels", "FormKernelsPass"),
    "fuse-epilogue": lazy("lowering.form.fuse_epilogue", "FuseEpiloguePass"),
    "assign-layouts": lazy("lowering.form.assign_layouts", "AssignLayoutsPass"),
    "view-parts": lazy("lowering.form.view_parts", "ViewPartsPass"),
    "fuse-bands": lazy("lowering.form.fuse_bands", "FuseBandsPass"),
    "repeat-elements": lazy("lowering.form.repeat_elements", "RepeatElementsPass"),
    "merge-dims": lazy("lowering.form.merge_dims", "MergeDimsPass"),
    "skip-zeros": lazy("lowering.form.skip_zeros", "SkipZerosPass"),
    "choose-strategies": lazy("lowering.form.choose_strategies", "ChooseStrategiesPass"),
    "bufferize": lazy("lowering.buffers.bufferize", "BufferizePass"),
    "lower-kernels": lazy("lowering.buffers.lower_kernels", "LowerKernelsPass"),
    "expand-math": lazy("lowering.buffers.expand_math", "ExpandMathPass"),
    "peel": lazy("lowering.loops.peel", "PeelPass"),
    "check-ahead": lazy("lowering.loops.check_ahead", "CheckAheadPass"),
    "tile": lazy("lowering.loops.tile", "TilePass"),
    "unswitch": lazy("lowering.loops.unswitch", "UnswitchPass"),
    "vectorize-loops": lazy("lowering.loops.vectorize_loops", "VectorizeLoopsPass"),
    "vectorize-lanes": lazy("lowering.loops.vectorize_lanes", "VectorizeLanesPass"),
    "unroll-tiles": lazy("lowering.loops.unroll_tiles", "UnrollTilesPass"),
    "prefetch": lazy("lowering.loops.prefetch", "PrefetchPass"),
    "split-chains": lazy("lowering.loops.split_chains", "SplitChainsPass"),
    "interleave": lazy("lowering.loops.interleave", "InterleavePass"),
    "load-late": lazy("lowering.loops.load_late", "LoadLatePass"),
    "compute-in-place": lazy("lowering.entry.compute_in_place", "ComputeInPlacePass"),
    "update-states": lazy("lowering.entry.update_states", "UpdateStatesPass"),
    "merge-functions": lazy("lowering.entry.merge_functions", "MergeFunctionsPass"),
    "pack-weights": lazy("lowering.buffers.pack_weights", "PackWeightsPass"),
    "parallelize": lazy("lowering.entry.parallelize", "ParallelizePass"),
    "move-scratch": lazy("lowering.entry.move_scratch", "MoveScratchPass"),
    "plan-memory": lazy("lowering.entry.plan_memory", "PlanMemoryPass"),
    "open-outputs": lazy("lowering.entry.open_outputs", "OpenOutputsPass"),
    "split-entry": lazy("lowering.entry.split_entry", "SplitEntryPass"),
    "instrument": lazy("lowering.entry.instrument", "InstrumentPass"),
}
"""Every pass of lowering, by name."""

LOADED: dict[str, PassFactory] = {}
"""Every pass of plugins, by name."""

ALL_PASSES: MutableMapping[str, PassFactory] = ChainMap(
    PASSES, core_pipeline.PASSES, EXPORT, LOADED
)
"""Every pass of the compiler and of plugins, by name."""

EXTRA_AFTER = "optimized"
"""The phase at whose end the user's extra passes run."""

_LISTED = 16
"""Ops that are not well-formed and are named."""

_SCHEDULING = [
    "peel",
    "check-ahead",
    "tile",
    "unswitch",
    "vectorize-loops",
    "vectorize-lanes",
    "unroll-tiles",
    "prefetch",
    "compute-in-place",
    "update-states",
    "split-chains",
    "interleave",
    "load-late",
    "merge-functions",
]
"""What a kernel's schedule asks for, each step on what the one before has made; which results may
lie over operands, and states over what they were, which the loops as they are then decide; then
what changes no decision: the order of ops; and which functions are the same but for numbers."""

_ADDED: Mapping[str, list[str]] = {
    "kernels": [
        "shorten-erf",
        "halve-attention",
        "halve-convs",
        "tabulate-bytes",
        "merge-narrow",
        "pack-products",
        "widen-half",
        "spread-phases",
        "multiply-windows",
        "repeat-channels",
        "scale-channels",
        "turn-products",
        "pad-columns",
        "split-pools",
        "settle-indices",
        "settle-factors",
        "settle-exponents",
        "form-kernels",
        "fuse-epilogue",
        "assign-layouts",
        "view-parts",
        "fuse-bands",
        "repeat-elements",
        "merge-dims",
        "skip-zeros",
        "choose-strategies",
    ],
    "buffer": ["bufferize", "lower-kernels", "expand-math", "pack-weights"],
}


class Observer:
    """
    Is told what the runner does, with the module as it is then; by itself it does nothing.

    The phase is empty for passes that are no part of the compiler's own way. What an observer
    raises ends the run.
    """

    verifies: ClassVar[bool] = False
    """True if it sees to it that the module is well-formed after each pass."""

    @property
    def watches_kernels(self) -> bool:
        """
        True if it is to be told of each pass on functions of kernels. Else these run kernel by
        kernel within `lower-kernels`, and what became of equal kernels is used again.
        """
        return True

    def before_pass(self, pass_: ModulePass, phase: str, module: ModuleOp) -> None:
        """A pass begins."""

    def after_pass(self, pass_: ModulePass, phase: str, module: ModuleOp) -> None:
        """A pass has ended."""

    def after_phase(self, phase: str, module: ModuleOp) -> None:
        """A phase has ended; its contract is checked next."""


class _Nobody(Observer):
    @property
    def watches_kernels(self) -> bool:
        return False


_NOBODY = _Nobody()


def check_options(options: CompileOptions, passes: Collection[str] = ALL_PASSES) -> None:
    """OptionError that lists what makes no sense; `passes` are those that can be disabled."""
    problems: list[tuple[str, str]] = []
    if options.target not in target_names():
        known = ", ".join(target_names())
        problems.append(("target", f"'{options.target}' is not one of {known}"))
    elif (fault := machine_fault(options.target)) is not None:
        problems.append(("target", fault))
    if options.threads < 1:
        problems.append(("threads", f"{options.threads} is not a number of threads"))
    if options.precision is not None and options.precision not in PRECISIONS:
        known = ", ".join(PRECISIONS)
        problems.append(("precision", f"'{options.precision}' is not one of {known}"))
    if options.precision == "auto" and options.ranges is None:
        problems.append(("precision", "auto goes by ranges, which `lowerdeck quantize` writes"))
    if options.ranges is not None and options.precision not in ("int8", "auto"):
        problems.append(("ranges", "they are for --precision int8 or auto"))
    if options.weight_format is not None and not is_weight_format(options.weight_format):
        known = ", ".join(WEIGHT_FORMATS)
        problems.append(("weight_format", f"'{options.weight_format}' is not one of {known}"))
    if options.rewrite_limit is not None and options.rewrite_limit < 0:
        problems.append(("rewrite_limit", f"{options.rewrite_limit} is not a number of rewrites"))
    if options.name is not None and not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", options.name):
        problems.append(("name", f"'{options.name}' is no identifier of C"))
    if len(set(outputs := options.outputs or ())) < len(outputs):
        problems.append(("outputs", f"{list(outputs)} name a tensor twice"))
    problems += [
        ("disable", no_pass(name, passes)) for name in options.disable if name not in passes
    ]
    if options.strategy or options.disable_strategy:
        problems += _strategy_problems(options)
    try:
        extra_passes(options, passes)
    except ValueError as error:
        problems.append(("extra_passes", str(error)))
    for pattern in regexes_of(options.skip_nodes):
        try:
            re.compile(pattern)
        except re.error as error:
            problems.append(("skip_nodes", f"'{pattern}': {error}"))
    if problems:
        raise OptionError(problems)


def extra_passes(options: CompileOptions, known: Collection[str] = ALL_PASSES) -> list[ModulePass]:
    """The passes that a user adds to those of EXTRA_AFTER; ValueError if they make no sense."""
    passes = {name: ALL_PASSES[name] for name in known if name in ALL_PASSES}
    return parse_passes(options.extra_passes, passes)


_NESTED = re.compile(r"\s*builtin\.module\s*\((.*)\)\s*", re.DOTALL)
"""What a pipeline of MLIR has around it."""


def parse_passes(text: str, known: Mapping[str, PassFactory]) -> list[ModulePass]:
    """
    The passes that `name,name{option=value},...` stands for, with or without `builtin.module(...)`
    around it; ValueError if there are none.
    """
    if (nested := _NESTED.fullmatch(text)) is not None:
        return parse_passes(nested[1], known)
    try:
        specs = list(parse_pipeline(text))
    except ArgSpecParseError as error:
        step = (
            "; passes run on modules, so nothing nests but builtin.module(...)"
            if "(" in text
            else ""
        )
        raise ValueError(f"{error}{step}") from error
    if text.rstrip().endswith(","):
        raise ValueError(f"'{text}' ends with a comma")
    if unknown := [spec.name for spec in specs if spec.name not in known]:
        raise ValueError(no_pass(unknown[0], known))
    return [_pass_of(known[spec.name](), spec) for spec in specs]


def _pass_of(pass_: type[ModulePass], spec: ArgSpec) -> ModulePass:
    """The pass with its options; ValueError that names the pass, and the option that is wrong."""
    spec = _with_floats(pass_, spec)
    try:
        return pass_.from_pass_spec(spec)
    except ValueError as error:
        text = str(error)
        wrong = [name for name in spec.parameters if _error_without(pass_, spec, name) != text]
        option = f" option '{wrong[0]}':" if len(wrong) == 1 else ""
        raise ValueError(f"pass '{spec.name}':{option} {error}") from error


def _with_floats(pass_: type[ModulePass], spec: ArgSpec) -> ArgSpec:
    """The options with integers made floats where the pass takes those and no integers."""
    try:
        hints = get_type_hints(pass_)
    except NameError:  # of what is imported for type checkers alone; xDSL says what it expects
        return spec
    parameters = dict(spec.parameters)
    for name, values in parameters.items():
        hint = hints.get(name.replace("-", "_"))
        taken = {hint, *_parts_of(hint)}
        if float in taken and int not in taken:
            parameters[name] = tuple(float(v) if type(v) is int else v for v in values)
    return ArgSpec(spec.name, parameters)


def _parts_of(hint: object) -> Iterator[object]:
    """The types that one is made of, such as those of a union or a tuple."""
    for part in get_args(hint):
        yield part
        yield from _parts_of(part)


def _error_without(pass_: type[ModulePass], spec: ArgSpec, option: str) -> str:
    others = {name: values for name, values in spec.parameters.items() if name != option}
    try:
        pass_.from_pass_spec(ArgSpec(spec.name, others))
    except ValueError as error:
        return str(error)
    return ""


def _strategy_problems(options: CompileOptions) -> Iterator[tuple[str, str]]:
    from lowerdeck.lowering.strategies.registry import STRATEGIES

    known = [strategy.name for strategy in STRATEGIES]
    for option, names in (
        ("strategy", options.strategy),
        ("disable_strategy", options.disable_strategy),
    ):
        for name in names:
            if name not in known:
                text = f"no strategy '{name}'{_did_you_mean(name, known)}; there are "
                yield option, text + ", ".join(sorted(known))
    for name in sorted({*options.strategy} & {*options.disable_strategy}):
        yield "strategy", f"'{name}' is disabled, too"


def no_pass(name: str, passes: Collection[str]) -> str:
    """What is said of a pass that is none of `passes`."""
    return f"no pass '{name}'{_did_you_mean(name, passes)}"


def _did_you_mean(name: str, known: Collection[str]) -> str:
    near = get_close_matches(name, known, n=3)
    return f"; did you mean {' or '.join(near)}?" if near else ""


def passes_of_phase(phase: str, options: CompileOptions) -> list[str]:
    """The names of the passes that lead from the phase before to this one."""
    if (export := exports().get(phase)) is not None:
        stages = _stages(options)
        before = core_pipeline.passes_before_export(stages) if export.after == "legal" else []
        return [*before, *export.passes, *_simplification(export)]
    if phase == "optimized":
        parts = {stage: core_pipeline.STAGES[stage]() for stage in _stages(options)}
        if options.fast_math:
            parts["post"] = [*core_pipeline.fast(), *parts["post"]]
        if options.small_weights:
            parts["post"] = [*core_pipeline.small(), *parts["post"]]
        own: list[str] = []
        if options.precision in ("int8", "auto") or options.probe is not None:
            own += core_pipeline.quantized()
        if options.weight_format is not None or options.precision == "bf16":
            own += core_pipeline.narrow()
        parts["post"] = [*parts["post"][:-1], *own, *parts["post"][-1:]]
        return [name for part in parts.values() for name in part]
    if phase != "scheduled":
        return _ADDED[phase] if phase in _ADDED else core_pipeline.passes_of_phase(phase)
    # Before memory is planned: what threads share must outlive their barriers.
    shared = ["parallelize"] if options.threads > 1 else []
    # After that, so that it finds the barriers and what each call turned out to be.
    timed = ["instrument"] if options.profile else []
    # Last, for no pass has to look into the parts then.
    return [
        *_SCHEDULING,
        *shared,
        "move-scratch",
        "plan-memory",
        *timed,
        "open-outputs",
        "split-entry",
    ]


def _others(module: ModuleOp) -> set[str]:
    """The names of the passes that legalize what a module has nothing of."""
    dialects = {op.dialect_name() for op in all_ops(module)}
    absent = [each for name, each in FRAMEWORKS.items() if name not in dialects]
    return {name for framework in absent for name in framework.legalization}


def steps_of_phase(
    phase: str, options: CompileOptions, without: Collection[str] = ()
) -> list[ModulePass]:
    """
    The passes that lead from the phase before to this one, with the user's own: at the end of
    EXTRA_AFTER, or, for an export that branches off before it, where core becomes the framework's.
    Those called `without` are not even imported.
    """
    names = [name for name in passes_of_phase(phase, options) if name not in without]
    steps = [ALL_PASSES[name]()() for name in names]
    if phase == EXTRA_AFTER:
        return [*steps, *extra_passes(options)]
    export = exports().get(phase)
    if export is None or EXTRA_AFTER in phases_to(export.after):
        return steps
    position = next(i for i, step in enumerate(steps) if step.name in export.passes)
    return [*steps[:position], *extra_passes(options), *steps[position:]]


def _simplification(export: Export) -> list[str]:
    """The passes on the dialect of an export; it is cleaned before and after them."""
    names = list(export.simplification)
    return ["dce", "cse", *names, "cse", "dce"] if names else []


def _stages(options: CompileOptions) -> list[str]:
    """Those that the user did not disable."""
    return [name for name in core_pipeline.STAGES if is_enabled(ALL_PASSES[name](), options)]


def phases_to(phase: str) -> tuple[str, ...]:
    """The phases from the first one to this one; ValueError for an unknown phase."""
    if (export := exports().get(phase)) is not None:
        return (*phases_to(export.after), phase)
    return PHASES[: PHASES.index(phase) + 1]


def _is_of_export(module: ModuleOp, phase: str, options: CompileOptions) -> bool:
    """
    True if the phase is that of an export that a module needs only be simplified for. Passes of the
    user's own, which are for core, take it there, and so does rounding.
    """
    export = exports().get(phase)
    is_rounded = options.precision not in (None, "f32") or options.weight_format is not None
    is_changed = options.extra_passes or is_rounded
    if export is None or not export.simplification or is_changed:
        return False
    dialects = {op.dialect_name() for op in all_ops(module)}
    return phase in dialects <= {phase, "builtin", "func"}


def run_to_phase(
    context: Context,
    module: ModuleOp,
    phase: str,
    observer: Observer = _NOBODY,
    *,
    after: str | None = None,
    instead: Mapping[str, ModulePass | None] | None = None,
) -> None:
    """
    Run the passes that the context's options ask for, and check each phase's contract.

    They begin with those of `imported`, or of the phase that follows `after`. `instead` gives what
    runs in place of passes, by their names: the same with other parameters, or nothing.

    CompileError (or a subclass) if a pass cannot go on, InternalError if it has a fault;
    ValueError for an unknown phase or pass.
    """
    options, other = options_of(context), dict(instead or {})
    if unknown := sorted(other.keys() - ALL_PASSES.keys()):
        raise ValueError("; ".join(no_pass(name, ALL_PASSES) for name in unknown))
    way = phases_to(phase)
    start = 0 if after is None else way.index(after) + 1
    if {"buffer", "scheduled"} <= {*way[start:]} and not observer.watches_kernels:
        other = _finishing_kernels(other)
    direct = exports()[phase] if after is None and _is_of_export(module, phase, options) else None
    for current in way[start:] if direct is None else (phase,):
        if direct is None:
            passes = steps_of_phase(current, options, without=_others(module))
        else:
            passes = [ALL_PASSES[name]()() for name in _simplification(direct)]
        chosen = (other.get(pass_.name, pass_) for pass_ in passes)
        run_passes(context, module, filter(None, chosen), observer, current)
        observer.after_phase(current, module)
        check_contract(module, current)


_FINISHING = ("expand-math", *_SCHEDULING[: _SCHEDULING.index("compute-in-place")])
"""The passes on functions that `lower-kernels` may run at once, kernel by kernel."""


def _finishing_kernels(other: dict[str, ModulePass | None]) -> dict[str, ModulePass | None]:
    """What runs in place of passes if kernels are finished at once; as it is if some are others."""
    if not other.keys().isdisjoint({"lower-kernels", *_FINISHING}):
        return other
    from lowerdeck.lowering.buffers.lower_kernels import FinishKernelsPass

    then = [cast("FunctionPass", ALL_PASSES[name]()()) for name in _FINISHING]
    return {**other, **dict.fromkeys(_FINISHING), "lower-kernels": FinishKernelsPass(then)}


def run_passes(
    context: Context,
    module: ModuleOp,
    passes: Iterable[ModulePass],
    observer: Observer = _NOBODY,
    phase: str = "",
) -> None:
    """
    Run passes, but for those that the user disabled.

    CompileError if one cannot go on, or cannot be disabled; InternalError with its name and
    the model's file if it has a fault, PluginFault if it is a plugin's or leaves IR that is not
    well-formed.
    """

    def where() -> str:
        file = next(filter(None, map(source_file, module.walk())), "the module")
        return f"{file}: pass '{pass_.name}'"

    for pass_ in passes:
        if isinstance(pass_, Stage):
            if is_enabled(pass_, options_of(context)):
                run_passes(context, module, pass_.passes(), observer, phase)
        elif is_enabled(pass_, options_of(context)):
            observer.before_pass(pass_, phase, module)
            with working_on(where):
                pass_.apply(context, module)
            if pass_.name in LOADED and not observer.verifies:
                _require_well_formed(module, pass_, where())
            observer.after_pass(pass_, phase, module)


def _require_well_formed(module: ModuleOp, pass_: ModulePass, where: str) -> None:
    """PluginFault that lists what a pass from outside has made that is not well-formed."""
    if problems := problems_of(module):
        lines = [f"{where} of {plugin_of(type(pass_))} leaves IR that is not well-formed:"]
        lines += [f"{describe(op)}: {text}" for op, text in problems[:_LISTED]]
        raise PluginFault("\n".join(lines))
