"""From a model to something that runs: `compile`, `load` and `Model`."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike

from lowerdeck import cache as disk_cache
from lowerdeck.binding import PreparedCall, RunError
from lowerdeck.build import BuildError, compiler_version, require_compiler, user_flags
from lowerdeck.dialects.files import recording_files
from lowerdeck.dialects.frameworks import OptionValue
from lowerdeck.dialects.recursion import working_on_modules
from lowerdeck.kernel_files import kernel_files
from lowerdeck.lowering.targets import machine_key
from lowerdeck.metadata import TensorInfo
from lowerdeck.model import Model
from lowerdeck.model_folders import OwnFolder, build, write_artifact
from lowerdeck.passes.machinery.options import CompileOptions, split_weights
from lowerdeck.passes.machinery.ranges import Ranges
from lowerdeck.profile import KernelEvent, KernelTimes, Profile
from lowerdeck.reading import (
    Source,
    import_and_lower,
    known_options,
    model_file,
    name_of,
    read_model,
)
from lowerdeck.telling import telling

if TYPE_CHECKING:
    from lowerdeck.passes.machinery.context import KernelStore

__all__ = [
    "BuildError",
    "CompileOptions",
    "KernelEvent",
    "KernelTimes",
    "Model",
    "PreparedCall",
    "Profile",
    "RunError",
    "TensorInfo",
    "compile",
    "generate",
    "import_and_lower",
    "load",
]


def compile(
    model: Source,
    args: Sequence[Any] | None = None,
    *,
    outputs: Sequence[str] | None = None,
    input_shapes: Mapping[str, Sequence[int]] | None = None,
    dims: Mapping[str, int] | None = None,
    fixed: Mapping[str, ArrayLike] | None = None,
    states: Mapping[str, str] | None = None,
    threads: int = 1,
    target: str = "native",
    name: str | None = None,
    disable: Sequence[str] = (),
    disable_strategy: Sequence[str] = (),
    skip_nodes: str | Sequence[str] | None = None,
    embed_weights: bool = False,
    static_workspace: bool = False,
    strict_accuracy: bool = False,
    fast_math: bool = False,
    small_weights: bool = False,
    weight_format: str | None = None,
    precision: str | None = None,
    ranges: Ranges | str | os.PathLike[str] | None = None,
    profile: bool = False,
    schedules: Mapping[str, str] = MappingProxyType({}),
    extra_passes: str = "",
    cache: bool = True,
    **import_options: OptionValue,
) -> Model:
    """
    Compile a model to a library and load it.

    The model is a file (.onnx, .pb, .pbtxt, the .meta of a checkpoint, .prototxt, .mlir), the
    folder of a SavedModel, an ONNX ModelProto, what `torch.export.export` or `torch.onnx.export`
    returns, a `torch.nn.Module` with the example arguments `args`, or a TensorFlow GraphDef.
    `import_options` are those of the frontends: `weights` is the .caffemodel of a .prototxt,
    without it the one beside it, or the checkpoint of a TensorFlow graph. Of a SavedModel, `tags`
    choose the graph (by default `serve`) and `signature` the names of inputs and outputs (by
    default `serving_default`, or the only one). `optional` names the initializers or placeholders
    with a default that are inputs which may be left out. `outputs` replaces the model's outputs by
    other tensors of it, and `input_shapes` fixes shapes of inputs; it also makes inputs of other
    tensors of a TensorFlow graph. `dims` gives open dimensions of inputs a size, by their names.
    `fixed` has the values of inputs that become constants: arrays, or numbers that fill them.
    `states` lets inputs hold what outputs have held after the last run, as `{"past": "present"}`;
    they begin with zeros. A run uses `threads` threads, and so does a model that is loaded again
    with as many. `target` is "native" (this machine), "x86-64-amx", "x86-64-zen4", "x86-64-vnni",
    "x86-64-v4", "x86-64-v3", "x86-64", "aarch64", "cortex-m4", "cortex-m7" or "c99". `name` is what
    identifiers of the C begin with, else the name of the model's file. `disable` leaves passes out,
    `disable_strategy` algorithms of kernels such as `winograd`, and optional rewrites leave source
    nodes alone in whose name the regular expression `skip_nodes`, or one of several, is found. With
    `embed_weights` the weights are part of the C, with `static_workspace` so is a workspace for one
    run at a time, and with `cache` the result is kept on disk.
    `strict_accuracy` leaves out what is faster but adds to rounding errors, and `fast_math` uses
    algebra of real numbers on floats, as pass `fast-math` lists it. `small_weights` leaves out what
    is faster but stores weights padded, transformed or twice. `weight_format` stores them in fewer
    bits, as "bf16", "fp16", "int8", "int4" or "int4:64", and rounds them. `precision` is
    what layers may be computed in: "bf16", "int8", or "auto", as `ranges` says, which `quantize`
    gives or has written.
    With `profile` the C can take the time of each of its kernels, for `Model.profile`. `schedules`
    are those of single kernels, as `lowerdeck.tune.read_schedules` reads them. `extra_passes` run
    at the end of the phase `optimized`, as a pipeline; `lowerdeck.load_plugin` loads passes,
    targets, strategies, frontends and operators from outside.

    FrontendError or CompileError lists everything that cannot be compiled; BuildError if
    there is no C compiler, or if it fails.
    """
    imports, weight_format = split_weights(known_options(import_options), weight_format)
    options = CompileOptions(
        outputs=outputs,
        input_shapes=input_shapes,
        dims=dims,
        fixed=fixed,
        states=states,
        import_options=imports,
        threads=threads,
        target=target,
        name=name,
        disable=disable,
        disable_strategy=disable_strategy,
        skip_nodes=skip_nodes,
        embed_weights=embed_weights,
        static_workspace=static_workspace,
        strict_accuracy=strict_accuracy,
        fast_math=fast_math,
        small_weights=small_weights,
        weight_format=weight_format,
        precision=precision,
        ranges=Ranges.read(ranges) if isinstance(ranges, str | os.PathLike) else ranges,
        profile=profile,
        schedules=schedules,
        extra_passes=extra_passes,
    )
    return compile_with(model, options, args, cache=cache)


def compile_with(
    model: Source,
    options: CompileOptions,
    args: Sequence[Any] | None = None,
    *,
    cache: bool = True,
) -> Model:
    """`compile` with the options as one value."""
    from lowerdeck.lowering.pipeline import check_options
    from lowerdeck.plugins import load_installed

    with working_on_modules():
        load_installed()
        check_options(options)
        require_compiler()
        compiled = _compiled(model, options, args, cache=cache)
    if isinstance(model, str | os.PathLike):
        compiled.explain_by(os.fspath(model), options)
    return compiled


def _compiled(
    model: Source, options: CompileOptions, args: Sequence[Any] | None, *, cache: bool
) -> Model:
    """The model, from the cache if it is there."""
    from lowerdeck.frontends import model_files

    with model_file(model, args) as path:
        sources = (
            disk_cache.Sources.of(model_files(path, **options.import_options)) if cache else None
        )
        if sources is None:
            return _compile_apart(path, options)
        key = key_of(path, sources.graph, options)
        if (found := disk_cache.find(key, sources)) is not None:
            return Model(found, threads=options.threads)
        if (scratch := disk_cache.new_scratch()) is None:
            return _compile_apart(path, options)
        try:
            with recording_files() as read:
                _generate_and_build(path, scratch.path, options, kernel_files())
            sources.add(read)
            entry = disk_cache.store(scratch, key, sources)
            if entry is not None:
                return Model(entry, threads=options.threads)
            folder = OwnFolder()
            shutil.copytree(scratch.path, folder.name, dirs_exist_ok=True)
            return Model(folder.name, threads=options.threads, owner=folder)
        finally:
            scratch.close()


def key_of(model: str, graph: str, options: CompileOptions, *others: str) -> str:
    """
    What identifies a compiled model in the cache: the model, the file with its graph, the options,
    the machine, the C compiler, and whatever else the result depends on.

    BuildError if there is no C compiler.
    """
    from lowerdeck import plugins

    compiler = require_compiler()
    return disk_cache.cache_key(
        graph,
        name_of(model, options),
        options.key,
        machine_key(options.target),
        " ".join([*compiler, *user_flags()]),
        compiler_version(tuple(compiler)),
        plugins.identity(),
        *others,
    )


def _compile_apart(path: str, options: CompileOptions) -> Model:
    """A model compiled in a temporary folder of its own."""
    folder = OwnFolder()
    _generate_and_build(path, folder.name, options, None)
    return Model(folder.name, threads=options.threads, owner=folder)


def load(folder: str | os.PathLike[str], *, threads: int = 1) -> Model:
    """
    A model that `Model.save` or `lowerdeck compile` has written.

    ValueError for more than one thread if it was compiled for one, OSError if the folder holds no
    model, BuildError if its library does not fit this machine and cannot be compiled anew.
    """
    return Model(os.fspath(folder), threads=threads)


def generate(model: Source, folder: str, options: CompileOptions) -> None:
    """Write the C of a model, its weights and its description into an existing folder."""
    with working_on_modules(), model_file(model) as path:
        _generate(path, folder, options, kernel_files())


def _generate(path: str, folder: str, options: CompileOptions, kernels: KernelStore | None) -> None:
    """Write the C into `folder`."""
    from lowerdeck.dialects.blob import bytes_of_constants
    from lowerdeck.lowering import compile_to_c

    with working_on_modules():
        module, context = read_model(path, options, kernels)
        own = bytes_of_constants(module)
        artifact = compile_to_c(context, module, name_of(path, options), telling(context))
        artifact.metadata["model_weights_size"] = own
        write_artifact(artifact, folder)


def _generate_and_build(
    path: str, folder: str, options: CompileOptions, kernels: KernelStore | None
) -> None:
    _generate(path, folder, options, kernels)
    options.progress("C compiler")
    build(folder)
