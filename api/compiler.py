"""From a model to something that runs: `compile`, `load` and `Model`."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import shutil
import tempfile
import threading
import weakref
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeAlias, cast, overload

from numpy.typing import ArrayLike, NDArray

from lowerdeck import cache as disk_cache
from lowerdeck.binding import DATA_DO_NOT_FIT, Binding, PreparedCall, RunError
from lowerdeck.build import (
    BuildError,
    build_library,
    compiler_version,
    is_for_this_machine,
    library_name,
    require_compiler,
    user_flags,
)
from lowerdeck.dialects.errors import LowerdeckError
from lowerdeck.dialects.files import recording_files
from lowerdeck.dialects.frameworks import OptionValue, declared_options, lazy
from lowerdeck.dialects.recursion import working_on_modules
from lowerdeck.kernel_files import kernel_files
from lowerdeck.lowering.targets import machine_key
from lowerdeck.metadata import TensorInfo, read_metadata
from lowerdeck.passes.machinery.options import CompileOptions, split_weights
from lowerdeck.passes.machinery.ranges import Ranges
from lowerdeck.profile import KernelEvent, KernelTimes, Profile
from lowerdeck.pytorch import is_module, is_program, write_program
from lowerdeck.telling import telling

if TYPE_CHECKING:
    from google.protobuf.message import Message
    from xdsl.dialects.builtin import ModuleOp
    from xdsl.passes import ModulePass

    from lowerdeck.lowering.emit_c.module import CArtifact
    from lowerdeck.passes.machinery.context import KernelStore, LowerdeckContext

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

Array: TypeAlias = NDArray[Any]
Source: TypeAlias = "str | os.PathLike[str] | Message | object"


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


def known_options(options: Mapping[str, OptionValue]) -> dict[str, OptionValue]:
    """Options of frontends that were given; TypeError for a name that none of them has."""
    from lowerdeck.plugins import load_installed

    load_installed()
    declared = declared_options()
    if unknown := [name for name in options if name not in declared]:
        raise TypeError(f"compile() has no option {unknown[0]!r}; frontends have {[*declared]}")
    return {name: value for name, value in options.items() if value is not None}


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
            folder = _OwnFolder()
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


class _OwnFolder:
    """A temporary folder that is there as long as this, which a model owns."""

    def __init__(self) -> None:
        self.name = tempfile.mkdtemp(prefix="lowerdeck-")
        # Not a TemporaryDirectory, which warns where it is not closed by hand.
        weakref.finalize(self, shutil.rmtree, self.name, ignore_errors=True)


def _compile_apart(path: str, options: CompileOptions) -> Model:
    """A model compiled in a temporary folder of its own."""
    folder = _OwnFolder()
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
    with model_file(model) as path:
        _generate(path, folder, options, kernel_files())


def import_and_lower(
    model: str,
    phase: str,
    options: CompileOptions,
    instead: Mapping[str, ModulePass | None] = MappingProxyType({}),
) -> tuple[ModuleOp, LowerdeckContext]:
    """
    The module of a model file at the end of a phase before `c`, and its context; `instead` gives
    what runs in place of passes, as for `run_to_phase`.
    """
    from lowerdeck.lowering.pipeline import run_to_phase

    with working_on_modules():
        module, context = read_model(model, options)
        run_to_phase(context, module, phase, telling(context), instead=instead)
    return module, context


def read_model(
    model: str, options: CompileOptions, kernels: KernelStore | None = None
) -> tuple[ModuleOp, LowerdeckContext]:
    """
    The module of a model file as it was read, before any pass, and its context, by which finished
    kernels are found in a store and kept there.
    """
    from lowerdeck.dialects.registry import register_dialects
    from lowerdeck.frontends import load_model
    from lowerdeck.lowering.pipeline import check_options
    from lowerdeck.passes.machinery.context import LowerdeckContext
    from lowerdeck.passes.machinery.fixed_dims import fix_dims
    from lowerdeck.passes.machinery.provenance import check_names
    from lowerdeck.plugins import load_installed

    load_installed()
    check_options(options)
    context = LowerdeckContext(options=options, kernels=kernels)
    register_dialects(context)
    options.progress("import")
    module = load_model(
        model,
        outputs=options.outputs,
        input_shapes=options.input_shapes,
        fixed=options.fixed,
        context=context,
        **options.import_options,
    )
    fix_dims(module, options.dims or {})
    check_names(module, options)
    return module, context


def name_of(path: str, options: CompileOptions) -> str:
    """The name of a model in C: the one asked for, or that of its file."""
    return _untaken(options.name) if options.name is not None else model_name(path)


def model_name(path: str) -> str:
    """The name of a model in C: that of its file or folder, as an identifier."""
    base = os.path.basename(os.path.abspath(path))
    stem = base if os.path.isdir(path) else os.path.splitext(base)[0]
    name = re.sub(r"[^A-Za-z0-9_]", "_", stem)
    if not name or name[0].isdigit():
        name = f"model_{name}"
    return _untaken(name)


def _untaken(name: str) -> str:
    is_taken = name.lower() in _TAKEN or name.startswith("lowerdeck")
    return f"model_{name}" if is_taken else name


_TAKEN = frozenset(
    """
    example main
    assert complex ctype errno fenv float inttypes iso646 limits locale math setjmp signal stdalign
    stdarg stdatomic stdbool stddef stdint stdio stdlib stdnoreturn string tgmath threads time uchar
    wchar wctype alloca dirent endian fcntl features malloc memory pthread sched strings syslimits
    unistd
    all all_build clean depend edit_cache help install package package_source rebuild_cache
    run_tests test zero_check
    """.split()
)
"""What the files of a model and the targets of its build file are not called: other files that go
along, headers of C and POSIX, what CMake knows."""


@contextmanager
def model_file(model: Source, args: Sequence[Any] | None = None) -> Generator[str]:
    """
    The model as a file; one in memory, also of PyTorch or Keras, is written to a temporary one.
    `args` are the arguments for which a module of PyTorch is exported; TypeError for other models.
    """
    if is_program(model) or is_module(model):
        with tempfile.TemporaryDirectory(prefix="lowerdeck-") as folder:
            path = os.path.join(folder, "model.pt2")
            write_program(model, args, path)
            yield path
        return
    if args is not None:
        raise TypeError(f"arguments are for modules of PyTorch, not for {type(model).__name__}")
    if isinstance(model, str | os.PathLike):
        yield os.fspath(cast("str | os.PathLike[str]", model))
        return
    if _is_of_keras(model):
        with tempfile.TemporaryDirectory(prefix="lowerdeck-") as folder:
            path = os.path.join(folder, "model.keras")
            cast(Any, model).save(path)
            yield path
        return
    from lowerdeck.frontends.frontend import frontends

    # What torch.onnx.export returns holds a ModelProto.
    message = model if hasattr(model, "DESCRIPTOR") else getattr(model, "model_proto", None)
    if not hasattr(message, "DESCRIPTOR"):
        raise TypeError(
            "a model is a path, an ONNX ModelProto, a TensorFlow GraphDef, a module or program of "
            f"PyTorch, or a Keras model, not {type(model).__name__}; {_advice(model)}"
        )
    message = cast("Message", message)
    kind = message.DESCRIPTOR.name
    suffixes = {name: suffix for f in frontends() for name, suffix in f.messages.items()}
    if kind not in suffixes:
        raise TypeError(f"a {kind} is no model; expected one of {', '.join(suffixes)}")
    with tempfile.TemporaryDirectory(prefix="lowerdeck-") as folder:
        path = os.path.join(folder, f"model{suffixes[kind]}")
        with open(path, "wb") as file:
            file.write(message.SerializeToString())
        yield path


def _is_of_keras(model: object) -> bool:
    """True for a model of Keras, whose package need not be here."""
    return any(
        cls.__name__ == "Model" and cls.__module__.partition(".")[0] in ("keras", "tf_keras")
        for cls in type(model).__mro__
    )


_ADVICE = {
    "torch": "torch.export.export(module, arguments) makes what is compiled here",
    "keras": "give the model that it is of",
    "tensorflow": "tf.saved_model.save(module, folder) writes what is read from the folder",
    "onnx_ir": "onnx_ir.to_proto(model) makes a ModelProto of it",
    "onnxruntime": "give the file that the session was made from",
}
"""What to write instead of giving an object, by the package of its class or of a base."""


def _advice(model: object) -> str:
    packages = [cls.__module__.partition(".")[0] for cls in type(model).__mro__]
    found = next((_ADVICE[name] for name in packages if name in _ADVICE), None)
    return found or "bytes of an ONNX file are read by onnx.load_from_string"


def _generate(path: str, folder: str, options: CompileOptions, kernels: KernelStore | None) -> None:
    """Write the C into `folder`."""
    from lowerdeck.dialects.blob import bytes_of_constants
    from lowerdeck.lowering import compile_to_c

    with working_on_modules():
        module, context = read_model(path, options, kernels)
        own = bytes_of_constants(module)
        artifact = compile_to_c(context, module, name_of(path, options), telling(context))
        artifact.metadata["model_weights_size"] = own
        _write(artifact, folder)


def _generate_and_build(
    path: str, folder: str, options: CompileOptions, kernels: KernelStore | None
) -> None:
    _generate(path, folder, options, kernels)
    options.progress("C compiler")
    build(folder)


def build(folder: str, command: Sequence[str] | None = None) -> None:
    """
    Compile the library of a model into the folder that holds its C, by the C compiler `command` or
    the one that is installed.

    BuildError if there is no C compiler, or if it fails.
    """
    metadata = read_metadata(folder)
    library = os.path.join(folder, library_name(metadata["name"]))
    build_library(folder, metadata, library, command)


def build_artifact(artifact: CArtifact, folder: str) -> None:
    """
    Write the C of a module and its library into an existing folder, for `load`.

    BuildError if there is no C compiler, or if it fails.
    """
    _write(artifact, folder)
    build(folder)


def _write(artifact: CArtifact, folder: str) -> None:
    from lowerdeck.lowering.emit_c.interface import weights_source

    texts = {**artifact.files, f"{artifact.name}.json": json.dumps(artifact.metadata, indent=2)}
    for name, text in texts.items():
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            file.write(text)
    if artifact.embeds_weights:
        path = os.path.join(folder, weights_source(artifact.name))
        with open(path, "w", encoding="utf-8") as file:
            file.writelines(artifact.weights_text())
    elif artifact.weights_size:
        with open(os.path.join(folder, f"{artifact.name}.weights"), "wb") as file:
            for chunk in artifact.weight_chunks():
                file.write(chunk)


_MOST_STEPS = 1_000_000
"""Ops that are interpreted to find the one at which a run fails."""


def _version_of(path: str) -> tuple[int, int]:
    """What changes when a file is written: its time and size."""
    status = os.stat(path)
    return status.st_mtime_ns, status.st_size


class Model:
    """
    A compiled model.

    Called with a dict from tensor name to array it returns a dict; called with arrays in the order
    of `inputs`, a tuple in the order of `outputs`. Calls from several threads run concurrently.

    A model that remembers has a `state`, which each call reads and leaves for the next one: calls
    are then made one after the other. `reset` forgets; a copy of the model has a state of its own.
    After a call that fails while it runs, the state is undefined up to `reset`.
    """

    def __init__(self, folder: str, *, threads: int = 1, owner: object = None) -> None:
        self._folder = folder
        self._owner = owner  # a temporary folder lives as long as the model
        self._metadata = read_metadata(folder)
        if threads > 1 and not self._metadata["is_parallel"]:
            raise ValueError(
                f"{folder}: compiled for one thread; compile it with threads={threads}"
            )
        self._binding = _open(folder, self._metadata, threads)
        self._threads = threads
        self._source: tuple[str, CompileOptions, tuple[int, int]] | None = None
        self._state = self._binding.new_state()
        self._turn = threading.Lock()
        self._names = [info.name for info in self.inputs]
        self._output_names = [info.name for info in self.outputs]

    def __reduce__(self) -> tuple[Any, ...]:
        """
        What `pickle` writes: the files of the model, library included, its threads and its state.
        """
        return _unpickled, (self._files(), self._threads, self.state)

    def _files(self) -> dict[str, bytes]:
        names = [n for n in sorted(os.listdir(self._folder)) if not disk_cache.is_support_file(n)]
        files: dict[str, bytes] = {}
        for name in names:
            with open(os.path.join(self._folder, name), "rb") as file:
                files[name] = file.read()
        return files

    @property
    def digest(self) -> str:
        """SHA-256 of all that the model is made of but its library: on each machine the same."""
        library = library_name(self.name)
        return _digest_of(
            {n: data for n, data in self._files().items() if not n.startswith(library)}
        )

    def __copy__(self) -> Model:
        """
        The same model with a workspace of its own, and a state that begins as it is here; the files
        are shared.
        """
        copied = Model(self._folder, threads=self._threads, owner=self._owner)
        copied._source = self._source
        copied.state = self.state
        return copied

    def __deepcopy__(self, memo: object) -> Model:
        return self.__copy__()

    def _repr_html_(self) -> str:
        """What notebooks show: the inputs and outputs as a table."""
        from html import escape

        rows = "".join(
            f"<tr><td>{kind}</td><td>{escape(info.name)}</td><td>{info.dtype}</td>"
            f"<td>[{escape(', '.join(map(str, info.shape)))}]"
            f"{'' if info.default is None else ' (optional)'}</td></tr>"
            for kind, infos in (("input", self.inputs), ("output", self.outputs))
            for info in infos
        )
        return (
            f"<b>{escape(self.name)}</b>, compiled by lowerdeck for {self._metadata['target']}; "
            f"weights {self.weights_size:,} bytes<table>{rows}</table>"
        )

    def __repr__(self) -> str:
        def listed(infos: Sequence[TensorInfo]) -> str:
            return ", ".join(map(str, infos)) or "nothing"

        return (
            f"<lowerdeck.Model {self.name!r} for {self._metadata['target']}: "
            f"{listed(self.inputs)} -> {listed(self.outputs)}>"
        )

    @property
    def name(self) -> str:
        """What the identifiers of the C begin with."""
        return self._metadata["name"]

    @property
    def inputs(self) -> tuple[TensorInfo, ...]:
        """Name, dtype and shape of each input."""
        return self._binding.inputs

    @property
    def outputs(self) -> tuple[TensorInfo, ...]:
        """Name, dtype and shape of each output."""
        return self._binding.outputs

    @property
    def state(self) -> dict[str, Array]:
        """
        What the model remembers from its last call, by name, as it is now: copies. Empty for most
        models.
        """
        with self._turn:
            return {name: array.copy() for name, array in self._state.arrays().items()}

    @state.setter
    def state(self, arrays: Mapping[str, Array]) -> None:
        """
        What it is to remember instead: arrays by name, those that are missing stay as they are.

        ValueError for a name that is none of the state's, and for an array of another type or
        shape.
        """
        held = self._state.arrays()
        if unknown := [name for name in arrays if name not in held]:
            raise ValueError(f"{unknown} are no states; the states are {list(held)}")
        for name, array in arrays.items():
            found, expected = (f"{a.dtype}{list(a.shape)}" for a in (array, held[name]))
            if found != expected:
                raise ValueError(f"the state '{name}' is {expected}, not {found}")
        with self._turn:
            for name, array in arrays.items():
                held[name][...] = array

    def reset(self) -> None:
        """Forget all calls: the state is that before the first one."""
        with self._turn:
            self._binding.reset(self._state)

    @property
    def workspace_size(self) -> int | str:
        """Bytes of memory for one run besides weights and arrays; may depend on symbols."""
        return self._binding.workspace

    def workspace_for(self, shapes: Mapping[str, Sequence[int]]) -> int:
        """`workspace_size` for inputs of these shapes; ValueError if they are not the model's."""
        known = {info.name: info.default for info in self.inputs if info.default is not None}
        known.update((name, tuple(shape)) for name, shape in shapes.items())
        if missing := [name for name in self._names if name not in known]:
            raise ValueError(f"no shape for the inputs {missing}")
        return self._binding.workspace_for([known[name] for name in self._names])

    @property
    def weights_size(self) -> int:
        """Bytes of the weights file."""
        return self._metadata["weights_size"]

    @overload
    def __call__(self, inputs: Mapping[str, Array], /) -> dict[str, Array]: ...

    @overload
    def __call__(self, *inputs: Array | None) -> tuple[Array, ...]: ...

    def __call__(self, *inputs: Any) -> dict[str, Array] | tuple[Array, ...]:
        """
        Run the model. The memory of results is used by later calls once nothing refers to it.
        Inputs with a default may be left out: by name, at the end of the order, or as None.

        ValueError if the inputs are not those of the model, RunError if the run fails. Where sizes
        or indices computed from data do not fit, and the model was compiled from a file here, the
        error names the node and what it has found.
        """
        if len(inputs) == 1 and isinstance(inputs[0], (dict, Mapping)):
            named = cast("Mapping[str, Array]", inputs[0])  # what is quoted takes no time here
            results = self._run(self._in_order(named))
            return dict(zip(self._output_names, results, strict=True))
        if len(inputs) != len(self._names):
            inputs = self._filled_up(inputs)
        return tuple(self._run(inputs))

    def _filled_up(self, inputs: Sequence[Array]) -> tuple[Any, ...]:
        """The inputs in order, where the last ones are left out: None for these."""
        missing = self.inputs[len(inputs) :]
        if len(inputs) > len(self._names) or any(info.default is None for info in missing):
            raise ValueError(f"{len(inputs)} inputs for a model with {len(self._names)}")
        return (*inputs, *[None] * len(missing))

    def _run(self, inputs: Sequence[Array | None]) -> list[Array]:
        try:
            if not self._state.infos:
                return self._binding.run(inputs)
            with self._turn:
                return self._binding.run(inputs, self._state)
        except RunError as error:
            cause = self._cause(inputs) if error.status in DATA_DO_NOT_FIT else None
            if cause is None:
                raise
            raise RunError(error.status, f"{error}: {cause}") from None

    def explain_by(self, model: str, options: CompileOptions) -> None:
        """
        Name the node in errors of runs: the interpreter runs this model file to find it, as long as
        the file is not written again.
        """
        self._source = model, options, _version_of(model)

    def _cause(self, inputs: Sequence[Array | None]) -> str | None:
        """The node at which a run with these inputs fails, and why; None if that is not found."""
        from lowerdeck.dialects.interpret import run_module
        from lowerdeck.dialects.interpret.errors import InterpretError, StepLimitError

        if self._source is None:
            return None
        model, options, version = self._source
        try:
            if _version_of(model) != version:
                return None
            module, _ = import_and_lower(model, "legal", options)
            pairs = zip(self._names, inputs, strict=True)
            given = {name: array for name, array in pairs if array is not None}
            named = {**self.state, **given}
            run_module(module, named, max_steps=_MOST_STEPS)
        except InterpretError as error:
            return None if isinstance(error, StepLimitError) else str(error)
        except (LowerdeckError, OSError):  # the file, or one that belongs to it, is gone
            return None
        return None

    def report(self) -> Any:
        """
        Layers, work, passes and memory of the model, as `lowerdeck report` prints them: `text()`
        and `data()` of the result. ValueError as `ops`.
        """
        return lazy("tools.report.report", "report")()(*self._compiled_from())

    def ops(self) -> list[Any]:
        """
        The operators that the model file uses, as `lowerdeck ops` lists them: `name`, `version`,
        `support` and `nodes` of each.

        ValueError if the model was not compiled from a file here, or if that has been written
        again since.
        """
        return lazy("tools.list_ops", "compiled_operators")()(*self._compiled_from())

    def view(self, phase: str | None = None) -> Any:
        """
        The picture of the model as it was read, or at the end of a phase, as `lowerdeck view` draws
        it: notebooks show it, and `save(path)` writes the page. ValueError as `ops`.
        """
        return lazy("tools.view.picture", "picture")()(*self._compiled_from(), phase)

    def check(self, inputs: Mapping[str, Array] | None = None) -> Any:
        """
        What `lowerdeck check` finds on these inputs, or random ones: `status` of the result is 0 if
        the interpreter, the C and, for ONNX, onnxruntime agree, and `finding` says where they do
        not. ValueError as `ops`.
        """
        return lazy("tools.check", "compare_model")()(*self._compiled_from(), inputs)

    def _compiled_from(self) -> tuple[str, CompileOptions]:
        if self._source is None:
            raise ValueError("only for a model that was compiled from a file here")
        model, options, version = self._source
        if not os.path.exists(model) or _version_of(model) != version:
            raise ValueError(f"{model} is no longer the file that the model was compiled from")
        return model, options

    def prepare(self, inputs: Mapping[str, Array]) -> PreparedCall:
        """
        A call that reads these arrays where they lie and writes the same outputs each time. A model
        that remembers goes on from a copy of its state, which stays the call's own.

        The model runs once here. ValueError if the inputs are not those of the model or would have
        to be copied, RunError if the run fails.
        """
        return self._binding.prepare(self._in_order(inputs), self._state.copy())

    def profile(self, inputs: Mapping[str, Array], *, seconds: float = 1.0) -> Profile:
        """
        The times of the kernels of a model that was compiled with `profile`, in many runs.

        ValueError if it was not, or if the inputs are not those of the model or would have to be
        copied; RunError if a run fails.
        """
        return self._binding.profile(self._in_order(inputs), seconds, self._state.copy())

    def trace(self, inputs: Mapping[str, Array], *, seconds: float = 1.0) -> list[KernelEvent]:
        """
        When each kernel of a model that was compiled with `profile` runs, in the fastest of many
        runs. Not for several threads at a time.

        ValueError and RunError as `profile`.
        """
        return self._binding.trace(self._in_order(inputs), seconds, self._state.copy())

    def _in_order(self, named: Mapping[str, Array]) -> list[Array | None]:
        try:
            arrays: list[Array | None] = [named[name] for name in self._names]
            if len(named) == len(arrays):
                return arrays
        except KeyError:
            arrays = self._without_defaults(named)
        known = {*self._names, *self._metadata.get("unused_inputs", ())}
        if unknown := [name for name in named if name not in known]:
            raise ValueError(f"{unknown} are not inputs; the inputs are {self._names}")
        return arrays

    def _without_defaults(self, named: Mapping[str, Array]) -> list[Array | None]:
        """The arrays in order, None for one that is left out; ValueError if it has no default."""
        from lowerdeck.dialects.interpret.errors import no_values_for

        required = [info.name for info in self.inputs if info.default is None]
        if missing := [name for name in required if name not in named]:
            raise ValueError(no_values_for(missing, named))
        return [named.get(name) for name in self._names]

    def save(self, folder: str | os.PathLike[str]) -> None:
        """
        Write the C, its header, weights, build file, example and library into a folder.

        `lowerdeck.load` reads it.
        """
        publish(self._folder, os.fspath(folder))


