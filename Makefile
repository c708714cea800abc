# `make demo` and `make test` do all the set-up on a machine with Python 3.11 and make; nothing else is needed.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

# Small matrices are slowed down by threads of the linear algebra, the more so beside a second test process.
export OPENBLAS_NUM_THREADS := 1
# Hundreds of tests start Python anew: without bytecode on disk each takes a second more.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test lint types unit bench check-wheel clean

# Folders of packages that tests hardly import: their modules, a third of all, are compiled when they are.
UNUSED := tests?|pip|setuptools|pkg_resources|mypyc?|debugpy|plotly|polars|lexers|physics|wcwidth|pydantic|distutils|jedi|joblib|signal|fontTools|parsing
# Compiled while packages are installed, which takes one core: else both processes of the tests compile them.
OURS := grammar dsl compiler backends evaluation api tests benchmarks

# The newest pip resolves in half the time of those that interpreters bring, which do as well. Its output has warnings of setuptools.
$(VENV)/.installed: pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "oco needs Python 3.11 or later")'
	rm -rf $(VENV) build
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --upgrade pip || true
	$(BIN)/python -m compileall -q $(OURS) & \
		PYTHONWARNINGS=ignore $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile -e ".[dev]"; status=$$?; wait; exit $$status
	$(BIN)/python -m compileall -q -j 2 -x '/($(UNUSED))/' $(VENV)/lib > $(VENV)/compiled.txt || true  # some packages have templates
	touch $@

# What a user needs, without the tools of development. Modules are compiled when they are first imported.
$(VENV)/.runs:
	@test -e $(VENV)/.installed || { echo "Making $(VENV) and installing oco with plots and traces, about half a minute ..."; \
		$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "oco needs Python 3.11 or later")'; }
	@test -e $(VENV)/.installed || { rm -rf $(VENV) && $(PYTHON) -m venv $(VENV); }
	@test -e $(VENV)/.installed || $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile -e ".[plots,traces]"
	@touch $@

demo: $(VENV)/.runs
	@echo "Running examples/job_scheduling.oco on a month of prices, about ten seconds ..."
	@$(BIN)/oco run examples/job_scheduling.oco --out demo --force

# mypy takes one core for a minute: the tests take the other meanwhile.
test: clean-venv $(VENV)/.installed lint
	$(MAKE) --no-print-directory -j 2 types unit

.PHONY: clean-venv
clean-venv:
	rm -rf $(VENV) build

lint: $(VENV)/.installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

