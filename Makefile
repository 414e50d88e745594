# make demo | lint | test | test-all | docs | wheel | lowest | peers: each starts from nothing, and makes .venv first.
PYTHON ?= python3
UV := uv==0.13.8
# The same versions stand in .pre-commit-config.yaml.
RUFF := ruff==0.17.5
TYPOS := typos==1.52.0
BIN := .venv/bin
TOOL := $(BIN)/uv tool run --quiet --python $(BIN)/python
# TORCH=cpu takes torch from PyTorch's index of builds without CUDA; by default it comes from the usual index.
TORCH ?=
INSTALL = $(BIN)/uv pip install --python $(BIN)/python --constraint constraints.txt \
  $(if $(TORCH),--torch-backend $(TORCH)) --editable
# Stamps: a Python with uv, what the demo uses, and everything. What fails half-way is done again.
READY := .venv/.ready
DEMO := .venv/.demo
TEST := .venv/.test
# A file's tests stay in one process, and so do all that share a server (tests/conftest.py groups them).
PYTEST = $(BIN)/python -m pytest -n 3 --dist loadgroup --no-loadscope-reorder

.PHONY: demo lint types test test-all pytest docs wheel lowest peers clean
.DEFAULT_GOAL := demo
.DELETE_ON_ERROR:

# Real answers of agents, one picture broken on purpose, and who passes as a person; ends with the paths of three pages.
demo: $(DEMO)
	@$(BIN)/python scripts/demo.py

# Style, spelling, and docstrings that are missing or only repeat a name. Needs no package of Turinglike's, and
# installs none.
lint: $(READY)
	$(TOOL) $(RUFF) check .
	$(TOOL) $(RUFF) format --check .
	$(TOOL) $(TYPOS)
	$(BIN)/python scripts/check_style.py agents serving judging scripts tests
	$(BIN)/python scripts/check_style.py --docstrings agents serving judging

# Types, and the documentation that is generated from code.
types: $(TEST)
	$(BIN)/python scripts/make_reference.py --check
	$(BIN)/mypy

# Lint, types, and the tests without those marked slow (vLLM, Chromium, rounds of crashes); `make test-all` runs every
# test. What lint and types report stands among the dots of the tests; `make lint` and `make types` show it alone.
test: $(TEST)
	@$(MAKE) --no-print-directory --jobs=2 lint types pytest

test-all: lint types
	$(PYTEST)

pytest: $(TEST)
	$(PYTEST) -m "not slow"

# The documentation as a site in site/, with the API from docstrings. A link to nowhere is an error.
docs: $(DEMO)
	$(TOOL) --from zensical==0.0.73 --with 'mkdocstrings[python]==1.0.8' zensical build --clean --strict

# What a release consists of, in dist/: the wheel starts in an environment that has nothing else.
wheel: $(READY)
	rm -rf build dist
	$(BIN)/uv build --quiet --python $(BIN)/python
	$(TOOL) --isolated --from dist/*.whl turinglike --version

# The tests at the lowest versions that pyproject.toml allows, in a .venv-lowest of their own; no part of `make test`.
lowest: $(READY)
	scripts/test_lowest.sh

# Turinglike beside other programs, whose environments are made in .peers (4 GB); about an hour on two idle cores.
peers: $(TEST)
	$(BIN)/python scripts/bench_peers.py --environments .peers --install --out .peers/result.json

# A .venv is repaired, or made anew if its Python does not start.
$(READY): Makefile pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "Turinglike needs Python 3.11 or newer; '$(PYTHON)' is $$($(PYTHON) --version 2>&1 || true)." >&2; \
	  echo "Give another one: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	@$(BIN)/python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && \
	  $(BIN)/python -m pip --version >/dev/null 2>&1 || { rm -rf .venv; $(PYTHON) -m venv .venv; }
	$(BIN)/python -m pip install --quiet --disable-pip-version-check '$(UV)'
	@touch $@

$(DEMO): $(READY)
	@rm -f $(DEMO) $(TEST)
	@echo "Installing into .venv: about $(if $(TORCH),1 GB,3 GB (TORCH=cpu: less)) to download the first time"
	$(INSTALL) '.[vision,attention,words,judging,parquet]'
	@touch $@

$(TEST): $(DEMO)
	$(INSTALL) '.[all,test]'
	-$(BIN)/turinglike fetch smollm2-135m
	@touch $@

clean:
	rm -rf .venv .venv-lowest build demo-run dist site
