"""
Random scripted programs of PyTorch, with the answers that it gave, as a corpus.

    python -m fuzz.torch_scripts FOLDER [--count N] [--seed S]
    python -m models.corpus pt2 --corpus FOLDER --interpret

The first runs in a Python that has PyTorch and needs nothing of this project. A program is source
text for `torch.jit.script`: branches and loops by data, several names of one tensor, views of
views, lists, writes in place, a buffer. Its answers are those of Python itself; programs that are
sensitive to the last bit where a number decides are rare, and told apart by a look at them.
"""

# PyTorch is not installed where types are checked.
# pyright: basic, reportMissingImports=false

from __future__ import annotations

import argparse
import copy
import importlib.util
import random
import shutil
import sys
import tempfile
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch

from models.torch_exports import Case

Shape = tuple[int, ...]

CALLS = 2
INPUTS: dict[str, Shape] = {"x": (2, 3), "y": (3, 2)}
DEEPEST = 2
_HEAD = """
import torch


class M(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("b", torch.arange(6.).reshape(2, 3) - 2)

    def forward(self, x, y):
"""
_NUMBERS = ("2", "-1", "0.5", "1.5", "3", "-2")
_BY_DATA = "int(x.sum().item() * 1.37 + 0.01) % 3 + 1"


@dataclass
class Scope:
    """What a statement may name, and where it stands."""

    indent: int
    tensors: dict[str, Shape]
    lists: dict[str, Shape] = field(default_factory=dict)
    numbers: list[str] = field(default_factory=list)
    depth: int = 0
    in_loop: bool = False

    def inner(self, more: dict[str, Shape] | None = None, **changes: Any) -> Scope:
        """The scope of a body, whose names stay in it."""
        made = replace(self, indent=self.indent + 1, depth=self.depth + 1, **changes)
        made.tensors = self.tensors | (more or {})
        made.lists, made.numbers = dict(self.lists), list(self.numbers)
        return made


