"""ProgramDesc of PaddlePaddle as a message of protobuf, whose fields mutants change."""

from __future__ import annotations

from functools import cache

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import Message

_MESSAGES = """
Program: blocks=1*Block version=4:Version
Version: version=1:int64
Block: idx=1:int32 parent_idx=2:int32 vars=3*Variable ops=4*Op
Variable: name=1:string type=2:Type persistable=3:bool
Type: type=1:int32 lod_tensor=3:Held tensor_array=4:Held
Held: tensor=1:Tensor lod_level=2:int32
Tensor: data_type=1:int32 dims=2*int64
Op: inputs=1*Slot outputs=2*Slot type=3:string attrs=4*Attribute
Slot: parameter=1:string arguments=2*string
Attribute: name=1:string type=2:int32 i=3:int32 f=4:float s=5:string ints=6*int32 floats=7*float \
    strings=8*string b=10:bool bools=11*bool block_idx=12:int32 l=13:int64 blocks_idx=14*int32 \
    longs=15*int64 float64s=16*double var_name=17:string vars_name=18*string float64=19:double \
    scalar=20:Scalar scalars=21*Scalar
Scalar: type=1:int32 b=2:bool i=3:int64 r=4:double
"""
"""
Messages and their fields: a name, a number, `:` for one and `*` for several of a kind. It is what
the project's own reader knows (`framework.proto` of PaddlePaddle); other fields stay as they are.
"""


@cache
def program_message() -> type[Message]:
    """The class of whole programs."""
    file = descriptor_pb2.FileDescriptorProto(name="lowerdeck_program.proto", syntax="proto2")
    file.package = "lowerdeck.paddle"
    for line in _MESSAGES.strip().replace("\\\n", "").splitlines():
        name, _, fields = line.partition(": ")
        message = file.message_type.add(name=name)
        for text in fields.split():
            _add_field(message, text)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    found = pool.FindMessageTypeByName("lowerdeck.paddle.Program")
    return message_factory.GetMessageClass(found)


def _add_field(message: descriptor_pb2.DescriptorProto, text: str) -> None:
    kinds = descriptor_pb2.FieldDescriptorProto
    name, _, rest = text.partition("=")
    is_list = "*" in rest
    number, _, kind = rest.partition("*" if is_list else ":")
    field = message.field.add(name=name, number=int(number))
    field.label = kinds.LABEL_REPEATED if is_list else kinds.LABEL_OPTIONAL
    if kind[0].isupper():
        field.type, field.type_name = kinds.TYPE_MESSAGE, f".lowerdeck.paddle.{kind}"
    else:
        field.type = kinds.Type.Value(f"TYPE_{kind.upper()}")
