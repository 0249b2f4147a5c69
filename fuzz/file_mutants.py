"""
Damage to model files of every format: to bytes, fields of messages, tokens of text.

`mutant` damages one of the models of `file_seeds`, always in the same way for the same number.
"""

from __future__ import annotations

import io
import json
import math
import random
import re
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import onnx
from google.protobuf import text_format
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import DecodeError, Message

from fuzz.file_seeds import MAX_BYTES, RANGES, Files, Seed, weights_of
from fuzz.paddle_messages import program_message
from lowerdeck.dialects.caffe.caffe_pb2 import NetParameter
from lowerdeck.dialects.caffe.layers import layer_types
from lowerdeck.dialects.onnx.ops import op_classes
from lowerdeck.dialects.tf1.signatures import known_operators
from lowerdeck.frontends.mindir.mind_ir_pb2 import ModelProto
from lowerdeck.frontends.tf1.graph_pb2 import GraphDef
from lowerdeck.frontends.tf1.saved_model_pb2 import MetaGraphDef, SavedModel


@dataclass(frozen=True)
class Mutant:
    """A damaged model."""

    number: int
    seed: Seed
    files: Files
    damaged: str
    """The file that differs from the seed's."""
    changes: tuple[str, ...]


def mutant(seeds: Sequence[Seed], seed: int, number: int) -> Mutant:
    """The mutant of this number among those of `seed`."""
    rng = random.Random(f"{seed}/{number}")
    formats = sorted({candidate.format for candidate in seeds})
    weights = [_SHARES.get(name, 1) for name in formats]
    (format_,) = rng.choices(formats, weights)
    chosen = rng.choice([candidate for candidate in seeds if candidate.format == format_])
    donor = rng.choice([candidate for candidate in seeds if candidate.format == format_])
    damaged = _damaged_file(chosen, rng)
    data, changes = chosen.files[damaged], list[str]()
    kind = message_kind(chosen, damaged)
    message = None if kind is None or rng.random() < 0.15 else parsed(kind, damaged, data)
    if message is not None and kind is not None:
        other = donor.files.get(damaged)
        given = None if other is None else parsed(kind, damaged, other)
        edits = _Edits(rng, given)
        for _ in range(_few(rng)):
            changes.append(edits.damage(message))
        data = serialized(damaged, message)
    elif zipfile.is_zipfile(io.BytesIO(data)) and rng.random() < 0.9:
        data = _damaged_entry(rng, data, changes)
    elif damaged.endswith(".safetensors") and rng.random() < 0.8:
        end = 8 + int.from_bytes(data[:8], "little")
        header = _damaged_json(rng, data[8:end], changes)
        data = len(header).to_bytes(8, "little") + header + data[end:]
    elif damaged.endswith(".json") and rng.random() < 0.6:
        data = _damaged_json(rng, data, changes)
    elif _is_text(damaged):
        data = _damaged_text(rng, data, donor.files.get(damaged, b""), changes)
    else:
        for _ in range(_few(rng)):
            data = _damaged_bytes(rng, data, donor.files.get(damaged, b""), changes)
    return Mutant(number, chosen, {**chosen.files, damaged: data}, damaged, tuple(changes))


_SHARES = {"onnx": 6, "tf1": 6, "caffe": 3, "mlir": 5, "quantized": 3}
"""How often a format is damaged; the others once."""


def _few(rng: random.Random) -> int:
    """1 mostly, at times up to 6."""
    return min(6, 1 + int(rng.expovariate(1.2)))


def _damaged_file(seed: Seed, rng: random.Random) -> str:
    if seed.format == "compiled":
        # Damage to a library is what checksums are for: it is code.
        return rng.choice([name for name in seed.files if name.endswith(".json")])
    if seed.format == "ranges":
        return RANGES
    if (weights := weights_of(seed)) is not None:
        return weights
    names = [name for name, data in seed.files.items() if len(data) <= 4 * MAX_BYTES]
    main = [name for name in names if name == seed.entry or "saved_model" in name]
    return rng.choice(main if main and rng.random() < 0.6 else names)


