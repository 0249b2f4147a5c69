from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class AttributeProto(_message.Message):
    __slots__ = ("name", "f", "i", "d", "s", "t", "g", "floats", "doubles", "ints", "strings", "tensors", "graphs", "type", "values")
    class AttributeType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        UNDEFINED: _ClassVar[AttributeProto.AttributeType]
        FLOAT: _ClassVar[AttributeProto.AttributeType]
        UINT8: _ClassVar[AttributeProto.AttributeType]
        INT8: _ClassVar[AttributeProto.AttributeType]
        UINT16: _ClassVar[AttributeProto.AttributeType]
        INT16: _ClassVar[AttributeProto.AttributeType]
        INT32: _ClassVar[AttributeProto.AttributeType]
        INT64: _ClassVar[AttributeProto.AttributeType]
        STRING: _ClassVar[AttributeProto.AttributeType]
        BOOL: _ClassVar[AttributeProto.AttributeType]
        FLOAT16: _ClassVar[AttributeProto.AttributeType]
        DOUBLE: _ClassVar[AttributeProto.AttributeType]
        UINT32: _ClassVar[AttributeProto.AttributeType]
        UINT64: _ClassVar[AttributeProto.AttributeType]
        COMPLEX64: _ClassVar[AttributeProto.AttributeType]
        COMPLEX128: _ClassVar[AttributeProto.AttributeType]
        BFLOAT16: _ClassVar[AttributeProto.AttributeType]
        TENSOR: _ClassVar[AttributeProto.AttributeType]
        GRAPH: _ClassVar[AttributeProto.AttributeType]
        TENSORS: _ClassVar[AttributeProto.AttributeType]
        TUPLE: _ClassVar[AttributeProto.AttributeType]
        LIST: _ClassVar[AttributeProto.AttributeType]
        DICT: _ClassVar[AttributeProto.AttributeType]
        UMONAD: _ClassVar[AttributeProto.AttributeType]
        IOMONAD: _ClassVar[AttributeProto.AttributeType]
        NONE: _ClassVar[AttributeProto.AttributeType]
    UNDEFINED: AttributeProto.AttributeType
    FLOAT: AttributeProto.AttributeType
    UINT8: AttributeProto.AttributeType
    INT8: AttributeProto.AttributeType
    UINT16: AttributeProto.AttributeType
    INT16: AttributeProto.AttributeType
    INT32: AttributeProto.AttributeType
    INT64: AttributeProto.AttributeType
    STRING: AttributeProto.AttributeType
    BOOL: AttributeProto.AttributeType
    FLOAT16: AttributeProto.AttributeType
    DOUBLE: AttributeProto.AttributeType
    UINT32: AttributeProto.AttributeType
    UINT64: AttributeProto.AttributeType
    COMPLEX64: AttributeProto.AttributeType
    COMPLEX128: AttributeProto.AttributeType
    BFLOAT16: AttributeProto.AttributeType
    TENSOR: AttributeProto.AttributeType
    GRAPH: AttributeProto.AttributeType
    TENSORS: AttributeProto.AttributeType
    TUPLE: AttributeProto.AttributeType
    LIST: AttributeProto.AttributeType
    DICT: AttributeProto.AttributeType
    UMONAD: AttributeProto.AttributeType
    IOMONAD: AttributeProto.AttributeType
    NONE: AttributeProto.AttributeType
    NAME_FIELD_NUMBER: _ClassVar[int]
    F_FIELD_NUMBER: _ClassVar[int]
    I_FIELD_NUMBER: _ClassVar[int]
    D_FIELD_NUMBER: _ClassVar[int]
    S_FIELD_NUMBER: _ClassVar[int]
    T_FIELD_NUMBER: _ClassVar[int]
    G_FIELD_NUMBER: _ClassVar[int]
    FLOATS_FIELD_NUMBER: _ClassVar[int]
    DOUBLES_FIELD_NUMBER: _ClassVar[int]
    INTS_FIELD_NUMBER: _ClassVar[int]
    STRINGS_FIELD_NUMBER: _ClassVar[int]
    TENSORS_FIELD_NUMBER: _ClassVar[int]
    GRAPHS_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    VALUES_FIELD_NUMBER: _ClassVar[int]
    name: str
    f: float
    i: int
    d: float
    s: bytes
    t: TensorProto
    g: GraphProto
    floats: _containers.RepeatedScalarFieldContainer[float]
    doubles: _containers.RepeatedScalarFieldContainer[float]
    ints: _containers.RepeatedScalarFieldContainer[int]
    strings: _containers.RepeatedScalarFieldContainer[bytes]
    tensors: _containers.RepeatedCompositeFieldContainer[TensorProto]
    graphs: _containers.RepeatedCompositeFieldContainer[GraphProto]
    type: int
    values: _containers.RepeatedCompositeFieldContainer[AttributeProto]
    def __init__(self, name: _Optional[str] = ..., f: _Optional[float] = ..., i: _Optional[int] = ..., d: _Optional[float] = ..., s: _Optional[bytes] = ..., t: _Optional[_Union[TensorProto, _Mapping]] = ..., g: _Optional[_Union[GraphProto, _Mapping]] = ..., floats: _Optional[_Iterable[float]] = ..., doubles: _Optional[_Iterable[float]] = ..., ints: _Optional[_Iterable[int]] = ..., strings: _Optional[_Iterable[bytes]] = ..., tensors: _Optional[_Iterable[_Union[TensorProto, _Mapping]]] = ..., graphs: _Optional[_Iterable[_Union[GraphProto, _Mapping]]] = ..., type: _Optional[int] = ..., values: _Optional[_Iterable[_Union[AttributeProto, _Mapping]]] = ...) -> None: ...

