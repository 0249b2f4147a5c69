"""
The driver of all rewrite patterns.

A pattern has two halves: `match`, which is pure, and `rewrite`. Between the two, the driver checks
the user's switches (`--skip-nodes`, `--rewrite-limit`) and counts and logs the rewrite; after the
rewrite it gives new ops their provenance. The work is linear in the number of ops and rewrites, and
its order is deterministic.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, ClassVar, Generic, NamedTuple, cast

from typing_extensions import TypeVar
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, UnknownLoc, UnrankedTensorType
from xdsl.ir import Attribute, Block, Operation, OpResult, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint
from xdsl.rewriter import Rewriter as IRRewriter
from xdsl.traits import IsTerminator, NoMemoryEffect, Pure

from lowerdeck.dialects.core.symbols import symbols_made_by
from lowerdeck.dialects.errors import CompileError, located
from lowerdeck.dialects.frameworks import FRAMEWORKS
from lowerdeck.dialects.records import record
from lowerdeck.dialects.walking import all_ops, operands_of
from lowerdeck.passes.machinery.context import options_of, recorder_of
from lowerdeck.passes.machinery.misses import traced
from lowerdeck.passes.machinery.options import CompileOptions
from lowerdeck.passes.machinery.provenance import derive, describe
from lowerdeck.passes.machinery.recorder import Recorder

D = TypeVar("D", default=None)
Op = TypeVar("Op", bound=Operation)

_NOTHING = cast(Any, None)

_LISTED = 3
"""The number of ops that an error names; the rest are only counted."""

_REWRITES_PER_OP = 64
"""More rewrites per op than this mean that patterns undo each other."""


_LAST_PATTERNS = 16
"""Rewrites of which an error about too many of them names the patterns."""

_OURS = __name__.partition(".")[0]
"""The package whose patterns have tests of their own."""


@record
class Match(Generic[D]):
    """The result of a match: the ops that the rewrite consumes (the root first), and the reason."""

    consumed: tuple[Operation, ...]
    reason: str = ""
    data: D = _NOTHING
    """Data that `match` has computed for `rewrite`."""

    @property
    def root(self) -> Operation:
        """The op that was matched."""
        return self.consumed[0]


class Pattern(ABC, Generic[D]):
    """One rewrite."""

    name: ClassVar[str]
    roots: ClassVar[tuple[type[Operation], ...]] = (Operation,)
    """The classes (or base classes) of the ops that `match` is called with."""
    ranked: ClassVar[bool] = False
    """Call `match` only for ops whose operands and results all have a rank."""

    @abstractmethod
    def match(self, op: Any) -> Match[D] | None:
        """What to rewrite at `op`, or None. Changes nothing."""

    @abstractmethod
    def rewrite(self, match: Match[D], rewriter: Rewriter) -> None:
        """Perform the rewrite; every change goes through the rewriter."""


class Rewriter:
    """
    Changes to the IR, as patterns make them.

    New ops get the provenance of the ops that the match consumed, unless they have a location.
    Producers of operands that become unused are erased after the rewrite.
    """

    def __init__(self, driver: _Driver, match: Match[Any]) -> None:
        self._driver = driver
        self._anchor = match.root
        self._location = derive(op.location for op in match.consumed)
        self._released: list[Operation] = []

    def add(self, op: Op) -> Op:
        """Insert a new op before the root of the match, and return it."""
        return self.insert_before(self._anchor, op)

    def insert_before(self, anchor: Operation, op: Op) -> Op:
        """Insert a new op before `anchor`, and return it."""
        IRRewriter.insert_op(op, InsertPoint.before(anchor))
        self._adopt(op)
        return op

    def replace(
        self, op: Operation, new: Operation | SSAValue | Sequence[Operation] | Sequence[SSAValue]
    ) -> None:
        """
        Replace `op` by values, or by ops: ops that are not yet in a block are inserted before it,
        and the results of the last one replace its results.
        """
        items = (new,) if isinstance(new, Operation | SSAValue) else tuple(new)
        values: tuple[SSAValue, ...] = ()
        for item in items:
            if isinstance(item, Operation):
                if item.parent is None:
                    self.insert_before(op, item)
                values = tuple(item.results)
            else:
                values = tuple(value for value in items if isinstance(value, SSAValue))
                break
        if len(values) != len(op.results):
            raise ValueError(f"{len(values)} values for the {len(op.results)} results of {op.name}")
        for old, value in zip(tuple(op.results), values, strict=True):
            self.replace_value(old, value)
        self.erase(op)

    def replace_value(self, old: SSAValue, new: SSAValue) -> None:
        """Let all users of `old` use `new`."""
        if old is new:
            return
        for use in old.uses:
            self._driver.enqueue(use.operation)
        if new.name_hint is None:
            new.name_hint = old.name_hint
        old.replace_all_uses_with(new)

    def set_operands(self, op: Operation, operands: Sequence[SSAValue]) -> None:
        """Replace the operands of `op`."""
        before = tuple(op.operands)
        op.operands = list(operands)
        self._release(before)
        self.modified(op)

    def set_type(self, value: SSAValue, type_: Attribute) -> SSAValue:
        """Change the type of `value`; returns the value that replaces it."""
        for use in value.uses:
            self._driver.enqueue(use.operation)
        return IRRewriter.replace_value_with_new_type(value, type_)

    def modified(self, op: Operation) -> None:
        """`op` was changed in place: its provenance now includes ops that the match consumed."""
        op.location = derive((op.location, self._location))
        self._driver.enqueue(op)
        for result in op.results:
            for use in result.uses:
                self._driver.enqueue(use.operation)

    def inline_block(self, block: Block, anchor: Operation, args: Sequence[SSAValue]) -> None:
        """Move the ops of `block` before `anchor`, with `args` in place of its arguments."""
        for arg, value in zip(tuple(block.args), args, strict=True):
            self.replace_value(arg, value)
        for op in block.ops:
            self._driver.enqueue(op)
        IRRewriter.inline_block(block, InsertPoint.before(anchor))

    def erase(self, op: Operation) -> None:
        """Erase an op whose results are not used."""
        operands: dict[SSAValue, None] = {}
        for inner in all_ops(op):
            self._driver.forget(inner)
            operands.update(dict.fromkeys(inner.operands))
        IRRewriter.erase_op(op)
        self._release(operands)

    def _adopt(self, op: Operation) -> None:
        for inner in all_ops(op):
            if isinstance(inner.location, UnknownLoc):
                inner.location = self._location
            self._driver.enqueue(inner)

    def _release(self, values: Iterable[SSAValue]) -> None:
        """Values have lost a use: their producers and last users may match now."""
        for value in values:
            if isinstance(value, OpResult):
                self._released.append(value.op)
                self._driver.enqueue(value.op)
            if value.has_one_use() and (use := value.first_use) is not None:
                self._driver.enqueue(use.operation)

    def sweep(self) -> None:
        """Erase ops that this rewrite has left without a use."""
        while self._released:
            op = self._released.pop()
            if self._driver.may_erase(op) and is_trivially_dead(op):
                self.erase(op)


def _state_around(op: Operation) -> list[Any]:
    """What a change at an op, its operands' producers or its users shows in; costs O(1) of them."""
    owners = (operand.owner for operand in op.operands)
    near = [op, *(owner for owner in owners if isinstance(owner, Operation))]
    return [
        (
            one.parent,
            one.prev_op,
            one.next_op,
            tuple(one.operands),
            tuple(one.result_types),
            tuple(result.first_use for result in one.results),
            dict(one.properties),
            dict(one.attributes),
        )
        for one in near
    ]


