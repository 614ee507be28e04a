# Two commands to know: `make demo` and `make test`. Each does all the set-up it needs, once.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
CORE := $(VENV)/.core
DEV := $(VENV)/.dev
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

.PHONY: demo test test-slow test-cpus check install bench fuzz docs pages generate format clean
.DEFAULT_GOAL := demo

demo: $(CORE)             ## leaderboard, report and saved model on embedded synthetic data, into out/demo
	$(BIN)/corank demo -o out/demo

test: $(DEV)              ## all tests but the slow ones, in one process per core
	$(BIN)/python -m pytest -n auto --dist worksteal -m "not slow"

test-slow: $(DEV)         ## tests on real data, and those that start many processes
	$(BIN)/python -m pytest -n auto --dist worksteal -m slow

test-cpus: $(DEV)         ## the tests that depend on rounding, with the instruction sets of other processors
	$(BIN)/python tests/cpus.py

check: $(DEV)             ## lint, format, types, layers, generated files
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python docs/generate.py --check
	$(BIN)/python -m pytest tests/test_imports.py

install: $(DEV)           ## venv and package with all extras

bench: $(DEV)             ## speed and memory against peers, in one run, into out/bench
	$(BIN)/python -m benchmarks -o out/bench

fuzz: $(DEV)              ## hostile files, full disks, kills and signals: the long form of the tests, hours, into out/reliability
	$(BIN)/python -m benchmarks.reliability

docs: $(DEV)              ## the documentation as a site, into site/
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict --site-dir site

pages: $(DEV)             ## the result pages whose experiment or code has changed since they were written
	$(BIN)/python docs/stale.py

generate: $(DEV)          ## what is made from the sources: tables of models and hyper-parameters, navigation, stubs, the design page's tree
	$(BIN)/python docs/generate.py

format: $(DEV)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) out site

# The stamps are newer than what they were made from, so a second run installs nothing. The demo needs the package
# alone; tests, torch, peers and linters come on top.
$(CORE): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) --no-compile -e .
	touch $(CORE)

$(DEV): $(CORE)
	$(PIP) -e '.[all]'
	touch $(DEV)
