"""Records have what frozen dataclasses have, but for the check of assignments."""

import copy
import pickle
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, cast

import pytest

from lowerdeck.dialects.records import record


@record
class Span:
    """Some numbers."""

    first: int
    last: int = 9
    note: str = field(default="", compare=False)
    secret: int = field(default=0, repr=False)


@dataclass(frozen=True)
class Frozen:
    """The same, as a dataclass."""

    first: int
    last: int = 9
    note: str = field(default="", compare=False)
    secret: int = field(default=0, repr=False)


@record
class Wider(Span):
    """One more."""

    more: tuple[int, ...] = ()


@record
class One:
    """A single field."""

    values: tuple[Any, ...]


@record
class Nothing:
    """No field."""


@record
class Own:
    """Methods of its own."""

    value: int

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Own) and self.value % 10 == other.value % 10

    def __hash__(self) -> int:
        return self.value % 10

    def __repr__(self) -> str:
        return "own"


CASES: list[tuple[Any, ...]] = [(1,), (1, 2), (1, 9), (1, 9, "x"), (1, 9, "", 5), (2, 9)]


def test_comparisons_are_those_of_a_dataclass() -> None:
    for a in CASES:
        for b in CASES:
            assert (Span(*a) == Span(*b)) is (Frozen(*a) == Frozen(*b))
            assert len({Span(*a), Span(*b)}) == len({Frozen(*a), Frozen(*b)})
        assert hash(Span(*a)) == hash(Frozen(*a))
        assert repr(Span(*a)) == repr(Frozen(*a)).replace("Frozen", "Span")


def test_another_class_is_not_equal() -> None:
    assert Span(1) != Wider(1)
    assert Span(1) != Frozen(1)
    assert Wider(1, more=(2,)) != Wider(1)
    assert repr(Wider(1)) == "Wider(first=1, last=9, note='', more=())"


def test_one_field_is_not_taken_apart() -> None:
    assert One((1, 2)) != One((1,))
    assert hash(One((1, 2))) == hash(((1, 2),))
    with pytest.raises(TypeError, match="unhashable"):
        hash(One(cast(Any, [1])))


def test_records_without_fields_are_equal() -> None:
    assert Nothing() == Nothing()
    assert hash(Nothing()) == hash(())
    assert repr(Nothing()) == "Nothing()"


def test_methods_of_the_class_itself_stay() -> None:
    assert Own(3) == Own(13)
    assert len({Own(3), Own(13)}) == 1
    assert repr(Own(3)) == "own"


def test_a_record_that_holds_itself_is_shown() -> None:
    inner: list[Any] = []
    one = One((inner,))
    inner.append(one)
    assert repr(one) == "One(values=([...],))"


def test_functions_for_dataclasses_take_records() -> None:
    one = Span(1, 2, "x")
    assert replace(one, first=5) == Span(5, 2)
    assert asdict(one) == {"first": 1, "last": 2, "note": "x", "secret": 0}
    assert [f.name for f in fields(one)] == ["first", "last", "note", "secret"]
    assert copy.deepcopy(one) == one == pickle.loads(pickle.dumps(one))
    match one:
        case Span(first, last):
            assert (first, last) == (1, 2)
