# Everything on a fresh machine with Python 3.11+, a C++20 compiler and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Half of the tests each, in their order, and who is done takes from the other: what tests share is
# made about once.
PYTEST_ARGS ?= -n 2 --dist worksteal

.PHONY: demo docs docs-serve test test-long test-cpus test-frameworks bench bench-calibration bench-compare bench-inference bench-report bench-training lint format stub results lock wheel wheel-test portability clean fuzz sanitize kill-loop soak parity coverage mutants

demo: $(VENV)/.installed
	$(BIN)/lvdet demo demo

test: $(VENV)/.tested-with
	sh tests/install_chromium.sh
	$(BIN)/python -m pytest $(PYTEST_ARGS)

test-long: $(VENV)/.tested-with
	sh tests/install_chromium.sh
	$(BIN)/python -m pytest $(PYTEST_ARGS) -m "(long or hypothesis) and not frameworks" --hypothesis-profile long

# Adapters with the frameworks themselves, pinned, in an environment that sees what .venv has.
FRAMEWORKS := .venv-frameworks

test-frameworks: $(VENV)/.tested-with $(FRAMEWORKS)/.installed
	$(FRAMEWORKS)/bin/python -m pytest -m frameworks tests/frameworks

$(FRAMEWORKS)/.installed: tests/frameworks/requirements.txt | $(VENV)/.tested-with
	$(PYTHON) -m venv $(FRAMEWORKS)
	$(BIN)/python tests/frameworks/share_packages.py $(FRAMEWORKS)
	$(FRAMEWORKS)/bin/python -m pip install --quiet --no-deps -r tests/frameworks/requirements.txt
	touch $@

# As on other CPUs, where rounding differs; CPU_ARGS go to pytest.
test-cpus: $(VENV)/.tested-with
	bash tests/imitated_cpus.sh $(CPU_ARGS)

# What it takes long to test; docs/testing.md has the numbers. Logs are in build/.
FUZZ_SECONDS ?= 900
fuzz: $(VENV)/.tested-with
	$(BIN)/python fuzz/run.py --seconds $(FUZZ_SECONDS) $(FUZZ_ARGS)

sanitize: $(VENV)/.tested-with
	$(BIN)/python tests/sanitize.py $(SANITIZE_ARGS)

kill-loop: $(VENV)/.tested-with
	$(BIN)/python tests/kill_loop.py $(KILL_ARGS)

soak: $(VENV)/.tested-with
	$(BIN)/python tests/soak.py $(SOAK_ARGS)

parity: $(VENV)/.tested-with
	$(BIN)/python tests/parity/many_cases.py $(PARITY_ARGS)

coverage: $(VENV)/.tested-with
	sh tests/install_chromium.sh
	$(BIN)/python tests/measure_coverage.py $(COVERAGE_ARGS)

mutants: $(VENV)/.tested-with
	$(BIN)/python tests/mutants.py $(MUTANT_ARGS)

bench: $(VENV)/.installed benchmarks/.venv/.installed
	$(BIN)/python benchmarks/run.py $(BENCH_ARGS)

bench-calibration: $(VENV)/.installed benchmarks/.venv/.installed
	$(BIN)/python benchmarks/calibration.py $(BENCH_ARGS)

bench-report: $(VENV)/.tested-with
	$(BIN)/python benchmarks/report.py $(BENCH_ARGS)

# On a machine with a GPU, with its own PyTorch: lvdet is built and installed, nothing else.
bench-training:
	$(PYTHON) -m pip install --quiet --no-build-isolation --no-deps .
	$(PYTHON) benchmarks/training.py $(BENCH_ARGS)

bench-inference:
	$(PYTHON) -m pip install --quiet --no-build-isolation --no-deps .
	$(PYTHON) benchmarks/inference.py $(BENCH_ARGS)

# The documentation site, in build/site; no page asks another host for anything.
export NO_MKDOCS_2_WARNING := 1

docs: $(VENV)/.documented-with
	$(BIN)/python -m mkdocs build --quiet
	@echo "open build/site/index.html"

docs-serve: $(VENV)/.documented-with
	$(BIN)/python -m mkdocs serve

# The page of results, from the files of runs.
results: $(VENV)/.installed
	$(BIN)/lvdet experiment --page docs/results/index.md --results docs/results/data

bench-compare: $(VENV)/.installed
	$(BIN)/python benchmarks/resampling.py $(BENCH_ARGS)

lint: $(VENV)/.tested-with
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/clang-format --dry-run --Werror native/*.cpp native/*.hpp fuzz/*.cpp fuzz/*.hpp
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python tools/check_words.py

format: $(VENV)/.tested-with
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/clang-format -i native/*.cpp native/*.hpp fuzz/*.cpp fuzz/*.hpp

# Wheels as they are published: repaired for other Linux systems; the one of Python 3.12 and later
# checked against the stable ABI.
wheel:
	bash tools/build_wheel.sh $(PYTHON) build/dist

# Installs the wheel in an empty environment, without a compiler, and prints size and time.
wheel-test:
	bash tools/wheel_test.sh $(PYTHON) build/wheel-test

# The core for Windows, with mingw-w64, and with clang and libc++ as on macOS; the types of the
# Python code on both.
portability: $(VENV)/.tested-with
	for system in win32 darwin; do $(BIN)/mypy --platform $$system || exit 1; done
	bash tools/portability/windows.sh $(BIN)/python build/portability/windows
	bash tools/portability/libcxx.sh $(BIN)/python build/portability/libcxx

# The exact versions to develop with, and their hashes, from the ranges in pyproject.toml.
lock: $(VENV)/.tested-with
	$(BIN)/python -m uv --version > /dev/null 2>&1 || $(BIN)/python -m pip install --quiet uv
	$(BIN)/python -m uv pip compile pyproject.toml --quiet --upgrade --extra test --extra docs --universal \
	    --python-version 3.11 --generate-hashes --no-emit-index-url --no-emit-find-links \
	    --custom-compile-command "make lock" --output-file requirements/development.txt

# The typed stub of the native module, made from the module itself.
stub: $(VENV)/.tested-with
	$(BIN)/python -m nanobind.stubgen -m lvdet._native -o src/lvdet/_native.pyi

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

NATIVE := CMakeLists.txt pyproject.toml $(wildcard native/*)

$(VENV)/.installed: $(NATIVE) | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --editable .
	touch $@

$(VENV)/.tested-with: $(NATIVE) | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --editable '.[test]'
	touch $(VENV)/.installed $@

$(VENV)/.documented-with: $(NATIVE) | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --editable '.[docs]'
	touch $(VENV)/.installed $@

benchmarks/.venv/.installed: benchmarks/requirements.txt
	$(PYTHON) -m venv benchmarks/.venv
	benchmarks/.venv/bin/python -m pip install --quiet -r benchmarks/requirements.txt
	touch $@

clean:
	rm -rf $(VENV) $(FRAMEWORKS) build demo benchmarks/.venv benchmarks/.cache
