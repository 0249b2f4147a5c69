"""Operators of ONNX Runtime that are no functions of standard operators, and what helps."""

from __future__ import annotations

from lowerdeck.frontends.onnx.contrib.definition import refuse

refuse(
    "BeamSearch GreedySearch Sampling WhisperBeamSearch",
    "is a whole loop of text generation around subgraphs of its own",
    "compile its decoder as a model by itself, and write the loop around that",
)
refuse(
    "Tokenizer",
    "splits strings",
    "split them before, and make the model's input the numbers of tokens",
)
refuse(
    "EPContext Snpe",
    "holds what another compiler made for one device",
    "use the ONNX model that it was made from",
)
refuse(
    "GemmFloat8 MatMulBlockQuantizedFp4Weight MatMulBlockQuantizedFp8Weight",
    "multiplies floats of 8 bits or fewer",
    "export the model with weights of 4 or 8 bits (MatMulNBits), or with floats of 16 or 32",
)
refuse(
    "DynamicSparseAttention PackedSparseAttentionIndexer PagedAttention SparseAttention "
    "SparseAttentionIndexer SparsePagedAttention",
    "reads keys by tables of pages or blocks, which only a server of models has",
    "export the model with GroupQueryAttention",
)
refuse(
    "PackedAttention PackedMultiHeadAttention RemovePadding RestorePadding",
    "takes sequences without their padding, in the form of graphics cards",
    "export the model without packing (use_packed_attention of the optimizer)",
)
refuse(
    "DequantizeBFP DequantizeWithOrder QOrderedAttention QOrderedGelu QOrderedLayerNormalization "
    "QOrderedLongformerAttention QOrderedMatMul QuantizeBFP QuantizeWithOrder",
    "has its numbers in an order of one kind of graphics card",
    "quantize the model with QuantizeLinear and DequantizeLinear",
)
refuse(
    "MatMulNBitsMlp MatMulNBitsQkv",
    "stands for several products in the form of a graphics card",
    "save the model without these fusions, with MatMulNBits",
)
refuse(
    "Inverse",
    "inverts matrices, which no op here does",
    "compute what is inverted before, if it is a weight, or define the operator in a plugin",
)
refuse(
    "SparseToDenseMatMul",
    "multiplies by a sparse tensor",
    "export the model with dense weights and MatMul",
)
refuse(
    "MaxpoolWithMask",
    "stops in each row of a window at the first place without a mask, for one model",
    "select with Where before MaxPool",
)
refuse(
    "RelativePositionBias",
    "sorts distances by logarithms that are cut off in single precision",
    "save the model without this fusion (the transformer optimizer makes it)",
)
refuse(
    "Irfft",
    "has as many results as its documentation says or one more, by the version",
    "export the model with DFT (inverse = 1)",
)
refuse(
    "QMoE",
    "mixes experts with packed weights, whose order depends on the processor",
    "export the model with MoE, or with MatMulNBits for each expert",
)
