"""Settings shared by all tests: reproducible runs that leave nothing behind."""

import gc
import hashlib
import importlib
import os
import shutil
import signal
from collections import Counter, defaultdict
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from hypothesis.internal.conjecture import providers

from lowerdeck import build
from lowerdeck.engines import Engine
from lowerdeck.plugins import temporarily
from lowerdeck.tools import peak
from models.corpus import PATH_VARIABLE, corpus_folder, is_turn, load_cases

# Random programs are the same in every run; the first failure is printed as a blob that
# reproduces it.
hypothesis.settings.register_profile("lowerdeck", deadline=None, derandomize=True, print_blob=True)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "lowerdeck"))
# Nor do they depend on the constants in modules that happen to be loaded, which it would parse.
setattr(providers, "is_local_module_file", lambda path: False)  # pyright: ignore[reportUnknownLambdaType]


@pytest.fixture(scope="session", autouse=True)
def private_cache(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Compiled models are not taken from, nor left in, the user's cache."""
    cache = tmp_path_factory.mktemp("cache")
    os.environ["XDG_CACHE_HOME"] = str(cache)


@pytest.fixture(scope="session", autouse=True)
def fast_c_compiler() -> None:
    """
    Most tests want right numbers, of which gcc finds those of small models soonest without
    optimization. `optimized_c` is for tests that are about the product's own flags.
    """
    os.environ.setdefault("CFLAGS", "-O0")


@pytest.fixture(scope="session", autouse=True)
def libraries_by_content() -> None:
    """Equal C that is compiled in one way is compiled once: half of all models are seen again."""
    setattr(build, "_compile", compiled_once(getattr(build, "_compile")))


def compiled_once(compile_: Callable[..., None]) -> Callable[..., None]:
    """What compiles as `compile_` does, but for sources and flags that it has compiled already."""
    made: dict[bytes, bytes] = {}

    def compile_or_copy(
        command: Sequence[str],
        folder: str,
        metadata: Mapping[str, Any],
        options: Sequence[str],
        sources: Sequence[str],
        libraries: Sequence[str] = (),
    ) -> None:
        *others, out = options
        flags = [*metadata["cflags"], *build.user_flags(), *others, *libraries]
        key = hashlib.sha256(repr((*command, *flags)).encode())
        files = {os.path.join(folder, name) for name in os.listdir(folder)}
        for file in [*(os.path.join(folder, source) for source in sources), *sorted(files)]:
            if file.endswith((".c", ".h")):
                content = Path(file).read_bytes()
                key.update(f"\0{os.path.basename(file)} {len(content)}\0".encode() + content)
        if (known := made.get(key.digest())) is not None:
            Path(out).write_bytes(known)
            return
        compile_(command, folder, metadata, options, sources, libraries)
        made[key.digest()] = Path(out).read_bytes()

    return compile_or_copy


@pytest.fixture(scope="session", autouse=True)
def short_measurements() -> None:
    """What the machine can do is printed beside results; no test asks for the right figure."""
    peak.LASTING = 0.02
    peak.READ_BYTES = 1 << 24


@pytest.fixture
def optimized_c(monkeypatch: pytest.MonkeyPatch) -> None:
    """C is compiled as users have it."""
    monkeypatch.setenv("CFLAGS", "")


@pytest.fixture(autouse=True)
def own_plugins() -> Iterator[None]:
    """What a test loads is forgotten behind it."""
    with temporarily():
        yield


@pytest.fixture(scope="session")
def nodes() -> Iterator[Any]:
    """One cluster of Ray for all tests, where it is installed: a node, to which others can come."""
    pytest.importorskip("ray", reason="Ray is not installed")
    # Where much else runs, nodes start slowly, and workers would wait behind all of it.
    os.environ.setdefault("RAY_raylet_start_wait_time_s", "120")
    os.environ.setdefault("RAY_worker_niceness", "0")
    os.environ.setdefault("RAY_health_check_period_ms", "300")  # a lost node is known soon
    utils: Any = importlib.import_module("ray.cluster_utils")
    options = {"num_cpus": 1, "include_dashboard": False, "include_log_monitor": False}
    cluster = utils.Cluster(initialize_head=True, head_node_args=options)
    yield cluster
    cluster.shutdown()


@pytest.fixture(scope="session")
def cluster(nodes: Any) -> Iterator[Engine]:
    """The cluster as an engine."""
    from lowerdeck.ray import Cluster

    yield Cluster(nodes.address)
    importlib.import_module("ray").shutdown()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None]:
    """A test on the cluster ends, whatever that does."""
    if "nodes" not in getattr(item, "fixturenames", ()):
        return (yield)
    before = signal.signal(signal.SIGALRM, _too_long)
    signal.alarm(300)
    try:
        return (yield)
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def _too_long(number: int, frame: object) -> None:
    del number, frame
    raise TimeoutError("the test takes too long")