class ValueInfoProto(_message.Message):
    __slots__ = ("name", "tensor", "denotation", "attr_info")
    NAME_FIELD_NUMBER: _ClassVar[int]
    TENSOR_FIELD_NUMBER: _ClassVar[int]
    DENOTATION_FIELD_NUMBER: _ClassVar[int]
    ATTR_INFO_FIELD_NUMBER: _ClassVar[int]
    name: str
    tensor: _containers.RepeatedCompositeFieldContainer[TensorProto]
    denotation: str
    attr_info: AttributeProto
    def __init__(self, name: _Optional[str] = ..., tensor: _Optional[_Iterable[_Union[TensorProto, _Mapping]]] = ..., denotation: _Optional[str] = ..., attr_info: _Optional[_Union[AttributeProto, _Mapping]] = ...) -> None: ...

class NodeProto(_message.Message):
    __slots__ = ("input", "output", "name", "op_type", "attribute", "domain", "node_attr", "primal_attr")
    INPUT_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    OP_TYPE_FIELD_NUMBER: _ClassVar[int]
    ATTRIBUTE_FIELD_NUMBER: _ClassVar[int]
    DOMAIN_FIELD_NUMBER: _ClassVar[int]
    NODE_ATTR_FIELD_NUMBER: _ClassVar[int]
    PRIMAL_ATTR_FIELD_NUMBER: _ClassVar[int]
    input: _containers.RepeatedScalarFieldContainer[str]
    output: _containers.RepeatedScalarFieldContainer[str]
    name: str
    op_type: str
    attribute: _containers.RepeatedCompositeFieldContainer[AttributeProto]
    domain: str
    node_attr: _containers.RepeatedCompositeFieldContainer[AttributeProto]
    primal_attr: _containers.RepeatedCompositeFieldContainer[AttributeProto]
    def __init__(self, input: _Optional[_Iterable[str]] = ..., output: _Optional[_Iterable[str]] = ..., name: _Optional[str] = ..., op_type: _Optional[str] = ..., attribute: _Optional[_Iterable[_Union[AttributeProto, _Mapping]]] = ..., domain: _Optional[str] = ..., node_attr: _Optional[_Iterable[_Union[AttributeProto, _Mapping]]] = ..., primal_attr: _Optional[_Iterable[_Union[AttributeProto, _Mapping]]] = ...) -> None: ...

class TensorProto(_message.Message):
    __slots__ = ("dims", "data_type", "float_data", "int32_data", "string_data", "int64_data", "name", "raw_data", "double_data", "uint64_data", "external_data", "compression_type")
    class ExternalData(_message.Message):
        __slots__ = ("location", "offset", "length", "checksum")
        LOCATION_FIELD_NUMBER: _ClassVar[int]
        OFFSET_FIELD_NUMBER: _ClassVar[int]
        LENGTH_FIELD_NUMBER: _ClassVar[int]
        CHECKSUM_FIELD_NUMBER: _ClassVar[int]
        location: str
        offset: int
        length: int
        checksum: str
        def __init__(self, location: _Optional[str] = ..., offset: _Optional[int] = ..., length: _Optional[int] = ..., checksum: _Optional[str] = ...) -> None: ...
    DIMS_FIELD_NUMBER: _ClassVar[int]
    DATA_TYPE_FIELD_NUMBER: _ClassVar[int]
    FLOAT_DATA_FIELD_NUMBER: _ClassVar[int]
    INT32_DATA_FIELD_NUMBER: _ClassVar[int]
    STRING_DATA_FIELD_NUMBER: _ClassVar[int]
    INT64_DATA_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    RAW_DATA_FIELD_NUMBER: _ClassVar[int]
    DOUBLE_DATA_FIELD_NUMBER: _ClassVar[int]
    UINT64_DATA_FIELD_NUMBER: _ClassVar[int]
    EXTERNAL_DATA_FIELD_NUMBER: _ClassVar[int]
    COMPRESSION_TYPE_FIELD_NUMBER: _ClassVar[int]
    dims: _containers.RepeatedScalarFieldContainer[int]
    data_type: int
    float_data: _containers.RepeatedScalarFieldContainer[float]
    int32_data: _containers.RepeatedScalarFieldContainer[int]
    string_data: _containers.RepeatedScalarFieldContainer[bytes]
    int64_data: _containers.RepeatedScalarFieldContainer[int]
    name: str
    raw_data: bytes
    double_data: _containers.RepeatedScalarFieldContainer[float]
    uint64_data: _containers.RepeatedScalarFieldContainer[int]
    external_data: TensorProto.ExternalData
    compression_type: int
    def __init__(self, dims: _Optional[_Iterable[int]] = ..., data_type: _Optional[int] = ..., float_data: _Optional[_Iterable[float]] = ..., int32_data: _Optional[_Iterable[int]] = ..., string_data: _Optional[_Iterable[bytes]] = ..., int64_data: _Optional[_Iterable[int]] = ..., name: _Optional[str] = ..., raw_data: _Optional[bytes] = ..., double_data: _Optional[_Iterable[float]] = ..., uint64_data: _Optional[_Iterable[int]] = ..., external_data: _Optional[_Union[TensorProto.ExternalData, _Mapping]] = ..., compression_type: _Optional[int] = ...) -> None: ...

