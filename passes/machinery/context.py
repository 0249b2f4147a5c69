"""The context that carries the options of a run to the passes, and the record of its rewrites."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import IO, Protocol

from xdsl.context import Context

from lowerdeck.passes.machinery.options import UNSPECIFIED, CompileOptions
from lowerdeck.passes.machinery.recorder import Recorder


class KernelStore(Protocol):
    """Where what became of kernels is kept for other processes. It may lose what it holds."""

    def get(self, key: bytes) -> bytes | None:
        """What was put there, whole; None if there is nothing."""
        ...

    def put(self, key: bytes, data: bytes) -> None:
        """Keep what is found by a key of 32 bytes."""
        ...


@dataclass
class LowerdeckContext(Context):
    """A context that carries the options of a run, and the record of its rewrites."""

    options: CompileOptions = UNSPECIFIED
    kernels: KernelStore | None = None
    recorder: Recorder = field(init=False)

    def __post_init__(self) -> None:
        self.start(self.options)

    def start(
        self,
        options: CompileOptions,
        log: IO[str] | None = None,
        why_not: Collection[str] = (),
    ) -> None:
        """
        Begin a run with these options; `log` receives its rewrites, one per line, and where the
        passes or patterns named in `why_not` do not match.
        """
        self.options = options
        self.recorder = Recorder(
            options.skip_nodes, options.rewrite_limit, log, options.rewritten, why_not
        )

    def clone(self) -> LowerdeckContext:
        """A copy that shares the options and the record."""
        copy = LowerdeckContext(
            self.allow_unregistered,
            self._loaded_dialects.copy(),
            self._loaded_ops.copy(),
            self._loaded_attrs.copy(),
            self._loaded_types.copy(),
            self._registered_dialects.copy(),
            self.options,
            self.kernels,
        )
        copy.recorder = self.recorder
        return copy


def options_of(context: Context) -> CompileOptions:
    """The options that a context carries; the defaults for a plain xDSL context."""
    return context.options if isinstance(context, LowerdeckContext) else UNSPECIFIED


def recorder_of(context: Context) -> Recorder:
    """The recorder that a context carries; a new one for a plain xDSL context."""
    return context.recorder if isinstance(context, LowerdeckContext) else Recorder()


def kernels_of(context: Context) -> KernelStore | None:
    """Where finished kernels are kept besides this process; None if nowhere."""
    return context.kernels if isinstance(context, LowerdeckContext) else None