def _unpickled(
    files: Mapping[str, bytes], threads: int, state: Mapping[str, Array] = MappingProxyType({})
) -> Model:
    """
    The model of these files and with this state: in the cache, where all processes of a machine
    share it, or in a temporary folder of its own; on a machine that the library is not for, the C
    is compiled anew.
    """
    model = _shared(files, threads) or _apart(files, threads)
    model.state = dict(state)
    return model


def _shared(files: Mapping[str, bytes], threads: int) -> Model | None:
    """The model as an entry of the cache; None if there is no cache."""
    sources = disk_cache.Sources("", {})
    key = (
        f"{_digest_of(files)[:24]}{hashlib.sha256(machine_key('native').encode()).hexdigest()[:16]}"
    )
    if (found := disk_cache.find(key, sources)) is not None:
        return Model(found, threads=threads)
    if (scratch := disk_cache.new_scratch()) is None:
        return None
    try:
        _write_files(files, scratch.path)
        metadata = read_metadata(scratch.path)
        library = os.path.join(scratch.path, library_name(metadata["name"]))
        if not (os.path.exists(library) and is_for_this_machine(library, metadata["target"])):
            build(scratch.path)
        entry = disk_cache.store(scratch, key, sources)
        return None if entry is None else Model(entry, threads=threads)
    finally:
        scratch.close()


