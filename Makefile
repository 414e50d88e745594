# make demo | test | bench | lint: each starts from nothing; the first of them makes .venv.
PYTHON ?= python3
UV := uv==0.13.8
BIN := .venv/bin
STAMP := .venv/.installed

.PHONY: demo test bench lint clean
.DEFAULT_GOAL := demo
.DELETE_ON_ERROR:

# Real answers of five agents, one picture broken on purpose; ends with the path of a page to look at.
demo: $(STAMP)
	@$(BIN)/python scripts/demo.py

test: lint
	$(BIN)/python scripts/make_schemas.py --check
	$(BIN)/python -m pytest -n 2 --dist loadfile

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(STAMP)
	@set -e; for script in scripts/bench_*.py; do echo "== $$script"; $(BIN)/python "$$script"; done

# The stamp is written last: a .venv without it is repaired, or made anew if its Python does not start.
$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "Turinglike needs Python 3.11 or newer; '$(PYTHON)' is $$($(PYTHON) --version 2>&1 || true)." >&2; \
	  echo "Give another one: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	@rm -f $@
	@$(BIN)/python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && \
	  $(BIN)/python -m pip --version >/dev/null 2>&1 || { rm -rf .venv; $(PYTHON) -m venv .venv; }
	$(BIN)/python -m pip install --quiet --disable-pip-version-check '$(UV)'
	$(BIN)/uv pip install --python $(BIN)/python --constraint constraints.txt --editable '.[test,bench,compare,words,openai,serve,vllm]'
	@touch $@

clean:
	rm -rf .venv demo-run
