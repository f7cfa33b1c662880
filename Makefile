# Two commands do all the set-up by themselves: `make discover` and `make test`.
PYTHON ?= python3.11
BIN := .venv/bin

.PHONY: discover test test-slow lint types replicate train-faces bench clean help

help: ## list the commands
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 16

discover: .venv/.run ## discover features of the shipped faces
	$(BIN)/python -m flows discover datasets/faces --oracle contrastive $(ARGS)

test: .venv/.dev lint types ## everything CI runs, under 8 minutes on two cores
	tests/install_chromium.sh
	tests/install_axe.sh
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist loadgroup -m "not slow"

test-slow: .venv/.dev ## the long tests
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist loadgroup -m slow --timeout 3600

lint: .venv/.dev ## ruff
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: .venv/.dev ## mypy, strict
	$(BIN)/mypy .

replicate: .venv/.run ## the paper's claims, tables and figures, into docs/replication
	$(BIN)/python -m flows replicate $(ARGS)

train-faces: .venv/.dev ## train the shipped model anew, under an hour on two cores
	$(BIN)/python -m models.faces.train

bench: .venv/.dev ## the figures of docs/benchmarks.md
	$(BIN)/python -m benchmarks

clean: ## remove the environment and caches
	rm -rf .venv .pytest_cache .mypy_cache .ruff_cache .hypothesis

.venv/.run: requirements.txt
	test -x $(BIN)/python || $$(command -v $(PYTHON) || command -v python3) -m venv .venv
	@echo 'installing requirements.txt into .venv (a few minutes, once)'
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.txt
	touch $@

.venv/.dev: requirements-dev.txt .venv/.run
	@echo 'installing requirements-dev.txt into .venv (a minute, once)'
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements-dev.txt
	touch $@