def _apart(files: Mapping[str, bytes], threads: int) -> Model:
    folder = _OwnFolder()
    _write_files(files, folder.name)
    return Model(folder.name, threads=threads, owner=folder)


def _write_files(files: Mapping[str, bytes], folder: str) -> None:
    for name, data in files.items():
        with open(os.path.join(folder, os.path.basename(name)), "wb") as file:
            file.write(data)


def _digest_of(files: Mapping[str, bytes]) -> str:
    digest = hashlib.sha256()
    for name, data in sorted(files.items()):
        digest.update(f"{name}\0{len(data)}\0".encode())
        digest.update(data)
    return digest.hexdigest()


def publish(source: str, folder: str) -> None:
    """Copy the files of a model into a folder, made if missing; each appears whole."""
    os.makedirs(folder, exist_ok=True)
    if not os.access(folder, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), folder)
    with tempfile.TemporaryDirectory(prefix=".new-", dir=folder) as scratch:
        names = [n for n in sorted(os.listdir(source)) if not disk_cache.is_support_file(n)]
        for name in names:
            shutil.copyfile(os.path.join(source, name), os.path.join(scratch, name))
        for name in names:
            os.replace(os.path.join(scratch, name), os.path.join(folder, name))


def _open(folder: str, metadata: Mapping[str, Any], threads: int) -> Binding:
    """The library of a model; compiled here if there is none, or none that this machine loads."""
    library = os.path.join(folder, library_name(metadata["name"]))
    if os.path.exists(library) and is_for_this_machine(library, metadata["target"]):
        try:
            return Binding(folder, metadata, library, threads)
        except OSError:
            # Of another system. If the weights are what is missing, this fails again below.
            pass
    with tempfile.TemporaryDirectory(prefix="lowerdeck-") as scratch:
        rebuilt = os.path.join(scratch, library_name(metadata["name"]))
        build_library(folder, metadata, rebuilt)
        return Binding(folder, metadata, rebuilt, threads)