# mypy finds the package only where it lies as a folder `oco`: here as links to the folders that `pyproject.toml` puts together.
types: $(VENV)/.installed
	rm -rf $(VENV)/typed && mkdir -p $(VENV)/typed/oco
	ln -s $(addprefix $(CURDIR)/,grammar dsl compiler backends evaluation) $(CURDIR)/api/* $(VENV)/typed/oco
	cd $(VENV)/typed && ../bin/mypy --config-file ../../pyproject.toml --cache-dir $(CURDIR)/.mypy_cache -p oco

# Assertions that say their values are made of the text of every test, six seconds for each process: what fails runs once more with them.
unit: $(VENV)/.installed
	$(BIN)/python -m pytest -n 2 --dist worksteal --assert=plain \
		|| { test $$? -ne 1 || $(BIN)/python -m pytest --last-failed; false; }

bench: $(VENV)/.installed
	$(BIN)/python benchmarks/speed/run.py

# The parser's tables, after a change of the grammar.
.PHONY: tables
tables: $(VENV)/.installed
	$(BIN)/python -c "from oco.dsl.text.tables import *; print(to_json(built(grammar()), grammar()), end='')" > tables.json
	mv tables.json grammar/tables.json

# The tables of the grammar for tree-sitter, after a change of its grammar.js or of the words. The version is that of src/tree_sitter.
TREE_SITTER ?= npx --yes tree-sitter-cli@0.22.6
.PHONY: tree-sitter
tree-sitter:
	cd editors/tree-sitter-oco && $(TREE_SITTER) generate --no-bindings && $(TREE_SITTER) test

# The extension for VS Code, editors/vscode/out/oco.vsix: Node.js 20 or later and npm's registry are needed.
.PHONY: vscode editors
vscode:
	cd editors/vscode && npm install && npm run package

# Everything about editors, with the tests that build and start the extension.
editors: $(VENV)/.installed
	$(BIN)/python -m pytest -m "thorough or not thorough" \
		tests/test_editor_files.py tests/test_tree_sitter.py tests/test_vscode.py tests/test_language_server.py tests/test_highlighting.py

# The JAX backend: its package is large, so that `make test` does without it.
.PHONY: jax
jax: $(VENV)/.installed
	$(BIN)/python -c "import jax" 2> /dev/null || $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile -e ".[jax]"
	$(BIN)/python -m pytest -n 2 --dist worksteal tests/test_jax.py tests/test_jax_agree.py tests/test_jax_gradients.py tests/test_jax_carried.py tests/test_finite_decisions.py tests/test_names.py

# Jobs of `oco emit` in Flink's mini cluster (a Java runtime is needed) and in Quix Streams, fleets and tables of runs on Ray: each engine in
# an environment of its own, half a gigabyte for Flink.
.PHONY: engines streams clusters
ENGINE_TESTS := -o faulthandler_timeout=3600 -m "thorough or not thorough"
engines: streams clusters
streams:
	test -d $(VENV)-streams || $(PYTHON) -m venv $(VENV)-streams
	$(VENV)-streams/bin/python -m pip install --quiet --disable-pip-version-check -c tests/streams.txt -e ".[parquet]" apache-flink quixstreams pytest hypothesis
	$(VENV)-streams/bin/python -m pytest $(ENGINE_TESTS) tests/test_stream_engines.py
clusters:
	test -d $(VENV)-clusters || $(PYTHON) -m venv $(VENV)-clusters
	$(VENV)-clusters/bin/python -m pip install --quiet --disable-pip-version-check -e ".[cluster,traces,plots]" pytest hypothesis
	RAY_worker_niceness=0 $(VENV)-clusters/bin/python -m pytest $(ENGINE_TESTS) tests/test_cluster_engines.py tests/test_cluster_nodes.py tests/test_cluster.py tests/test_sweep.py

# The documentation's site, in build/site/html: every block of its pages is executed, and a link that leads nowhere fails. No network.
.PHONY: site
site: $(VENV)/.installed
	$(BIN)/python -c "import mkdocs, material, jax" 2> /dev/null || $(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[docs,jax]"
	$(BIN)/python -m website.build $(PAGES)

# The page that plays the examples in a browser, in build/playground: Node.js with npm and their registry are needed.
.PHONY: playground
playground: $(VENV)/.installed
	$(BIN)/python -c "import ziglang" 2> /dev/null || $(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[c]"
	$(BIN)/python -m website.playground.build $(EXAMPLES)

# Signatures of the words of the language for editors and type checkers, after a change of an atom, a domain or a distribution.
.PHONY: stubs
stubs: $(VENV)/.installed
	$(BIN)/python -m oco.stubs > words.pyi
	mv words.pyi api/words.pyi
	$(BIN)/python -m oco.reference > docs/api.md

.PHONY: fuzz large soak audit
# Models at random held to laws for an hour (HUNT_SECONDS), model files at random for ten minutes (FUZZ_SECONDS), then raw bytes where
# atheris is installed; kills, mutations and the cases marked `thorough` in full.
HUNT_SECONDS ?= 3600
FUZZ_SECONDS ?= 600
fuzz: $(VENV)/.installed
	$(BIN)/python -m pytest -n 2 --dist worksteal -m thorough
	$(BIN)/python -m pytest --hypothesis-profile thorough $$(grep -l "^from hypothesis" tests/test_*.py)
	$(BIN)/python -m pytest tests/test_states.py tests/test_journal.py tests/test_store.py --kills 500 -o faulthandler_timeout=3600
	$(BIN)/python -m pytest tests/test_service.py --kills 200 -o faulthandler_timeout=3600
	$(BIN)/python -m pytest tests/test_hostile_models.py --hostile-seconds 2
	$(BIN)/python tests/fuzz/hunt.py $(HUNT_SECONDS)
	$(BIN)/python tests/fuzz/run.py $(FUZZ_SECONDS)
	$(BIN)/python tests/fuzz/shapes.py $(FUZZ_SECONDS)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[fuzz]" \
		&& $(BIN)/python tests/fuzz/bytes.py -max_total_time=$(FUZZ_SECONDS) -max_len=4096 tests/fuzz/corpus \
		|| echo "atheris cannot be installed here, or has found something: see above"

# Model files near the limits of size, for LARGE_SECONDS: those that take more than five seconds or 1 GB are written down.
LARGE_SECONDS ?= 600
large: $(VENV)/.installed
	$(BIN)/python tests/fuzz/large.py $(LARGE_SECONDS)
	$(BIN)/python tests/fuzz/mixed.py $(LARGE_SECONDS)

# 10^7 rounds in C, 10^5 in NumPy, of every algorithm; SOAK names some of them.
soak: $(VENV)/.installed
	$(BIN)/python tests/soak.py $(SOAK)

# Every command once in fresh environments: with the lower bounds of pyproject.toml, and with the newest versions.
.PHONY: smoke-oldest smoke-newest
smoke-oldest smoke-newest: smoke-%:
	rm -rf $(VENV)-$* build
	$(PYTHON) -m venv $(VENV)-$*
	$(VENV)-$*/bin/python tests/smoke.py --constraints $* > $(VENV)-$*/constraints.txt
	$(VENV)-$*/bin/python -m pip install --quiet --disable-pip-version-check \
		-c $(VENV)-$*/constraints.txt ".[all]"
	$(VENV)-$*/bin/python tests/smoke.py
	rm -rf build

# Known vulnerabilities of what is installed. Where the registry does not answer, that is said, and nothing fails.
audit: $(VENV)/.installed
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check pip-audit || echo "audit: pip-audit cannot be installed here"
	@$(BIN)/pip-audit --skip-editable --progress-spinner off --format json > $(VENV)/audit 2> $(VENV)/audit.said || true
	@$(BIN)/python .ci/audit.py $(VENV)/audit

# What a release is made of, in dist/: refused while the version, the changelog, the tag or the placeholders are not in order. The wheel
# is built from the sdist, and the tests run in what the sdist unpacks to.
.PHONY: release dist
release: $(VENV)/.installed
	$(BIN)/python .ci/release.py
	$(MAKE) --no-print-directory dist
	rm -rf dist/unpacked && mkdir dist/unpacked && tar -xzf dist/*.tar.gz -C dist/unpacked --strip-components 1
	$(MAKE) --no-print-directory -C dist/unpacked test
	rm -rf dist/unpacked

dist: $(VENV)/.installed
	rm -rf dist build
	$(BIN)/python -m build --no-isolation

clean:
	rm -rf $(VENV) $(VENV)-oldest $(VENV)-newest $(VENV)-streams $(VENV)-clusters build dist demo *.egg-info editors/vscode/node_modules editors/vscode/out .pytest_cache .mypy_cache .ruff_cache .hypothesis
