"""
Primitives that mean what an operator of PyTorch means: the overload, and what its arguments are.
"""

from __future__ import annotations

from lowerdeck.passes.legalize.mindir.legalizer import MindirLegalizer
from lowerdeck.passes.legalize.mindir.registry import Results, legalizes
from lowerdeck.passes.legalize.table import pairs
from lowerdeck.passes.legalize.torch_tables import as_torch

_UNARY = """
    ACos=acos Abs=abs AcosExt=acos Acosh=acosh AcoshExt=acosh Asin=asin AsinExt=asin Asinh=asinh
    AsinhExt=asinh Atan=atan AtanExt=atan Atanh=atanh BesselI0=special_i0 BitwiseNot=bitwise_not
    BoolNot=logical_not Ceil=ceil Contiguous=clone Copy=clone Cos=cos Cosh=cosh Digamma=digamma
    Erf=erf Erfc=erfc Erfinv=erfinv Exp2=exp2 Exp=exp Expm1=expm1 Floor=floor Frac=frac
    HSigmoid=hardsigmoid HSwish=hardswish Identity=clone InplaceErfinv=erfinv InplaceExp=exp
    InplaceFloor=floor InplaceLog=log InplaceReLU=relu InplaceSiLU=silu InplaceSigmoid=sigmoid
    InplaceSign=sign InplaceTanh=tanh InplaceZero=zeros_like Inv=reciprocal Invert=bitwise_not
    IsFinite=isfinite IsInf=isinf IsNan=isnan Lgamma=lgamma Log10=log10 Log1p=log1p Log2=log2
    Log=log LogSigmoid=log_sigmoid LogicalNot=logical_not Neg=neg OnesLike=ones_like
    OnesLikeExt=ones_like ReLU6=relu6 ReLU=relu Reciprocal=reciprocal Rint=round Rsqrt=rsqrt
    SeLU=selu SeLUExt=selu SiLU=silu Sigmoid=sigmoid Sign=sign Sin=sin Sinc=sinc Sinh=sinh
    Softplus=softplus Sqrt=sqrt Square=square Tan=tan Tanh=tanh Trunc=trunc ZerosLike=zeros_like
    ZerosLikeExt=zeros_like
"""
"""Of one tensor, whatever its name."""

_BINARY = """
    Atan2=atan2.default Atan2Ext=atan2.default BatchMatMulExt=bmm.default
    BitwiseAnd=bitwise_and.Tensor BitwiseAndTensor=bitwise_and.Tensor
    BitwiseOr=bitwise_or.Tensor BitwiseOrTensor=bitwise_or.Tensor BitwiseXor=bitwise_xor.Tensor
    BitwiseXorTensor=bitwise_xor.Tensor Dot=dot.default Equal=eq.Tensor EqualExt=eq.Tensor
    FloorDiv=floor_divide.Tensor FloorMod=remainder.Tensor Fmax=fmax.default Fmin=fmin.default
    FmodTensor=fmod.Tensor Gcd=gcd.default Ger=outer.default Greater=gt.Tensor
    GreaterEqual=ge.Tensor Hypot=hypot.default InplaceDiv=div.Tensor
    InplaceFloorDivide=floor_divide.Tensor InplaceMul=mul.Tensor
    InplaceRemainderTensorTensor=remainder.Tensor Less=lt.Tensor LessEqual=le.Tensor
    LogicalAnd=logical_and.default LogicalOr=logical_or.default LogicalXor=logical_xor.default
    MatMulExt=matmul.default Maximum=maximum.default Minimum=minimum.default Mm=mm.default
    Mod=fmod.Tensor Mv=mv.default NotEqual=ne.Tensor Outer=outer.default Pow=pow.Tensor_Tensor
    RemainderTensorTensor=remainder.Tensor TruncateMod=fmod.Tensor
"""
"""Of two tensors, whatever their names, in one type."""

_SCALAR = """
    BitwiseAndScalar=bitwise_and.Scalar BitwiseOrScalar=bitwise_or.Scalar
    BitwiseXorScalar=bitwise_xor.Scalar Divs=div.Scalar EqScalar=eq.Scalar
    FloorDivScalar=floor_divide.Scalar FmodScalar=fmod.Scalar GreaterEqualScalar=ge.Scalar
    InplaceDivs=div.Scalar InplaceFloorDivides=floor_divide.Scalar InplaceMuls=mul.Scalar
    InplaceRemainderTensorScalar=remainder.Scalar LessScalar=lt.Scalar Muls=mul.Scalar
    PowTensorScalar=pow.Tensor_Scalar RemainderTensorScalar=remainder.Scalar
"""
"""Of a tensor and a number."""

