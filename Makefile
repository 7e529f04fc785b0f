# Everything a developer does here. `make help` lists it.

# The tags Caddy's own releases are built with: without them a plain go build of
# Caddy compiles in SQL drivers that its internal certificate authority could use.
TAGS := nobadger,nomysql,nopgx
export GOFLAGS := $(GOFLAGS) -tags=$(TAGS)

# golangci-lint is run by version and not required by go.mod: its hundreds of
# modules would weigh on everybody who imports the plugin.
GOLANGCI_VERSION := v2.15.0
GOLANGCI := bin/golangci-lint-$(GOLANGCI_VERSION)

.DEFAULT_GOAL := help

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: run
run: ## Run a sale on embedded parts: nothing to install
	go run ./standalone

.PHONY: servers
servers: ## Install the servers the tests run on (Debian, as root or by sudo)
	@sh internal/servicetest/install.sh

# How long one package may take: a bound against hanging for ever, which the
# slowest machine does not reach.
WITHIN_EACH := 2h

.PHONY: test
test: servers ## Run everything on private servers, with the race detector
	go vet ./...
	go test -race -parallel 4 -timeout $(WITHIN_EACH) ./...

.PHONY: soak
soak: servers ## Run everything again, and every case of every matrix on embedded parts too
	SECKILL_SOAK=1 go test -count=1 -race -parallel 4 -timeout $(WITHIN_EACH) ./...

.PHONY: test-short
test-short: ## Run what needs nothing installed
	go test -short ./...

.PHONY: lint
lint: $(GOLANGCI) ## Check the code's form and the fences between the rooms
	$(GOLANGCI) run ./...

.PHONY: fmt
fmt: $(GOLANGCI) ## Format the code
	$(GOLANGCI) fmt ./...

.PHONY: linter
linter: $(GOLANGCI) ## Build the linter that lint and fmt run; minutes, once

$(GOLANGCI):
	GOFLAGS= GOBIN=$(CURDIR)/bin go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_VERSION)
	mv bin/golangci-lint $@

.PHONY: vuln
vuln: ## Ask Go's vulnerability database about the dependencies
	sh internal/vuln.sh

FUZZTIME ?= 10m
.PHONY: fuzz
fuzz: ## Feed every parser nonsense, FUZZTIME (10m) each; ONLY=FuzzCheck chooses one
	sh internal/fuzz.sh '$(FUZZTIME)' '$(ONLY)'

.PHONY: caddy
caddy: ## Build bin/caddy with the plugin, as xcaddy.toml says
	go run ./internal/cmd/buildcaddy

ROUNDS ?= 10
SEED ?= 1
LAST ?= 0s
FIELDS ?= 2
.PHONY: faults
faults: servers ## Break everything during sales, ROUNDS times each; ONLY='a;b' chooses kinds, LAST=60s their length
	go run ./e2e/faults/cmd/faults -rounds $(ROUNDS) -seed $(SEED) -only '$(ONLY)' -last '$(LAST)' -fields '$(FIELDS)'

STRANGERS ?= 1000000
WITHIN ?= 110s
.PHONY: flood
flood: servers ## STRANGERS (a million), WITHIN 110s, and an abuser against an edge on which honest buyers buy
	go run ./bench/flood --strangers '$(STRANGERS)' --within '$(WITHIN)'

.PHONY: bench
bench: servers ## Measure, as ratios to a bare Caddy and to the naive way, in one run
	go run ./bench
