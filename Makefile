# make demo | test | test-all | docs | lint: each starts from nothing; the first of them makes .venv.
PYTHON ?= python3
UV := uv==0.13.8
BIN := .venv/bin
# TORCH=cpu takes torch from PyTorch's index of builds without CUDA; by default it comes from the usual index.
TORCH ?=
INSTALL = $(BIN)/uv pip install --python $(BIN)/python --constraint constraints.txt \
  $(if $(TORCH),--torch-backend $(TORCH)) --editable
# Stamps: what the demo uses, and everything. What fails half-way is done again.
DEMO := .venv/.demo
TEST := .venv/.test
# A file's tests stay in one process, and so do all that share a server (tests/conftest.py groups them).
PYTEST = $(BIN)/python -m pytest -n 3 --dist loadgroup --no-loadscope-reorder

.PHONY: demo test test-all pytest docs lint lowest clean
.DEFAULT_GOAL := demo
.DELETE_ON_ERROR:

# Real answers of agents, one picture broken on purpose, and who passes as a person; ends with the paths of two pages.
demo: $(DEMO)
	@$(BIN)/python scripts/demo.py

# The tests without those marked slow (vLLM, Chromium, rounds of crashes); `make test-all` runs every test. What lint
# reports stands among their dots, and `make lint` shows it alone.
test: $(TEST)
	@$(MAKE) --no-print-directory --jobs=2 lint pytest

test-all: lint
	$(PYTEST)

pytest: $(TEST)
	$(PYTEST) -m "not slow"

lint: $(TEST)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python scripts/make_reference.py --check
	$(BIN)/mypy

# The documentation as a site in site/, with the API from docstrings.
docs: $(DEMO)
	$(BIN)/uv tool run --quiet --from zensical==0.0.73 --with 'mkdocstrings[python]==1.0.8' zensical build --clean

# The tests at the lowest versions that pyproject.toml allows, in a .venv-lowest of their own; no part of `make test`.
lowest:
	scripts/test_lowest.sh

# A .venv is repaired, or made anew if its Python does not start.
$(DEMO): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "Turinglike needs Python 3.11 or newer; '$(PYTHON)' is $$($(PYTHON) --version 2>&1 || true)." >&2; \
	  echo "Give another one: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	@rm -f $(DEMO) $(TEST)
	@$(BIN)/python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && \
	  $(BIN)/python -m pip --version >/dev/null 2>&1 || { rm -rf .venv; $(PYTHON) -m venv .venv; }
	$(BIN)/python -m pip install --quiet --disable-pip-version-check '$(UV)'
	@echo "Installing into .venv: about $(if $(TORCH),1 GB,3 GB (TORCH=cpu: less)) to download the first time"
	$(INSTALL) '.[vision,attention,words,judging,parquet]'
	@touch $@

$(TEST): $(DEMO)
	$(INSTALL) '.[all,test]'
	-$(BIN)/turinglike fetch smollm2-135m
	@touch $@

clean:
	rm -rf .venv .venv-lowest demo-run site
