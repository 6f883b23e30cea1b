# Everything on a fresh machine with Python 3.11+, a C++20 compiler and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Half of the tests each, in their order, and who is done takes from the other: what tests share is
# made about once.
PYTEST_ARGS ?= -n 2 --dist worksteal

.PHONY: demo docs docs-serve test test-long test-cpus bench bench-calibration bench-compare bench-inference bench-report bench-training lint format stub results clean fuzz sanitize kill-loop soak parity

demo: $(VENV)/.installed
	$(BIN)/lvdet demo demo

test: $(VENV)/.tested-with
	sh tests/install_chromium.sh
	$(BIN)/python -m pytest $(PYTEST_ARGS)

test-long: $(VENV)/.tested-with
	sh tests/install_chromium.sh
	$(BIN)/python -m pytest $(PYTEST_ARGS) -m "long or hypothesis" --hypothesis-profile long

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
	rm -rf $(VENV) build demo benchmarks/.venv benchmarks/.cache
