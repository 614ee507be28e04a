# Commands to know: `make demo`, `make serve` and `make test`. Each does all the set-up it needs, once.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
CORE := $(VENV)/.core
SERVE := $(VENV)/.serve
DEV := $(VENV)/.dev
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

.PHONY: demo serve test test-slow test-cpus check install bench fuzz docs pages generate format clean
.DEFAULT_GOAL := demo

demo: $(CORE)             ## leaderboard, report and saved model on embedded synthetic data, into out/demo
	$(BIN)/corank demo -o out/demo

serve: $(SERVE)           ## the models of the demo behind HTTP, with the page at http://127.0.0.1:8000/
	test -f out/demo/results.json || $(BIN)/corank demo -o out/demo
	test -f out/demo/items.csv || $(BIN)/corank data synth realistic -o out/demo/ratings.csv --labels out/demo/items.csv
	test -f out/demo/ease.corank || $(BIN)/corank fit ease out/demo/ratings.csv -o out/demo/ease.corank
	test -s out/demo/token || (umask 077 && $(BIN)/python -c 'import secrets; print(secrets.token_urlsafe())' > out/demo/token)
	@echo 'feedback and changes need the token in out/demo/token'
	$(BIN)/corank serve out/demo/best.corank --model out/demo/ease.corank --share ease=0.5 --items out/demo/items.csv \
		--results out/demo --token-file out/demo/token --quiet

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
# alone, the service one extra; tests, torch, peers and linters come on top.
$(CORE): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) --no-compile -e .
	touch $(CORE)

$(SERVE): $(CORE)
	$(PIP) -e '.[serve]'
	touch $(SERVE)

$(DEV): $(CORE)
	$(PIP) -e '.[all]'
	touch $(DEV)
