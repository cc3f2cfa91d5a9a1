# make book     execute the chapters that are not up to date and build the book
# make test     run every test
# make lint     style, formatting and types
# make lab      open the chapters in JupyterLab
# make bench    measure the speed-ups that the README reports
# make clean    remove the book and the executed chapters, keep the environment
#
# The first call makes the environment in .venv (some minutes, about 2 GB; Linux without a GPU:
# PIP_EXTRA_INDEX_URL=https://download.pytorch.org/whl/cpu saves most of the download).
# Variables: PROFILE=smoke for a fast book, PYTHON=python3.12 for another interpreter.

PROFILE ?= lab
PYTHON ?= python3
BIN := .venv/$(if $(filter Windows_NT,$(OS)),Scripts,bin)
INSTALLED := .venv/installed

# The lab's model is so small that two threads mostly wait for each other.
export OMP_NUM_THREADS ?= 1

.PHONY: book test lint lab bench clean constraints

book: $(INSTALLED)
	$(BIN)/companion run --all --stale --profile "$(PROFILE)"
	$(BIN)/companion build --profile "$(PROFILE)"

test: $(INSTALLED)
	$(BIN)/python -m pytest --numprocesses auto --dist loadfile

lint: $(INSTALLED)
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

lab: $(INSTALLED)
	$(BIN)/jupyter lab notebooks

bench: $(INSTALLED)
	$(BIN)/python -m benchmarks

clean:
	rm -rf _build book/chapters book/_generated

$(INSTALLED): pyproject.toml constraints.txt
	$(PYTHON) -c "import sys; sys.exit('make PYTHON=...: Python 3.11 or newer is needed, this is ' + sys.version if sys.version_info < (3, 11) else 0)"
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --disable-pip-version-check --constraint constraints.txt --editable ".[book,dev]"
	touch $@

# The exact versions that make and continuous integration install: run this in an environment whose
# tests passed. A local build such as torch 2.13.0+cpu counts as its public version.
constraints:
	$(BIN)/python -m pip freeze --exclude-editable | sed 's/+cpu$$//' > constraints.txt
