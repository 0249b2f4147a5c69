"""Formulas as frameworks and exporters spell them: which become one op, and the same numbers."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import numpy as np
import onnx.parser
import pytest
from numpy.typing import NDArray

from lowerdeck.dialects.interpret import run_module
from lowerdeck.frontends.onnx.import_ import import_model
from lowerdeck.passes.machinery.context import LowerdeckContext
from lowerdeck.passes.machinery.pipeline import LEGALIZATION, PASSES, opt, pre

SOFTMAX = "p=Softmax<axis=-1>(s)"
WEIGHTED = f"{SOFTMAX} y=MatMul(p,v)"

ATTENTION = {
    # Where the scale is.
    "quotient": f"t=Transpose<perm=[0,1,3,2]>(k) a=MatMul(q,t) s=Div(a,c) {WEIGHTED}",
    "query scaled": f"a=Mul(q,c) s=MatMul(a,kt) {WEIGHTED}",
    "both scaled": f"w=Sqrt(c) a=Mul(q,w) t=Transpose<perm=[0,1,3,2]>(k) b=Mul(t,w) s=MatMul(a,b) "
    f"{WEIGHTED}",
    "key scaled before its transpose": f"a=Mul(c,q) b=Mul(k,c) t=Transpose<perm=[0,1,3,2]>(b) "
    f"s=MatMul(a,t) {WEIGHTED}",
    "scale computed": f"w=Pow(c,minus) a=Mul(q,w) s=MatMul(a,kt) {WEIGHTED}",
    "scale after the mask": f"a=MatMul(q,kt) b=Add(a,m) s=Mul(b,c) {WEIGHTED}",
    # Masks.
    "mask": f"a=MatMul(q,kt) b=Mul(a,c) s=Add(b,m) {WEIGHTED}",
    "mask first": f"a=MatMul(q,kt) b=Mul(a,c) s=Add(m,b) {WEIGHTED}",
    "mask from choices": f"n=Where(h,zero,lowest) a=MatMul(q,kt) s=Add(a,n) {WEIGHTED}",
    "mask of a padded batch": f"f=Cast<to=1>(h) g=Sub(one,f) n=Mul(g,lowest) a=MatMul(q,kt) "
    f"s=Add(a,n) {WEIGHTED}",
    "mask by Trilu": f"a=MatMul(q,kt) e=Shape(a) f=Expand(lowest,e) n=Trilu<upper=1>(f,diagonal) "
    f"s=Add(a,n) {WEIGHTED}",
    "rows hidden by large numbers": "n=Sub(m,billion) a=MatMul(q,kt) b=Mul(a,c) s=Add(b,n) "
    f"{WEIGHTED}",
    "rows hidden before the scale": "n=Sub(m,billion) a=MatMul(q,kt) b=Add(a,n) s=Mul(b,c) "
    f"{WEIGHTED}",
    "rows hidden twice": f"n=Sub(m,billion) a=MatMul(q,kt) b=Add(a,n) s=Add(b,n) {WEIGHTED}",
    "two masks": f"f=Cast<to=1>(h) a=MatMul(q,kt) b=Mul(a,c) d=Add(b,m) s=Add(d,f) {WEIGHTED}",
    "mask subtracted": f"f=Cast<to=1>(h) a=MatMul(q,kt) b=Mul(a,c) s=Sub(b,f) {WEIGHTED}",
    "choice": f"a=MatMul(q,kt) s=Where(h,a,lowest) {WEIGHTED}",
    "choice of the lowest": f"a=MatMul(q,kt) b=Mul(a,c) s=Where(h,lowest,b) {WEIGHTED}",
    "choice by its opposite": f"a=MatMul(q,kt) n=Not(h) s=Where(n,lowest,a) {WEIGHTED}",
    "choice before the scale": f"a=MatMul(q,kt) b=Where(h,a,minus) s=Div(b,c) {WEIGHTED}",
    "choice after a mask": f"a=MatMul(q,kt) b=Add(a,m) s=Where(h,b,lowest) {WEIGHTED}",
    "two choices": f"n=Greater(m,zero) a=MatMul(q,kt) b=Where(h,a,lowest) s=Where(n,lowest,b) "
    f"{WEIGHTED}",
    "mask as a factor": f"a=MatMul(q,kt) s=Mul(a,m) {WEIGHTED}",
    "triangle of old decoders": f"f=Cast<to=1>(h) a=MatMul(q,kt) b=Div(a,c) d=Mul(b,f) "
    f"g=Sub(one,f) n=Mul(g,lowest) s=Add(d,n) {WEIGHTED}",
    "hidden weights are zero": f"a=MatMul(q,kt) s=Where(h,a,lowest) {SOFTMAX} b=Where(h,p,zero) "
    "y=MatMul(b,v)",
    "hidden weights by the opposite": f"n=Not(h) a=MatMul(q,kt) s=Where(n,lowest,a) {SOFTMAX} "
    "b=Where(n,zero,p) y=MatMul(b,v)",
    # The softmax.
    "no NaN": f"n=Where(h,zero,lowest) a=MatMul(q,kt) s=Add(a,n) {SOFTMAX} i=IsNaN(p) "
    "b=Where(i,zero,p) y=MatMul(b,v)",
    "by its steps": "s=MatMul(q,kt) a=ReduceMax<axes=[-1]>(s) b=Sub(s,a) e=Exp(b) "
    "n=ReduceSum(e,last) p=Div(e,n) y=MatMul(p,v)",
    "maximum subtracted": f"a=MatMul(q,kt) b=ReduceMax<axes=[-1]>(a) s=Sub(a,b) {WEIGHTED}",
    "dropout": f"s=MatMul(q,kt) {SOFTMAX} a=Identity(p) b=Dropout(a) y=MatMul(b,v)",
    "cast": f"a=MatMul(q,kt) s=Cast<to=1>(a) {SOFTMAX} b=Cast<to=1>(p) y=MatMul(b,v)",
    # Heads.
    "repeated heads": f"a=Unsqueeze(k1,second) b=Expand(a,five) d=Reshape(b,four) "
    f"t=Transpose<perm=[0,1,3,2]>(d) s=MatMul(q,t) {WEIGHTED}",
    "Einsum": f'a=Einsum<equation="bhqd,bhkd->bhqk">(q,k) s=Mul(a,c) {SOFTMAX} '
    'y=Einsum<equation="bhqk,bhkd->bhqd">(p,v)',
}

NO_ATTENTION = {
    # What stands for hidden scores is no number.
    "choice before a mask": f"a=MatMul(q,kt) b=Where(h,a,lowest) s=Add(b,m) {WEIGHTED}",
    "choice of two": f"a=MatMul(q,kt) b=Where(h,a,minus) n=Greater(m,zero) s=Where(n,b,lowest) "
    f"{WEIGHTED}",
    "choice of many": f"a=MatMul(q,kt) s=Where(h,a,m) {WEIGHTED}",
    # A hidden NaN or infinity stays hidden.
    "lower bound": f"a=MatMul(q,kt) b=Add(a,m) s=Max(b,lowest) {WEIGHTED}",
    "no NaN, one more": f"s=MatMul(q,kt) {SOFTMAX} i=IsNaN(p) b=Where(i,c,p) y=MatMul(b,v)",
    # No sums.
    "soft cap": f"a=MatMul(q,kt) b=Tanh(a) s=Mul(b,c) {WEIGHTED}",
    "weights hidden by another mask": f"a=MatMul(q,kt) s=Where(h,a,lowest) {SOFTMAX} "
    "n=Greater(m,zero) b=Where(n,p,zero) y=MatMul(b,v)",
    "weights hidden the other way": f"a=MatMul(q,kt) s=Where(h,a,lowest) {SOFTMAX} "
    "b=Where(h,zero,p) y=MatMul(b,v)",
    "factor behind a mask": f"a=MatMul(q,kt) b=Add(a,m) s=Mul(b,m) {WEIGHTED}",
    "weights scaled": f"s=MatMul(q,kt) {SOFTMAX} b=Mul(p,c) y=MatMul(b,v)",
    # It overflows.
    "no maximum": "s=MatMul(q,kt) e=Exp(s) n=ReduceSum(e,last) p=Div(e,n) y=MatMul(p,v)",
}

CENTERED = "m=ReduceMean<axes=[-1]>(x) d=Sub(x,m)"
VARIANCE = f"{CENTERED} q=Mul(d,d) v=ReduceMean<axes=[-1]>(q) a=Add(v,epsilon)"
AFFINE = "t=Mul(z,scale) y=Add(t,bias)"

NORMS = {
    "power of two": f"{CENTERED} q=Pow(d,square) v=ReduceMean<axes=[-1]>(q) a=Add(v,epsilon) "
    f"s=Sqrt(a) z=Div(d,s) {AFFINE}",
    "two differences": f"{CENTERED} e=Sub(x,m) q=Pow(e,square) v=ReduceMean<axes=[-1]>(q) "
    f"a=Add(v,epsilon) s=Sqrt(a) z=Div(d,s) {AFFINE}",
    "mean minus x": f"{CENTERED} e=Sub(m,x) q=Mul(e,e) v=ReduceMean<axes=[-1]>(q) a=Add(v,epsilon) "
    f"s=Sqrt(a) z=Div(d,s) {AFFINE}",
    "absolute value": f"{CENTERED} e=Abs(d) q=Pow(e,square) v=ReduceMean<axes=[-1]>(q) "
    f"a=Add(epsilon,v) s=Sqrt(a) z=Div(d,s) {AFFINE}",
    "cast": f"{CENTERED} e=Cast<to=1>(d) q=Pow(e,square) v=ReduceMean<axes=[-1]>(q) "
    f"a=Add(v,epsilon) s=Sqrt(a) z=Div(d,s) {AFFINE}",
    "sums": f"n=ReduceSum(x,last) m=Div(n,eight) d=Sub(x,m) q=Mul(d,d) o=ReduceSum(q,last) "
    f"v=Div(o,eight) a=Add(v,epsilon) s=Sqrt(a) z=Div(d,s) {AFFINE}",
    "sum of squares": f"{CENTERED} o=ReduceSumSquare<axes=[-1]>(d) v=Div(o,eight) a=Add(v,epsilon) "
    f"s=Sqrt(a) z=Div(d,s) {AFFINE}",
    "Reciprocal": f"{VARIANCE} s=Sqrt(a) r=Reciprocal(s) z=Mul(d,r) {AFFINE}",
    "one by the root": f"{VARIANCE} s=Sqrt(a) r=Div(one,s) z=Mul(r,d) {AFFINE}",
    "power of -0.5": f"{VARIANCE} r=Pow(a,minus) z=Mul(d,r) {AFFINE}",
    "power of 0.5": f"{VARIANCE} r=Pow(a,half) z=Div(d,r) {AFFINE}",
    "scale on the reciprocal": f"{VARIANCE} s=Sqrt(a) r=Reciprocal(s) f=Mul(r,scale) z=Mul(d,f) "
    "y=Add(z,bias)",
    "scale first": f"{VARIANCE} s=Sqrt(a) f=Mul(scale,d) z=Div(f,s) y=Add(z,bias)",
    "factored": f"{VARIANCE} s=Sqrt(a) r=Reciprocal(s) f=Mul(r,scale) g=Mul(x,f) h=Mul(m,f) "
    "i=Sub(bias,h) y=Add(g,i)",
    "instances": f"{VARIANCE} s=Sqrt(a) z=Div(d,s) t=Mul(z,wc) y=Add(t,bc)",
    "groups": "g=Reshape(x,groups) z=InstanceNormalization(g,ones,zeros) r=Reshape(z,shape) "
    "t=Mul(r,wc) y=Add(t,bc)",
}

NO_NORMS = {
    # Its difference of squares cancels.
    "mean of squares": f"{CENTERED} u=Mul(x,x) n=ReduceMean<axes=[-1]>(u) o=Mul(m,m) v=Sub(n,o) "
    f"a=Add(v,epsilon) s=Sqrt(a) z=Div(d,s) {AFFINE}",
    "epsilon behind the root": f"{CENTERED} q=Mul(d,d) v=ReduceMean<axes=[-1]>(q) s=Sqrt(v) "
    f"a=Add(s,epsilon) z=Div(d,a) {AFFINE}",
    "squares along another dimension": "q=Mul(x,x) v=ReduceMean<axes=[1]>(q) a=Add(v,epsilon) "
    "s=Sqrt(a) y=Div(x,s)",
    "norm": "n=ReduceL2<axes=[-1]>(x) y=Div(x,n)",
    "of columns": "q=Mul(w4,w4) v=ReduceMean<axes=[-1]>(q) u=Reshape(v,row) a=Add(u,epsilon) "
    "s=Sqrt(a) y=Div(w4,s)",
    "reciprocals of columns": "q=Mul(w4,w4) v=ReduceMean<axes=[-1]>(q) a=Add(v,epsilon) s=Sqrt(a) "
    "r=Reciprocal(s) u=Reshape(r,row) y=Mul(w4,u)",
    "epsilon inside and outside": "q=Mul(x,x) v=ReduceMean<axes=[-1]>(q) a=Add(v,epsilon) "
    "s=Sqrt(a) b=Add(s,epsilon) y=Div(x,b)",
}

SQUARES = "q=Mul(x,x) v=ReduceMean<axes=[-1]>(q) a=Add(v,epsilon)"

ROOT_MEAN_SQUARES = {
    "quotient": f"{SQUARES} s=Sqrt(a) z=Div(x,s) y=Mul(z,scale)",
    "quotient without a scale": f"{SQUARES} s=Sqrt(a) y=Div(x,s)",
    "with a bias": f"{SQUARES} s=Sqrt(a) z=Div(x,s) {AFFINE}",
    "power of two": "q=Pow(x,square) v=ReduceMean<axes=[-1]>(q) a=Add(epsilon,v) s=Sqrt(a) "
    "r=Reciprocal(s) z=Mul(x,r) y=Mul(scale,z)",
    "one by the root": f"{SQUARES} s=Sqrt(a) r=Div(one,s) z=Mul(r,x) y=Mul(z,scale)",
    "root of the reciprocal": f"{SQUARES} i=Reciprocal(a) r=Sqrt(i) z=Mul(x,r) y=Mul(z,scale)",
    "power of -0.5": f"{SQUARES} r=Pow(a,minus) z=Mul(x,r) y=Mul(z,scale)",
    "power of 0.5": f"{SQUARES} r=Pow(a,half) z=Div(x,r) y=Mul(z,scale)",
    "scale on the reciprocal": f"{SQUARES} s=Sqrt(a) r=Reciprocal(s) f=Mul(r,scale) y=Mul(x,f)",
    "scale by the root": f"{SQUARES} s=Sqrt(a) f=Div(scale,s) y=Mul(x,f)",
    "scale first": f"{SQUARES} s=Sqrt(a) f=Mul(scale,x) y=Div(f,s)",
    "scale first, reciprocal": f"{SQUARES} s=Sqrt(a) r=Reciprocal(s) f=Mul(scale,x) y=Mul(f,r)",
    "cast": "c1=Cast<to=1>(x) q=Pow(c1,square) v=ReduceMean<axes=[-1]>(q) a=Add(v,epsilon) "
    "s=Sqrt(a) r=Div(one,s) z=Mul(c1,r) d=Cast<to=1>(z) y=Mul(scale,d)",
    "sums": "q=Mul(x,x) o=ReduceSum(q,last) v=Div(o,eight) a=Add(v,epsilon) s=Sqrt(a) z=Div(x,s) "
    "y=Mul(z,scale)",
    "sum of squares": "o=ReduceSumSquare<axes=[-1]>(x) v=Div(o,eight) a=Add(v,epsilon) s=Sqrt(a) "
    "z=Div(x,s) y=Mul(z,scale)",
    "dimension put back": "q=Mul(x,x) v=ReduceMean<axes=[-1],keepdims=0>(q) u=Unsqueeze(v,last) "
    "a=Add(u,epsilon) s=Sqrt(a) z=Div(x,s) y=Mul(z,scale)",
    "epsilon behind the root": "q=Mul(x,x) v=ReduceMean<axes=[-1]>(q) s=Sqrt(v) a=Add(s,epsilon) "
    "z=Div(x,a) y=Mul(z,scale)",
    "norm by the root of the count": "n=ReduceL2<axes=[-1]>(x) w=Sqrt(eight) s=Div(n,w) "
    "a=Add(s,epsilon) z=Div(x,a) y=Mul(scale,z)",
    "norm times a power of the count": "n=ReduceL2<axes=[-1]>(x) w=Pow(eight,minus) s=Mul(n,w) "
    "a=Add(s,epsilon) z=Div(x,a) y=Mul(scale,z)",
    "root of the count by the norm": "n=ReduceL2<axes=[-1]>(x) a=Add(n,epsilon) w=Sqrt(eight) "
    "f=Div(w,a) z=Mul(x,f) y=Mul(scale,z)",
    "root of the count first": "n=ReduceL2<axes=[-1]>(x) w=Sqrt(eight) f=Mul(x,w) z=Div(f,n) "
    "y=Mul(scale,z)",
    "of magnitudes": "b=Abs(x) q=Mul(b,b) v=ReduceMean<axes=[-1]>(q) a=Add(v,epsilon) s=Sqrt(a) "
    "z=Div(b,s) y=Mul(z,scale)",
}

EXP = "e=Exp(x)"
PLUS_TWO = f"{EXP} p=Add(e,two) n=Mul(e,p) m=Add(n,two)"

MISH = {
    "operator": "s=Softplus(x) t=Tanh(s) y=Mul(x,t)",
    "log of one and exp": f"{EXP} p=Add(one,e) s=Log(p) t=Tanh(s) y=Mul(t,x)",
    "without overflow": "p=Relu(x) a=Abs(x) b=Neg(a) e=Exp(b) f=Add(e,one) l=Log(f) s=Add(p,l) "
    "t=Tanh(s) y=Mul(t,x)",
    "above a limit itself": "h=Greater(x,limit) r=Softplus(x) s=Where(h,x,r) t=Tanh(s) y=Mul(x,t)",
    "one minus a quotient": f"{EXP} p=Add(e,one) q=Pow(p,two) m=Add(q,one) f=Div(two,m) "
    "t=Sub(one,f) y=Mul(x,t)",
    "quotient": f"{EXP} q=Mul(e,e) d=Mul(two,e) n=Add(q,d) m=Add(n,two) t=Div(n,m) y=Mul(x,t)",
    "product": f"{PLUS_TWO} t=Div(n,m) y=Mul(t,x)",
    "quotient of a product": f"{EXP} q=Pow(e,two) d=Mul(e,two) n=Add(q,d) g=Mul(x,n) "
    "m=Add(n,two) y=Div(g,m)",
    "squares of a sum": f"{EXP} p=Add(e,one) q=Mul(p,p) n=Sub(q,one) m=Add(q,one) t=Div(n,m) "
    "y=Mul(x,t)",
}

NO_MISH = {
    "another exponential": f"{PLUS_TWO} k=Exp(n) o=Add(k,two) y=Div(n,o)",
    "small limit": "h=Greater(x,one) r=Softplus(x) s=Where(h,x,r) t=Tanh(s) y=Mul(x,t)",
    "another sum": f"{EXP} p=Add(e,two) s=Log(p) t=Tanh(s) y=Mul(t,x)",
    "less": f"{EXP} p=Add(e,two) n=Mul(e,p) m=Add(n,one) t=Div(n,m) y=Mul(x,t)",
}

SLICES = "a=Slice(x,one1,end,last,two1) b=Slice(x,none,end,last,two1)"
TURNED = (
    "d=Mul(b,cosines) e=Mul(a,sines) f=Sub(d,e) g=Mul(a,cosines) h=Mul(b,sines) i=Add(g,h) "
    "u=Unsqueeze(f,last) v=Unsqueeze(i,last) w=Concat<axis=-1>(u,v) y=Reshape(w,shape)"
)

ROTARY = {
    "steps": f"{SLICES} {TURNED}",
    "negated": f"{SLICES} n=Neg(a) u=Unsqueeze(n,last) v=Unsqueeze(b,last) w=Concat<axis=-1>(u,v) "
    "r=Reshape(w,shape) p=Mul(x,scale) q=Mul(r,bias) y=Add(p,q)",
    "pairs": "z=Reshape(x,pairs) b=Gather<axis=-1>(z,first) a=Gather<axis=-1>(z,diagonal) "
    f"{TURNED}",
}

INPUTS = {
    "q": "float[1,2,5,8]", "k": "float[1,2,6,8]", "kt": "float[1,2,8,6]", "v": "float[1,2,6,8]",
    "k1": "float[1,1,6,8]", "m": "float[1,1,5,6]", "h": "bool[1,1,5,6]", "x": "float[2,4,8]",
    "w4": "float[4,4]",
}  # fmt: skip

CONSTANTS = {
    "float c": "{0.35}", "float zero": "{0}", "float one": "{1}", "float half": "{0.5}",
    "float minus": "{-0.5}", "float two": "{2}", "float limit": "{20}",
    "float lowest": "{-3.4028235e38}", "float epsilon": "{1e-5}",
    "float billion": "{1e9}", "float eight": "{8}", "int64 diagonal": "{1}",
    "int64[1] last": "{-1}",
    "int64[1] second": "{2}", "float square": "{2}",
    "int64[5] five": "{1,1,2,6,8}", "int64[4] four": "{1,2,6,8}", "int64[3] groups": "{0,2,-1}",
    "int64[2] row": "{1,4}",
    "int64[3] shape": "{2,4,8}", "float[2] ones": "{1,1}", "float[2] zeros": "{0,0}",
    "int64[1] none": "{0}", "int64[1] one1": "{1}", "int64[1] two1": "{2}", "int64[1] end": "{8}",
    "int64[4] pairs": "{2,4,4,2}", "int64 first": "{0}",
    "float[4] cosines": "{1,0.5,-0.25,0.1}", "float[4] sines": "{0.1,0.2,-0.3,0.4}",
    "float[8] scale": "{1,2,-3,4,5,6,7,8}", "float[8] bias": "{8,7,6,5,4,3,2,1}",
    "float[4,1] wc": "{1,-2,3,4}", "float[4,1] bc": "{4,3,2,1}",
}  # fmt: skip


def compiled(nodes: str) -> tuple[Counter[str], Any, Any]:
    """The ops that `pre` and `opt` leave of nodes, and the result y before and after."""
    inner = set(re.findall(r"(\w+)=[A-Z]", nodes))
    names = [n for n in INPUTS if n not in inner and re.search(rf"[(,]{n}[,)]", nodes)]
    used = [
        f"{name}={value}"
        for name, value in CONSTANTS.items()
        if re.search(rf"[(,]{name.split()[-1]}[,)]", nodes)
    ]
    lines = "\n".join(re.split(r" (?=\w+=[A-Z])", nodes))
    model = onnx.parser.parse_model(
        f'<ir_version: 8, opset_import: ["": 17]>\n'
        f"g ({', '.join(f'{INPUTS[name]} {name}' for name in names)}) => (y)\n"
        f"<{', '.join(used)}> {{\n{lines}\n}}"
    )
    module, context = import_model(model), LowerdeckContext()
    for name in [*LEGALIZATION, "infer-shapes"]:
        PASSES[name]()().apply(context, module)
    feeds = {name: random(INPUTS[name]) for name in names}
    before = run_module(module, feeds)["y"]
    for name in [*pre(), *opt()]:
        PASSES[name]()().apply(context, module)
    after = run_module(module, feeds)["y"]
    return Counter(op.name for op in module.walk()), before, after


def random(text: str) -> NDArray[Any]:
    """An array of a type as ONNX spells it."""
    shape = [int(size) for size in re.findall(r"\d+", text)]
    values = np.random.default_rng(0).normal(size=shape)
    return values > -1 if text.startswith("bool") else values.astype(np.float32)


@pytest.mark.parametrize("nodes", ATTENTION.values(), ids=ATTENTION)
def test_attention(nodes: str) -> None:
    ops, before, after = compiled(nodes)
    np.testing.assert_allclose(after, before, rtol=1e-5, atol=1e-6)
    assert ops["core.attention"] == 1
    assert not ops["core.matmul"] + ops["core.softmax"]


@pytest.mark.parametrize("nodes", NO_ATTENTION.values(), ids=NO_ATTENTION)
def test_no_attention(nodes: str) -> None:
    ops, before, after = compiled(nodes)
    np.testing.assert_allclose(after, before, rtol=1e-5, atol=1e-6)
    assert not ops["core.attention"]


@pytest.mark.parametrize("nodes", NORMS.values(), ids=NORMS)
def test_norms(nodes: str) -> None:
    ops, before, after = compiled(nodes)
    np.testing.assert_allclose(after, before, rtol=1e-5, atol=1e-6)
    assert ops["core.layer_norm"] == 1
    moved = {"core.constant", "core.reshape", "core.layer_norm"}
    assert {name for name in ops if name.startswith("core.")} <= moved


@pytest.mark.parametrize("nodes", ROOT_MEAN_SQUARES.values(), ids=ROOT_MEAN_SQUARES)
def test_root_mean_squares(nodes: str) -> None:
    ops, before, after = compiled(nodes)
    np.testing.assert_allclose(after, before, rtol=1e-5, atol=1e-6)
    assert ops["core.layer_norm"] == 1
    assert not ops["core.sqrt"] + ops["core.div"] + ops["core.pow"]


MISH_OPS = {"core.exp": 1, "core.add": 2, "core.mul": 2, "core.div": 1}


@pytest.mark.parametrize("nodes", MISH.values(), ids=MISH)
def test_mish(nodes: str) -> None:
    ops, before, after = compiled(nodes)
    np.testing.assert_allclose(after, before, rtol=1e-5, atol=1e-6)
    assert {op: ops[op] for op in ops if op in MISH_OPS} == MISH_OPS
    assert not ops["core.tanh"] + ops["core.log"] + ops["core.select"] + ops["core.sub"]


@pytest.mark.parametrize("nodes", NO_MISH.values(), ids=NO_MISH)
def test_no_mish(nodes: str) -> None:
    ops, before, after = compiled(nodes)
    np.testing.assert_allclose(after, before, rtol=1e-5, atol=1e-6)
    assert not ops["core.min"]


@pytest.mark.parametrize("nodes", ROTARY.values(), ids=ROTARY)
def test_rotary(nodes: str) -> None:
    ops, before, after = compiled(nodes)
    np.testing.assert_allclose(after, before, rtol=1e-5, atol=1e-6)
    assert ops["core.concat"] == 1
    assert ops["core.slice"] == 2


@pytest.mark.parametrize("nodes", NO_NORMS.values(), ids=NO_NORMS)
def test_no_norms(nodes: str) -> None:
    ops, before, after = compiled(nodes)
    np.testing.assert_allclose(after, before, rtol=1e-5, atol=1e-6)
    assert not ops["core.layer_norm"]
