# make demo | test | bench | torture | fuzz: each makes .venv itself and needs nothing but Python 3.11 or newer with pip.

PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo $$p; break; }; done)
BIN := .venv/bin
STAMP := .venv/.installed

.PHONY: demo test bench torture fuzz lint types generated clean
.DEFAULT_GOAL := test

$(STAMP): pyproject.toml
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer is needed; name it with make PYTHON=..." >&2; exit 2; }
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $@

demo: $(STAMP)
	@$(BIN)/python examples/demo.py

test: lint types
	$(BIN)/python -m pytest -n auto

bench: $(STAMP)
	$(BIN)/python benchmarks/run.py $(ARGS)

# Hours: kills, crowds, failing system calls and bit flips; make torture TORTURE="--minutes 5" for less,
# TORTURE="--parts kills,flips" for some of it, TORTURE=--resume to go on where it was stopped.
torture: $(STAMP)
	$(BIN)/python tests/torture.py $(TORTURE)

# Coverage-guided, every decoder for so long: make fuzz SECONDS=600 FUZZ="--targets pack,canon"
SECONDS ?= 60
fuzz: $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[fuzz]'
	PYTHONPATH=tests $(BIN)/python -m fuzz.run --seconds $(SECONDS) $(FUZZ)

lint: $(STAMP)
	$(BIN)/ruff check
	$(BIN)/ruff format --check

types: $(STAMP)
	$(BIN)/mypy
	$(BIN)/mypy schemas/generate.py
	$(BIN)/mypy docs/generate.py

# Files that are made from the code; a test fails when they are behind it.
generated: $(STAMP)
	$(BIN)/python schemas/generate.py
	$(BIN)/python docs/generate.py

clean:
	rm -rf .venv demo-out benchmarks/work .mypy_cache .pytest_cache .ruff_cache .hypothesis
