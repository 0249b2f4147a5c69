# `make demo` and `make test` prepare all they need: a virtual environment, the project
# in it, and, on Debian and with the rights to do so, missing system packages.

VENV ?= .venv
PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := $(VENV)/bin
# A worker that is done takes of what others have still to do; neighbors share what they prepare.
# The longest tests are named: one that begins last is waited for.
PYTEST_FLAGS ?= -n auto --maxprocesses=8 --dist worksteal --durations=20 --durations-min=5

# Hundreds of tests start Python, and each worker reads all tests: it finds them compiled.
unexport PYTHONDONTWRITEBYTECODE

SUDO := $(shell test "$$(id -u)" = 0 || echo sudo)
APT_INSTALL := $(SUDO) apt-get update -q && $(SUDO) apt-get install -q -y --no-install-recommends

.DEFAULT_GOAL := help
.PHONY: help demo test check test-slow lint format docs dist sbom protos clean c-compiler

help:
	@echo "make demo    compile the example models to C, run them, compare with their frameworks"
	@echo "make test    lint, type check and run all tests"
	@echo "make check   run the tests nearest to what differs from main, for less than a minute"
	@echo "make test-slow  run the long campaigns: slow tests, all mutants, the ONNX suite in C, fuzzers"
	@echo "make lint    ruff, import contracts and pyright"
	@echo "make format  rewrite the sources in the project's format"
	@echo "make docs    generate the reference pages of docs/ again, and build the site in build/site"
	@echo "make dist    build wheel and sdist in dist/, and try the wheel in an empty environment"
	@echo "make sbom    list what that environment holds in build/sbom.json"
	@echo "make protos  generate the Python modules of the .proto files again"
	@echo "make clean   remove what the other targets made, .venv included"

demo: $(VENV)/.installed c-compiler
	$(BIN)/lowerdeck demo

# A finding of one tool hides neither the other tools' nor the tests' results. The type checker,
# which knows one core only, works beside the tests.
test: $(VENV)/.installed-dev c-compiler
	@status=0; log=$$(mktemp); trap 'rm -f "$$log"' EXIT; \
	$(MAKE) --no-print-directory lint > "$$log" 2>&1 & lint=$$!; \
	echo $(BIN)/python -m pytest $(PYTEST_FLAGS) test; \
	$(BIN)/python -m pytest $(PYTEST_FLAGS) test || status=1; \
	wait $$lint || status=1; \
	cat "$$log"; \
	exit $$status

# While one works; SINCE is the branch that changes are told from.
SINCE ?= main
check: $(VENV)/.installed-dev c-compiler
	$(BIN)/ruff check -q
	$(BIN)/python -m fuzz.changed --since $(SINCE) -- $(PYTEST_FLAGS)

# Before a release: hours. Each of them goes on where another has found something.
test-slow: $(VENV)/.installed-dev c-compiler
	@status=0; \
	campaign() { echo "$$*"; $(BIN)/python -m "$$@" || { echo "error: $$* found something" >&2; status=1; }; }; \
	export LOWERDECK_EVERY_FORM=1; \
	campaign pytest $(PYTEST_FLAGS) test/lowering; \
	unset LOWERDECK_EVERY_FORM; \
	campaign pytest $(PYTEST_FLAGS) -m slow test; \
	campaign fuzz.mutants --jobs 2; \
	campaign models.onnx_suite --jobs 2; \
	campaign fuzz.fuzz_passes --programs 10000 --graphs 2000 --out build/fuzz; \
	campaign fuzz.fuzz_onnx --graphs 20000 --seed 1 --jobs 2 --out build/fuzz; \
	campaign fuzz.fuzz_quantized --graphs 2000 --seed 1 --out build/fuzz; \
	campaign fuzz.fuzz_tf1 --graphs 5000 --seed 1 --jobs 2 --out build/fuzz; \
	campaign fuzz.fuzz_tflite --graphs 5000 --seed 1 --jobs 2 --out build/fuzz; \
	campaign fuzz.fuzz_files --mutants 100000 --jobs 2 --out build/fuzz; \
	campaign fuzz.fuzz_c --jobs 2 --out build/fuzz; \
	exit $$status

