"""
The import of a program by following its code: what is known is computed, and what only a run knows
becomes ops.

Statements that are refused are collected with their file, line and operator, and values that depend
on them are unknown.
"""

from __future__ import annotations

import ast
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from xdsl.dialects.builtin import FileLineColLoc, IntAttr, NameLoc, StringAttr

from lowerdeck.frontends.errors import Problem
from lowerdeck.frontends.torchscript.archive import ScriptArchive
from lowerdeck.frontends.torchscript.builtins import Builtins
from lowerdeck.frontends.torchscript.code import Definition, dotted
from lowerdeck.frontends.torchscript.functions import counts_in_a_run
from lowerdeck.frontends.torchscript.values import (
    Device,
    Function,
    Instance,
    Named,
    Nothing,
    Number,
    ScriptError,
    Tensor,
    Unknown,
    UnknownError,
)

Env = dict[str, Any]

_DEEPEST = 60
"""Calls inside of one another."""

_MOST_STEPS = 200_000
"""Statements that are followed."""

_MOST_OPS = 30_000
"""Ops of a program."""

_CONSTANTS = {"inf": math.inf, "nan": math.nan, "infj": math.inf, "nanj": math.nan}


class Program(Builtins, ABC):
    """One program, as far as it has been followed."""

    def __init__(self, archive: ScriptArchive, constants: Mapping[str, Any]) -> None:
        super().__init__()
        self.archive = archive
        self.code = archive.code
        self.constants = constants
        self.file = archive.path
        self.location = FileLineColLoc(StringAttr(self.file), IntAttr(0), IntAttr(0))
        self.problems: list[Problem] = []
        self.lost: Problem | None = None
        """Where a value was not known first, if nothing was refused before."""
        self._steps = 0
        self._frames: list[Definition] = []
        self.held: list[Any] = []
        """The variables of the functions that run, and the model."""
        self._line = 0

    # Problems

    def report(self, op_type: str, message: str) -> None:
        """Something is refused where the program is now."""
        entry = self._frames[-1].file if self._frames else "code"
        self.problems.append(Problem(self.file, f"{entry}:{self._line}", op_type, message))

    def _lose(self) -> None:
        if self.lost is None and not self.problems:
            entry = self._frames[-1].file if self._frames else "code"
            text = "found a value of which nothing is known"
            self.lost = Problem(self.file, f"{entry}:{self._line}", "", text)

    # Functions

    def call_function(
        self, definition: Definition, args: Sequence[Any], keywords: Mapping[str, Any]
    ) -> Any:
        """What a function of the program returns."""
        if len(self._frames) >= _DEEPEST:
            raise ScriptError("calls too deep inside of one another")
        env: Env = {}
        parameters = definition.parameters
        if len(args) > len(parameters):
            raise ScriptError(f"{len(args)} arguments for '{definition.node.name}'")
        line, path = self._line, self.path
        self._frames.append(definition)
        self.held.append(env)
        try:
            for position, (name, _, default) in enumerate(parameters):
                if position < len(args):
                    env[name] = args[position]
                elif name in keywords:
                    env[name] = keywords[name]
                elif default is not None:
                    env[name] = self.expression(default, env)
                else:
                    raise ScriptError(f"no argument '{name}' for '{definition.node.name}'")
            if args and isinstance(args[0], Instance) and args[0].path:
                self.path = args[0].path
            return self.statements(definition.node.body, env)
        finally:
            self._frames.pop()
            self.held.pop()
            self._line, self.path = line, path

    # Statements

    def statements(self, body: Sequence[ast.stmt], env: Env) -> Any:
        """Follow statements; what they return at the end."""
        for node in body:
            self._steps += 1
            if self._steps > _MOST_STEPS or self.made > _MOST_OPS:
                raise ScriptLimitError(f"a program of more than {_MOST_OPS} operators or steps")
            self._line = node.lineno
            match node:
                case ast.Return(value=value):
                    return None if value is None else self._guarded(value, env)
                case ast.Assign(targets=[target], value=value):
                    self._assign(target, self._guarded(value, env), env)
                case ast.AnnAssign(target=target, value=value) if value is not None:
                    self._assign(target, self._guarded(value, env), env)
                case ast.Expr(value=ast.Constant()) | ast.Pass():
                    pass
                case ast.Expr(value=value):
                    self._guarded(value, env)
                case ast.Assert(test=test):
                    self._guarded(test, env)
                case ast.If():
                    self.follow_if(node, env)
                case ast.While():
                    self.follow_while(node, env)
                case ast.For():
                    self.follow_for(node, env)
                case ast.With(items=items, body=body):
                    self._with(items, body, env)
                case _:
                    self.report(type(node).__name__, "found a statement that is not TorchScript's")
        return None

    def _guarded(self, node: ast.expr, env: Env) -> Any:
        """The value of an expression; unknown if it is refused, which is reported."""
        try:
            return self.expression(node, env)
        except UnknownError:
            self._lose()
            return Unknown()
        except ScriptLimitError:
            raise
        except ScriptError as error:
            name = dotted(node.func) if isinstance(node, ast.Call) else None
            text = str(error)
            text = text if text.startswith(("found ", "no ", "the ")) else f"found {text}"
            self.report(_op_type(self.failed or name or type(node).__name__), text)
            self.failed = ""
            return Unknown()

    def _with(self, items: Sequence[ast.withitem], body: Sequence[ast.stmt], env: Env) -> None:
        """Statements between what context managers do before and after."""
        managers: list[Any] = []
        for item in items:
            managers.append(self._guarded(item.context_expr, env))
            if not isinstance(managers[-1], Unknown):
                entered = self.call_method(managers[-1], "__enter__", [], {})
                if item.optional_vars is not None:
                    self._assign(item.optional_vars, entered, env)
        self.statements(body, env)
        for manager in reversed(managers):
            if not isinstance(manager, Unknown):
                self.call_method(manager, "__exit__", [None] * 3, {})

    def _assign(self, target: ast.expr, value: Any, env: Env) -> None:
        match target:
            case ast.Name(id=name):
                self.journal.set(env, name, value)
            case ast.Tuple(elts=targets) | ast.List(elts=targets):
                items = self._items(value, len(targets))
                for one, item in zip(targets, items, strict=True):
                    self._assign(one, item, env)
            case ast.Attribute(value=owner, attr=name):
                into = self._guarded(owner, env)
                if isinstance(into, Instance):
                    self.journal.set(into.attributes, name, value)
            case ast.Subscript(value=owner, slice=index):
                self._guarded_call("torch._set_item", [owner, index], value, env)
            case _:
                self.report(type(target).__name__, "found an assignment that is not TorchScript's")

    def _guarded_call(self, name: str, nodes: Sequence[ast.expr], value: Any, env: Env) -> None:
        try:
            self.builtin(name, [*(self.expression(node, env) for node in nodes), value], {})
        except UnknownError:
            self._lose()
        except ScriptError as error:
            self.report(name, f"found {error}")

    def _items(self, value: Any, count: int) -> Sequence[Any]:
        if isinstance(value, Instance):
            value = tuple(value.attributes.values())
        if counts_in_a_run(value):
            self.report("unpack", "found a list whose length depends on data")
            return [Unknown()] * count
        if isinstance(value, list | tuple) and len(cast("list[Any]", value)) == count:
            return cast("list[Any]", value)
        if not isinstance(value, Unknown):
            self.report("unpack", f"found another number of values than {count}")
        return [Unknown()] * count

    # Expressions

    def expression(self, node: ast.expr, env: Env) -> Any:
        """The value of an expression; ScriptError or UnknownError."""
        match node:
            case ast.Constant(value=value):
                return self._literal(value)
            case ast.Name(id=name):
                return self._named(name, env)
            case ast.List(elts=items):
                return [self.expression(item, env) for item in items]
            case ast.Tuple(elts=items):
                return tuple(self.expression(item, env) for item in items)
            case ast.Dict(keys=keys, values=values):
                return {
                    self._key(self.expression(cast(ast.expr, key), env)): self.expression(item, env)
                    for key, item in zip(keys, values, strict=True)
                }
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return self.builtin("torch.neg", [self.expression(operand, env)], {})
            case ast.BinOp(left=real, op=ast.Add() | ast.Sub() as sign, right=imaginary):
                return self._complex(real, isinstance(sign, ast.Sub), imaginary)
            case ast.Attribute(value=owner, attr=name):
                return self._attribute(node, owner, name, env)
            case ast.Subscript(value=owner, slice=index):
                values = [self.expression(owner, env), self.expression(index, env)]
                return self.builtin("torch.__getitem__", values, {})
            case ast.Call():
                return self._call(node, env)
            case _:
                raise ScriptError(
                    f"an expression {type(node).__name__}, which is not TorchScript's"
                )

    def _complex(self, real: ast.expr, minus: bool, imaginary: ast.expr) -> complex:
        """A complex number as TorchScript writes it, a sum of literals."""
        match real, imaginary:
            case (
                ast.Constant(value=float() | int() as a)
                | ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=float() | int() as a)),
                ast.Constant(value=complex() as b),
            ):
                size = -a if isinstance(real, ast.UnaryOp) else a
                return complex(size, -b.imag if minus else b.imag)
            case _:
                raise ScriptError("an expression BinOp, which is not TorchScript's")

    def _literal(self, value: Any) -> Any:
        if value is Ellipsis or isinstance(value, bytes | complex):
            raise ScriptError(f"{value!r}, which is not supported")
        return value

    def _key(self, key: Any) -> Any:
        if not isinstance(key, str | int | float | bool):
            raise ScriptError("a key of a dictionary that depends on data")
        return key

    def _named(self, name: str, env: Env) -> Any:
        if name in env:
            return env[name]
        if name in _CONSTANTS:
            return _CONSTANTS[name]
        raise ScriptError(f"no value '{name}'")

    def _attribute(self, node: ast.Attribute, owner: ast.expr, name: str, env: Env) -> Any:
        full = dotted(node)
        root = "" if full is None else full.split(".")[0]
        if full is not None and root not in env:
            if root == "CONSTANTS":
                if name not in self.constants:
                    raise ScriptError(f"no constant '{name}'")
                return self.constants[name]
            if full in self.code.functions:
                return Function(full)
            if root == "__torch__" and ".".join(full.split(".")[:-1]) in self.code.classes:
                return self._final(".".join(full.split(".")[:-1]), name)
        return self._member(self.expression(owner, env), name)

    def _member(self, owner: Any, name: str) -> Any:
        if isinstance(owner, Unknown):
            raise UnknownError
        if isinstance(owner, Named) and name in owner.names:
            return owner[owner.names.index(name)]
        if isinstance(owner, Instance):
            if name in owner.attributes:
                return owner.attributes[name]
            return self._final(owner.type, name)
        if isinstance(owner, Tensor):
            return self.builtin(f"ops.prim.{name}", [owner], {})
        raise ScriptError(f"an attribute '{name}' of what has none")

    def _final(self, type_: str, name: str) -> Any:
        cls = self.code.classes.get(type_)
        if cls is None or name not in cls.finals:
            raise ScriptError(f"no attribute '{name}' of {type_}")
        return self.expression(cls.finals[name], {})

    # Calls

    def _call(self, node: ast.Call, env: Env) -> Any:
        full = dotted(node.func)
        root = "" if full is None else full.split(".")[0]
        if full is not None and root not in env:
            if special := self._special(full, node, env):
                return special[0]
            args, keywords = self._arguments(node, env)
            if full in self.code.functions:
                return self.call_function(self.code.functions[full], args, keywords)
            if full in self.code.classes:
                return self._new(full, args, keywords)
            try:
                return self.builtin(full, args, keywords)
            except ScriptError:
                self.failed = self.failed or full
                raise
        if isinstance(node.func, ast.Attribute):
            owner = self.expression(node.func.value, env)
            args, keywords = self._arguments(node, env)
            return self.call_method(owner, node.func.attr, args, keywords)
        function = self.expression(node.func, env)
        args, keywords = self._arguments(node, env)
        if isinstance(function, Function):
            return self.call_function(self.code.functions[function.qualified], args, keywords)
        raise ScriptError("a call of what is no function")

    def _arguments(self, node: ast.Call, env: Env) -> tuple[list[Any], dict[str, Any]]:
        args = [self.expression(item, env) for item in node.args]
        keywords = {
            keyword.arg: self.expression(keyword.value, env)
            for keyword in node.keywords
            if keyword.arg is not None
        }
        return args, keywords

    def call_method(
        self, owner: Any, name: str, args: Sequence[Any], keywords: Mapping[str, Any]
    ) -> Any:
        """What a method of an object returns."""
        if isinstance(owner, Unknown):
            raise UnknownError
        if not isinstance(owner, Instance):
            return self.builtin(f"torch.{name}", [owner, *args], keywords)
        found = self.code.method(owner.type, name)
        if found is None:
            raise ScriptError(f"no method '{name}' of {owner.type}")
        return self.call_function(found, [owner, *args], keywords)

    def _special(self, name: str, node: ast.Call, env: Env) -> tuple[Any] | None:
        """What is written as a call, and has types among its arguments."""
        match name, node.args:
            case "annotate" | "unchecked_cast", [kind, value]:
                found = self.expression(value, env)
                return (self._annotated(kind, found),)
            case "uninitialized", [_]:
                return (Nothing(),)
            case "getattr", [owner, ast.Constant(value=str() as attribute)]:
                return (self._member(self.expression(owner, env), attribute),)
            case "isinstance", [value, kind]:
                return (self._is_instance(self.expression(value, env), kind),)
            case _, [_] if name.endswith(".__new__") and name[:-8] in self.code.classes:
                return (Instance(name[:-8], {}),)
            case "fork", [function, *args]:
                call = ast.Call(function, args, node.keywords)
                return (self.expression(ast.copy_location(call, node), env),)
            case _:
                return None

    def _annotated(self, kind: ast.expr, value: Any) -> Any:
        """A value of a stated type."""
        name = dotted(kind)
        if isinstance(value, Tensor) and name in ("number", "int", "float", "bool"):
            return self.item(value)
        return value

    def _is_instance(self, value: Any, kind: ast.expr) -> bool:
        """True for values of a type, or of one of several."""
        if isinstance(kind, ast.Tuple | ast.List):
            return any(self._is_instance(value, one) for one in kind.elts)
        name = dotted(kind.value if isinstance(kind, ast.Subscript) else kind) or ""
        types: Mapping[str, Callable[[Any], bool]] = {
            "Tensor": lambda v: isinstance(v, Tensor),
            "int": lambda v: type(v) is int or (isinstance(v, Number) and v.kind is int),
            "float": lambda v: type(v) is float or (isinstance(v, Number) and v.kind is float),
            "bool": lambda v: type(v) is bool or (isinstance(v, Number) and v.kind is bool),
            "str": lambda v: isinstance(v, str),
            "NoneType": lambda v: v is None,
            **dict.fromkeys(("List", "list"), lambda v: isinstance(v, list)),
            **dict.fromkeys(("Tuple", "tuple"), lambda v: isinstance(v, tuple)),
            **dict.fromkeys(("Dict", "dict"), lambda v: isinstance(v, dict)),
            "Device": lambda v: isinstance(v, Device),
        }
        if isinstance(value, Unknown):
            raise UnknownError
        if name in types:
            return types[name](value)
        if isinstance(value, Instance | Named):
            return value.type == name
        raise ScriptError(f"a test for the type {name}")

    def _new(self, name: str, args: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
        """An object of a class of the program."""
        cls = self.code.classes[name]
        if cls.base == "NamedTuple":
            values = dict(zip(cls.fields, args, strict=False)) | dict(keywords)
            for key in cls.fields:
                if key not in values:
                    values[key] = self._final(name, key)
            return Named(name, cls.fields, [values[key] for key in cls.fields])
        made = Instance(name, {})
        if (init := cls.methods.get("__init__")) is not None:
            self.call_function(init, [made, *args], keywords)
        return made

    # Where ops come from

    def located(self, op_type: str) -> None:
        """Let ops that are made now come from an operator of a module."""
        name = f"{self.path}/{op_type}" if self.path else op_type
        self.where = NameLoc(StringAttr(name), self.location)

    # Control flow: see flow.py

    @abstractmethod
    def follow_if(self, node: ast.If, env: Env) -> None:
        """An if statement."""

    @abstractmethod
    def follow_while(self, node: ast.While, env: Env) -> None:
        """A while statement."""

    @abstractmethod
    def follow_for(self, node: ast.For, env: Env) -> None:
        """A for statement."""


class ScriptLimitError(ScriptError):
    """The program is too large."""


def _op_type(name: str) -> str:
    """An operator, as messages call it."""
    return (
        name.replace("torch.", "aten.", 1)
        if name.startswith("torch.")
        else name.replace("ops.", "", 1)
    )