def message_kind(seed: Seed, file: str) -> type[Message] | None:
    """The message in a file; None if it is none."""
    if file.endswith(".onnx"):
        return onnx.ModelProto
    if file.endswith(".meta"):
        return MetaGraphDef
    if "saved_model.pb" in file:
        return SavedModel
    if file.endswith((".pb", ".pbtxt")) and seed.format == "tf1":
        return GraphDef
    if file.endswith(".mindir"):
        return ModelProto
    if file.endswith(".pdmodel"):
        return program_message()
    return NetParameter if file.endswith((".prototxt", ".caffemodel")) else None


def _is_text(file: str) -> bool:
    return file.endswith((".pbtxt", ".prototxt", ".mlir", ".json", ".cfg", ".tree"))


def parsed(kind: type[Message], file: str, data: bytes) -> Any:
    """The message of a file, or None if it is not read."""
    message = kind()
    try:
        if _is_text(file):
            text_format.Parse(data.decode("utf-8", "replace"), message)
        else:
            message.ParseFromString(data)
    except (DecodeError, text_format.ParseError, ValueError, RecursionError):
        return None
    return message


def serialized(file: str, message: Any) -> bytes:
    """The file of a message."""
    if _is_text(file):
        return text_format.MessageToString(message).encode("utf-8", "replace")
    return cast(bytes, message.SerializePartialToString())


# Bytes and text

_NUMBERS = (0, 1, -1, 2, -2, 3, 5, 7, 63, 64, 127, 128, 255, 256, 1000, 65536, 2**31 - 1, -(2**31))
_LARGE = (2**31, 2**32, 2**40, 2**62, 2**63 - 1, -(2**63), 10**9, 10**6)


def _damaged_bytes(rng: random.Random, data: bytes, donor: bytes, changes: list[str]) -> bytes:
    out = bytearray(data or b"\0")
    at = rng.randrange(len(out))
    size = min(len(out) - at, 1 + int(rng.expovariate(0.1)))
    match rng.randrange(7):
        case 0:
            out[at] ^= 1 << rng.randrange(8)
        case 1:
            out[at] = rng.choice((0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)))
        case 2:
            del out[at:]
        case 3:
            del out[at : at + size]
        case 4:
            out[at:at] = out[at : at + size]
        case 5:
            start = rng.randrange(len(donor) + 1)
            out[at : at + size] = donor[start : start + size]
        case _:
            out[at : at + size] = rng.randbytes(size)
    changes.append(f"bytes from {at}")
    return bytes(out)


_NAMES = ("", "/", "../../etc/passwd", "/etc/passwd", "a" * 60000, "model/models/model.json", "\\x")
"""What entries of an archive may be called."""


_PLAIN: list[Any] = [None, True, "", "x", [], {}, 0.5, math.nan, "9" * 5000]


def _damaged_json(rng: random.Random, data: bytes, changes: list[str]) -> bytes:
    """Values of an object in JSON that are others, or are gone; what is told of sources stays."""
    whole: Any = json.loads(data)
    places = list(_json_places(whole))
    for _ in range(_few(rng) if places else 0):
        owner, key = rng.choice(places)
        other, place = rng.choice(places)
        if not (_is_there(owner, key) and _is_there(other, place)):
            continue
        match rng.randrange(4):
            case 0:
                owner[key] = rng.choice([*_PLAIN, *_NUMBERS, *_LARGE])
            case 1:
                owner[key] = json.loads(json.dumps(other[place]))
            case 2:
                del owner[key]
            case _:
                is_number = type(owner[key]) is int
                owner[key] = owner[key] + rng.choice((-1, 1, 2)) if is_number else [owner[key]]
        changes.append(f"value of {key}")
    return json.dumps(whole).encode()


def _is_there(owner: Any, key: Any) -> bool:
    return key in owner if isinstance(owner, dict) else key < len(owner)


def _json_places(value: Any) -> Iterator[tuple[Any, Any]]:
    pairs = cast("dict[Any, Any]", value).items() if isinstance(value, dict) else enumerate(value)
    for key, one in pairs:
        if key != "metadata":
            yield value, key
            if isinstance(one, dict | list):
                yield from _json_places(one)


