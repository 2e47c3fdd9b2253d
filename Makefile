# SPDX-License-Identifier: Apache-2.0
#
# Bare `make` lists the targets. Needed: Go (see go.mod), gcc, GNU make. Everything else that a
# target needs it installs itself where it may, or names.

SHELL       := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

BUILD     ?= build
GO       ?= go
FUZZTIME ?= 60s
LOOPS    ?= 8
SOAK_TIME ?= 10m
MODULE   := $(shell sed -n 's/^module //p' go.mod)
COMMIT   := $(shell git describe --always --dirty 2>/dev/null || echo unknown)
PIPIT    ?=
RECORDING ?= testdata/nccl-callbacks/09-straggler-4p

TOOL   := $(BUILD)/nccl-otf2
PLUGIN := $(BUILD)/libnccl-profiler-otf2.so

# Packages whose code runs in several goroutines or beside another process.
RACE_PACKAGES ?= ./internal/collector/... ./internal/gpu/... ./scorep/... ./internal/timeline/... ./internal/replay/... ./plugin/shm/...

export CGO_ENABLED ?= 0

include plugin/plugin.mk
include internal/replay/host/host.mk
include tests/faults/inject/inject.mk
include tests/realnccl/realnccl.mk

.PHONY: prose-check packages packages-test query test-build test-compile install uninstall vulnerabilities agreements page-points answers faults page page-check pictures help build demo test test-loaded lint race fuzz cover size bench soak gpu-test gpu-test-build real-nccl real-nccl-short spark-test sanitize generate clean setup tool slurm-test demo-cluster

help: ## list the targets
	@sed -nE 's/^([a-z-]+):[^#]*## (.*)/  make \1\t\2/p' $(firstword $(MAKEFILE_LIST)) | expand -t 20

build: tool $(PLUGIN) $(BUILD)/librccl-profiler-otf2.so $(BUILD)/libscorep_substrate_nccl_otf2.so $(BUILD)/THIRD-PARTY-LICENSES $(HOST) $(BUILD)/share ## the plugin, the tool and what plays recordings, in build/

test-build: build $(INJECT) $(FAKECUPTI) $(FAKESCOREP) ## and what tests need beside it

# What two Go commands need at the same time each of them compiles.
test-compile: ## what tests and linters, and tests under the race detector, are linked of, into Go's cache
	$(GO) list -test -export -deps ./... >/dev/null
	CGO_ENABLED=1 $(GO) list -test -export -deps -race -buildmode=exe $(RACE_PACKAGES) >/dev/null

# NVML is reached through cgo, which needs a C compiler; TOOL_CGO=0 builds the tool without NVML. Functions that the
# driver's library lacks must not keep a program from starting: they are bound when they are first called.
TOOL_CGO ?= 1
comma := ,
LAZY := -extldflags=-Wl$(comma)-z$(comma)lazy
# A position-independent program where Go can link one for this machine. All Go commands have the same flags, those of tests and linters,
# too, so that what they share is compiled once; programs with the race detector are others (-buildmode=exe), as Go wants them.
PIE := $(if $(filter linux/amd64 linux/arm64,$(shell $(GO) env GOOS 2>/dev/null)/$(shell $(GO) env GOARCH 2>/dev/null)),-buildmode=pie)
GOFLAGS := $(filter-out -trimpath -buildmode=pie,$(shell $(GO) env GOFLAGS 2>/dev/null)) -trimpath $(PIE)
export GOFLAGS
# Where `make install` puts things; packages set DESTDIR, too. The tool looks beside itself first.
PREFIX ?= /usr/local
TOOL_LDFLAGS = -s -w -X main.commit=$(COMMIT) -X $(MODULE)/internal/installed.Prefix=$(PREFIX)$(if $(filter 1,$(TOOL_CGO)), $(LAZY))

tool:
	@mkdir -p $(BUILD)
	@command -v $(GO) >/dev/null || { echo "make: Go is missing: install the version named in go.mod (https://go.dev/dl)" >&2; exit 1; }
	CGO_ENABLED=$(TOOL_CGO) $(GO) build -ldflags '$(TOOL_LDFLAGS)' -o $(TOOL) ./cmd/nccl-otf2
	CGO_ENABLED=$(TOOL_CGO) $(GO) build -ldflags '$(TOOL_LDFLAGS)' -o $(BUILD)/libexec/nccl-otf2/nccl-otf2-collector ./cmd/nccl-otf2-collector

