"""A compiled model that runs in this process: `Model`."""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, TypeAlias, cast, overload

from numpy.typing import NDArray

from lowerdeck import cache as disk_cache
from lowerdeck.binding import DATA_DO_NOT_FIT, PreparedCall, RunError
from lowerdeck.build import is_for_this_machine, library_name
from lowerdeck.dialects.errors import LowerdeckError
from lowerdeck.dialects.frameworks import lazy
from lowerdeck.lowering.targets import machine_key
from lowerdeck.metadata import TensorInfo, read_metadata
from lowerdeck.model_folders import (
    OwnFolder,
    build,
    digest_of,
    open_library,
    publish,
    write_files,
)
from lowerdeck.passes.machinery.options import CompileOptions
from lowerdeck.profile import KernelEvent, Profile
from lowerdeck.reading import import_and_lower

Array: TypeAlias = NDArray[Any]

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
        self._binding = open_library(folder, self._metadata, threads)
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
        return digest_of(
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
        f"{digest_of(files)[:24]}{hashlib.sha256(machine_key('native').encode()).hexdigest()[:16]}"
    )
    if (found := disk_cache.find(key, sources)) is not None:
        return Model(found, threads=threads)
    if (scratch := disk_cache.new_scratch()) is None:
        return None
    try:
        write_files(files, scratch.path)
        metadata = read_metadata(scratch.path)
        library = os.path.join(scratch.path, library_name(metadata["name"]))
        if not (os.path.exists(library) and is_for_this_machine(library, metadata["target"])):
            build(scratch.path)
        entry = disk_cache.store(scratch, key, sources)
        return None if entry is None else Model(entry, threads=threads)
    finally:
        scratch.close()


def _apart(files: Mapping[str, bytes], threads: int) -> Model:
    folder = OwnFolder()
    write_files(files, folder.name)
    return Model(folder.name, threads=threads, owner=folder)
