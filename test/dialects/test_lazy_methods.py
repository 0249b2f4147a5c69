"""Methods of dataclasses that are compiled late are those that are compiled at once."""

from __future__ import annotations

import dataclasses
import inspect
import pickle
import sys
from collections.abc import Callable
from types import FunctionType, ModuleType
from typing import Any

import pytest

from lowerdeck.dialects import lazy_methods
from lowerdeck.dialects.lazy_methods import LazyMethod

TEXT = '''
from dataclasses import dataclass, field

@dataclass(frozen=True, order=True)
class Span:
    first: int
    last: int = 9
    notes: list = field(default_factory=list, compare=False)

@dataclass(frozen=True)
class Wider(Span):
    """One more."""

    self_: str = ""

    def __repr__(self):
        return "wider " + super().__repr__()

@dataclass
class Open:
    """Not frozen."""

    value: int
'''

METHODS = ("__init__", "__repr__", "__eq__", "__hash__", "__lt__", "__setattr__", "__delattr__")

pytestmark = pytest.mark.skipif(
    not hasattr(dataclasses, "_create_fn"), reason="this Python compiles methods together"
)


@pytest.fixture
def define(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Any]:
    """Makes a module of the classes, under a name."""
    lazy_methods.install()

    def make(name: str) -> Any:
        module: Any = ModuleType(name)
        monkeypatch.setitem(sys.modules, name, module)
        exec(TEXT, module.__dict__)
        return module

    return make


def test_only_classes_of_the_packages_are_lazy(define: Callable[[str], Any]) -> None:
    for name, lazy in (("lowerdeck.a", True), ("xdsl.a", True), ("lowerdecks", False)):
        module = define(name)
        assert isinstance(vars(module.Span)["__eq__"], LazyMethod) is lazy
        assert isinstance(vars(module.Open)["__init__"], LazyMethod) is lazy


def test_the_first_look_puts_the_method_there(define: Callable[[str], Any]) -> None:
    span = define("lowerdeck.a").Span
    assert isinstance(vars(span)["__lt__"], LazyMethod)
    assert span(1) < span(2)
    assert isinstance(vars(span)["__lt__"], FunctionType)
    assert span.__lt__ is vars(span)["__lt__"]


def test_methods_are_those_of_any_dataclass(define: Callable[[str], Any]) -> None:
    late, early = define("lowerdeck.a"), define("elsewhere")
    for name in ("Span", "Wider", "Open"):
        one, other = getattr(late, name), getattr(early, name)
        assert one.__doc__ == other.__doc__
        assert inspect.signature(one) == inspect.signature(other)
        for method in METHODS:
            first, second = getattr(one, method), getattr(other, method)
            if first is None or second is None:  # a class that cannot be hashed
                assert first is second
                continue
            assert first.__name__ == second.__name__
            assert first.__qualname__ == second.__qualname__


def test_instances_are_those_of_any_dataclass(define: Callable[[str], Any]) -> None:
    late, early = define("lowerdeck.a"), define("elsewhere")
    makers: list[Callable[[Any], Any]] = [
        lambda m: m.Span(1),
        lambda m: m.Span(1, last=2),
        lambda m: m.Wider(3, self_="x"),
    ]
    for make in makers:
        one, other = make(late), make(early)
        assert repr(one) == repr(other)
        assert hash(one) == hash(other)
        assert one == make(late) != make(early)
        assert pickle.loads(pickle.dumps(one)) == one
        with pytest.raises(dataclasses.FrozenInstanceError):
            one.last = 5
        with pytest.raises(dataclasses.FrozenInstanceError):
            del one.last
        assert dataclasses.replace(one, last=7).last == 7
    assert late.Wider(1) != late.Span(1)
    with pytest.raises(TypeError, match=r"Span.__init__\(\) missing 1 required"):
        late.Span()
    with pytest.raises(TypeError, match="unhashable"):
        hash(late.Open(1))


def test_a_copy_of_a_class_has_its_own(define: Callable[[str], Any]) -> None:
    span = define("lowerdeck.a").Span
    copy: Any = type("Copy", (span,), {**vars(span)})
    assert copy(1) == copy(1, 9)
    assert span(1) == span(1, 9)
    assert span(1) != copy(1)
    assert isinstance(vars(span)["__eq__"], FunctionType)
    assert isinstance(vars(copy)["__eq__"], FunctionType)
