from collections.abc import Sequence
from unittest import TestCase, TestSuite

class LitTestCase(TestCase):
    def runTest(self) -> None: ...

def load_test_suite(inputs: Sequence[str]) -> TestSuite: ...
