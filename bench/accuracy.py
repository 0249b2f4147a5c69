"""
What trained networks lose in fewer bits, on data that no calibration has seen.

    python -m bench.real_models install
    python -m bench.accuracy [NAME ...] [--ways WAY ...] [--packages FOLDER] [--json FILE]

The networks are those of `examples/digits`, and of packages that `bench.real_models` installs:
magika, which tells types of files by their bytes, PP-OCRv4 of rapidocr-onnxruntime, which finds
lines of text and reads them, and silero-vad, which tells speech from other sound. One that is not
there is left out. Files are those of this machine, lines are drawn with its fonts (by Pillow, which
has to be installed), speech is that of espeak-ng, which has to be, too, with pauses and noise; all
are chosen by a fixed seed.

Each way of fewer bits is compared with the C in f32: by the share of decisions that agree, by
characters that are read wrong, by the overlap of masks. Times are not taken.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

import lowerdeck
from bench.measuring import markdown_table
from models.campaign import main_of

Array: TypeAlias = NDArray[Any]
Sample: TypeAlias = Array | Mapping[str, Array]
Judge: TypeAlias = Callable[[Sequence[Array], Sequence[Array]], Mapping[str, float]]
Outputs: TypeAlias = Sequence[Mapping[str, Array]]
Loss: TypeAlias = Callable[[Outputs, Outputs], float]

EXAMPLES = Path(__file__).parents[1] / "examples"


@dataclass(frozen=True)
class Case:
    """A network, samples to calibrate with, others, and what is told of its outputs for these."""

    model: str
    calibration: Sequence[Sample]
    fresh: Sequence[Sample]
    judge: Judge
    """Of the first outputs in f32 and in fewer bits, sample by sample."""
    drop: tuple[str | Loss, float] = ("error", 0.02)
    """What a search may lose."""
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    more: Sequence[Sample] = ()
    """Further samples to round weights with, which takes as many as there are."""


# What is told of outputs


def agreement(want: Sequence[Array], found: Sequence[Array]) -> float:
    """The share of rows whose largest element is the same."""
    a, b = (np.concatenate([each.argmax(-1).reshape(-1) for each in one]) for one in (want, found))
    return float((a == b).mean())


def overlap(want: Sequence[Array], found: Sequence[Array], level: float = 0.3) -> float:
    """What two masks have in common, by what either of them has."""
    a, b = (np.concatenate([each.reshape(-1) > level for each in one]) for one in (want, found))
    return float((a & b).sum() / max((a | b).sum(), 1))


def edits(one: str, other: str) -> int:
    """How many characters are to be changed, added or removed (Levenshtein)."""
    row = list(range(len(other) + 1))
    for number, char in enumerate(one, 1):
        before, row[0] = row[0], number
        for k, own in enumerate(other, 1):
            before, row[k] = row[k], min(row[k] + 1, row[k - 1] + 1, before + (char != own))
    return row[-1]


def spelled(scores: Array, characters: Sequence[str]) -> str:
    """The text of scores [steps, characters], of which the first is none (CTC, by the largest)."""
    codes: list[int] = scores.argmax(-1).tolist()
    pairs = zip(codes, [0, *codes[:-1]], strict=True)
    return "".join(characters[code] for code, before in pairs if code and code != before)


# Digits


def _digits(name: str, flat: bool = False) -> Callable[[Path], Case]:
    def case(_: Path) -> Case:
        folder = EXAMPLES / "digits"
        held = np.load(folder / "held_back.npz")
        trained = np.load(EXAMPLES / "compress" / "training.npz")["images"][:160]
        images, seen = held["images"], trained[:, None].astype(np.float32) / 16
        if flat:
            images, seen = images[:, 0], seen[:, 0]
        images, seen, labels = images[:, None], seen[:, None], held["labels"]

        def judge(want: Sequence[Array], found: Sequence[Array]) -> Mapping[str, float]:
            classes = np.concatenate([each.reshape(1, -1).argmax(-1) for each in found])
            return {"agree": agreement(want, found), "right": float((classes == labels).mean())}

        return Case(str(folder / name), list(seen), list(images), judge)

    return case


# Types of files

_HEAD = 1024
"""Bytes of the beginning of a file that magika looks at, and of its end."""
_BLOCK = 4096
"""Those that are read, of which spaces around are left out."""
_NONE = 256
"""What stands for a byte that is not there."""
_FOLDERS = ("/etc", "/usr/bin", "/usr/include", "/usr/lib", "/usr/share", str(EXAMPLES.parent))
_OF_ONE_KIND = 60
"""Files with the same suffix."""
_SEEN = 1000
"""Files that are calibrated with: twice as many as the last matrix has rows."""
_MORE = 3000
"""Files that weights are rounded with beside these."""


def file_bytes(path: Path) -> list[int]:
    """What magika is given of a file."""
    with path.open("rb") as file:
        first = file.read(_BLOCK).lstrip()[:_HEAD]
        file.seek(max(0, path.stat().st_size - _BLOCK))
        last = file.read(_BLOCK).rstrip()[-_HEAD:]
    return [*first, *[_NONE] * (2 * _HEAD - len(first) - len(last)), *last]


def _files(count: int) -> Array:
    kinds: dict[str, list[str]] = {}
    for root in _FOLDERS:
        for folder, names, files in os.walk(root):
            names[:] = sorted(name for name in names if not name.startswith("."))
            for path in (os.path.join(folder, name) for name in sorted(files)):
                if os.path.isfile(path) and not os.path.islink(path):
                    kinds.setdefault(os.path.splitext(path)[1].lower(), []).append(path)
    choose = random.Random(7)
    paths: list[str] = []
    for kind in sorted(kinds):
        choose.shuffle(kinds[kind])
        paths += kinds[kind][:_OF_ONE_KIND]
    choose.shuffle(paths)
    found: dict[bytes, list[int]] = {}
    for path in paths:
        try:
            content = file_bytes(Path(path))
        except OSError:
            continue
        if content.count(_NONE) < 2 * _HEAD - 16:
            found.setdefault(np.array(content, np.int16).tobytes(), content)
        if len(found) == count:
            break
    return np.array(list(found.values()), np.int32)[:, None]


def _magika(packages: Path) -> Case:
    files = _files(_SEEN + 2000 + _MORE)

    def judge(want: Sequence[Array], found: Sequence[Array]) -> Mapping[str, float]:
        return {"agree": agreement(want, found)}

    model = packages / "magika" / "models" / "standard_v3_3" / "model.onnx"
    seen, fresh, more = np.split(files, (_SEEN, _SEEN + 2000))
    return Case(str(model), list(seen), list(fresh), judge, more=list(more))


# Text

_WIDTH, _HEIGHT = 320, 48
"""Of a line."""


class _Pen:
    """Draws text, the same for the same seed."""

    def __init__(self, seed: int) -> None:
        self.choose = random.Random(seed)
        self._noise = np.random.default_rng(seed)
        self._words = (EXAMPLES.parent / "docs" / "architecture.md").read_text().split()
        fonts = sorted(Path("/usr/share/fonts").rglob("DejaVu*.ttf"))
        self._fonts = [each for each in fonts if "Math" not in each.name]

    def _word(self) -> str:
        if self.choose.random() < 0.2:
            return str(self.choose.randrange(10 ** self.choose.randrange(1, 7)))
        word = self.choose.choice(self._words)
        return word if word.isascii() else "x"

    def text(self, size: int, width: int) -> tuple[str, Any]:
        """A line that is no longer than so many pixels, if it has several words, and its font."""
        load: Any = import_module("PIL.ImageFont").truetype
        font = load(str(self.choose.choice(self._fonts)), size)
        text = self._word()
        while font.getlength(more := f"{text} {self._word()}") <= width:
            text = more
        return text, font

    def image(self, width: int, height: int, gray: int, draw: Callable[[Any], None]) -> Array:
        """What is drawn, a little turned, blurred and noisy: [3, height, width], 0 to 1."""
        images: Any = import_module("PIL.Image")
        image = images.new("RGB", (width, height), (gray,) * 3)
        draw(import_module("PIL.ImageDraw").Draw(image))
        turned = image.rotate(
            self.choose.uniform(-1, 1), resample=images.BILINEAR, fillcolor=(gray,) * 3
        )
        blur: Any = import_module("PIL.ImageFilter").GaussianBlur
        pixels = np.asarray(turned.filter(blur(self.choose.uniform(0, 0.9))), np.float32)
        pixels += self._noise.normal(size=pixels.shape) * self.choose.uniform(0, 15)
        return np.clip(pixels, 0, 255).transpose(2, 0, 1) / 255

    def line(self) -> tuple[str, Array]:
        """A line of text, as it is read."""
        text, font = self.text(size := self.choose.randrange(22, 36), _WIDTH - 20)
        gray, ink = self.choose.randrange(120, 256), self.choose.randrange(100)
        if self.choose.random() < 0.3:
            gray, ink = ink, gray
        place = (6, (_HEIGHT - size * 1.2) / 2)
        pixels = self.image(
            _WIDTH, _HEIGHT, gray, lambda on: on.text(place, text, font=font, fill=(ink,) * 3)
        )
        return text, ((pixels - 0.5) / 0.5).astype(np.float32)

    def page(self) -> Array:
        """Several lines, as they are found."""

        def draw(on: Any) -> None:
            y = self.choose.randrange(5, 40)
            while y < _WIDTH - 40:
                size = self.choose.randrange(12, 34)
                text, font = self.text(size, self.choose.randrange(60, _WIDTH - 40))
                ink = (self.choose.randrange(110),) * 3
                on.text((self.choose.randrange(4, 40), y), text, font=font, fill=ink)
                y += int(size * 1.3) + self.choose.randrange(4, 40)

        pixels = self.image(_WIDTH, _WIDTH, self.choose.randrange(140, 256), draw)
        mean, spread = (np.reshape(each, (3, 1, 1)) for each in (_MEAN, _SPREAD))
        return ((pixels - mean) / spread).astype(np.float32)


_MEAN, _SPREAD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
"""Of the channels of the images that the network was trained with."""


def _of_ocr(packages: Path, part: str) -> str:
    return str(packages / "rapidocr_onnxruntime" / "models" / f"ch_PP-OCRv4_{part}_infer.onnx")


def _reading(packages: Path) -> Case:
    path = _of_ocr(packages, "rec")
    load: Any = import_module("onnx").load
    known: dict[str, str] = {each.key: each.value for each in load(path).metadata_props}
    characters = ["", *known["character"].splitlines(), " "]
    seen, fresh = _Pen(1), _Pen(2)
    lines = [fresh.line() for _ in range(300)]

    def judge(want: Sequence[Array], found: Sequence[Array]) -> Mapping[str, float]:
        read = [spelled(each[0], characters) for each in found]
        wrong = sum(edits(text, own) for (text, _), own in zip(lines, read, strict=True))
        total = sum(len(text) for text, _ in lines)
        return {"agree": agreement(want, found), "characters wrong": wrong / total}

    calibration = [seen.line()[1][None] for _ in range(64)]
    pixels = [each[None] for _, each in lines]
    options = {"input_shapes": {"x": pixels[0].shape}}
    return Case(path, calibration, pixels, judge, options=options)


def _finding(packages: Path) -> Case:
    seen, fresh = _Pen(1), _Pen(2)
    pages = [fresh.page()[None] for _ in range(40)]

    def judge(want: Sequence[Array], found: Sequence[Array]) -> Mapping[str, float]:
        return {"overlap": overlap(want, found)}

    calibration = [seen.page()[None] for _ in range(24)]
    options = {"input_shapes": {"x": pages[0].shape}}
    return Case(_of_ocr(packages, "det"), calibration, pages, judge, options=options)


# Speech

_RATE = 16000
"""Samples of sound in a second."""
_FRAME, _BEFORE = 512, 64
"""Those that a decision is about, and those before them that are looked at, too."""
_VOICES = ("en-us", "en-gb", "en+f3", "en+m3", "de", "fr")


def frames_of(sound: Array) -> Array:
    """The windows [frames, samples] of sound that decisions are made of."""
    padded = np.concatenate([np.zeros(_BEFORE, np.float32), sound])
    starts = range(0, len(sound) - _FRAME + 1, _FRAME)
    return np.stack([padded[start : start + _BEFORE + _FRAME] for start in starts])


def _spoken(text: str, voice: str, speed: int, pitch: int) -> Array:
    """A sentence, by espeak-ng."""
    command = ["espeak-ng", "-v", voice, "-s", str(speed), "-p", str(pitch), "--stdout", text]
    found = subprocess.run(command, capture_output=True, check=True).stdout
    rate = int.from_bytes(found[24:28], "little")
    sound = np.frombuffer(found[44:], np.int16).astype(np.float32) / 32768
    times = np.arange(0, len(sound), rate / _RATE)
    return np.interp(times, np.arange(len(sound)), sound).astype(np.float32)


def _conversation(seed: int) -> Mapping[str, Array]:
    """Sentences of several voices with pauses between them, and noise that changes every second."""
    choose, noise = random.Random(seed), np.random.default_rng(seed)
    words = (EXAMPLES.parent / "docs" / "architecture.md").read_text().split()
    words = [word for word in words if word.isalpha()]
    parts: list[Array] = []
    for _ in range(6):
        text = " ".join(choose.choices(words, k=choose.randrange(6, 14)))
        how = choose.choice(_VOICES), choose.randrange(120, 200), choose.randrange(20, 80)
        parts.append(_spoken(text, *how) * np.float32(choose.uniform(0.1, 1)))
        parts.append(np.zeros(int(choose.uniform(0.3, 1.5) * _RATE), np.float32))
    sound = np.concatenate(parts)
    levels = noise.choice([1e-3, 5e-3, 2e-2, 5e-2], size=len(sound) // _RATE + 1)
    hiss = noise.normal(size=len(sound)) * levels.repeat(_RATE)[: len(sound)]
    state = np.zeros((1, 1, 128), np.float32)
    frames = frames_of(np.clip(sound + hiss, -1, 1).astype(np.float32))
    return {"input": frames, "h": state, "c": state}


def decisions_lost(want: Outputs, found: Outputs) -> float:
    """The share of frames that are speech in one and not in the other."""
    a, b = (
        np.concatenate([next(iter(each.values())).reshape(-1) > 0.5 for each in one])
        for one in (want, found)
    )
    return float((a != b).mean())


def _voice(packages: Path) -> Case:
    def judge(want: Sequence[Array], found: Sequence[Array]) -> Mapping[str, float]:
        a, b = ([{"": each} for each in one] for one in (want, found))
        return {"agree": 1 - decisions_lost(a, b)}

    model = packages / "silero_vad" / "data" / "silero_vad_16k_sequence.onnx"
    if not model.exists():
        raise FileNotFoundError(f"{model} is not there")
    seen, fresh = ([_conversation(seed) for seed in range(*part)] for part in ((8,), (100, 120)))
    return Case(str(model), seen, fresh, judge, (decisions_lost, 0.005))


CASES: Mapping[str, Callable[[Path], Case]] = {
    "digits": _digits("digits.onnx"),
    "digits_lenet": _digits("digits_lenet.prototxt"),
    "digits_lstm": _digits("digits_lstm.pb", flat=True),
    "magika": _magika,
    "ocr_read": _reading,
    "ocr_find": _finding,
    "voice": _voice,
}


# Ways of fewer bits


def _weights(format_: str) -> Callable[[Case], Any]:
    return lambda case: lowerdeck.compile(case.model, weight_format=format_, **case.options)


def _gptq(case: Case) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "small.onnx")
        lowerdeck.quantize_weights(
            case.model,
            [*case.calibration, *case.more],
            path,
            weight_format="int4:32",
            **case.options,
        )
        return lowerdeck.compile(path)


def _int8(case: Case, **how: Any) -> Any:
    ranges = lowerdeck.quantize(case.model, case.calibration, **how, **case.options)
    precision = "auto" if "max_drop" in how else "int8"
    return lowerdeck.compile(case.model, precision=precision, ranges=ranges, **case.options)


WAYS: Mapping[str, Callable[[Case], Any]] = {
    "weights:bf16": _weights("bf16"),
    "weights:fp16": _weights("fp16"),
    "weights:int8": _weights("int8"),
    "weights:int4": _weights("int4:32"),
    "gptq": _gptq,
    "bf16": lambda case: lowerdeck.compile(case.model, precision="bf16", **case.options),
    "int8": _int8,
    "smooth": lambda case: _int8(case, smooth=0.5),
    "auto": lambda case: _int8(case, max_drop=case.drop),
}


def outputs_of(model: Any, samples: Sequence[Sample]) -> list[Array]:
    """The first output for each sample."""
    name = model.outputs[0].name
    found = ((model(sample), name if isinstance(sample, Mapping) else 0) for sample in samples)
    return [np.array(outputs[first]) for outputs, first in found]


def rows_of(name: str, case: Case, ways: Sequence[str]) -> Iterator[dict[str, Any]]:
    """What the network in f32 gives, and each way, one after the other."""
    want = outputs_of(lowerdeck.compile(case.model, **case.options), case.fresh)
    yield {"network": name, "way": "f32", **case.judge(want, want)}
    for way in ways:
        try:
            model = WAYS[way](case)
        except lowerdeck.LowerdeckError as error:
            yield {"network": name, "way": way, "error": str(error).splitlines()[0]}
            continue
        yield {"network": name, "way": way, **case.judge(want, outputs_of(model, case.fresh))}


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """The rows as Markdown, shares in percent."""
    head = ["network", "way", *dict.fromkeys(key for row in rows for key in list(row)[2:])]
    return markdown_table(head, [[_cell(row.get(key)) for key in head] for row in rows])


def _cell(value: object) -> str:
    if isinstance(value, float):
        return f"{100 * value:.2f}"
    return "" if value is None else str(value)


def cases_of(names: Sequence[str], packages: Path | None) -> Iterator[tuple[str, Case]]:
    """Those of these names, or all, that are there, one after the other; others are told."""
    if packages is None:
        installed = Path("build/real_models/venv/lib").glob("python*/site-packages")
        packages = next(installed, Path("build"))
    for name in names or CASES:
        try:
            case = CASES[name](packages)
        except FileNotFoundError as error:
            print(f"{name}: {error}", file=sys.stderr)
            continue
        if Path(case.model).exists():
            yield name, case
        else:
            print(f"{name}: {case.model} is not there", file=sys.stderr)


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the command line says."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").strip().split("\n\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(CASES))
    parser.add_argument("--ways", nargs="+", choices=[*WAYS], default=[*WAYS])
    parser.add_argument("--packages", type=Path, metavar="FOLDER", help="where packages are")
    parser.add_argument("--json", type=Path, metavar="FILE")
    options = parser.parse_args(arguments)
    if unknown := [name for name in options.names if name not in CASES]:
        parser.error(f"unknown: {', '.join(unknown)}")
    rows: list[dict[str, Any]] = []
    for name, case in cases_of(options.names, options.packages):
        for row in rows_of(name, case, options.ways):
            print(*map(_cell, row.values()), file=sys.stderr)
            rows.append(row)
            if options.json is not None:
                options.json.write_text(json.dumps(rows, indent=1))
    print(table(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main_of(__spec__))