# SQLite is compiled, and DuckDB's library is linked through cgo, and needs a C++ compiler's. Its modules' license texts lie beside the program.
query: ## nccl-otf2-query, which nccl-otf2 query and import start: DuckDB and SQLite, fetched through Go's module proxy (60 MB program)
	@mkdir -p $(BUILD)
	$(GO) build -o $(BUILD)/licenses ./packaging/licenses
	cd cmd/nccl-otf2-query && CGO_ENABLED=1 $(LEISURELY) $(GO) build -ldflags '-s -w' -o $(abspath $(BUILD))/nccl-otf2-query .
	cd cmd/nccl-otf2-query && CGO_ENABLED=1 $(abspath $(BUILD))/licenses . >$(abspath $(BUILD))/THIRD-PARTY-LICENSES-query.new
	mv $(BUILD)/THIRD-PARTY-LICENSES-query.new $(BUILD)/THIRD-PARTY-LICENSES-query

$(BUILD)/THIRD-PARTY-LICENSES: go.sum packaging/licenses/main.go | tool
	CGO_ENABLED=$(TOOL_CGO) $(GO) run ./packaging/licenses ./cmd/nccl-otf2 >$@.new
	mv $@.new $@

# Manual pages and completions: written by the tool itself, built with what that needs.
$(BUILD)/share: $(shell find cmd/nccl-otf2 -name '*.go' -not -name '*_test.go' 2>/dev/null) go.sum
	@rm -rf $@.new && mkdir -p $(BUILD)
	CGO_ENABLED=0 $(GO) run -tags pages ./cmd/nccl-otf2 pages $@.new
	@rm -rf $@ && mv $@.new $@

install: ## what make build made, into PREFIX (/usr/local), behind DESTDIR; LIBDIR: of libraries
	@BUILD='$(BUILD)' PREFIX='$(PREFIX)' LIBDIR='$(LIBDIR)' DESTDIR='$(DESTDIR)' packaging/install.sh install

uninstall: ## remove what make install installed
	@BUILD='$(BUILD)' PREFIX='$(PREFIX)' LIBDIR='$(LIBDIR)' DESTDIR='$(DESTDIR)' packaging/install.sh uninstall

packages: build ## deb, rpm and tar archives for x86-64 and arm64, for glibc 2.17 and newer, in build/packages; fetches a cross compiler (100 MB) the first time
	@$(LEISURELY) MAKE='$(MAKE)' GO='$(GO)' BUILD='$(BUILD)' packaging/packages.sh

packages-test: packages ## installs them in roots without Go and gcc, records, reports, removes them again (PACKAGES_TEST='-releases "stable buster=MIRROR"')
	$(GO) test -count=1 -v -timeout 60m ./tests/packages -packages $(abspath $(BUILD))/packages $(PACKAGES_TEST)

vulnerabilities: ## govulncheck against the database that GOVULNDB names
	@if [ -n "$${GOVULNDB:-}" ]; then $(GO) run golang.org/x/vuln/cmd/govulncheck@v1.9.0 -db "$$GOVULNDB" ./...; \
	else echo "vulnerabilities: NOT CHECKED: GOVULNDB names no database of known vulnerabilities"; fi

demo: ## play a recording of a real NCCL job, make its archive, say which rank was late, and draw it
	@mkdir -p $(BUILD) && echo 'Building (some minutes the first time) …'
	@$(MAKE) --no-print-directory build >$(BUILD)/build.log 2>&1 || { cat $(BUILD)/build.log >&2; exit 1; }
	@rm -rf $(BUILD)/demo
	@export PATH='$(abspath $(BUILD))':"$$PATH"; \
	for command in 'replay $(RECORDING) --clock recorded --events gpu --dir $(BUILD)/demo' 'report $(BUILD)/demo' 'timeline $(BUILD)/demo'; do \
		printf '\n$$ nccl-otf2 %s\n' "$$command"; nccl-otf2 $$command; \
	done
	@printf '%s\n' '' 'Look at it:    $(BUILD)/demo/timeline.html in a browser' \
		'Ask more:      export PATH=$$PWD/$(BUILD):$$PATH' \
		'               nccl-otf2 report $(BUILD)/demo --waits' \
		'               nccl-otf2 report $(BUILD)/demo --tally' \
		'               nccl-otf2 report $(BUILD)/demo --matrix'