_OPERATORS = """
    AddExt: add.Tensor self=input other alpha
    Addcdiv: addcdiv.default self=input tensor1 tensor2 value
    AddcdivExt: addcdiv.default self=input tensor1 tensor2 value
    Addcmul: addcmul.default self=input tensor1 tensor2 value
    AddcmulExt: addcmul.default self=input tensor1 tensor2 value
    Addmm: addmm.default self=input mat1 mat2 beta alpha
    Addmv: addmv.default self=input mat vec beta alpha
    AdaptiveAvgPool1D: adaptive_avg_pool1d.default self=input output_size
    AdaptiveAvgPool2DExt: adaptive_avg_pool2d.default self=input output_size
    AdaptiveAvgPool3D: adaptive_avg_pool3d.default self=x output_size
    AdaptiveAvgPool3DExt: adaptive_avg_pool3d.default self=input output_size
    AdaptiveMaxPool1D: adaptive_max_pool1d.default self=input output_size
    AvgPool1D: avg_pool1d.default self=input kernel_size stride padding ceil_mode count_include_pad
    AvgPool2D: avg_pool2d.default self=input kernel_size stride padding ceil_mode count_include_pad
    Baddbmm: baddbmm.default self=input batch1 batch2 beta alpha
    CeLU: celu.default self=x alpha
    ChannelShuffle: channel_shuffle.default self=x groups=group
    Chunk: chunk.default self=input chunks dim
    ChunkView: chunk.default self=input chunks dim
    ClampScalar: clamp.default self=input min max
    ClampTensor: clamp.Tensor self=input min max
    Convolution: convolution.default input weight bias stride padding dilation \
        transposed output_padding groups
    Conv1DExt: conv1d.default input weight bias stride padding dilation groups
    Conv2DExt: conv2d.default input weight bias stride padding dilation groups
    Conv3DExt: conv3d.default input weight bias stride padding dilation groups
    CumsumExt: cumsum.default self=input dim
    Dense: linear.default input weight bias
    DiagExt: diag.default self=input diagonal
    Elu: elu.default self=input_x alpha
    EluExt: elu.default self=input alpha
    Embedding: embedding.default weight indices=input
    ExpandDims: unsqueeze.default self=input_x dim=axis
    ExpandDimsView: unsqueeze.default self=input dim
    FlattenExt: flatten.using_ints self=input start_dim end_dim
    GLU: glu.default self=x dim=axis
    GatherD: gather.default self=x dim index
    GeLU: gelu.default self=input approximate:'tanh'
    HShrink: hardshrink.default self=input lambd
    Hardtanh: hardtanh.default self=input min_val max_val
    InplaceAddExt: add.Tensor self=input other alpha
    InplaceAddsExt: add.Scalar self=input other alpha
    InplaceClampScalar: clamp.default self=input min max
    InplaceClampTensor: clamp.Tensor self=input min max
    InplaceElu: elu.default self=input alpha
    InplaceHardtanh: hardtanh.default self=input min_val max_val
    InplaceMaskedFillScalar: masked_fill.Scalar self=input mask value
    InplaceSubExt: sub.Tensor self=input other alpha
    InplaceSubScalar: sub.Scalar self=input other alpha
    Cdist: cdist.default x1 x2 p
    CumminExt: cummin.default self=input dim
    IndexAddExt: index_add.default self=input dim index source alpha
    IndexFillScalar: index_fill.int_Scalar self=input dim index value
    IndexSelect: index_select.default self=input dim index
    LayerNormExt: layer_norm.default input normalized_shape weight bias eps
    LeakyReLUExt: leaky_relu.default self=input negative_slope
    Lerp: lerp.Tensor self=input end weight
    LerpScalar: lerp.Scalar self=input end weight
    LogSoftmax: log_softmax.int self=logits dim=axis
    LogSoftmaxExt: log_softmax.int self=input dim
    LogSumExp: logsumexp.default self=input dim keepdim
    MaskedFillScalar: masked_fill.Scalar self=input mask value
    MeanExt: mean.dim self=input dim keepdim
    MaxDim: max.dim self=input dim keepdim
    MinDim: min.dim self=input dim keepdim
    NanToNum: nan_to_num.default self=input nan posinf neginf
    Narrow: narrow.default self=input dim start length
    NarrowView: narrow.default self=input dim start length
    PReLU: prelu.default self=input weight
    PixelShuffle: pixel_shuffle.default self=input upscale_factor
    ReflectionPad1D: reflection_pad1d.default self=input padding
    ReflectionPad2D: reflection_pad2d.default self=input padding
    ReflectionPad3D: reflection_pad3d.default self=input padding
    RepeatInterleaveInt: repeat_interleave.self_int self=input repeats dim
    ReplicationPad1D: replication_pad1d.default self=input padding
    ReplicationPad2D: replication_pad2d.default self=input padding
    ReplicationPad3D: replication_pad3d.default self=input padding
    Roll: roll.default self=input shifts=shifts dims
    ScatterAddExt: scatter_add.default self=input dim index src
    Scatter: scatter.src self=input dim index src
    SelectExtView: select.int self=input dim index
    SelectView: select.int self=input_tensor dim=axis index=input_indices
    SoftShrink: softshrink.default self=input lambd
    SoftplusExt: softplus.default self=input beta threshold
    SortExt: sort.default self=input dim descending
    SplitTensor: split.Tensor self=input split_size dim
    SplitTensorView: split.Tensor self=input split_size dim
    SplitWithSize: split_with_sizes.default self=input split_sizes=split_size dim
    SplitWithSizeView: split_with_sizes.default self=input split_sizes=split_size dim
    StackExt: stack.default tensors dim
    SubExt: sub.Tensor self=input other alpha
    SumExt: sum.dim_IntList self=input dim keepdim
    Threshold: threshold.default self=input threshold value
    TopkExt: topk.default self=input k dim largest sorted
    TransposeExtView: transpose.int self=input dim0 dim1
    TransposeView: permute.default self=input dims=input_perm
    Tril: tril.default self=x diagonal
    TrilExt: tril.default self=input diagonal
    Triu: triu.default self=input diagonal
    UnstackExtView: unbind.int self=input dim
    UpsampleBicubic2D: upsample_bicubic2d.vec input=x output_size align_corners \
        scale_factors=scales
    UpsampleBilinear2D: upsample_bilinear2d.vec input=x output_size align_corners \
        scale_factors=scales
    UpsampleLinear1D: upsample_linear1d.vec input=x output_size align_corners \
        scale_factors=scales
    UpsampleNearest1D: upsample_nearest1d.vec input=x output_size scale_factors=scales
    UpsampleNearest2D: upsample_nearest2d.vec input=x output_size scale_factors=scales
    UpsampleNearest3D: upsample_nearest3d.vec input=x output_size scale_factors=scales
    UpsampleTrilinear3D: upsample_trilinear3d.vec input=x output_size align_corners \
        scale_factors=scales
"""
"""Others, a line each."""