def _damaged_entry(rng: random.Random, data: bytes, changes: list[str]) -> bytes:
    """An archive with damage to one of its entries, whose checksum is right."""
    with zipfile.ZipFile(io.BytesIO(data)) as file:
        entries = {name: file.read(name) for name in file.namelist()}
    names = [name for name in entries if name.endswith((".py", ".pkl", ".json"))] * 4 + [*entries]
    name = rng.choice(names)
    if name.endswith(".json") and rng.random() < 0.8:
        entries[name] = _damaged_json(rng, entries[name], changes)
    else:
        damage = _damaged_text if name.endswith((".py", ".json")) else _damaged_bytes
        entries[name] = damage(rng, entries[name], entries[rng.choice(names)], changes)
    changes.append(f"entry {name}")
    if rng.random() < 0.05:
        entries[rng.choice(_NAMES)] = entries.pop(rng.choice([*entries]))
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as file:
        for key, value in entries.items():
            file.writestr(zipfile.ZipInfo(key), value)
    return out.getvalue()


_TOKEN = re.compile(r"[\w.%$@]+|\s+|->|.", re.DOTALL)
_HUGE_TEXTS = ("9" * 5000, "-" + "9" * 30, "1e400", "0x" + "F" * 40, "nan", "inf", "-0.0", '""')


def _damaged_text(rng: random.Random, data: bytes, donor: bytes, changes: list[str]) -> bytes:
    text = data.decode("utf-8", "replace")
    tokens: list[str] = _TOKEN.findall(text)
    others: list[str] = _TOKEN.findall(donor.decode("utf-8", "replace"))
    for _ in range(_few(rng)):
        if not tokens:
            break
        at = rng.randrange(len(tokens))
        match rng.randrange(10):
            case 0:
                del tokens[at]
            case 1:
                tokens.insert(at, tokens[at])
            case 2:
                tokens[at] = rng.choice(tokens)
            case 3:
                tokens[at] = rng.choice(others or tokens)
            case 4:
                numbers = [k for k, token in enumerate(tokens) if token.isdigit()]
                at = rng.choice(numbers or [at])
                tokens[at] = _number_text(rng, tokens[at])
            case 5:
                other = rng.randrange(len(tokens))
                tokens[at], tokens[other] = tokens[other], tokens[at]
            case 6:
                tokens[at] = rng.choice((_number_text(rng, "1"), *_HUGE_TEXTS))
            case 7:
                words = [
                    k for k, token in enumerate(tokens) if token[0].isalpha() or token[0] in "%@"
                ]
                if words:
                    at, other = rng.choice(words), rng.choice(words)
                    tokens[at] = tokens[other]
            case 8:
                lines = "".join(tokens).splitlines(keepends=True)
                line = rng.randrange(len(lines) or 1)
                lines[line : line + 1] = rng.choice(([], lines[line : line + 1] * 2))
                tokens = _TOKEN.findall("".join(lines))
            case _:
                if rng.random() < 0.2:
                    bracket = rng.choice("([{<")
                    tokens[at] = bracket * rng.choice((2, 60, 3000))
                elif rng.random() < 0.2:
                    del tokens[at:]
                else:
                    tokens[at] = tokens[at] + rng.choice(tokens)
        changes.append(f"tokens at {at}")
    return "".join(tokens).encode("utf-8", "replace")


def _number_text(rng: random.Random, old: str) -> str:
    near = int(old[:9]) if old[:9].isdigit() else 1
    return str(rng.choice((near + 1, near - 1, -near, 2 * near, *_NUMBERS, *_LARGE)))


# Messages

Site = tuple[Any, FieldDescriptor]


