# Two commands to know: `make demo` and `make test`. Each does all the set-up it needs, once.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: demo test check install bench docs format clean
.DEFAULT_GOAL := demo

demo: $(STAMP)            ## leaderboard, report and saved model on embedded synthetic data, into out/demo
	$(BIN)/corank demo -o out/demo

test: $(STAMP)            ## all tests
	$(BIN)/python -m pytest

check: $(STAMP)           ## lint, format, types, who may import whom
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m pytest tests/test_imports.py

install: $(STAMP)         ## venv and package with all extras

bench: $(STAMP)           ## speed and memory against peers, in one run, into out/bench
	$(BIN)/python -m benchmarks -o out/bench

docs: $(STAMP)            ## the documentation as a site, into site/
	$(BIN)/mkdocs build --quiet --strict --site-dir site

format: $(STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) out site

# The stamp is newer than what it was made from, so a second run installs nothing.
$(STAMP): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[all]'
	touch $(STAMP)
