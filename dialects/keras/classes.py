"""The classes of Keras: layers, functions of `keras.ops`, and those that stand for parts of one."""

from __future__ import annotations

LAYERS = """
    Activation ActivityRegularization Add AdditiveAttention AlphaDropout Attention Average
    AveragePooling1D AveragePooling2D AveragePooling3D BatchNormalization CategoryEncoding
    CenterCrop Concatenate Conv1D Conv1DTranspose Conv2D Conv2DTranspose Conv3D Conv3DTranspose
    ConvLSTM1D ConvLSTM2D ConvLSTM3D Cropping1D Cropping2D Cropping3D Dense DepthwiseConv1D
    DepthwiseConv2D Discretization Dot Dropout ELU EinsumDense Embedding Flatten GRU
    GaussianDropout GaussianNoise GlobalAveragePooling1D GlobalAveragePooling2D
    GlobalAveragePooling3D GlobalMaxPooling1D GlobalMaxPooling2D GlobalMaxPooling3D
    GroupNormalization GroupQueryAttention Identity LSTM LayerNormalization LeakyReLU Masking
    MaxPooling1D MaxPooling2D MaxPooling3D Maximum Minimum MultiHeadAttention Multiply
    Normalization PReLU Permute RMSNormalization RandomBrightness RandomContrast RandomCrop
    RandomFlip RandomRotation RandomTranslation RandomZoom ReLU RepeatVector Rescaling Reshape
    AugMix CutMix MixUp RandAugment RandomColorDegeneration RandomColorJitter
    RandomElasticTransform RandomErasing RandomGaussianBlur RandomGrayscale RandomHue RandomInvert
    RandomPerspective RandomPosterization RandomSaturation RandomSharpness RandomShear
    AdaptiveAveragePooling1D AdaptiveAveragePooling2D AdaptiveAveragePooling3D
    AdaptiveMaxPooling1D AdaptiveMaxPooling2D AdaptiveMaxPooling3D
    MelSpectrogram Resizing STFTSpectrogram SeparableConv1D SeparableConv2D SimpleRNN Softmax
    LayerScale SpatialDropout1D SpatialDropout2D SpatialDropout3D StochasticDepth Subtract
    ThresholdedReLU UnitNormalization UpSampling1D UpSampling2D
    UpSampling3D ZeroPadding1D ZeroPadding2D ZeroPadding3D
""".split()
"""What `keras.layers` and `keras.applications` have, but for those that the import takes apart."""

OPERATIONS = """
    Absolute All Any Arange Arccos Arcsin Arctan Argmax Argmin Cast Ceil Clip Cos Cosh Einsum Equal
    Exp ExpandDims Expm1 Floor FloorDivide GetItem Greater GreaterEqual Isfinite Isinf Isnan Less
    LessEqual Log Log1p LogicalAnd LogicalNot LogicalOr LogicalXor Logsumexp Matmul Max Mean Min Mod
    Negative NotEqual OnesLike Pad Power Prod Reciprocal Relu Relu6 Repeat Round Rsqrt Shape Sigmoid
    Sign Silu Sin Sinh Softplus Softsign Split Sqrt Square Squeeze Stack Std Sum Swapaxes
    Tan Tanh Take Tensordot Tile Transpose TrueDivide Divide Var Where ZerosLike BroadcastTo
    Erf Gelu Elu Selu LeakyRelu HardSigmoid HardSilu LogSoftmax LogSigmoid Reverse Flip
    Arccosh Arcsinh Arctanh Log2 Log10 Erfc Exp2 Cbrt Sinc Trunc Deg2rad Rad2deg Fabs Isposinf
    Isneginf Copy StopGradient ConvertToTensor NanToNum Arctan2 Hypot Logaddexp Logaddexp2 Heaviside
    Fmax Fmin DivideNoNan Fmod BitwiseAnd BitwiseOr BitwiseXor BitwiseLeftShift LeftShift
    BitwiseRightShift RightShift BitwiseNot BitwiseInvert Celu HardShrink SoftShrink Squareplus
    Threshold HardTanh TanhShrink Sparsemax SparsePlus SparseSigmoid Glu Signbit
    Amax Amin Ptp CountNonzero Nansum Nanmax Nanmin Nanmean Nanprod Norm Normalize Moments Median
    Sort Argsort TopK Cumsum Cumprod Roll Diff TakeAlongAxis OneHot Unstack Hstack Vstack Append
    CDist Cholesky Corrcoef Cross DepthToSpace Det Diag Diagflat Digitize Erfinv ExtractSequences
    FFT FFT2 Fliplr Flipud Gcd I0 IFFT2 IRFFT Inv IsIn Isclose Kron Lcm Ldexp Logdet Nanmedian
    Nanquantile Nextafter Quantile RFFT Rot90 SearchSorted Solve SolveTriangular SpaceToDepth STFT
    Trapezoid Vander
    Ravel Moveaxis FullLike Tril Triu Diagonal Trace Outer Inner Vdot LayerNorm RMSNorm
""".split()
"""What `keras.ops` has, beside the classes of the same name as a layer's."""

FUNCTIONS = ["TFOpLambda", "SlicingOpLambda"]
"""Functions of TensorFlow that Keras 2 calls like layers."""

PARTS = ["FoldTime", "UnfoldTime", "MergeDirections", "BothDirections"]
"""
What layers are made of that call others: steps of time among the images of a batch, and back; two
sequences as one; and places where either of two masks holds.
"""

CLASSES = frozenset([*LAYERS, *OPERATIONS, *FUNCTIONS, *PARTS])
"""Every class that has an op."""

INACTIVE = frozenset(
    """
    ActivityRegularization AlphaDropout Dropout GaussianDropout GaussianNoise Identity
    RandomBrightness RandomContrast RandomFlip RandomRotation RandomTranslation RandomZoom
    AugMix CutMix MixUp RandAugment RandomColorDegeneration RandomColorJitter
    RandomElasticTransform RandomErasing RandomGaussianBlur RandomGrayscale RandomHue RandomInvert
    RandomPerspective RandomPosterization RandomSaturation RandomSharpness RandomShear
    SpatialDropout1D SpatialDropout2D SpatialDropout3D StochasticDepth
    """.split()
)
"""Layers that do nothing but in training."""