class _Edits:
    """Changes to the fields of messages."""

    def __init__(self, rng: random.Random, donor: Any) -> None:
        self.rng = rng
        self.donor = donor

    def damage(self, message: Any) -> str:
        """Change one field anywhere in a message; where that was."""
        rng = self.rng
        sites = list(_sites(message, absent=rng.random() < 0.12)) or [
            (message, _first_field(message))
        ]
        owner, field = rng.choice(sites)
        if rng.random() < 0.25:  # fields of which there are few in a file of many weights
            fields = sorted({f.full_name for _, f in sites})
            name = rng.choice(fields)
            owner, field = rng.choice([site for site in sites if site[1].full_name == name])
        try:
            self._change(message, owner, field)
        except (TypeError, ValueError, AttributeError, UnicodeError, KeyError):
            owner.ClearField(field.name)  # what cannot be there goes
        return f"{field.full_name}"

    def _change(self, root: Any, owner: Any, field: FieldDescriptor) -> None:
        if is_map(field):
            self._change_map(owner, field)
        elif field.is_repeated:
            self._change_list(root, owner, field)
        elif field.message_type is not None:
            self._change_message(root, owner, field)
        else:
            setattr(owner, field.name, self._value(root, field, getattr(owner, field.name)))

    def _change_map(self, owner: Any, field: FieldDescriptor) -> None:
        entries = getattr(owner, field.name)
        keys = sorted(entries)
        key = self.rng.choice(keys) if keys else ""
        match self.rng.randrange(4):
            case 0:
                del entries[key]
            case 1:
                entries[f"{key}_"].CopyFrom(entries[key])
            case 2:
                entries[key].Clear()
            case _:
                entries[key].CopyFrom(entries[self.rng.choice(keys or [""])])

    def _change_list(self, root: Any, owner: Any, field: FieldDescriptor) -> None:
        items = getattr(owner, field.name)
        rng, count = self.rng, len(items)
        at = rng.randrange(count) if count else 0
        is_message = field.message_type is not None
        what = rng.randrange(9)
        if count == 0 or what == 0:
            if is_message:
                given = self._given(root, field)
                items.add() if given is None else items.add().CopyFrom(given)
            else:
                items.append(self._value(root, field, items[0] if count else None))
        elif what == 1:
            del items[at]
        elif what == 2:
            items.add().CopyFrom(items[at]) if is_message else items.append(items[at])
        elif what == 3:
            del items[at:]
        elif what == 4:
            order = [_copied(item) for item in items]
            rng.shuffle(order)
            del items[:]
            items.extend(order)
        elif is_message:
            given = self._given(root, field)
            items[at].Clear() if given is None or what == 5 else items[at].CopyFrom(given)
        else:
            items[at] = self._value(root, field, items[at])

    def _change_message(self, root: Any, owner: Any, field: FieldDescriptor) -> None:
        given = self._given(root, field)
        if given is None or self.rng.random() < 0.4:
            owner.ClearField(field.name)
        else:
            getattr(owner, field.name).CopyFrom(given)

    def _given(self, root: Any, field: FieldDescriptor) -> Any:
        """A message of the field's type from elsewhere, this file or another one."""
        source = self.donor if self.donor is not None and self.rng.random() < 0.4 else root
        found = [m for m in messages(source) if m.DESCRIPTOR is field.message_type]
        return _copied(self.rng.choice(found)) if found else None

    def _value(self, root: Any, field: FieldDescriptor, old: Any) -> Any:
        rng = self.rng
        kind = field.cpp_type
        if kind == FieldDescriptor.CPPTYPE_BOOL:
            return not old
        if kind == FieldDescriptor.CPPTYPE_ENUM:
            numbers = [value.number for value in cast(Any, field.enum_type).values]
            return rng.choice([*numbers, 0, rng.randrange(-2, 200)])
        if kind in (FieldDescriptor.CPPTYPE_FLOAT, FieldDescriptor.CPPTYPE_DOUBLE):
            return rng.choice((0.0, -0.0, -1.0, 1e38, 1e-45, math.nan, math.inf, -math.inf, 0.5))
        if kind != FieldDescriptor.CPPTYPE_STRING:
            near = old if isinstance(old, int) else 1
            return rng.choice((near + 1, near - 1, -near, 2 * near, *_NUMBERS, *_LARGE))
        if field.type == FieldDescriptor.TYPE_BYTES:
            data = old if isinstance(old, bytes) else b""
            return _damaged_bytes(rng, data, data, [])
        return self._name(root, field, old if isinstance(old, str) else "")

    def _name(self, root: Any, field: FieldDescriptor, old: str) -> str:
        rng = self.rng
        if field.full_name in _OPERATORS and rng.random() < 0.8:
            return rng.choice(_OPERATORS[field.full_name]())
        if rng.random() < 0.6:
            same = [name for name, kind in _strings(root) if kind == field.full_name]
            every = [name for name, _ in _strings(root)]
            return rng.choice(same if same and rng.random() < 0.5 else every or [""])
        odd = (
            "",
            "\0",
            "a" * 3000,
            "é",
            "x:0",
            "^x",
            "x:99",
            "9" * 5000,
            " ",
            "/",
            "..",
            f"{old}_",
        )
        return rng.choice((*odd, old[:-1], *map(str, _NUMBERS)))


