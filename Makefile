# a2agate: everything a developer needs, by name. `make help` lists it.

GO       ?= go
LINT     := $(GO) tool -modfile=tools.mod golangci-lint
VERSION  := $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
LDFLAGS  := -s -w -X main.version=$(VERSION)
FUZZTIME ?= 10s
TESTFLAGS ?=

.DEFAULT_GOAL := help

.PHONY: help
help: ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

.PHONY: build
build: ## bin/a2agate
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o bin/a2agate ./cmd/a2agate

.PHONY: run
run: build ## the gateway with its demo agent: prints what to paste and a call to try
	@exec ./bin/a2agate demo

.PHONY: test
test: ## every test that needs no network
	$(GO) test $(TESTFLAGS) ./...

.PHONY: race
race: ## the same under the race detector
	$(GO) test -race ./...

.PHONY: lint
lint: ## go vet and golangci-lint, pinned in tools.mod
	$(GO) vet ./...
	$(LINT) run ./...

.PHONY: fuzz
fuzz: ## every fuzz target for FUZZTIME (10s)
	@.ci/fuzz $(FUZZTIME)

.PHONY: bench
bench: build ## gateway against a bare reverse proxy in front of the same agent; BENCHFLAGS=-profile DIR writes profiles
	$(GO) run ./conformance/bench $(BENCHFLAGS)

.PHONY: overhead
overhead: ## what metrics add to a small call, side by side in one run
	$(GO) test ./cmd/a2agate -run '^$$' -bench '^BenchmarkObservation$$' -benchtime 400x

.PHONY: conformance
conformance: build ## real clients, real agents and the official MCP suite; installs a pinned Node 22 from npm
	conformance/run.sh

.PHONY: clean
clean: ## remove what was built
	rm -rf bin .tmp conformance/results conformance/node_modules
