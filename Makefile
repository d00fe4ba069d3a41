# Everything a developer runs. `make demo` and `make test` do all of their own set-up on a fresh machine.

PYTHON ?= python3
VENV := .venv
BIN := $(CURDIR)/$(VENV)/bin
# quick: what CI runs for each change. full: every scenario, image, Python, play.
export SCOPE ?= quick
# A version of ansible-core, such as 2.20, in place of that in test-requirements.txt.
CORE ?=
READY := $(VENV)/.ready$(CORE)
REPEATS ?= 1
SCHEDULES ?= 1000000
PACKETS ?= 1000000
# The seed of the first schedule, and of all packets. By default the first million schedules, and new packets each time.
SEED ?=
# The comparisons of `bench`; all of them by default.
COMPARE ?=
# The commit that `scenarios`, `sanity` and `ansible-lint` compare with, and the tag of a release. Without it the first
# compares with main, and the others judge every file.
SINCE ?=
TAG ?=

# A pipe fails when its first command does.
SHELL := /bin/bash
.SHELLFLAGS := -o pipefail -c
export PATH := $(BIN):$(PATH)
# Compiled modules are cached, but not beside the sources.
unexport PYTHONDONTWRITEBYTECODE
export PYTHONPYCACHEPREFIX := $(CURDIR)/.cache/compiled
# Ansible reads and writes nothing in the home folder.
export ANSIBLE_HOME := $(CURDIR)/.cache/ansible
export ANSIBLE_CONFIG := $(CURDIR)/ansible.cfg
export ANSIBLE_COLLECTIONS_PATH := $(CURDIR)/.cache/collections
export MOLECULE_GLOB := molecule/*/molecule.yml
# Otherwise molecule wraps lines at 80 columns.
export COLUMNS := 200
# For molecule when it is called by hand; the suite gives each scenario its own folder.
export MOLECULE_EPHEMERAL_DIRECTORY := $(CURDIR)/.cache/molecule
# Where the tests of a scenario write their JUnit files.
export MOLECULE_JUNIT ?= $(CURDIR)/.cache/molecule
COLLECTION := .cache/collections/ansible_collections/onprem/lb
DEMO := .cache/lab/demo/inventory.yml
SANITY := .cache/sanity/ansible_collections/onprem/lb

say = @printf '\n== %s (%s)\n' "$(1)" "$$(date +%T)"

.PHONY: help
help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /  make \1\t/p' $(MAKEFILE_LIST) | expand -t 22

.PHONY: demo
demo: setup ## start hosts, set a pair up, fail it over, print the table, write the report
	$(call say,demo: five systemd hosts)
	$(PYTHON) lab up --scenario demo
	$(call say,demo: the pair)
	ansible-playbook -i $(DEMO) -i lab/demo.yml playbooks/site.yml
	$(call say,demo: the drill)
	ansible-playbook -i $(DEMO) -i lab/demo.yml playbooks/drill.yml -e drill_repeats=$(REPEATS) \
	  -e drill_report=$(CURDIR)/.cache/drill.json -e drill_html=$(CURDIR)/.cache/drill.html -e drill_history=$(CURDIR)/.cache/drills
	@echo 'The report is $(CURDIR)/.cache/drill.html, its figures are in drill.json beside it, and earlier drills in drills.'
	@echo '`python3 lab ssh --scenario demo lb1` enters a host, `make down` removes them all.'

.PHONY: test
test: ## what every change must pass, in some 13 minutes on two cores; SCOPE=full: everything
	@$(PYTHON) tests/suite test

.PHONY: matrix
matrix: ## the full scope, in hours: every scenario, image, Python and play; goes on where it was interrupted, but with FRESH=1
	@SCOPE=full FRESH=$(FRESH) $(PYTHON) tests/suite test

.PHONY: check
check: ## the static checks: lint, ansible-lint, sanity, documentation, the archive
	@$(PYTHON) tests/suite check

.PHONY: unit
unit: ## the tests that need no host
	@$(PYTHON) tests/suite unit

.PHONY: pythons
pythons: ## the tests of code for targets under Python 3.8; SCOPE=full: every version up to the newest here
	@$(PYTHON) tests/suite pythons

.PHONY: netns
netns: ## the tests with real sockets in network namespaces, as root or through sudo
	@$(PYTHON) tests/suite netns

.PHONY: timing
timing: ## how long failures, handovers and changes take, in ten rounds each, alone on the machine
	@$(PYTHON) tests/suite timing

.PHONY: stress
stress: ## as root: the unit and netns tests on a busy machine that stalls, ROUNDS of them, three
	$(PYTHON) tests/stress.py $(if $(SEED),--seed $(SEED)) $(if $(ROUNDS),--rounds $(ROUNDS))

.PHONY: molecule
molecule: ## the scenarios on real systemd hosts: the scope's, or RUNS="default:debian12 ..."
	@RUNS="$(RUNS)" $(PYTHON) tests/suite molecule

.PHONY: interruptions
interruptions: ## kill runs on real hosts, and run them again: six moments; SCOPE=full: all
	@$(PYTHON) tests/suite interruptions

.PHONY: lint
lint: setup ## ruff, mypy, yamllint, the changelog, the workflows
	ruff check . && ruff format --check .
	mypy
	yamllint --strict .
	antsibull-changelog lint
	check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml

.PHONY: ansible-lint
ansible-lint: setup ## ansible-lint's production profile; SINCE=main: only of what has changed
	python tests/gates.py ansible-lint --since "$(SINCE)"

.PHONY: docs
docs: setup ## the documentation of modules, filters and roles
	python tests/gates.py docs

.PHONY: golden
golden: setup ## write the golden files again; read the difference
	WRITE_GOLDEN=1 pytest tests/unit/roles
	git diff --stat tests/golden

.PHONY: pictures
pictures: setup ## draw the documentation's pictures again; look at them
	python tests/pictures
	git diff --stat docs/pictures

.PHONY: sanity
sanity: setup ## ansible-test sanity, which wants the collection under its own name and in git; SINCE=main: only of what has changed
	$(call say,sanity)
	rm -rf $(SANITY) && mkdir -p $(SANITY)
	git ls-files --cached --others --exclude-standard | tar --create --files-from=- | tar --extract --directory=$(SANITY)
	git -C $(SANITY) init --quiet && git -C $(SANITY) add --all
	python tests/gates.py sanity --since "$(SINCE)"

.PHONY: packages
packages: ## install the Debian packages that tests need, as root or through sudo
	$(PYTHON) tests/unit/tools.py
	$(PYTHON) tests/netns/tools.py

.PHONY: simulate
simulate: setup ## random schedules through the state machine: SCHEDULES, a million
	python tests/schedules.py --schedules $(SCHEDULES) --jobs $$(nproc) --seed $(or $(SEED),0)

.PHONY: fuzz
fuzz: setup ## broken packets through the decoder: PACKETS, a million
	python tests/fuzz_packets.py --packets $(PACKETS) $(if $(SEED),--seed $(SEED))

.PHONY: chaos
chaos: setup packages ## as root: random failures and changes of running layouts under load, ROUNDS of them, a thousand
	python tests/chaos $(if $(SEED),--seed $(SEED)) --rounds $(or $(ROUNDS),1000)

.PHONY: mutants
mutants: setup ## breaks in copies of the files, COUNT of them, 200: those that no unit test finds; STRICT=1: they are errors
	python tests/mutants --count $(or $(COUNT),200) $(if $(SEED),--seed $(SEED)) $(if $(filter 1,$(STRICT)),--strict)

.PHONY: bench
bench: setup packages ## side by side with keepalived, haproxy, other roles and decoders, and docs/benchmarks.md of it; COMPARE="proxy vrrp"
	$(PYTHON) bench/tools.py
	python bench/page.py $(COMPARE)

.PHONY: build
build: setup ## the archive for Galaxy, with only what a user needs
	rm -rf .cache/build && ansible-galaxy collection build --output-path .cache/build
	$(PYTHON) tests/archive.py .cache/build/*.tar.gz

.PHONY: sbom
sbom: build ## the archive's bill of materials, .cache/build/sbom.cdx.json
	python tests/sbom.py .cache/build/*.tar.gz --output .cache/build/sbom.cdx.json

.PHONY: sign
sign: setup ## sign the archive that `make sbom` made with the secret key in SIGNING_KEY, as ansible-galaxy verifies it
	python tests/sign.py .cache/build/*.tar.gz

.PHONY: importer
importer: build ## what Galaxy's importer says of the archive; its tools are not ours, so they have a virtual environment of their own
	test -x .cache/importer/bin/ansible-lint || ($(PYTHON) -m venv --clear .cache/importer && .cache/importer/bin/pip install --quiet galaxy-importer)
	cd .cache/build && PATH=$(CURDIR)/.cache/importer/bin:$$PATH python -m galaxy_importer.main *.tar.gz

.PHONY: cores
cores: setup ## the archive, installed beside the oldest supported ansible-core; SCOPE=full: beside each, on hosts, and the unit tests
	@$(PYTHON) tests/suite cores

.PHONY: controllers
controllers: ## runs on real hosts with each setting of ansible.cfg, way to become root and caller of tests/controllers/rows.py; SCOPE=full: each in runs of its own
	@$(PYTHON) tests/suite controllers

.PHONY: scenarios
scenarios: ## print the scenarios and interruptions that the files changed since SINCE need
	@$(PYTHON) tests/changed.py --since "$(or $(SINCE),main)"

.PHONY: release
release: setup ## the changelog of galaxy.yml's version, and a record of what it renders, with which the next one is compared
	antsibull-changelog release
	python tests/record_release.py

.PHONY: notes
notes: setup ## the release notes of TAG, .cache/build/notes.md; refuses a tag that is not this version's
	python tests/release_notes.py --tag "$(TAG)" --output .cache/build/notes.md

.PHONY: publish
publish: setup ## send the archive that `make build` made to Galaxy
	ansible-galaxy collection publish .cache/build/*.tar.gz

.PHONY: shell
shell: setup packages ## a shell in which pytest, ansible-playbook and molecule are make's own
	@$(SHELL) -i

.PHONY: agent
agent: ## the embedded agent as one file, .cache/agent.pyz
	@mkdir -p .cache
	$(PYTHON) plugins/module_utils/_host/deploy/archive.py plugins/module_utils/_agent .cache/agent.pyz

.PHONY: down
down: ## remove every lab host, network and inventory of this checkout
	$(PYTHON) lab down

.PHONY: setup
setup: $(READY) $(COLLECTION)

# uv takes some seconds for what takes pip a minute. It does not read pip's configuration, so where only that names an
# index, pip installs. Without compilation: few of the thousands of modules in `ansible` are ever imported.
$(READY): test-requirements.txt
	$(call say,setup: tools into $(VENV))
	$(PYTHON) -m venv $(VENV)
	$(if $(CORE),sed --expression='s/^ansible-core.*/ansible-core==$(CORE).*/' --expression='s/^ansible>.*/ansible/',cat) $< > $(VENV)/requirements.txt
	$(VENV)/bin/pip install --quiet --no-compile uv
	$(VENV)/bin/uv pip install --quiet --python $(VENV)/bin/python --requirement $(VENV)/requirements.txt \
	  || $(VENV)/bin/pip install --quiet --no-compile --requirement $(VENV)/requirements.txt
	@rm -f $(VENV)/.ready* && touch $@

$(COLLECTION):
	@mkdir -p $(dir $@) && ln -sfn $(CURDIR) $@