_UNARY_TARGETS, _BINARY_TARGETS, _SCALAR_TARGETS = map(pairs, (_UNARY, _BINARY, _SCALAR))


@legalizes(*_UNARY_TARGETS)
def legalize_unary(builder: MindirLegalizer) -> Results:
    """Of one tensor."""
    return builder.torch(f"{_UNARY_TARGETS[builder.name]}.default", self=builder.input())


@legalizes(*_BINARY_TARGETS)
def legalize_binary(builder: MindirLegalizer) -> Results:
    """Of two tensors or numbers, in the type of the first tensor."""
    target = _BINARY_TARGETS[builder.name]
    first, second = builder.common(*list(builder.op.schema.arguments)[:2])
    names = {"matmul": "other", "bmm": "mat2", "mm": "mat2", "mv": "vec", "dot": "tensor"}
    names |= {"outer": "vec2", "pow": "exponent"}
    other = names.get(target.partition(".")[0], "other")
    return builder.torch(target, self=first, **{other: second})


@legalizes(*_SCALAR_TARGETS)
def legalize_with_number(builder: MindirLegalizer) -> Results:
    """Of a tensor and a number."""
    target = _SCALAR_TARGETS[builder.name]
    other = list(builder.op.schema.arguments)[1]
    name = "exponent" if target.startswith("pow") else "other"
    return builder.torch(target, self=builder.input(), **{name: builder.number(other)})


legalizes.rows(as_torch(_OPERATORS))
