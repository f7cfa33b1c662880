# Two commands do all the set-up by themselves: `make discover` and `make test`.
PYTHON ?= python3.11
BIN := .venv/bin

# glibc then reuses the memory that short-lived threads have freed
export MALLOC_ARENA_MAX ?= 2

# tests start hundreds of processes: what one has compiled the others read
test tests test-slow: export PYTHONDONTWRITEBYTECODE =

.PHONY: discover test tests test-slow lint types replicate train-faces bench lock audit licences clean help

help: ## list the commands
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 16

discover: .venv/.run ## discover features of the shipped faces
	$(BIN)/twothirds discover datasets/faces --oracle contrastive $(ARGS)

test: .venv/.dev ## everything CI runs, about 9 minutes on two cores
	tests/install_chromium.sh
	tests/install_axe.sh
	$(MAKE) --no-print-directory -j 3 lint types tests

tests: .venv/.dev # beside lint and types; with four processes they take a minute longer on two cores
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 3 --dist loadgroup -m "not slow"

test-slow: .venv/.dev ## the long tests, and property tests with new examples
	tests/install_smollm2.sh
	tests/install_clip.sh
	tests/install_qwen.sh
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist loadgroup -m "slow or hypothesis" --timeout 3600 --hypothesis-profile search

lint: .venv/.dev ## ruff and import-linter
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-logo

types: .venv/.dev ## mypy, strict
	$(BIN)/mypy twothirds tests benchmarks supply datasets

replicate: .venv/.run ## the paper's claims, tables and figures, into docs/replication
	$(BIN)/python -m benchmarks.paper $(ARGS)

train-faces: .venv/.dev ## train the shipped model again, under an hour on two cores
	$(BIN)/python -m benchmarks.faces_model.train

bench: .venv/.dev ## measure what docs/results.md shows (ARGS="NAME --quick": one of them)
	$(BIN)/python -m benchmarks $(or $(ARGS),all); status=$$?; $(BIN)/python -m benchmarks render; exit $$status

clean: ## remove the environment and caches
	rm -rf .venv .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis

lock: .venv/.dev .venv/.tools ## pin what is required, and all that it needs, with hashes (ARGS=--upgrade: newer versions)
	$(BIN)/python -m supply.lock $(ARGS)

audit: .venv/.tools ## look for known vulnerabilities of what is locked (asks an advisory service)
	.venv/tools/bin/pip-audit --strict --disable-pip --require-hashes -r supply/run.lock -r supply/torch.lock -r supply/dev.lock -r supply/scale.lock

licences: .venv/.run ## licences.md, for a release: under which licences the installed packages are
	$(BIN)/python -m supply.licences

.venv/.run: supply/run.lock supply/torch.lock
	test -x $(BIN)/python || $$(command -v $(PYTHON) || command -v python3) -m venv .venv
	@echo 'installing what supply/run.lock names into .venv (a few minutes, once)'
	supply/install.sh $(BIN)/python run
	ln -sfn "$(CURDIR)/twothirds" "$$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/twothirds"
	install -m 755 supply/twothirds $(BIN)/twothirds
	$(BIN)/python -m compileall -q -x '\.venv' . # where Python may not write bytecode, each start would compile anew
	$(BIN)/python -m twothirds.flows.prefect_api.new_database # with which servers begin, for it takes a while
	touch $@

.venv/.dev: supply/dev.lock .venv/.run
	@echo 'installing what supply/dev.lock names into .venv (a minute, once)'
	supply/install.sh $(BIN)/python dev
	touch $@

.venv/.tools: supply/tools.lock .venv/.run
	test -x .venv/tools/bin/python || $(BIN)/python -m venv .venv/tools
	supply/install.sh .venv/tools/bin/python tools
	touch $@
