"""The page of the Python API has all that `lowerdeck` exports."""

import lowerdeck
from lowerdeck.tools.api_page import SHOWN


def test_every_exported_name_is_there() -> None:
    shown = [place.rpartition(".")[2] for place in SHOWN]
    assert len(shown) == len(set(shown))
    assert set(lowerdeck.__all__) - set(shown) == {"__version__"}
