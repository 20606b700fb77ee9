# Each target stands alone on a fresh machine with Python 3.11+, pip and make: what it needs is installed
# into .venv first. A stamp per extra, younger than pyproject.toml, makes the second run start at once.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMPS := $(VENV)/stamps
# Processes that share the tests: as many as there are cores, four at most.
JOBS   ?= auto
PYTEST := $(BIN)/python -m pytest

.DEFAULT_GOAL := help
.NOTPARALLEL:
.SUFFIXES:
.DELETE_ON_ERROR:
.PHONY: help demo test lint types docs peers conformance protobuf check clean

help:
	@echo "make demo         train LeNet on real digits, classify unseen ones, draw what happened"
	@echo "make test         the tests that every change must pass"
	@echo "make lint         ruff"
	@echo "make types        mypy --strict on src/"
	@echo "make docs         the manual, in docs/_build/html; warnings are errors"
	@echo "make peers        the sample of tests against torch, onnxruntime, onnx, OpenCV 4 and JAX (installs them)"
	@echo "make conformance  the complete sweeps"
	@echo "make protobuf     the readers of Caffe's files under protobuf 4, 5, 6 and 7"
	@echo "make check        lint, types, docs, peers and test"
	@echo "make clean        remove what the above have made"

demo: $(STAMPS)/demo
	$(BIN)/astride demo

test: $(STAMPS)/demo $(STAMPS)/test
	$(PYTEST) -n $(JOBS) --maxprocesses=4 -m "not live and not conformance and not slow"

lint: $(STAMPS)/lint
	$(BIN)/ruff check .

types: $(STAMPS)/lint
	$(BIN)/mypy

docs: $(STAMPS)/docs
	$(BIN)/sphinx-build -W --keep-going -q -b html docs docs/_build/html
	@echo "docs/_build/html/index.html"

peers: $(STAMPS)/demo $(STAMPS)/test $(STAMPS)/peers
	$(PYTEST) -m "live and not conformance and not slow"

conformance: $(STAMPS)/demo $(STAMPS)/test $(STAMPS)/peers
	$(PYTEST) -m "conformance or slow" --timeout=3600

protobuf: $(STAMPS)/demo $(STAMPS)/test
	for major in 4 5 6 7; do \
		where=$(CURDIR)/build/protobuf-$$major; \
		$(BIN)/python -m pip install -q --upgrade --target $$where "protobuf>=$$major,<$$((major + 1))" || exit 1; \
		PYTHONPATH=$$where $(PYTEST) tests/proto tests/caffe -n $(JOBS) --maxprocesses=4 || exit 1; \
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

# The environment is older than every stamp in it, so it is an order-only need.
$(STAMPS)/%: pyproject.toml | $(BIN)/python
	@mkdir -p $(STAMPS)
	@echo "installing astride[$*] into $(VENV) (once)"
	@$(BIN)/python -m pip install -q --disable-pip-version-check -e '.[$*]'
	@touch $@