demo-cluster: build ## record a job of four ranks on a Slurm of three nodes that it starts here, and ask SQL about it (or say what it lacks)
	@$(MAKE) --no-print-directory query || echo 'demo-cluster: nccl-otf2-query could not be built: the questions are left out'
	$(GO) run ./tests/slurm/demo $(BUILD) $(RECORDING)

# The timeline's page is made of TypeScript; what is made is committed, so that nobody needs node who does not change it.
PAGE := internal/timeline/page

page: $(PAGE)/node_modules/.package-lock.json ## make the timeline's page (internal/timeline/asset) of internal/timeline/page; needs node and npm
	cd $(PAGE) && npm run --silent check && npm run --silent build

PROSE := scripts/prose
$(PROSE)/node_modules/.package-lock.json: $(PROSE)/package-lock.json $(PROSE)/package.json
	@command -v npm >/dev/null || { echo "make: npm is missing: install Node.js 18 or newer" >&2; exit 1; }
	cd $(PROSE) && npm ci --ignore-scripts --no-audit --no-fund
	@touch $@

prose-check: $(PROSE)/node_modules/.package-lock.json ## the pages: lines of prose, headings, and links that lead somewhere
	$(PROSE)/node_modules/.bin/markdownlint-cli2 --config $(PROSE)/.markdownlint-cli2.jsonc
	$(PROSE)/node_modules/.bin/remark --rc-path $(PROSE)/remark.json --no-ignore --quiet --frail README.md CONTRIBUTING.md SECURITY.md CHANGELOG.md docs packaging/README.md

page-check: ## the page's types and unit tests, and whether internal/timeline/asset is what internal/timeline/page gives
	@scripts/page.sh

$(PAGE)/node_modules/.package-lock.json: $(PAGE)/package-lock.json $(PAGE)/package.json
	@command -v npm >/dev/null || { echo "make: npm is missing: install Node.js 18 or newer" >&2; exit 1; }
	cd $(PAGE) && npm ci --ignore-scripts --no-audit --no-fund
	@touch $@

pictures: demo ## take the pictures of the timeline in docs/ anew; needs chromium
	$(GO) run ./tests/browser/pictures $(BUILD)/demo/timeline.html docs

test: ## install the reference tools if possible, build, and run every test
	@MAKE='$(MAKE)' GO='$(GO)' BUILD='$(BUILD)' RACE_PACKAGES='$(RACE_PACKAGES)' LAZY='$(LAZY)' scripts/test.sh

test-loaded: ## make test beside LOOPS (8) busy loops, then what failed: the suite must pass there, too
	@LOOPS='$(LOOPS)' scripts/loaded.sh $(MAKE) --no-print-directory test

# What does not depend on the engine make test has asked.
SPARK_TESTS := ^Test(Queries(AgreeWithReports|OfManyRanks|OfLinksAndRuns)|PartsAnswerAsWholeTables|FoldersOfAnyName)$$
# A session is three virtual machines, which live for minutes: most of their time would go into compiling well.
SHORT_JVM := -XX:TieredStopAtLevel=1 -XX:+UseSerialGC
SPARK_RANKS ?= 64,1000
spark-test: test-build ## the queries of sql/ on Spark, on two executors, of recordings and of SPARK_RANKS (64,1000) ranks; fetches PySpark (460 MB) the first time, needs Java 17
	@BUILD='$(BUILD)' CI=true scripts/engines.sh spark
	JAVA_TOOL_OPTIONS='$(SHORT_JVM)' $(GO) test -count=1 -v -timeout 60m -run '$(SPARK_TESTS)' ./tests/queries -engine spark -ranks $(SPARK_RANKS)