lint: $(VENV)/.installed-dev
	@status=0; \
	check() { echo "$$*"; "$$@" || { echo "error: $$* has findings" >&2; status=1; }; }; \
	check $(BIN)/ruff check; \
	check $(BIN)/ruff format --check; \
	check env PYTHONPATH=typings $(BIN)/lint-imports; \
	check $(BIN)/pyright --pythonpath $(BIN)/python; \
	exit $$status

format: $(VENV)/.installed-dev
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

docs: $(VENV)/.installed-docs
	$(BIN)/python -m lowerdeck.tools.gen_docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build -q
	@! grep -rE '<(script|link|img|iframe)[^>]*"https?://' build/site --include='*.html' || \
	  { echo "error: pages fetch something from the network" >&2; exit 1; }

# What a user gets: the wheel, made from the sdist, and what pip installs with it.
dist: $(VENV)/.installed-release c-compiler
	rm -rf dist
	$(BIN)/python -m build -q
	$(PYTHON) -m venv --clear $(VENV)-wheel
	$(VENV)-wheel/bin/pip install -q --disable-pip-version-check dist/lowerdeck-*.whl
	folder=$$(mktemp -d) && cd "$$folder" && $(abspath $(VENV))-wheel/bin/lowerdeck demo && \
	  rm -rf "$$folder"

sbom: dist
	mkdir -p build
	$(BIN)/cyclonedx-py environment --output-file build/sbom.json $(VENV)-wheel

# The code that this protoc writes demands no version of protobuf. Through typings/, paths of
# files are those of the modules.
protos: $(VENV)-protoc/.installed
	cd typings && $(abspath $(VENV))-protoc/bin/python -m grpc_tools.protoc -I . \
	  --python_out=. --pyi_out=. lowerdeck/*/*/*.proto

$(VENV)-protoc/.installed:
	$(PYTHON) -m venv $(VENV)-protoc
	$(VENV)-protoc/bin/pip install -q --disable-pip-version-check grpcio-tools==1.62.3 'setuptools<81'
	@touch $@

clean:
	rm -rf $(VENV) $(VENV)-protoc $(VENV)-wheel build dist *.egg-info test/Output .pytest_cache .ruff_cache \
	  .hypothesis .import_linter_cache
	find . -name __pycache__ -prune -exec rm -rf {} +

# A Python without ensurepip leaves a broken environment behind: install what is missing,
# then start over.
$(VENV)/bin/pip:
	@test -n "$(PYTHON)" || { echo "error: no python3 found; Python 3.11 or later is needed" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "error: $(PYTHON) is older than Python 3.11; set PYTHON=" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV) && \
	  $(APT_INSTALL) python3-venv && $(PYTHON) -m venv $(VENV); }

$(VENV)/.installed: pyproject.toml | $(VENV)/bin/pip
	$(BIN)/pip install -q --disable-pip-version-check -e .
	@touch $@

$(VENV)/.installed-dev: pyproject.toml | $(VENV)/bin/pip
	$(BIN)/pip install -q --disable-pip-version-check -e '.[test,dev]'
	@touch $@ $(VENV)/.installed

$(VENV)/.installed-docs $(VENV)/.installed-release: $(VENV)/.installed-%: \
  pyproject.toml | $(VENV)/.installed
	$(BIN)/pip install -q --disable-pip-version-check -e '.[$*]'
	@touch $@

c-compiler:
	@command -v "$${CC:-cc}" > /dev/null || command -v gcc > /dev/null || \
	  command -v clang > /dev/null || { $(APT_INSTALL) gcc libc6-dev; }