def is_trivially_dead(op: Operation) -> bool:
    """True if nothing uses the results of an op that has no effect, no region and no symbol."""
    if op.regions or op.has_trait(IsTerminator) or symbols_made_by(op):
        return False
    if any(result.first_use is not None for result in op.results):
        return False
    return op.has_trait(Pure) or op.has_trait(NoMemoryEffect)


def is_ranked(op: Operation) -> bool:
    """False if an operand or result of `op` is a tensor whose rank is not known."""
    # No class derives from it, and a generator takes twice as long.
    for value in (*operands_of(op), *op.results):
        if type(value.type) is UnrankedTensorType:
            return False
    return True


def producer(value: SSAValue, cls: type[Op]) -> Op | None:
    """The defining op of `value` if it is a `cls` whose operands all have ranks."""
    owner = value.owner
    return owner if isinstance(owner, cls) and is_ranked(owner) else None


def only_user(value: SSAValue) -> Operation | None:
    """The op that alone reads a value, once."""
    return use.operation if value.has_one_use() and (use := value.first_use) is not None else None


def _is_ours(pattern: Pattern[Any]) -> bool:
    return type(pattern).__module__.partition(".")[0] == _OURS


class _Candidates(NamedTuple):
    """The patterns for the ops of a class, in order."""

    patterns: tuple[tuple[Pattern[Any], bool], ...]
    """Each with whether it is plain: it is trusted, and nobody asks about it."""
    ask_for_ranks: bool
    """True if some of them are for ops with ranks only."""