class Script:
    """A program that grows."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.lines: list[str] = []
        self.names = 0

    def text(self) -> str:
        """The source."""
        scope = Scope(2, dict(INPUTS))
        self.block(scope, self.rng.randint(4, 12))
        most = min(len(scope.tensors), self.rng.randint(1, 4))
        shown = self.rng.sample(sorted(scope.tensors), most)
        values = [name if self.rng.random() < 0.3 else f"{name} * 1" for name in shown]
        self.put(scope, f"return {', '.join(values)},")
        return _HEAD + "\n".join(self.lines) + "\n"

    def put(self, scope: Scope, line: str) -> None:
        """Add a line."""
        self.lines.append("    " * scope.indent + line)

    def fresh(self, letter: str = "v") -> str:
        """A new name."""
        self.names += 1
        return f"{letter}{self.names}"

    def number(self) -> str:
        """A number as text."""
        return self.rng.choice(_NUMBERS)

    def tensor(self, scope: Scope, shape: Shape | None = None) -> str | None:
        """A tensor of a shape, or of any one."""
        names = [n for n, found in scope.tensors.items() if shape in (None, found)]
        return self.rng.choice(names) if names else None

    def let(self, scope: Scope, value: str, shape: Shape) -> None:
        """Give a value a name."""
        name = self.fresh()
        self.put(scope, f"{name} = {value}")
        scope.tensors[name] = shape

    def condition(self, scope: Scope) -> str:
        """What decides: data, a size, a number of a loop."""
        name = self.tensor(scope)
        ways = [
            f"bool({name}.sum() > {self.number()})",
            f"{name}.max().item() > {self.number()}",
            f"bool(({name} > 0).any())",
            f"{name}.size(0) == {self.rng.choice([2, 3])}",
            *(f"{number} % 2 == 0" for number in scope.numbers[-1:]),
        ]
        return self.rng.choice(ways)

    def block(self, scope: Scope, count: int) -> None:
        """Some statements."""
        before = len(self.lines)
        steps = (
            *(self.compute,) * 2, *(self.write,) * 4, *(self.look,) * 4, *(self.write_part,) * 3,
            self.rename, self.use_list, self.use_buffer, self.branch, self.branch,
            self.define_in_branches, self.loop, self.loop_over_list, self.leave,
        )  # fmt: skip
        for _ in range(count):
            self.rng.choice(steps)(scope)
        if len(self.lines) == before:
            self.put(scope, "pass")

    # Statements

    def compute(self, scope: Scope) -> None:
        """A new tensor."""
        name = self.tensor(scope)
        shape = scope.tensors[str(name)]
        other = self.tensor(scope, shape)
        unary = self.rng.choice(["relu", "tanh", "neg", "abs", "sigmoid", "clone"])
        binary = f"{name} {self.rng.choice('+-*')} {other}"
        self.let(scope, self.rng.choice([binary, f"torch.{unary}({name})"]), shape)

    def write(self, scope: Scope) -> None:
        """A write to all elements."""
        name = self.tensor(scope)
        other = self.tensor(scope, scope.tensors[str(name)])
        by_number = self.rng.choice(["mul_", "add_", "fill_", "clamp_min_"])
        ways = [
            f"add_({other})",
            f"copy_({other})",
            f"{by_number}({self.number()})",
            f"{self.rng.choice(['relu_', 'neg_', 'zero_', 'tanh_'])}()",
        ]
        self.put(scope, f"{name}.{self.rng.choice(ways)}")

    def write_part(self, scope: Scope) -> None:
        """A write to a row, a column, or where a mask holds."""
        name = str(self.tensor(scope))
        shape = scope.tensors[name]
        if len(shape) < 2 or self.rng.random() < 0.3:
            self.put(scope, f"{name}[{name} > {self.number()}] = {self.number()}")
            return
        index, is_row = self.rng.randrange(2), self.rng.random() < 0.5
        other = self.tensor(scope, shape[1:] if is_row else shape[:1])
        value = other if other and self.rng.random() < 0.6 else self.number()
        place = f"{index}" if is_row else f":, {index}"
        self.put(scope, f"{name}[{place}] {self.rng.choice(['=', '+=', '*='])} {value}")

    def look(self, scope: Scope) -> None:
        """A view, or a copy that may be one."""
        name = str(self.tensor(scope))
        shape, index = scope.tensors[name], self.rng.randrange(2)
        if len(shape) == 2:
            turned = self.rng.choice(["t()", "transpose(0, 1)", "permute(1, 0)"])
            flat = self.rng.choice(["reshape(6)", "flatten()", "ravel()", "contiguous().view(6)"])
            ways: list[tuple[str, Shape]] = [
                (f"{name}.{turned}", shape[::-1]),
                (f"{name}.{flat}", (6,)),
                (f"{name}[{index}]", shape[1:]),
                (f"{name}[:, {index}]", shape[:1]),
            ]
        elif shape == (6,):
            ways = [
                (f"{name}.{way}({rows}, {6 // rows})", (rows, 6 // rows))
                for way in ("view", "reshape")
                for rows in (2, 3)
            ]
        else:
            ways = [(f"{name}.clone()", shape)]
        self.let(scope, *self.rng.choice(ways))

    def rename(self, scope: Scope) -> None:
        """Another name for a tensor, another tensor for a name, or a tensor turned itself."""
        name = str(self.tensor(scope))
        shape = scope.tensors[name]
        other = self.tensor(scope, shape)
        if len(shape) == 2 and self.rng.random() < 0.3:
            turned, same = self.fresh(), self.fresh()
            self.put(scope, f"{turned} = {name}.clone()")
            self.put(scope, f"{same} = {turned}")
            self.put(scope, f"{turned}.t_()")
            scope.tensors |= {turned: shape[::-1], same: shape[::-1]}
        elif self.rng.random() < 0.5:
            self.let(scope, name, shape)
        else:
            self.put(scope, f"{name} = {other} * {self.number()}")

    def use_list(self, scope: Scope) -> None:
        """A list that begins, gets an item, changes one, or gives one."""
        if not scope.lists or self.rng.random() < 0.3:
            first = str(self.tensor(scope))
            name = self.fresh("l")
            self.put(scope, f"{name} = [{first}]")
            scope.lists[name] = scope.tensors[first]
            return
        name = self.rng.choice(list(scope.lists))
        shape = scope.lists[name]
        match self.rng.randrange(3), self.tensor(scope, shape):
            case 0, str() as item:
                into = f"{name}[0] = {item}" if scope.in_loop else f"{name}.append({item})"
                self.put(scope, into)
            case 1, _:
                self.let(scope, f"{name}[{self.rng.choice([0, -1])}]", shape)
            case _:
                self.let(scope, f"torch.stack({name}).sum(0)", shape)

    def use_buffer(self, scope: Scope) -> None:
        """The state, written or looked at."""
        other = self.tensor(scope, (2, 3))
        ways = [f"self.b.{way}({self.number()})" for way in ("add_", "mul_")]
        if other:
            ways.append(f"self.b.copy_({other})")
        if self.rng.random() < 0.5:
            self.put(scope, self.rng.choice(ways))
        else:
            self.let(scope, "self.b", (2, 3))

    def branch(self, scope: Scope) -> None:
        """Statements that a condition decides."""
        if scope.depth == DEEPEST:
            return
        self.put(scope, f"if {self.condition(scope)}:")
        self.block(scope.inner(), self.rng.randint(1, 4))
        if self.rng.random() < 0.6:
            self.put(scope, "else:")
            self.block(scope.inner(), self.rng.randint(1, 3))

    def define_in_branches(self, scope: Scope) -> None:
        """Two names that both branches define, of tensors that may share elements."""
        if scope.depth == DEEPEST:
            return
        one, two = self.fresh(), self.fresh()
        source = self.rng.choice(list(INPUTS))
        shape = INPUTS[source]
        self.put(scope, f"if {self.condition(scope)}:")
        for side in range(2):
            if side:
                self.put(scope, "else:")
            ways = [f"{source}.clone()", f"{source} * 2", source, f"{source}.t().clone().t()"]
            body = scope.inner({one: shape})
            self.put(body, f"{one} = {self.rng.choice(ways)}")
            turned = self.tensor(scope, shape[::-1])
            ways = [f"{one}.t()", f"{source}.t()", f"{turned}", f"{turned}.clone()"]
            self.put(body, f"{two} = {self.rng.choice(ways)}")
        scope.tensors |= {one: shape, two: shape[::-1]}

    def loop(self, scope: Scope) -> None:
        """A loop of a known or an unknown number of iterations."""
        if scope.depth == DEEPEST:
            return
        name = self.fresh("i")
        if self.rng.random() < 0.5:
            count = self.rng.choice(["2", "3", "x.size(0)", "1", "0", _BY_DATA])
            self.put(scope, f"for {name} in range({count}):")
            inner = scope.inner(in_loop=True)
        else:
            self.put(scope, f"{name} = 0")
            most = self.rng.choice(["2", "3", "x.size(1)"])
            self.put(scope, f"while {name} < {most} and {self.condition(scope)}:")
            inner = scope.inner(in_loop=True)
            self.put(inner, f"{name} += 1")
            scope.numbers.append(name)
        inner.numbers.append(name)
        self.block(inner, self.rng.randint(1, 4))

    def loop_over_list(self, scope: Scope) -> None:
        """Each item of a list, which may be written to."""
        if scope.depth == DEEPEST:
            return
        item = str(self.tensor(scope))
        name, each, shape = self.fresh("l"), self.fresh(), scope.tensors[item]
        self.put(scope, f"{name} = [{item}, {item} * 2]")
        scope.lists[name] = shape
        self.put(scope, f"for {each} in {name}:")
        self.block(scope.inner({each: shape}, in_loop=True), self.rng.randint(1, 3))

    def leave(self, scope: Scope) -> None:
        """The end of an iteration, or of the loop."""
        if scope.in_loop and scope.depth < DEEPEST:
            self.put(scope, f"if {self.condition(scope)}:")
            self.put(scope.inner(), self.rng.choice(["break", "continue"]))


def module_of(path: Path) -> Any:
    """The module of a source file."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.M()


