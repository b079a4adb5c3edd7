# Everything a fresh machine needs: `make demo` and `make test` do their own set-up.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready
ARCHIVE := .venv/share/barnabas/spark.jsa
export PYTHONDONTWRITEBYTECODE := 1

.PHONY: demo test check format soak bench lock clean prerequisites jars tools

demo: $(READY) ## two real clusters, a million records, mirrored and compared
	$(BIN)/barnabas demo

test: check jars tools $(ARCHIVE) ## everything that must hold, on real brokers, registries and Spark
	$(BIN)/pytest -m "not slow"

check: $(READY) ## format, lint, types, layers
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/pytest -q tests/unit/test_layers.py

format: $(READY)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

soak: $(READY) jars tools $(ARCHIVE) ## the long fault runs
	$(BIN)/pytest -m slow

bench: $(READY) jars tools $(ARCHIVE) ## side by side with MirrorMaker 2, a plain loop and stunnel
	@tests/packages.sh stunnel4=stunnel4
	$(BIN)/python -m bench

tools:
	@tests/packages.sh ip=iproute2 nft=nftables

jars: $(READY)
	$(BIN)/python -m barnabas.lab.jars

$(ARCHIVE): $(READY) src/barnabas/archive.py src/barnabas/lab/jars.lock ## Java's class archive, by a small run of the real thing: every later start is 4 s shorter
	$(BIN)/barnabas demo --records 20000 --archive

prerequisites:
	@./prerequisites.sh $(PYTHON)

$(READY): requirements.lock requirements-build.lock pyproject.toml | prerequisites
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --require-hashes --requirement requirements-build.lock
	$(BIN)/pip install --quiet --require-hashes --no-build-isolation --requirement requirements.lock
	$(BIN)/pip install --quiet --no-deps --no-build-isolation --editable .
	touch $@

lock: $(READY) ## after changing a dependency in pyproject.toml
	$(BIN)/python -m pip install --quiet uv
	$(BIN)/uv pip compile --quiet pyproject.toml --extra dev --generate-hashes --no-emit-index-url --no-header \
	  --allow-unsafe --universal --python-version 3.11 --output-file requirements.lock
	grep -A2 '^setuptools==' requirements.lock > requirements-build.lock

clean:
	rm -rf .venv build dist src/*.egg-info .mypy_cache .ruff_cache .pytest_cache
