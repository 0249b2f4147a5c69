"""
Hostile inputs for the generated C, under sanitizers.

    python -m fuzz.fuzz_c [--models N] [--runs 200] [--seed S] [--compilers gcc clang]
        [--jobs N | --ray [ADDRESS]] [--out FOLDER] [--only REGEX] [--corpus [FOLDER]]

Each model of `c_models` is built twice by each compiler: with AddressSanitizer and
UndefinedBehaviorSanitizer, and for threads with ThreadSanitizer. Targets (c99 and native) and
numbers of threads take turns over models, compilers and seeds; `--all-variants` builds every one.
`hostile.c` then makes the runs: sizes that are open become 0, 1, negative, huge or contradictory;
numbers become NaN, infinities, denormals, extreme integers and indices out of range; and pointers,
capacities, weights, workspaces and allocators are wrong in every way there is a status for. Every
call is made twice, with other garbage in its memory, and sometimes by two threads at once: results
have to be the same, bit for bit.

With `--corpus` the cases of a corpus (see corpus.py) are run in place of the models, with small
integers, for nothing is known of what their loops count.

What was found is printed once for each cause, and kept in `--out` with the model, the C, the
harness and `reproduce.sh`. The exit status is 1 if there is anything.
"""

from __future__ import annotations

import argparse
import dataclasses
import re
import shutil
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from fuzz.c_harness import (
    SANITIZERS,
    Finding,
    Limits,
    build,
    build_command,
    missing,
    run,
    write_harness,
)
from fuzz.c_models import MODELS, Made, Maker
from lowerdeck.compiler import CompileOptions, import_and_lower
from lowerdeck.engines import LostTask
from lowerdeck.lowering.emit_c.module import CArtifact, emit_c
from models.campaign import add_options, engine_of, every_processor, main_of
from models.corpus import Case, corpus_folder, load_cases

TARGETS = ("c99", "native")


@dataclass(frozen=True)
class Variant:
    """One way to build a model."""

    compiler: str
    sanitizer: str
    target: str
    threads: int

    def __str__(self) -> str:
        return f"{self.compiler} {self.sanitizer} {self.target} threads={self.threads}"


@dataclass(frozen=True)
class Found:
    """A finding, and where it was."""

    model: str
    variant: Variant | None
    finding: Finding
    folder: Path | None


@dataclass
class Report:
    """What became of one model."""

    model: str
    found: list[Found] = field(default_factory=list[Found])
    runs: int = 0
    well: int = 0
    """Runs that computed something."""
    seconds: float = 0.0


def variants(number: int, seed: int, compilers: Sequence[str], *, every: bool) -> Iterator[Variant]:
    """The builds of the model of this number."""
    for place, compiler in enumerate(compilers):
        turn = number + place + seed
        for sanitizer in SANITIZERS:
            for target in TARGETS:
                for threads in (1, 2):
                    if sanitizer == "tsan" and threads == 1:
                        continue
                    if every or (
                        target == TARGETS[turn % 2]
                        and (sanitizer == "tsan" or threads == 1 + turn // 2 % 2)
                    ):
                        yield Variant(compiler, sanitizer, target, threads)


def compiled(made: Made, name: str, target: str, threads: int) -> CArtifact:
    """The C of a model."""
    options = dataclasses.replace(made.options, target=target, threads=threads)
    module, _ = import_and_lower(str(made.path), "scheduled", options)
    return emit_c(module, name, target)


def makers_of(corpus: Path | None) -> dict[str, Maker]:
    """What is run: the models, or the cases of a corpus."""
    if corpus is None:
        return MODELS
    return {
        f"{kind}_{case.name}": partial(_from_case, case)
        for kind in ("tf1", "caffe")
        for case in load_cases(corpus, kind)
    }


def _from_case(case: Case, folder: Path) -> Made:
    ports = case.data["inputs"]
    limits = Limits({port["name"]: (-1, 5) for port in ports if "int" in port["dtype"]})
    return Made(Path(case.model), limits, CompileOptions(outputs=case.outputs))


@dataclass(frozen=True)
class Settings:
    """How models are run."""

    corpus: Path | None
    seed: int
    runs: int
    out: Path | None


def check(settings: Settings, task: tuple[str, Sequence[Variant]]) -> Report:
    """Build and run one model in all its variants."""
    name, builds = task
    corpus, seed, runs, out = settings.corpus, settings.seed, settings.runs, settings.out
    make = makers_of(corpus)[name]
    report, start = Report(name), time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="fuzz-c-") as scratch:
        try:
            made = make(Path(scratch))
            artifacts = {
                (b.target, b.threads): compiled(made, name, b.target, b.threads) for b in builds
            }
        except Exception:  # whatever it is, the other models go on
            finding = Finding("compile", name, "", -1, traceback.format_exc(limit=-6))
            report.found.append(Found(name, None, finding, None))
            return report
        for variant in builds:
            folder = Path(scratch) / str(variant).replace(" ", "-")
            artifact = artifacts[variant.target, variant.threads]
            flags = SANITIZERS[variant.sanitizer]
            callers = 8 if variant.sanitizer == "tsan" else 2
            write_harness(artifact, folder, made.limits, callers)
            failed = build(artifact, folder, variant.compiler, flags)
            findings = [failed] if failed is not None else []
            if failed is None or (folder / "hostile").exists():
                result = run(artifact, folder, seed, runs)
                findings += result.findings
                report.runs += sum(result.statuses)
                report.well += result.statuses[0]
            command = build_command(artifact, variant.compiler, flags)
            script = [" ".join(command), f"./hostile {seed} RUN END {artifact.name}.weights"]
            kept = _keep(name, made, variant, folder, findings, script, out)
            report.found += [Found(name, variant, finding, kept) for finding in findings]
    report.seconds = time.perf_counter() - start
    return report