def write(seed: int, sources: Path, folder: Path) -> None:
    """A case of a program; its source is kept beside it."""
    path = sources / f"m{seed}.py"
    path.write_text(Script(seed).text())
    module = module_of(path)
    case = Case(folder / "pt2" / f"script_{seed:06}", "model.pt")
    case.data["input_shapes"] = INPUTS
    torch.jit.script(copy.deepcopy(module)).save(str(case.model))
    shutil.copy(path, case.folder / "source.py")
    generator = torch.Generator().manual_seed(seed)
    calls: list[tuple[dict[str, Any], list[tuple[str, Any]], Any]] = []
    start = module.b.clone()
    for _ in range(CALLS):
        feeds = {
            name: torch.randn(shape, generator=generator).mul(2).round(decimals=1)
            for name, shape in INPUTS.items()
        }
        found = module(*(feed.clone() for feed in feeds.values()))
        outputs = [(f"output_{k}", value.clone()) for k, value in enumerate(found)]
        calls.append((feeds, outputs, module.b.clone()))
    is_written = not all(torch.equal(start, state) for _, _, state in calls)
    for feeds, outputs, state in calls:
        case.sample(list(feeds.items()), outputs, [("b", state)] if is_written else [])
    case.finish()


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").strip().split("\n\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--count", type=int, default=100, help="programs")
    parser.add_argument("--seed", type=int, default=0, help="of the first one")
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    total = 0
    with torch.no_grad(), tempfile.TemporaryDirectory() as sources:
        for seed in range(options.seed, options.seed + options.count):
            try:
                write(seed, Path(sources), options.folder)
                total += 1
            except Exception as error:  # whatever it is, the other programs are written
                shutil.rmtree(options.folder / "pt2" / f"script_{seed:06}", ignore_errors=True)
                text = str(error).strip() or type(error).__name__
                print(f"{seed}: {text.splitlines()[0][:200]}", file=sys.stderr)
    print(f"{total} programs")
    return 0


if __name__ == "__main__":
    sys.exit(main())