@pytest.fixture
def c_compiler(request: pytest.FixtureRequest) -> str:
    """The compiler that a test is parametrized with; the test skips where it is not installed."""
    name: str = request.param
    if shutil.which(name) is None:
        pytest.skip(f"{name} is not installed")
    return name


def pytest_collection_finish(session: pytest.Session) -> None:
    """Look for garbage less often than Python does: modules of IR are many small objects."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(200_000, 10, 10)


def pytest_sessionfinish() -> None:
    """What is left ends with the process: pytest would look through it five times."""
    gc.freeze()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """
    `tf1_case` and `caffe_case` are the cases of the corpus, one after the other; a test of them
    skips, with the reason, where there is no corpus.
    """
    for kind in ("tf1", "caffe"):
        if (name := f"{kind}_case") not in metafunc.fixturenames:
            continue
        if (folder := corpus_folder()) is None:
            reason = f"no corpus; {PATH_VARIABLE} names its folder"
            parameters = [pytest.param(None, marks=pytest.mark.skip(reason=reason))]
        else:
            cases = load_cases(folder, kind)
            names = _slow_names(metafunc.definition, [case.name for case in cases])
            parameters = [
                pytest.param(case, id=case.name, marks=[pytest.mark.slow] * (case.name in names))
                for case in cases
            ]
        metafunc.parametrize(name, parameters)


def _slow_names(test: pytest.Function, names: Sequence[str]) -> set[str]:
    """The cases that are slow in a test: those that it names, and those that are another's turn."""
    slow = test.get_closest_marker("slow_cases")
    found = set[str]() if slow is None else {*slow.args}
    if (turns := test.get_closest_marker("cases_in_turn")) is not None:
        turn, always = turns.args
        others = {name for k, name in enumerate(names) if is_turn(k) == bool(turn)}
        found |= others - {*always}
    return found


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """
    The time of each folder of tests, and of each file directly in `test`; and how long the last
    worker had to do when the first one was done.
    """
    counts, seconds = Counter[str](), defaultdict[str, float](float)
    ends = defaultdict[str, float](float)
    for reports in terminalreporter.stats.values():
        for report in reports:
            if isinstance(report, pytest.TestReport):
                group = "/".join(report.nodeid.partition("::")[0].split("/")[:2])
                counts[group] += report.when == "call"
                seconds[group] += report.duration
                worker = getattr(report, "worker_id", "")
                ends[worker] = max(ends[worker], report.stop)
    if sum(counts.values()) > len(counts):
        terminalreporter.section("time by group")
        for group, time in sorted(seconds.items(), key=lambda pair: -pair[1]):
            terminalreporter.write_line(f"{time:9.1f} s {counts[group]:6} tests  {group}")
    if len(ends) > 1:
        late = max(ends.values()) - min(ends.values())
        terminalreporter.write_line(f"{late:9.1f} s from the end of the first worker to the last")