def _onnx_operators() -> list[str]:
    return sorted({cls.schema.name for cls in op_classes()})


_OPERATORS: Mapping[str, Callable[[], Sequence[str]]] = {
    "onnx.NodeProto.op_type": _onnx_operators,
    "lowerdeck.tf1.NodeDef.op": known_operators,
    "lowerdeck.caffe.LayerParameter.type": lambda: sorted(layer_types()),
}
"""The names that fields choose among."""


def is_map(field: FieldDescriptor) -> bool:
    kind = field.message_type
    return kind is not None and bool(kind.GetOptions().map_entry)


def messages(message: Any) -> Iterator[Any]:
    """The message and all in it."""
    yield message
    for field, value in message.ListFields():
        if field.message_type is None:
            continue
        if is_map(field):
            nested = (value[key] for key in sorted(value))
            nested = (item for item in nested if isinstance(item, Message))
        else:
            nested = value if field.is_repeated else [value]
        for item in nested:
            yield from messages(item)


_REMARKS = frozenset({"doc_string", "metadata_props", "denotation", "device", "debug_info"})
"""Fields that nobody reads."""


def _sites(message: Any, *, absent: bool) -> Iterator[Site]:
    """The fields that are there, or those that are not."""
    for owner in messages(message):
        present = [field for field, _ in owner.ListFields()]
        others = [field for field in owner.DESCRIPTOR.fields if field not in present]
        fields = others if absent else present
        yield from ((owner, field) for field in fields if field.name not in _REMARKS)


def _first_field(message: Any) -> FieldDescriptor:
    return message.DESCRIPTOR.fields[0]


def _strings(message: Any) -> Iterator[tuple[str, str]]:
    """All names in a message with the field of each."""
    for owner in messages(message):
        for field, value in owner.ListFields():
            if field.type == FieldDescriptor.TYPE_STRING and not is_map(field):
                names = value if field.is_repeated else [value]
                yield from ((name, field.full_name) for name in names if isinstance(name, str))


def _copied(item: Any) -> Any:
    if not isinstance(item, Message):
        return item
    copy = type(item)()
    copy.CopyFrom(item)
    return copy


# Smaller ones


def smaller(one: Mutant) -> Iterator[Files]:
    """The files with one part less, large parts first."""
    data, kind = one.files[one.damaged], message_kind(one.seed, one.damaged)
    message = None if kind is None else parsed(kind, one.damaged, data)
    if message is not None and kind is not None:
        for data in _without_fields(kind, message, one.damaged):
            yield {**one.files, one.damaged: data}
    elif _is_text(one.damaged):
        lines = data.splitlines(keepends=True)
        for size in (len(lines) // 2, len(lines) // 4, 4, 1):
            for start in range(0, len(lines), size or 1):
                yield {**one.files, one.damaged: b"".join(lines[:start] + lines[start + size :])}


def _without_fields(kind: type[Message], message: Any, file: str) -> Iterator[bytes]:
    data = message.SerializePartialToString()
    count = len(list(_removable(message)))
    for index in range(count):
        copy = cast(Any, kind())
        copy.ParseFromString(data)
        owner, field, at = list(_removable(copy))[index]
        if at is None:
            owner.ClearField(field.name)
        else:
            del getattr(owner, field.name)[at]
        yield serialized(file, copy)


def _removable(message: Any) -> Iterator[tuple[Any, FieldDescriptor, Any]]:
    for owner in messages(message):
        for field, value in owner.ListFields():
            if is_map(field):
                yield from ((owner, field, key) for key in sorted(value))
            elif field.is_repeated:
                yield from ((owner, field, at) for at in reversed(range(min(len(value), 20))))
            else:
                yield owner, field, None


def as_json(one: Mutant, what: str, where: str, text: str) -> str:
    """What is written beside the files of a finding."""
    about = {"mutant": one.number, "seed": one.seed.name, "format": one.seed.format}
    about |= {"phase": one.seed.phase, "entry": one.seed.entry, "damaged": one.damaged}
    about |= {"what": what, "where": where, "changes": list(one.changes), "text": text.split("\n")}
    return json.dumps(about, indent=1)
