# The README's two commands are `make demo` and `make test`. Everything runs in .venv, which any of the targets makes.
SHELL := /bin/sh
PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11 python; do \
	command -v $$p >/dev/null 2>&1 && $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo $$p; break; }; done)
BIN := .venv/bin
READY := .venv/.ready

.PHONY: demo test check bench storm docs lock clean help

help:
	@echo "make demo    import real conversations, resume one in a new process, show it three ways"
	@echo "make test    run every test"
	@echo "make check   ruff, mypy --strict, import floors"
	@echo "make bench   speed and size as ratios to hand-driven sqlite3"
	@echo "make storm   200 kill -9 at random moments, and the other slow tests"
	@echo "make docs    write docs/contracts.md anew from the contracts and the suites"
	@echo "make lock    write requirements/dev.txt anew"

$(READY): requirements/dev.txt pyproject.toml
	@test -n "$(PYTHON)" || { echo "convostore needs Python 3.11 or newer; none was found. Name one: make PYTHON=/path/to/python3"; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv || { rm -rf .venv; $(PYTHON) -m virtualenv .venv; } || \
		{ echo "$(PYTHON) cannot make a virtual environment; install its venv module (Debian: python3-venv)"; exit 1; }
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --requirement requirements/dev.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

demo: $(READY)
	$(BIN)/python examples/demo.py

test: $(READY)
	$(BIN)/python -m pytest -n 2 -m "not slow"

storm: $(READY)
	$(BIN)/python -m pytest -m slow

check: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m pytest -q tests/docs

bench: $(READY)
	$(BIN)/python -m benchmarks

docs: $(READY)
	$(BIN)/python -m tests.docs.contracts_page > docs/contracts.md

lock: $(READY)
	$(BIN)/python -m pip install --quiet uv
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 pyproject.toml --all-extras --group dev \
		--no-header --no-emit-index-url --no-annotate --output-file requirements/dev.txt

clean:
	rm -rf .venv .pytest_cache .mypy_cache .ruff_cache .hypothesis demo.db*