def _keep(
    name: str,
    made: Made,
    variant: Variant,
    folder: Path,
    findings: Sequence[Finding],
    script: Sequence[str],
    out: Path | None,
) -> Path | None:
    """Everything that reproduces findings, in a folder of its own."""
    if out is None or not findings:
        return None
    target = out / f"{name}-{str(variant).replace(' ', '-')}"
    shutil.rmtree(target, ignore_errors=True)
    ignored = shutil.ignore_patterns("hostile", "*.o")
    shutil.copytree(folder, target, ignore=ignored)
    for path in {made.path, made.path.with_suffix(".caffemodel")}:
        if path.is_file():
            shutil.copy(path, target)
    run_ = findings[0].run
    last = script[1].replace("RUN", str(max(run_, 0))).replace("END", str(max(run_, 0) + 1))
    (target / "reproduce.sh").write_text("\n".join(["set -e", script[0], last, ""]))
    texts = [f"run {finding.run}: {finding.key}\n{finding.text}\n" for finding in findings]
    (target / "findings.txt").write_text("\n".join(texts))
    return target


def summary(reports: Sequence[Report]) -> list[str]:
    """A line for each cause, with one place where it shows, and the totals."""
    causes: dict[str, list[Found]] = {}
    for report in reports:
        for found in report.found:
            causes.setdefault(found.finding.key, []).append(found)
    lines: list[str] = []
    for key, all_ in sorted(causes.items(), key=lambda item: -len(item[1])):
        models = Counter(found.model for found in all_)
        first = all_[0]
        where = f"{first.model}, {first.variant or 'compile'}, run {first.finding.run}"
        lines.append(f"{len(all_):5} in {len(models)} models: {key}")
        lines.append(f"      {where}" + (f", {first.folder}" if first.folder else ""))
    runs, well = sum(r.runs for r in reports), sum(r.well for r in reports)
    lines.append(
        f"{len(reports)} models, {runs} runs, {well} of which computed something: "
        f"{len(causes)} causes of findings"
    )
    return lines


def main(arguments: Sequence[str] | None = None) -> int:
    """Run models; 1 if something was found."""
    options = _parse(arguments)
    wanted = [(compiler, sanitizer) for compiler in options.compilers for sanitizer in SANITIZERS]
    absent = {pair: why for pair in wanted if (why := missing(*pair)) is not None}
    for why in absent.values():
        print(f"skipped: {why}")
    corpus = None if options.corpus is None else corpus_folder(options.corpus or None)
    if options.corpus is not None and corpus is None:
        print("no corpus there", file=sys.stderr)
        return 2
    names = [name for name in makers_of(corpus) if re.search(options.only, name)]
    count = min(options.models or len(names), len(names))
    chosen = [names[k * len(names) // count] for k in range(count)]
    tasks = [
        (
            name,
            [
                variant
                for variant in variants(
                    number, options.seed, options.compilers, every=options.all_variants
                )
                if (variant.compiler, variant.sanitizer) not in absent
            ],
        )
        for number, name in enumerate(chosen)
    ]
    out = None if options.out is None else options.out.resolve()
    work = partial(check, Settings(corpus, options.seed, options.runs, out))
    reports: list[Report] = []
    for (name, _), future in engine_of(options).deal(work, tasks):
        try:
            report = future.result()
        except LostTask as error:
            finding = Finding("compile", name, "", -1, str(error))
            report = Report(name, [Found(name, None, finding, None)])
        reports.append(report)
        kinds = Counter(found.finding.key for found in report.found)
        lines = [f"{report.model}: {report.well} of {report.runs} runs computed something, "]
        lines[0] += f"{len(report.found)} findings, {report.seconds:.0f} s"
        lines += [f"    {count} {kind}" for kind, count in kinds.most_common()]
        lines += [f.finding.text for f in report.found if f.variant is None]
        print("\n".join(lines), flush=True)
    print("\n".join(summary(reports)))
    return int(any(report.found for report in reports))


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").strip().split("\n\n")[0])
    parser.add_argument("--models", type=int, help="only so many, evenly taken from all")
    parser.add_argument("--runs", type=int, default=200, help="of each build")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--compilers", nargs="+", default=["gcc", "clang"])
    add_options(parser, min(2, every_processor()))
    parser.add_argument("--out", type=Path, help="the folder for what reproduces findings")
    parser.add_argument("--only", default="", help="only models whose name matches")
    parser.add_argument("--all-variants", action="store_true", help="all targets and threads")
    parser.add_argument("--corpus", nargs="?", const="", help="the cases of a corpus")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main_of(__spec__))
