"""What is quicker than xDSL does the same as xDSL."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, cast

import pytest
from xdsl import traits
from xdsl.builder import ImplicitBuilder
from xdsl.context import Context
from xdsl.dialects import arith, builtin, func, memref, scf, test
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    UNKNOWN_LOC,
    AnyFloat,
    ArrayAttr,
    DenseArrayBase,
    DenseIntOrFPElementsAttr,
    FloatAttr,
    IndexType,
    IntegerType,
    MemRefType,
    RankedStructure,
    TensorType,
    VectorType,
    f32,
    i1,
    i32,
)
from xdsl.ir import Attribute, Block, ErasedSSAValue, Operation, OpTraits, Region, SSAValue
from xdsl.ir.core import OpOperands, SSAValues
from xdsl.irdl import IRDLOperation
from xdsl.irdl import operations as irdl
from xdsl.irdl.declarative_assembly_format import FormatProgram
from xdsl.parser import Parser, attribute_parser
from xdsl.traits import (
    ConstantLike,
    IsolatedFromAbove,
    IsTerminator,
    OpTrait,
    Pure,
    SameOperandsAndResultType,
)
from xdsl.utils.exceptions import VerifyException

from lowerdeck.dialects import quick_xdsl
from lowerdeck.dialects.core.elementwise import AddOp
from lowerdeck.dialects.quick_xdsl import ORIGINAL, LazyFormat, PlainMeta
from lowerdeck.dialects.registry import register_dialects


def _ops() -> list[Operation]:
    """Ops with operands, results and regions before, at and after what there may be several of."""
    one = arith.ConstantOp(FloatAttr(1.0, f32))
    test_op = arith.ConstantOp.from_int_and_width(1, 1)
    added = arith.AddfOp(one, one)
    branch = scf.IfOp(test_op, [f32], [scf.YieldOp(added)], [scf.YieldOp(one)])
    index = arith.ConstantOp.from_int_and_width(0, 64)
    body = Region(Block([scf.YieldOp()], arg_types=[index.result.type]))
    loop = scf.ForOp(index, index, index, [], body)
    call = func.CallOp("f", [added, one], [f32, i32])
    allocated = memref.AllocOp([index.result], [], MemRefType(f32, [DYNAMIC_INDEX]))
    returns = [func.ReturnOp(), func.ReturnOp(one)]
    return [one, test_op, added, branch, index, loop, call, allocated, *returns]


def test_what_is_read_by_name() -> None:
    read = 0
    for op in _ops():
        for name, accessor in vars(type(op)).items():
            if isinstance(accessor, irdl.BaseAccessor | irdl.BaseAttrAccessor):
                read += 1
                if isinstance(accessor, irdl.BaseAttrAccessor):
                    expected = ORIGINAL[irdl.BaseAttrAccessor, "__get__"](accessor, op)
                else:
                    expected = cast(Any, irdl.BaseAccessor).__get__(accessor, op)
                found = getattr(op, name)
                assert found == expected, (op.name, name)
                assert type(found) is type(expected)
    assert read > 10


def _described(op: Operation) -> list[Any]:
    return [
        [*op.operands],
        [(type(result), result.index, result.type, result.op is op) for result in op.results],
        op.properties,
        op.attributes,
        op.location,
        [*op.successors],
        [region.parent is op for region in op.regions],
        [op.result_types, ORIGINAL[Operation, "result_types"].fget(op)],
    ]


@pytest.mark.parametrize("with_parts", [False, True])
def test_what_an_op_is_made_of(with_parts: bool) -> None:
    one = test.TestOp(result_types=[f32, i32])

    def parts() -> dict[str, Any]:
        if not with_parts:
            return {"operands": [one.results[0]]}
        return {
            "operands": [one.results[1], one.results[0], one.results[1]],
            "result_types": [i1, f32],
            "properties": {"prop1": i32},
            "attributes": {"a": ArrayAttr([])},
            "location": UNKNOWN_LOC,
            "successors": [successor],
            "regions": [Region(), Region(Block())],
        }

    made: list[Operation] = []
    uses: list[Any] = []
    for init in (Operation.__init__, ORIGINAL[Operation, "__init__"]):
        one = test.TestOp(result_types=[f32, i32])
        successor = Block()
        op = cast(Operation, test.TestOp.__new__(test.TestOp))
        init(op, **parts())
        made.append(op)
        values: list[SSAValue] = [*one.results]
        uses.append([[(use.operation is op, use.index) for use in each.uses] for each in values])
        uses.append([(use.operation is op, use.index) for use in successor.uses])
    assert uses[:2] == uses[2:]
    found, expected = map(_described, made)
    assert found[1:5] == expected[1:5]
    assert len(found[0]) == len(expected[0])
    assert found[6:] == expected[6:]


def _copies(clone: Any) -> list[Any]:
    """What copies of some ops are, of what and under which names; and the mapping that results."""
    seen: list[Any] = []
    for op in _ops():
        for number, named in enumerate((True, False)):
            for result in op.results:
                result.name_hint = "hint"
            mapper: dict[SSAValue, SSAValue] = {}
            if number and op.operands:
                mapper[op.operands[0]] = arith.ConstantOp(FloatAttr(2.0, f32)).result
            one = clone(op, mapper, clone_name_hints=named, clone_operands=bool(op.operands))
            seen += [type(one), one.result_types, one.properties, one.attributes, one.location]
            seen += [one.properties is op.properties, one.attributes is op.attributes]
            seen += [
                [mapper.get(v, v) is w for v, w in zip(op.operands, one.operands, strict=True)]
            ]
            seen += [[mapper[r] is s for r, s in zip(op.results, one.results, strict=True)]]
            seen += [[r.name_hint for r in one.results], len(one.regions), one.parent]
            without = clone(op, None, clone_operands=False)
            seen += [len(without.operands), [r.name_hint for r in without.results]]
    return seen


def test_copies_without_regions() -> None:
    ours, xdsls = Operation.clone_without_regions, ORIGINAL[Operation, "clone_without_regions"]
    assert _copies(ours) == _copies(xdsls)


def test_ops_go_where_an_implicit_builder_is() -> None:
    block = Block()
    with ImplicitBuilder(block):
        one = arith.ConstantOp(FloatAttr(1.0, f32))
        arith.ConstantOp(FloatAttr(2.0, f32))
        arith.AddfOp(one, one)
        one.clone_without_regions()
    assert [op.name for op in block.ops] == [*["arith.constant"] * 2, "arith.addf", one.name]


def _changed(put: Any, replace_everywhere: Any) -> list[Any]:
    """Operands of ops, and in which order uses are listed, after some operands were replaced."""
    a, b, c = (arith.ConstantOp(FloatAttr(x, f32)).result for x in (1.0, 2.0, 3.0))
    ops: list[Operation] = [test.TestOp([a, b, a]), test.TestOp([b]), test.TestOp([a, c])]
    values: list[SSAValue] = [a, b, c]

    def seen() -> list[Any]:
        operands = [[values.index(v) for v in op.operands] for op in ops]
        uses = [[(ops.index(u.operation), u.index) for u in v.uses] for v in values]
        return [operands, uses, [v.name_hint for v in values]]

    put(ops[0].operands, 1, c)
    put(ops[0].operands, 2, a)
    found = seen()
    a.name_hint = "first"
    replace_everywhere(a, a)
    replace_everywhere(a, b)
    found += seen()
    c.name_hint = "last"
    replace_everywhere(c, b)
    replace_everywhere(c, a)
    return found + seen()


def test_operands_that_are_replaced() -> None:
    ours = _changed(OpOperands.__setitem__, SSAValue.replace_all_uses_with)
    methods = ORIGINAL[OpOperands, "__setitem__"], ORIGINAL[SSAValue, "replace_all_uses_with"]
    assert ours == _changed(*methods)


def test_a_value_of_an_argument() -> None:
    original = ORIGINAL[SSAValue, "get"].__func__
    op = arith.ConstantOp(FloatAttr(1.0, f32))
    for get in (SSAValue.get, original):
        assert get(op) is get(op.result) is get(op.result, type=type(f32)) is op.result
        with pytest.raises(ValueError, match="Expected"):
            get(op.result, type=IndexType)
        with pytest.raises(ValueError, match="single result"):
            get(test.TestOp())


MADE: list[tuple[type[IRDLOperation], dict[str, Any]]] = [
    (arith.AddfOp, {"operands": "ab", "result_types": [f32]}),
    (arith.AddfOp, {"operands": "aA", "result_types": [[f32]]}),
    (arith.AddfOp, {"operands": "a", "result_types": [f32]}),
    (arith.AddfOp, {"operands": "aba", "result_types": [f32]}),
    (arith.AddfOp, {"operands": "ab", "result_types": [f32, f32]}),
    (arith.AddfOp, {"operands": "ab", "result_types": [None]}),
    (arith.AddfOp, {"operands": "ab", "result_types": [f32], "regions": [Region()]}),
    (arith.AddfOp, {"operands": "ab", "result_types": [f32], "properties": {"fastmath": None}}),
    (
        arith.AddfOp,
        {"operands": "ab", "result_types": [f32], "attributes": {"a": i32, "b": None}},
    ),
    (arith.ConstantOp, {"result_types": [f32], "properties": {"value": FloatAttr(1.0, f32)}}),
    (func.ReturnOp, {"operands": "a"}),
    (func.ReturnOp, {"operands": ["a"]}),
    (func.ReturnOp, {"operands": ["ab"]}),
    (func.CallOp, {"operands": ["ab"], "result_types": [[f32]]}),
    (memref.AllocOp, {"operands": ["a", ""], "result_types": [f32]}),
    (memref.AllocOp, {"operands": "ab", "result_types": [f32]}),
    (scf.IfOp, {"operands": "a", "result_types": [[]], "regions": [Region(), Region()]}),
    (AddOp, {"operands": "ab", "result_types": [f32]}),  # with an option, for its text alone
]
"""What ops are made of: single values and types, others, and too many."""


@pytest.mark.parametrize(("cls", "parts"), MADE)
def test_ops_of_single_values_and_of_others(cls: type[IRDLOperation], parts: Any) -> None:
    one = test.TestOp(result_types=[f32, f32])
    given: dict[str, Any] = {"a": one.results[0], "b": one.results[1]}
    given["A"] = arith.ConstantOp(FloatAttr(1.0, f32))
    names = parts.get("operands", ())
    operands = [given[x] if x in given else [given[y] for y in x] for x in names]
    found: list[Any] = []
    for init in (irdl.irdl_op_init, ORIGINAL[irdl, "irdl_op_init"]):
        op = cast(Any, cls).__new__(cls)
        regions = [Region() for _ in parts.get("regions", ())]
        rest: dict[str, Any] = {
            **{"result_types": (), "properties": {}, "attributes": {}, "successors": ()},
            **{k: v for k, v in parts.items() if k not in ("operands", "regions")},
        }
        try:
            init(op, cls.get_irdl_definition(), operands=operands, regions=regions, **rest)
        except ValueError as error:
            found.append(str(error))
            continue
        described = _described(op)
        found.append([described[0], [each[:3] for each in described[1]], *described[2:]])
    assert found[0] == found[1]


def test_values_are_erased() -> None:
    for erase in (SSAValue.erase, ORIGINAL[SSAValue, "erase"]):
        one = test.TestOp(result_types=[f32, f32])
        user = test.TestOp([one.results[0]])
        erase(one.results[1])
        with pytest.raises(ValueError, match="still has uses"):
            erase(one.results[0])
        erase(one.results[0], safe_erase=False)
        used = user.operands[0]
        assert isinstance(used, ErasedSSAValue)
        assert used.old_value is one.results[0]


def test_defaults_of_properties_are_filled_in() -> None:
    one = arith.ConstantOp(FloatAttr(1.0, f32))
    found = arith.AddfOp(one, one)
    del found.properties["fastmath"]
    expected = found.clone_without_regions()
    del expected.properties["fastmath"]
    IRDLOperation.__post_init__(found)
    ORIGINAL[IRDLOperation, "__post_init__"](expected)
    assert found.properties == expected.properties
    assert "fastmath" in found.properties


def test_effects_of_ops() -> None:
    effects: set[object] = set()
    for op in [*_ops(), test.TestOp(), test.TestPureOp(), test.TestReadOp(), test.TestWriteOp()]:
        found = traits.get_effects(op)
        assert found == ORIGINAL[traits, "get_effects"](op), op.name
        effects.add(None if found is None else frozenset(found))
    # Unknown ones, none, and several.
    assert {None, frozenset()} < effects


def _verdict(verify: Callable[..., None], trait: OpTrait, op: Operation) -> str:
    try:
        verify(trait, op)
    except VerifyException as error:
        return str(error)
    return "fine"


def test_operands_and_results_of_one_type() -> None:
    types: list[Attribute] = [f32, i32, TensorType(f32, [2]), TensorType(f32, [DYNAMIC_INDEX])]
    types += [TensorType(f32, [3]), TensorType(f32, [2], i32), VectorType(f32, [2])]
    trait, verdicts = SameOperandsAndResultType(), set[str]()
    for a, b, c in itertools.product(types, repeat=3):
        first, second = test.TestOp(result_types=[a, b]).results
        for op in (
            test.TestOp(operands=[first, second], result_types=[c]),
            test.TestOp(operands=[first], result_types=[b, c]),
            test.TestOp(operands=[first]),
            test.TestOp(result_types=[a]),
        ):
            original = ORIGINAL[SameOperandsAndResultType, "verify"]
            found = _verdict(SameOperandsAndResultType.verify, trait, op)
            assert found == _verdict(original, trait, op)
            verdicts.add(found.partition("requires")[2])
    assert len(verdicts) == 4


def test_values_from_outside_of_an_isolated_op() -> None:
    outside = test.TestOp(result_types=[f32])

    def nested(*inner: Operation) -> Operation:
        return test.TestOp(regions=[Region(Block(inner, arg_types=[f32]))])

    used = test.TestOp(result_types=[f32])
    argument = Region(Block(arg_types=[f32]))
    argument.block.add_op(nested(test.TestOp(operands=[argument.block.args[0]])))
    beside = [Region(Block([made := test.TestOp(result_types=[f32])])), Region(Block())]
    beside[1].block.add_op(test.TestOp(operands=[made.results[0]]))
    itself = test.TestOp(regions=[Region(Block())], result_types=[f32])
    itself.regions[0].block.add_op(test.TestOp(operands=[itself.results[0]]))
    isolated = builtin.ModuleOp([test.TestOp(operands=[outside.results[0]])])
    ops = [
        nested(used, test.TestOp(operands=[used.results[0]])),
        test.TestOp(regions=[argument]),
        test.TestOp(regions=beside),
        nested(test.TestOp(operands=[outside.results[0]])),
        nested(nested(test.TestOp(operands=[outside.results[0]]))),
        nested(isolated),
        itself,
        test.TestOp(),
    ]
    trait, original = IsolatedFromAbove(), ORIGINAL[IsolatedFromAbove, "verify"]
    found = [_verdict(IsolatedFromAbove.verify, trait, op) for op in ops]
    assert found == [_verdict(original, trait, op) for op in ops]
    assert [text == "fine" for text in found] == [
        *(True, True, True, False, False, True, False, True)
    ]


TYPES = [
    *("tensor<f32>", "tensor<2x3xf32>", "tensor<0x10xsi8>", "vector<4xf64>", "vector<f32>"),
    *("tensor<?x2xf32>", "tensor<*xf32>", "tensor< 2x3xf32>", "tensor<2 x 3 x f32>"),
    *("tensor<2xf32, 3 : i32>", "tensor<2xtensor<2xf32>>", "vector<[4]xf32>", "memref<2xf32>"),
    *("tensor<2x>", "tensor<2xf32", "tensor<-2xf32>", "tensor<2xf31>", "vector<0xf32>", "tensor"),
    *("tensor<2xi0>", "tensor<2xi99999999999>", "tensor<99999999999999999999xf32>", "f32"),
]


@pytest.mark.parametrize("text", TYPES)
def test_types_are_read_as_they_were(text: str) -> None:
    name = "_parse_optional_builtin_parametrized_type"
    original = ORIGINAL[attribute_parser.AttrParser, name]

    def outcome() -> list[Any]:
        # Behind it, whatever follows.
        parser = Parser(Context(), f"({text}, {text}) -> i1")
        try:
            return [parser.parse_type(), parser.pos]
        except Exception as error:
            return [type(error), str(error)]

    found = [outcome(), outcome()]  # the second time, it is known
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(attribute_parser.AttrParser, name, original)
        assert found == [outcome()] * 2


def test_operands_and_results_by_their_places() -> None:
    item = ORIGINAL[SSAValues, "__getitem__"]
    branch = next(op for op in _ops() if isinstance(op, func.CallOp))
    for values in (branch.results, SSAValues(branch.operands)):
        for place in (0, -1, slice(1), slice(None, None, -1), True):
            found = values[place]
            assert found == item(values, place)
            assert type(found) is type(item(values, place))
        with pytest.raises(IndexError):
            values[2]
    last = branch.operands[-1]
    branch.operands[0] = last
    assert [*branch.operands] == [last, last]
    branch.operands = [last]
    assert [*branch.operands] == [last]


def test_an_attribute_is_data_or_has_parameters() -> None:
    class Other(Attribute):
        pass

    for check in (Attribute.__post_init__, ORIGINAL[Attribute, "__post_init__"]):
        check(i32)
        with pytest.raises(TypeError, match="Data or ParametrizedAttribute"):
            check(object.__new__(Other))


def test_an_op_is_in_one_block_and_not_in_itself() -> None:
    inner = Block()
    outer = test.TestOp(regions=[Region(inner)])
    with pytest.raises(ValueError, match="contained in the operation"):
        inner.add_op(outer)
    Block().add_op(outer)
    with pytest.raises(ValueError, match="already attached"):
        Block().add_op(outer)


def test_instances_are_those_of_the_classes_and_of_what_derives_from_them() -> None:
    assert type(arith.AddfOp) is PlainMeta
    assert isinstance(_ops()[2], arith.AddfOp | Operation)
    assert not isinstance(_ops()[2], arith.SubfOp)
    assert isinstance(i32, IntegerType)
    assert not isinstance(f32, IntegerType)


def test_every_format_is_one() -> None:
    """They are parsed when they are needed, so what is wrong in one would show only then."""
    context = Context()
    register_dialects(context)
    formats = 0
    for name in ("core", "buffer", "caffe", "arith", "math", "vector", "scf", "func", "ub"):
        assert context.get_optional_dialect(name) is not None, name
    for op in context.loaded_ops:
        if not issubclass(op, IRDLOperation):
            continue
        definition = op.get_irdl_definition()
        if (text := definition.assembly_format) is not None:
            original = ORIGINAL[FormatProgram, "from_str"].__func__
            assert isinstance(original(text, definition), FormatProgram), op.name
            formats += 1
    assert formats > 100
    assert isinstance(FormatProgram.from_str("`x`", arith.AddfOp.get_irdl_definition()), LazyFormat)


def test_installing_twice_changes_nothing() -> None:
    before = dict(ORIGINAL)
    quick_xdsl.install()
    assert before == ORIGINAL


@pytest.mark.parametrize("given", [(0,), (0, 1, 2), ([0], 1), ([0, 1], [2]), (None, 0), ([], 0)])
def test_arguments_of_a_definition(given: tuple[Any, ...]) -> None:
    """One, several or none where a definition has one, any number or at most one."""
    values = test.TestOp(result_types=[f32, i32, i1]).results

    args: list[Any] = []
    for arg in given:
        if isinstance(arg, list):
            args.append([values[number] for number in cast("list[int]", arg)])
        else:
            args.append(None if arg is None else values[cast(int, arg)])
    original = ORIGINAL[irdl, "irdl_build_arg_list"]
    for op in (arith.AddfOp, arith.ConstantOp, scf.ForOp, scf.IfOp, func.ReturnOp):
        definitions = op.get_irdl_definition().operands
        outcomes: list[Any] = []
        for build in (irdl.irdl_build_arg_list, original):
            try:
                outcomes.append(build(irdl.VarIRConstruct.OPERAND, args, definitions, "here: "))
            except ValueError as error:
                outcomes.append(str(error))
        assert outcomes[0] == outcomes[1], op.name


def test_ops_of_a_block_in_order() -> None:
    block = Block(_ops()[:3])
    ops = [block.first_op, *([] if block.first_op is None else [block.first_op.next_op])]
    assert list(block.ops)[:2] == ops
    assert len(block.ops) == len([*block.ops]) == 3
    assert len(Block().ops) == 0
    left = [op for op in block.ops if op.detach() is None]  # the next one is known before
    assert len(left) == 3
    assert block.is_empty


def test_traits_are_those_of_the_class() -> None:
    for op in (arith.AddfOp, arith.ConstantOp, func.ReturnOp, scf.ForOp):
        for trait in (Pure, IsTerminator, ConstantLike, IsTerminator(), Pure()):
            original = ORIGINAL[Operation, "get_trait"].__func__
            for _ in range(2):
                assert op.get_trait(trait) == original(op, trait)

    class Late(test.TestOp):
        traits = OpTraits(lambda: ())

    assert not Late.has_trait(Pure)
    Late.traits.add_trait(Pure())
    assert Late.has_trait(Pure)


def _faulty(op: Operation) -> Iterator[Operation]:
    """Copies of an op, each with one thing that may be wrong."""
    other = test.TestOp(result_types=[i1]).results[0]
    for count in range(len(op.operands) + 1):
        copy = op.clone()
        copy.operands = [*copy.operands[:count], other, *copy.operands[count:]]
        yield copy
        if count < len(op.operands):
            copy = op.clone()
            copy.operands[count] = other
            yield copy
            copy = op.clone()
            copy.operands = [*copy.operands[:count], *copy.operands[count + 1 :]]
            yield copy
    for name in [*op.properties, "unknown"]:
        copy = op.clone()
        copy.properties[name] = ArrayAttr([])
        yield copy
        copy = op.clone()
        copy.properties.pop(name, None)
        yield copy
    for number in range(len(op.results)):
        types = list(op.result_types)
        yield type(op).create(
            operands=list(op.operands),
            result_types=[*types[:number], i1, *types[number + 1 :]],
            properties=op.properties,
            regions=[region.clone() for region in op.regions],
        )
    copy = op.clone()
    copy.add_region(Region(Block()))
    yield copy
    copy = op.clone()
    copy.successors = [Block()]
    yield copy
    copy = op.clone()
    copy.attributes["more"] = i32
    yield copy


def _outcome(verify: Callable[[], None]) -> str | None:
    try:
        verify()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None


def test_what_verification_says() -> None:
    """Of good ops and others, by their definitions and as a whole; at the end of a block, too."""
    said = list[str | None]()
    for op in _ops():
        for each in [op.clone(), *_faulty(op)]:
            definition = cast(IRDLOperation, each).get_irdl_definition()
            checks = [partial(definition.verify, each), each.verify]
            originals = [
                partial(ORIGINAL[irdl.OpDef, "verify"], definition, each),
                partial(ORIGINAL[Operation, "verify"], each),
            ]
            for blocks in ([], [each], [each, test.TestTermOp()]):
                block = Block(blocks)
                found = [_outcome(check) for check in checks]
                assert found == [_outcome(check) for check in originals]
                said += found
                for inner in [*block.ops]:
                    inner.detach()
    assert said.count(None) > 30
    assert len({text for text in said if text}) > 30


def test_a_trait_that_is_added_is_verified() -> None:
    class Refusing(OpTrait):
        def verify(self, op: Operation) -> None:
            raise VerifyException("refused")

    op = _ops()[2]
    op.verify()
    before = type(op).traits._traits  # pyright: ignore[reportPrivateUsage]
    try:
        type(op).traits.add_trait(Refusing())
        with pytest.raises(VerifyException, match="refused"):
            op.verify()
    finally:
        type(op).traits._traits = before  # pyright: ignore[reportPrivateUsage]
    op.verify()


def test_what_is_erased_is_used_no_more() -> None:
    block = Block(_ops()[:3])
    assert block.last_op is not None
    block.last_op.operands[0].erase(safe_erase=False)
    block.add_op(test.TestTermOp())
    with pytest.raises(ValueError, match="Erased SSA value"):
        block.verify()


def test_values_of_arrays() -> None:
    for values in ([], [1, -2, 3]):
        array = DenseArrayBase.from_list(i32, values)
        for _ in range(2):
            assert array.get_values() == tuple(values)
        assert array == DenseArrayBase.from_list(i32, values)
        assert hash(array) == hash(DenseArrayBase.from_list(i32, values))


@pytest.mark.parametrize(
    ("type_", "values"),
    [
        (TensorType(f32, [2, 3]), [-0.0] * 6),
        (TensorType(f32, [2]), [0.0, -0.0]),
        (TensorType(f32, [3]), [float("nan")] * 3),
        (TensorType(i32, [3]), [7, 7, 7]),
        (TensorType(i32, [3]), [7, 7, 8]),
        (TensorType(i1, [2]), [True, True]),
        (TensorType(i1, [2]), [True, False]),
        (TensorType(i32, [4]), [7]),
        (TensorType(i32, [1]), [7]),
        (TensorType(i32, [0]), []),
        (TensorType(i32, [6]), [7, 7]),  # too few, which is for others to say
    ],
)
def test_elements_of_dense_attributes(type_: Any, values: list[Any]) -> None:
    plain = ORIGINAL[DenseIntOrFPElementsAttr, "from_list"].__func__
    assert DenseIntOrFPElementsAttr.from_list(type_, values) == plain(type_, values)


def test_the_types_that_constants_may_have() -> None:
    hint = RankedStructure[IntegerType | AnyFloat]
    quick = vars(attribute_parser)["base"]
    asked = quick(hint)
    assert asked == ORIGINAL[attribute_parser, "base"](hint)
    assert asked is quick(hint)
    types: list[Attribute] = [TensorType(i32, [2]), VectorType(f32, [2]), MemRefType(i32, [2])]
    types += [i32, TensorType(IndexType(), [2])]
    assert [asked.verifies(type_) for type_ in types] == [True, True, True, False, False]
