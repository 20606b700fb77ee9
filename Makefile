# Each target stands alone on a fresh machine with Python 3.11+, pip and make: what it needs is installed
# into .venv first. A stamp per extra, younger than pyproject.toml, makes the second run start at once.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMPS := $(VENV)/stamps
# Processes that share the tests: as many as there are cores, four at most. Idle ones take tests from the busy one's
# end, so that the last slow file does not run alone; the kernels that one compiles the others find on disk.
JOBS   ?= auto
PYTEST := $(BIN)/python -m pytest
SHARED := -n $(JOBS) --maxprocesses=4 --dist=worksteal
# Rivals start a thread for each core; where the processes are as many as the cores, those only wait for one another.
RIVALS := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1
# What `make check` needs, less the rivals: the tests that do without them are to run without them.
EXTRAS := demo test lint docs

.DEFAULT_GOAL := help
.NOTPARALLEL:
.SUFFIXES:
.DELETE_ON_ERROR:
.PHONY: help setup demo test lint types docs peers conformance protobuf check clean

help:
	@echo "make demo         train LeNet on real digits, classify unseen ones, draw what happened"
	@echo "make test         the tests that every change must pass"
	@echo "make lint         ruff"
	@echo "make types        mypy --strict on src/"
	@echo "make docs         the manual, in docs/_build/html; warnings are errors"
	@echo "make peers        the sample of tests against torch, onnxruntime, onnx, OpenCV 4 and JAX (installs them)"
	@echo "make conformance  the complete sweeps"
	@echo "make setup        what test, lint, types and docs need, installed at once"
	@echo "make protobuf     the readers of Caffe's files under protobuf 4, 5, 6 and 7"
	@echo "make check        lint, types, docs, peers and test"
	@echo "make clean        remove what the above have made"

demo: $(STAMPS)/demo
	$(BIN)/astride demo

test: $(STAMPS)/demo $(STAMPS)/test
	$(PYTEST) $(SHARED) -m "not live and not conformance and not slow"

lint: $(STAMPS)/lint
	$(BIN)/ruff check .

types: $(STAMPS)/lint
	$(BIN)/mypy

docs: $(STAMPS)/docs
	$(BIN)/sphinx-build -j auto -W --keep-going -q -b html docs docs/_build/html
	@echo "docs/_build/html/index.html"

peers: $(STAMPS)/demo $(STAMPS)/test $(STAMPS)/peers
	$(RIVALS) $(PYTEST) $$(grep -rl --include='test_*.py' 'mark\.live' tests) $(SHARED) -m "live and not conformance and not slow"

conformance: $(STAMPS)/demo $(STAMPS)/test $(STAMPS)/peers
	$(PYTEST) -m "conformance or slow" --timeout=3600
	$(PYTEST) tests/properties --hypothesis-profile=sweep --timeout=3600

protobuf: $(STAMPS)/demo $(STAMPS)/test
	for major in 4 5 6 7; do \
		where=$(CURDIR)/build/protobuf-$$major; \
		$(BIN)/python -m pip install -q --upgrade --target $$where "protobuf>=$$major,<$$((major + 1))" || exit 1; \
		PYTHONPATH=$$where $(PYTEST) tests/proto tests/caffe $(SHARED) || exit 1; \
	done

check: lint types docs peers test

clean:
	rm -rf $(VENV) docs/_build build dist out demo-out .pytest_cache .ruff_cache .mypy_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Debian's python3 comes without ensurepip; there the system's pip puts pip into the new environment.
$(BIN)/python:
	@command -v $(PYTHON) >/dev/null || { echo "astride needs Python 3.11 or newer: '$(PYTHON)' was not found. Try: make PYTHON=python3.12 ..." >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "astride needs Python 3.11 or newer; '$(PYTHON)' is $$($(PYTHON) --version 2>&1). Try: make PYTHON=python3.12 ..." >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip' 2>/dev/null && $(PYTHON) -m venv $(VENV) \
	  || { $(PYTHON) -m venv --clear --without-pip $(VENV) && $(PYTHON) -m pip --python $(BIN)/python install -q pip; } \
	  || { echo "could not make $(VENV): install pip for $(PYTHON)" >&2; rm -rf $(VENV); exit 1; }

# One call for all extras: each call resolves, and builds astride's own metadata, anew.
comma := ,
empty :=
space := $(empty) $(empty)
setup: pyproject.toml | $(BIN)/python
	@mkdir -p $(STAMPS)
	@echo "installing astride[$(subst $(space),$(comma),$(EXTRAS))] into $(VENV) (once)"
	@$(BIN)/python -m pip install -q --disable-pip-version-check -e '.[$(subst $(space),$(comma),$(EXTRAS))]'
	@touch $(EXTRAS:%=$(STAMPS)/%)

# The environment is older than every stamp in it, so it is an order-only need.
$(STAMPS)/%: pyproject.toml | $(BIN)/python
	@mkdir -p $(STAMPS)
	@echo "installing astride[$*] into $(VENV) (once)"
	@$(BIN)/python -m pip install -q --disable-pip-version-check -e '.[$*]'
	@touch $@