_NO_CANDIDATES = _Candidates((), False)


class _Driver:
    """The worklist of one run, and its limits."""

    def __init__(
        self,
        patterns: Sequence[Pattern[Any]],
        recorder: Recorder,
        pass_name: str,
        optional: bool,
        recursive: bool,
    ) -> None:
        self._patterns = patterns
        self._recorder = recorder
        self._pass_name = pass_name
        self._optional = optional
        self._recursive = recursive
        self._by_class: dict[type[Operation], _Candidates] = {}
        self._queue: deque[Operation] = deque()
        self._queued: set[Operation] = set()
        self._forgotten: set[Operation] = set()
        self._refused: set[tuple[Pattern[Any], Operation]] = set()
        self._rewrites = 0
        self._tried: Pattern[Any] | None = None
        """The pattern that is at work."""
        self._last: deque[str] = deque(maxlen=_LAST_PATTERNS)

    def enqueue(self, op: Operation) -> None:
        """Add `op` to the worklist (again)."""
        if self._recursive and self._patterns_for(type(op)).patterns and op not in self._queued:
            self._queue.append(op)
            self._queued.add(op)

    def forget(self, op: Operation) -> None:
        """`op` is being erased."""
        self._forgotten.add(op)

    def may_erase(self, op: Operation) -> bool:
        """False if `op` was erased, or originates from a node that must not be rewritten."""
        return op not in self._forgotten and not (self._optional and self._recorder.skips(op))

    def run(self, ops: Sequence[Operation]) -> int:
        """Visit `ops` in order, then ops that rewrites have touched; returns the rewrite count."""
        unconcerned = {cls for cls in set(map(type, ops)) if not self._patterns_for(cls).patterns}
        concerned = [op for op in ops if type(op) not in unconcerned]
        self._queue.extend(concerned)
        self._queued.update(concerned)
        budget = _REWRITES_PER_OP * (len(ops) + _REWRITES_PER_OP)
        queue, queued, forgotten = self._queue, self._queued, self._forgotten
        if self._recorder.exhausted:
            queue.clear()
        while queue:
            op = queue.popleft()
            queued.discard(op)
            if op in forgotten or op.parent is None:
                continue
            try:
                if not self._visit(op):
                    continue
            except Exception as error:
                # Before anything of it is said: the op may be gone, or half of it.
                if (raised := located(error, self._where(op), self._suspect())) is error:
                    raise
                raise raised from error
            if self._recorder.exhausted:
                break
            if self._rewrites > budget:
                names = " and ".join(f"'{name}'" for name in dict.fromkeys(sorted(self._last)))
                raise CompileError(
                    f"{self._pass_name}: {self._rewrites} rewrites of {len(ops)} ops and no end, "
                    f"the last of them by {names}, at: {self._recorder.last or describe(op)}"
                )
        return self._rewrites

    def _where(self, op: Operation) -> str:
        pattern = "" if self._tried is None else f"/{self._tried.name}"
        return f"{describe(op)}: {self._pass_name}{pattern}"

    def _suspect(self) -> object:
        return None if self._tried is None else self._tried.match

    def _visit(self, op: Operation) -> bool:
        """True if the op is rewritten."""
        patterns, ask_for_ranks = self._by_class[type(op)]
        has_ranks = not ask_for_ranks or is_ranked(op)
        for pattern, is_plain in patterns:
            if not has_ranks and pattern.ranked:
                continue
            self._tried = pattern
            match = pattern.match(op) if is_plain else self._match_of(pattern, op)
            if match is None or not self._allows(pattern, match):
                continue
            self._last.append(pattern.name)
            self._recorder.record(self._pass_name, pattern.name, match.reason, match.consumed)
            self._rewrites += 1
            rewriter = Rewriter(self, match)
            pattern.rewrite(match, rewriter)
            rewriter.sweep()
            if op not in self._forgotten:
                self.enqueue(op)
            return True
        return False

    def _match_of(self, pattern: Pattern[Any], op: Operation) -> Match[Any] | None:
        """What a pattern says of an op; those of others are not trusted to change nothing."""
        if self._recorder.asks_why_not(self._pass_name, pattern.name):
            match, where = traced(pattern.match, op)
            if match is None:
                self._recorder.miss(self._pass_name, pattern.name, op, where)
                return None
        if _is_ours(pattern):
            return pattern.match(op)
        before = _state_around(op)
        match = cast(object, pattern.match(op))
        if match is not None and not isinstance(match, Match):
            raise TypeError(f"'match' returned {match!r}, expected a Match or None")
        if _state_around(op) != before:
            raise ValueError("'match' has changed the IR, which is for 'rewrite' to do")
        return cast("Match[Any] | None", match)

    def _allows(self, pattern: Pattern[Any], match: Match[Any]) -> bool:
        if not self._optional or not any(self._recorder.skips(op) for op in match.consumed):
            return True
        if (pattern, match.root) not in self._refused:
            self._refused.add((pattern, match.root))
            self._recorder.skipped[self._pass_name, pattern.name] += 1
        return False

    def _patterns_for(self, cls: type[Operation]) -> _Candidates:
        if (known := self._by_class.get(cls)) is None:
            known = self._by_class[cls] = self._candidates(cls)
        return known

    def _candidates(self, cls: type[Operation]) -> _Candidates:
        found = [pattern for pattern in self._patterns if issubclass(cls, pattern.roots)]
        if not found:
            return _NO_CANDIDATES
        plain = [not self._recorder.asks and _is_ours(pattern) for pattern in found]
        ask_for_ranks = any(pattern.ranked for pattern in found)
        return _Candidates(tuple(zip(found, plain, strict=True)), ask_for_ranks)


