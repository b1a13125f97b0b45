# make check   everything that must hold before a change is committed
# make bench   superqode against git, side by side (BENCH= passes flags on)
# make fuzz    every fuzz target for FUZZTIME
# make docs    the pages that are generated: docs/reference.md, docs/demo.svg
# make build   bin/superqode and bin/superqode-shim, static, with a version stamp
# make install the same into $(PREFIX)/bin, see install.sh
#
# Tools are Go tool dependencies, pinned in go.mod and fetched by the go command.

SHELL = /bin/sh
GO ?= go
FUZZTIME ?= 20s
BENCH ?=

# As install.sh builds, so that the go command compiles a package once for vet, the
# tests, and the tests that build. Only the race detector needs cgo.
export CGO_ENABLED = 0
export GOFLAGS := $(GOFLAGS) -trimpath -buildvcs=false

# The race detector needs a C compiler; without one the tests still run.
RACE := $(shell command -v "$$($(GO) env CC)" >/dev/null && echo -race)

# The packages with tests that kill or fail the process at a failpoint, and the names
# of those tests: the packages' other tests have run already.
FAILPOINT_FILES := $(shell grep -rl --include='*_test.go' '^//go:build failpoint$$' .)
FAILPOINT_TESTS := $(sort $(patsubst %/,%,$(dir $(FAILPOINT_FILES))))
FAILPOINT_NAMES = $(shell sed -n 's/^func \(Test[A-Za-z0-9_]*\).*/\1/p' $(FAILPOINT_FILES) | grep -v '^TestMain$$' | sort -u | paste -sd '|' -)

# The tests of the source tree's shape.
FLOORS = ^Test(Floors|Arrow|MainIsShort|Style|Ratchet.*)$$

# The packages that share something between goroutines. Their tests run under the
# race detector. Those of life drive all of them in one process: the ones with
# several sessions, agents, programs or modes at a time are enough, and one case of
# those that differ in what a program did. It has nothing to find in the rest, which
# takes 3 to 10 times as long under it: what the commands' scripts and the hooks'
# tests start are processes, and the guard's cores are pure functions.
RACED_LIFE = AtOnce|Beside[^G]|BesideGC/300|AgentsMerge/disjoint|AgentsStress|Watcher|EveryMode|BringsEverythingBack/(nothing|gc)|Everything$$
RACED := $(shell grep -rlE --include='*.go' --exclude='*_test.go' --exclude-dir=cmd --exclude-dir=gittest '^[[:space:]]*go [a-z]|errgroup[.]|sync[.](RW)?Mutex|sync[.]WaitGroup|atomic[.]' . | sed 's,/[^/]*$$,,' | sort -u)

# A process with the race detector sleeps for a second before it ends unless told
# otherwise, and the tests start thousands. They wait more than they compute, so
# four run at a time. They have been vetted.
TEST = GORACE=atexit_sleep_ms=0 $(GO) test -vet=off -parallel 4 -timeout 20m

.PHONY: docs check format vet staticcheck modules floors test failpoint platforms shell bench fuzz build install clean

check: format shell modules vet staticcheck floors platforms test failpoint
	@echo 'check: all good'

format:
	@out=$$(gofmt -l .); if [ -n "$$out" ]; then echo "gofmt -w is needed on:"; echo "$$out"; exit 1; fi

shell:
	sh -n install.sh
	bash -n .ci/run
	@if command -v shellcheck >/dev/null; then echo shellcheck install.sh .ci/run; shellcheck install.sh .ci/run; fi

modules:
	$(GO) mod verify

vet:
	$(GO) vet ./...
	$(GO) vet -tags failpoint $(FAILPOINT_TESTS)

staticcheck:
	$(GO) tool staticcheck ./...

floors:
	$(GO) test -count=1 -run '$(FLOORS)' .

# Fuzz seeds and the scripts of cmd/internal/cli/testdata run as tests.
test:
	@[ -n "$(RACE)" ] || echo 'note: no C compiler, so the tests run without the race detector'
	$(TEST) -skip '$(FLOORS)' $(if $(RACE),$(filter-out $(addprefix %/,$(RACED:./%=%)),$(shell $(GO) list ./...)) ./internal/life,./...)
	[ -z "$(RACE)" ] || CGO_ENABLED=1 $(TEST) $(RACE) $(filter-out ./internal/life,$(RACED))
	[ -z "$(RACE)" ] || CGO_ENABLED=1 $(TEST) $(RACE) -run '$(RACED_LIFE)' ./internal/life
	[ -z "$(RACE)" ] || $(TEST) -run '^TestProcesses$$' ./internal/coordinator

failpoint:
	$(TEST) -tags failpoint -run '^($(FAILPOINT_NAMES))$$' $(FAILPOINT_TESTS)

# macOS must build, tests included. No file is for one of its architectures alone, so
# one of them is vetted and built. On Windows the command refuses to start.
platforms:
	GOOS=darwin GOARCH=arm64 $(GO) vet ./...
	GOOS=darwin GOARCH=arm64 $(GO) build -o /dev/null ./cmd/superqode
	GOOS=darwin GOARCH=arm64 $(GO) build -o /dev/null ./cmd/superqode-shim
	GOOS=windows GOARCH=amd64 $(GO) build -o /dev/null ./cmd/superqode

# A test fails when they are stale.
docs:
	SUPERQODE_TEST_UPDATE_DOCS=1 $(GO) test -count=1 -run '^Test(Reference|Recording)$$' ./cmd/internal/cli

bench:
	$(GO) test -run '^$$' -bench . -benchtime 1x -timeout 0 ./internal/bench -args -- $(BENCH)

fuzz:
	@for pkg in $$($(GO) list ./...); do \
		for target in $$($(GO) test -list '^Fuzz' $$pkg | grep '^Fuzz'); do \
			echo "$$pkg $$target"; \
			$(GO) test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) $$pkg || exit 1; \
		done; \
	done

build:
	$(GO) build -ldflags "-s -w -X main.version=$$(sh install.sh --stamp)" -o bin/ ./cmd/superqode ./cmd/superqode-shim

install:
	sh install.sh

clean:
	rm -rf bin