slurm-test: test-build ## jobs on a real Slurm of three nodes on this machine, time limits too (2 min); root, Debian's slurm-wlm
	$(GO) test -count=1 -v -timeout 30m ./tests/slurm -long

setup: ## install (or name) the reference tools that the tests compare with; PIPIT=DIR: a checkout of pipit
	@BUILD='$(BUILD)' PIPIT='$(PIPIT)' scripts/setup.sh

# It, and the compiler, would collect garbage for a fifth of the time.
LEISURELY := GOGC=300 GOMEMLIMIT=4GiB
# golangci-lint is built from its module, beside the other tools; its rules are in .golangci.yml.
GOLANGCI := $(BUILD)/tools/golangci-lint-v2.15.0
$(GOLANGCI):
	GOBIN='$(abspath $(BUILD)/tools)' $(LEISURELY) $(GO) install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(lastword $(subst -, ,$(@F)))
	@mv $(BUILD)/tools/golangci-lint $@

lint: $(GOLANGCI) ## golangci-lint for Go, cppcheck for C, markdownlint and a check of links for the pages
	@files=$$(gofmt -l $$(git ls-files '*.go')); \
	if [ -n "$$files" ]; then echo "not formatted (gofmt -w):"; echo "$$files"; exit 1; fi
	$(LEISURELY) $(GOLANGCI) run ./...
	CGO_ENABLED=1 $(LEISURELY) $(GOLANGCI) run ./internal/gpu/...
	cd cmd/nccl-otf2-query && CGO_ENABLED=1 $(GO) vet .
	$(MAKE) --no-print-directory page-check prose-check
	$(MAKE) --no-print-directory plugin-lint
	scripts/cformat.sh
	GO='$(GO)' scripts/workflows.sh
	$(CPPCHECK) --std=c11 --quiet --error-exitcode=1 --enable=warning,performance,portability --inline-suppr -D_GNU_SOURCE -D__x86_64__ -I. internal/replay/host/*.c tests/recorder/*.c tests/fakecupti/*.c tests/fakescorep/*.c tests/realnccl/*/*.c tests/bench/host/*.c tests/bench/realnccl/job/*.c tests/life/*.c tests/faults/inject/*.c

race: test-build ## the tests of the concurrent packages under Go's race detector
	CGO_ENABLED=1 $(GO) test -buildmode=exe -race -ldflags=$(LAZY) $(RACE_PACKAGES)

FAULTS ?= 2000
SEED ?= 1
faults: test-build ## FAULTS (2000) random jobs of SEED (1) in which something is killed, stopped or fails
	$(GO) test -count=1 -timeout 600m -run 'TestFaults$$' ./tests/faults -cases $(FAULTS) -seed $(SEED)

agreements: test-build ## every number that two products both show, of all recordings, presets and channels; make test has a part of it
	$(GO) test -count=1 -timeout 120m -run 'TestProductsAgree$$' ./tests -agreements

page-points: test-build ## each point of the timeline's page in Chromium: the demonstration, all labeled recordings, a merged archive, and generated runs of 256, 2048 and 10 000 ranks; two runs on one page; make test has a part of it
	$(GO) test -count=1 -timeout 120m -v -run 'TestTimelinePoints$$|TestTimelinesBeside$$' ./tests -pages

ANSWERS ?= 600
NOBODY ?= 900
answers: test-build ## what the tool says made ranks wait, against recordings and ANSWERS (600) made-up jobs of SEED (1), and NOBODY (900) of nothing; ANSWERS_FLAGS=-update: docs/answers.md
	$(GO) test -count=1 -timeout 600m -v -run 'TestRecordings$$|TestJobs$$' ./tests/answers -cases $(ANSWERS) -nobody $(NOBODY) -seed $(SEED) -aims $(ANSWERS_FLAGS)

fuzz: ## each fuzz target for FUZZTIME (60s)
	@GO='$(GO)' FUZZTIME='$(FUZZTIME)' scripts/fuzz.sh

LARGE ?= 4000
size: ## lines of each Go package, the longest functions, packages of more than LARGE (4000) lines, exported functions and types
	@LARGE='$(LARGE)' scripts/size.sh

cover: test-build ## coverage of the Go tests, as build/coverage.html
	$(GO) test -coverpkg=./... -coverprofile=$(BUILD)/coverage.out ./...
	$(GO) tool cover -html=$(BUILD)/coverage.out -o $(BUILD)/coverage.html
	@$(GO) tool cover -func=$(BUILD)/coverage.out | tail -1

bench: ## package otf2 against libotf2's C API, and the cost of the plugin against an empty one
	@MAKE='$(MAKE)' GO='$(GO)' BUILD='$(BUILD)' scripts/bench.sh

soak: test-build ## a job of SOAK_TIME (10m) that must not grow, lose anything or leave a broken archive
	$(GO) test -count=1 -v -timeout 0 -run 'TestSoak$$' ./tests/soak -time $(SOAK_TIME)

gpu-test: ## PyTorch jobs on a GPU, against what they called (GPU_TEST='--cases REGEXP --out DIR'); needs no Go if build/ is carried
	@if command -v $(GO) >/dev/null; then $(MAKE) --no-print-directory gpu-test-build; fi
	@test -x $(BUILD)/gputest || { echo "make: there is no $(BUILD)/gputest, and no Go to build it with: make gpu-test-build where there is, and carry $(BUILD)/ here" >&2; exit 1; }
	$(BUILD)/gputest --build $(BUILD) $(GPU_TEST)

gpu-test-build: tool $(PLUGIN) $(BUILD)/gpu/libnccl-profiler-empty.so ## what has to be carried to a machine with a GPU
	$(GO) build -ldflags '-s -w -X main.commit=$(COMMIT)' -o $(BUILD)/gputest ./tests/gpu

# For comparison: a plugin that does nothing.
$(BUILD)/gpu/libnccl-profiler-empty.so: tests/bench/host/empty_plugin.c $(wildcard plugin/abi*.h plugin/api*.h)
	@mkdir -p $(@D)
	$(CC) -std=gnu11 -O2 -Wall -Wextra -Werror -fPIC -shared -fvisibility=hidden -I. -o $@ $<

# Programs inside the real NCCL, on every bed that there is (tests/realnccl/realnccl.mk). What is said is what is not as it should
# be, and the numbers.
REAL_NCCL ?=
REAL_NCCL_JOBS ?= $(shell nproc)
# None of them hangs by itself: time is for what does, on a machine however busy.
REAL_NCCL_SHORT ?= -short-form -limit 10m -ways none,gpu,all:NCCL_ALLGATHERV_ENABLE=0
real_nccl = if [ -s $(BUILD)/realnccl/beds ]; then \
	$(GO) test -vet=off -count=1 -v -timeout 600m -parallel $(REAL_NCCL_JOBS) -run 'TestReal(NCCL|NCCLWithoutRoom|NCCLGains|NCCLPlaysPrograms|ProgramsAreNamed)$$' ./tests -beds "$$(paste -sd: $(BUILD)/realnccl/beds)" $(1) | { grep -vE '^ *(=== |--- (PASS|SKIP))' || true; }; \
	else echo "NOT CHECKED: nothing runs inside the real NCCL: $$(cat $(BUILD)/realnccl/NOT_CHECKED)"; fi

real-nccl: test-build $(BUILD)/gpu/libnccl-profiler-empty.so real-nccl-bed ## all programs inside the real NCCL, without a plugin, with an empty one, with ours (REALNCCL=DIR[:DIR]: other libraries; REAL_NCCL='-programs REGEXP -ways none,gpu -update')
	@$(call real_nccl,$(REAL_NCCL))

real-nccl-short: test-build real-nccl-bed ## a dozen of them
	@$(call real_nccl,$(REAL_NCCL_SHORT))

sanitize: plugin-test-asan plugin-test-tsan ## the C tests under the address and the thread sanitizer

generate: ## write generated files and golden texts anew
	$(GO) test ./config -run 'TestPluginTable|TestSettingsPage' -update
	$(MAKE) --no-print-directory test-build
	$(GO) generate ./...
	$(GO) test ./cmd/nccl-otf2 -run 'TestREADME|TestCommandsPage' -update

clean: ## remove build/
	rm -rf $(BUILD)