def apply_patterns(
    module: Operation,
    patterns: Sequence[Pattern[Any]],
    recorder: Recorder,
    *,
    pass_name: str,
    optional: bool = True,
    recursive: bool = True,
    reverse: bool = False,
    region_first: bool = False,
) -> int:
    """
    Rewrite everything inside `module` with `patterns`; the first pattern that matches is applied.

    Ops are visited in program order (`reverse`: backward; `region_first`: nested ops before their
    parent). If `recursive`, ops that a rewrite created or touched are visited again, to a fixpoint.
    Returns the number of rewrites.
    """
    if reverse == region_first:
        ops = all_ops(module)
        ops = ops[::-1] if reverse else ops  # an op comes after those in its regions then
    else:
        ops = list(module.walk(reverse=reverse, region_first=region_first))
    driver = _Driver(patterns, recorder, pass_name, optional, recursive)
    return driver.run(ops)


@lru_cache(maxsize=1 << 10)
def _dialect_of(cls: type[Operation]) -> str:
    return cls.dialect_name()


class PatternPass(ModulePass):
    """
    A pass that applies patterns. Subclasses give a `name` and `patterns`.

    It does nothing when disabled, and refuses a module that another pass has to convert first.
    """

    optional: ClassVar[bool] = True
    """False for conversions: `--skip-nodes` does not apply to them, `--disable` is refused."""
    recursive: ClassVar[bool] = True
    """Visit ops again that a rewrite has touched."""
    region_first: ClassVar[bool] = False
    """Visit nested ops before their parent."""
    works_on_all_dialects: ClassVar[bool] = False
    """True if the pass accepts any dialects."""

    @abstractmethod
    def patterns(self, module: ModuleOp) -> Sequence[Pattern[Any]]:
        """The patterns, in order of preference."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if not is_enabled(self, options_of(ctx)):
            return
        self.check_dialects(op)
        self.run(op, recorder_of(ctx))

    def run(self, module: ModuleOp, recorder: Recorder) -> None:
        """Rewrite the module."""
        apply_patterns(
            module,
            self.patterns(module),
            recorder,
            pass_name=self.name,
            optional=self.optional,
            recursive=self.recursive,
            region_first=self.region_first,
        )

    def check_dialects(self, module: ModuleOp) -> None:
        """Raise CompileError naming the pass missing before this one, and the ops."""
        if self.works_on_all_dialects:
            return
        ops = all_ops(module)
        if {"buffer", *FRAMEWORKS}.isdisjoint(map(_dialect_of, set(map(type, ops)))):
            return
        advice = {"buffer": f"run {self.name} before bufferize"}
        for name, framework in FRAMEWORKS.items():
            advice[name] = f"run {', '.join(framework.legalization)} before {self.name}"
        found: dict[str, list[Operation]] = {}
        for op in ops:
            dialect = op.dialect_name()
            if dialect in advice:
                found.setdefault(dialect, []).append(op)
        errors = [self._refusal(dialect, ops, advice[dialect]) for dialect, ops in found.items()]
        if errors:
            raise CompileError("\n".join(errors))

    def _refusal(self, dialect: str, ops: Sequence[Operation], advice: str) -> str:
        listed = "; ".join(map(describe, ops[:_LISTED]))
        more = f"; and {len(ops) - _LISTED} more" if len(ops) > _LISTED else ""
        return f"{self.name}: found {dialect} ops; {advice}: {listed}{more}"


class PassGroup(ModulePass, ABC):
    """A pass that runs others, each of which can be disabled by its own name."""

    optional: ClassVar[bool] = True
    members: ClassVar[tuple[type[ModulePass], ...]]
    rounds: ClassVar[int] = 1
    """The maximum number of rounds of all members, while any of them changes the module."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        options, recorder = options_of(ctx), recorder_of(ctx)
        if not is_enabled(self, options):
            return
        # A member that found nothing to do need not look again before something is rewritten.
        settled: dict[type[ModulePass], int] = {}
        for _ in range(self.rounds):
            before = recorder.rewrites
            for member in self.members:
                if settled.get(member) == recorder.rewrites or not is_enabled(member, options):
                    continue
                start = recorder.rewrites
                member().apply(ctx, op)
                if recorder.rewrites == start:
                    settled[member] = start
            if recorder.rewrites == before:
                return


def rounds(pass_: ModulePass, options: CompileOptions) -> bool:
    """True for a pass that rounds numbers on purpose, with these options: its results are right."""
    precisions = getattr(pass_, "precisions", None)
    return getattr(pass_, "rounds_numbers", False) and (
        precisions is None or options.precision in precisions
    )


def is_enabled(pass_: ModulePass | type[ModulePass], options: CompileOptions) -> bool:
    """
    False if the user disabled a pass; CompileError if it cannot be disabled.

    Passes that are not marked as `optional` are conversions.
    """
    if pass_.name not in options.disable:
        return True
    if not getattr(pass_, "optional", False):
        raise CompileError(
            f"'{pass_.name}' cannot be disabled: the passes after it need its output"
        )
    return False
