"""Settings shared by all tests: reproducible runs that leave nothing behind."""

import os

import hypothesis
import pytest

# Random programs are the same in every run; the first failure is printed as a blob that
# reproduces it.
hypothesis.settings.register_profile("lowerdeck", deadline=None, derandomize=True, print_blob=True)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "lowerdeck"))


@pytest.fixture(scope="session", autouse=True)
def private_cache(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Compiled models are not taken from, nor left in, the user's cache."""
    cache = tmp_path_factory.mktemp("cache")
    os.environ["XDG_CACHE_HOME"] = str(cache)
