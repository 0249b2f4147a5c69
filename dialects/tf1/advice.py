"""What helps with operators that cannot be compiled, by family."""

from __future__ import annotations

import re

_FAMILIES: tuple[tuple[str, str], ...] = (
    (
        r"^_Mkl|^__Mkl",
        "it is made for oneDNN when a graph is run; save the graph before it is optimized",
    ),
    (
        r"Iterator|Dataset|^(Queue|.*FIFOQueue|PaddingFIFO|Random(Shuffle)?Queue)|Queue(V2)?$|Dequeue"
        r"|Enqueue|Reader|^(Stage|Unstage|MapStage|OrderedMap)|RecordInput",
        "it feeds the model from a pipeline; freeze the graph with placeholders in its place",
    ),
    (
        r"^Parse(Single)?(Sequence)?Example|^Parse(Tensor)|^Decode(CSV|JSON|Proto|Raw|PaddedRaw|Comp)"
        r"|^SerializeTensor|^(Enc|Dec)odeProto|DeserializeSparse|DeserializeManySparse|^Serialize",
        "parse records outside of the model, and make what they hold its inputs",
    ),
    (
        r"^(Decode|Encode)(AndCrop)?(Jpeg|Png|Gif|Bmp|Image|WebP|Jxl|Wav)|JpegShape|JpegVariable"
        r"|^(Read|Write)File|MatchingFiles|Sharded",
        "read and decode files outside of the model, and make the decoded tensor an input",
    ),
    (
        r"Table|Vocab",
        "look keys up outside of the model and feed numbers; a table of numbers can be a constant "
        "that is read by GatherV2",
    ),
    (
        r"String|Regex|Unicode|^AsString|ReduceJoin|SegmentJoin|Substr|Base64|Fingerprint|NGrams"
        r"|^StaticRegex|Skipgram|EditDistance",
        "process text outside of the model and feed numbers",
    ),
    (
        r"PyFunc",
        "it runs Python code; write it with TensorFlow's operators, or compute it outside",
    ),
    (
        r"^Cudnn",
        "it runs on GPUs only; export the model with CudnnCompatible cells (LSTMBlockCell, GRU), "
        "to which its weights can be converted",
    ),
    (
        r"Random|Multinomial|TruncatedNormal|StatefulUniform|StatefulStandard|Sobol|Rng|SeedGen"
        r"|NonDeterministic|CandidateSampler|^SampleDistorted|^Stateless.*(Sample|Shuffle)"
        r"|GammaV\d",
        "a compiled model computes the same each time; leave it out (freezing does so with "
        "dropout), fix what switches it off (--set keep_prob=1, --set training=false), or make the "
        "numbers an input",
    ),
    (
        r"^(Variable|VariableV2|VarHandleOp|ReadVariableOp|TemporaryVariable|DestroyTemp.*)$|^Assign"
        r"|VariableOp$|^Resource|^Scatter(Nd)?(Update|Add|Sub|Mul|Div|Min|Max)$|^IsVariable|^VarIs"
        r"|^_(ReadVariablesOp|VarHandlesOp)|VariableShape|^Restore|^Save|CountUpTo|^MutableDense",
        "it reads or writes a variable; freeze the graph, which makes variables constants",
    ),
    (
        r"Grad(V\d)?$|Gradient(V\d)?$|GradInput|BackpropFilter|BackpropInput|^TensorArrayGrad"
        r"|GradWith|GradBoxes|GradImage|^IgammaGradA|Grad(Grad)?V\d$",
        "this gradient is no formula that is known; write it with other operators, or name outputs "
        "that do not need it (--output)",
    ),
    (
        r"^(Resource)?(Sparse)?Apply[A-Z]|^Sdca|Accumulator|^NegTrain|^CTCLoss|LearnedUni",
        "it changes weights, or is a loss; name outputs that do not need it (--output)",
    ),
    (
        r"TPU|Tpu|Xla|Collective|^Nccl|^_?(Host)?(Send|Recv)$|AllReduce|AllToAll|CrossReplica|DTensor"
        r"|^Rpc|RemoteCall|Rendezvous|^Configure|^Shutdown|Relayout",
        "it belongs to several devices; export the model for one CPU",
    ),
    (
        r"Summary|^Debug|^Copy(Host)?$|^DumpTensor|Timestamp|ImportEvent|Stats|^Checkpoint",
        "it watches the graph; freeze the graph for inference, which leaves it out",
    ),
    (
        r"CTCBeamSearch",
        "make the logits an output and search outside, or use CTCGreedyDecoder",
    ),
    (
        r"Ragged|CompositeTensor",
        "use dense tensors that are padded to the longest row",
    ),
    (
        r"^Sparse|^Dense(To|Count)|SparseTensor|SparseMatrix|CSR|SetSize|SetOperation",
        "use dense tensors, such as those of SparseToDense",
    ),
    (
        r"^Quantized|^Requantize|^UniformQuantized|^_?FusedQuantized",
        "export the model before it is quantized",
    ),
    (
        r"Svd|Eig|^Qr$|MatrixExponential|MatrixLogarithm|MatrixSquareRoot|SolveLs",
        "compute the decomposition outside of the model",
    ),
    (
        r"^BoostedTrees|^Tree|^TensorForest|Decision(Tree|Forest)|KMC2|Kmeans|NearestNeighbors",
        "compute it outside of the model",
    ),
    (
        r"^Stack(V2|Push|Pop|Close|PushV2|PopV2|CloseV2)?$|^TensorMap|^Barrier|Mutex|^Session|^Optional",
        "it holds state while the graph runs; rebuild the model without it",
    ),
)

_KNOWN = (
    "replace it by operators that docs/operators.md lists, or name outputs that do not need it "
    "(--output)"
)
_UNKNOWN = (
    "if it is from a library of custom operators, write it with TensorFlow's own, or name outputs "
    "that do not need it (--output)"
)


def next_step(op_type: str, *, is_known: bool) -> str:
    """What a user can do about an operator that is not supported; `is_known` if it has a class."""
    for pattern, text in _FAMILIES:
        if re.search(pattern, op_type):
            return text
    return _KNOWN if is_known else _UNKNOWN