class GraphProto(_message.Message):
    __slots__ = ("node", "name", "parameter", "input", "output", "bprop_hash", "attribute")
    NODE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    PARAMETER_FIELD_NUMBER: _ClassVar[int]
    INPUT_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_FIELD_NUMBER: _ClassVar[int]
    BPROP_HASH_FIELD_NUMBER: _ClassVar[int]
    ATTRIBUTE_FIELD_NUMBER: _ClassVar[int]
    node: _containers.RepeatedCompositeFieldContainer[NodeProto]
    name: str
    parameter: _containers.RepeatedCompositeFieldContainer[TensorProto]
    input: _containers.RepeatedCompositeFieldContainer[ValueInfoProto]
    output: _containers.RepeatedCompositeFieldContainer[ValueInfoProto]
    bprop_hash: str
    attribute: _containers.RepeatedCompositeFieldContainer[AttributeProto]
    def __init__(self, node: _Optional[_Iterable[_Union[NodeProto, _Mapping]]] = ..., name: _Optional[str] = ..., parameter: _Optional[_Iterable[_Union[TensorProto, _Mapping]]] = ..., input: _Optional[_Iterable[_Union[ValueInfoProto, _Mapping]]] = ..., output: _Optional[_Iterable[_Union[ValueInfoProto, _Mapping]]] = ..., bprop_hash: _Optional[str] = ..., attribute: _Optional[_Iterable[_Union[AttributeProto, _Mapping]]] = ...) -> None: ...

class PrimitiveProto(_message.Message):
    __slots__ = ("name", "op_type", "attribute", "instance_name")
    NAME_FIELD_NUMBER: _ClassVar[int]
    OP_TYPE_FIELD_NUMBER: _ClassVar[int]
    ATTRIBUTE_FIELD_NUMBER: _ClassVar[int]
    INSTANCE_NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    op_type: str
    attribute: _containers.RepeatedCompositeFieldContainer[AttributeProto]
    instance_name: str
    def __init__(self, name: _Optional[str] = ..., op_type: _Optional[str] = ..., attribute: _Optional[_Iterable[_Union[AttributeProto, _Mapping]]] = ..., instance_name: _Optional[str] = ...) -> None: ...

class ModelProto(_message.Message):
    __slots__ = ("ir_version", "producer_name", "producer_version", "domain", "model_version", "graph", "functions", "little_endian", "primitives", "mind_ir_version")
    IR_VERSION_FIELD_NUMBER: _ClassVar[int]
    PRODUCER_NAME_FIELD_NUMBER: _ClassVar[int]
    PRODUCER_VERSION_FIELD_NUMBER: _ClassVar[int]
    DOMAIN_FIELD_NUMBER: _ClassVar[int]
    MODEL_VERSION_FIELD_NUMBER: _ClassVar[int]
    GRAPH_FIELD_NUMBER: _ClassVar[int]
    FUNCTIONS_FIELD_NUMBER: _ClassVar[int]
    LITTLE_ENDIAN_FIELD_NUMBER: _ClassVar[int]
    PRIMITIVES_FIELD_NUMBER: _ClassVar[int]
    MIND_IR_VERSION_FIELD_NUMBER: _ClassVar[int]
    ir_version: str
    producer_name: str
    producer_version: str
    domain: str
    model_version: str
    graph: GraphProto
    functions: _containers.RepeatedCompositeFieldContainer[GraphProto]
    little_endian: bool
    primitives: _containers.RepeatedCompositeFieldContainer[PrimitiveProto]
    mind_ir_version: int
    def __init__(self, ir_version: _Optional[str] = ..., producer_name: _Optional[str] = ..., producer_version: _Optional[str] = ..., domain: _Optional[str] = ..., model_version: _Optional[str] = ..., graph: _Optional[_Union[GraphProto, _Mapping]] = ..., functions: _Optional[_Iterable[_Union[GraphProto, _Mapping]]] = ..., little_endian: bool = ..., primitives: _Optional[_Iterable[_Union[PrimitiveProto, _Mapping]]] = ..., mind_ir_version: _Optional[int] = ...) -> None: ...
