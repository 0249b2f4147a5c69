from lit.formats import ShTest

class TestingConfig:
    name: str
    suffixes: list[str]
    excludes: list[str]
    test_source_root: str
    test_exec_root: str
    test_format: ShTest
    environment: dict[str, str]
    substitutions: list[tuple[str, str]]
