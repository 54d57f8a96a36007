# One command each for what is done often. CI runs `lint`, `test` and `deny` (.ci/run).

CARGO ?= cargo
# Tools that are not part of the toolchain go here, and outlive `cargo clean`.
TOOLS ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/aviary
export PATH := $(TOOLS)/bin:$(PATH)

.DEFAULT_GOAL := help
.PHONY: help test test-kubernetes faults load soak lint deny crds bench manifests release pictures

help: ## Say what there is
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-15s  %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

test: ## Run every test, with kubectl and in a browser; both are installed where they are missing
	hack/install-kubectl.sh
	hack/install-chromium.sh
	$(CARGO) test --locked --workspace

test-kubernetes: ## Run on a real kube-apiserver all that can be: conformance, what is shipped, end to end, roles
	hack/test-kubernetes.sh

# `make faults AVIARY_FAULTS=ci` tries all crashes and two fifths of the other plans.
faults: AVIARY_FAULTS ?= all
faults: ## Try every fault at every point of every scenario, and print the table; `make test` tries every fortieth
	AVIARY_FAULTS=$(AVIARY_FAULTS) $(CARGO) test --locked --workspace --test faults

load: ## Take twenty thousand simulated clusters through their life, with every plan verified; some minutes
	$(CARGO) test --locked --workspace --test processes -- --ignored --nocapture twenty_thousand

soak: ## Run random fleets, and several faults at once, ever new until one fails or you stop it; a failure says how to see it again
	@while seed=$$(od -An -N4 -tu4 /dev/urandom | tr -d ' '); do echo "PROPTEST_RNG_SEED=$$seed"; \
	PROPTEST_RNG_SEED=$$seed $(CARGO) test --locked --quiet --workspace --test engine -- reference_model:: properties:: || exit 1; \
	AVIARY_FAULTS=soak AVIARY_FAULT_SECONDS=600 AVIARY_FAULT_SEED=$$seed \
	$(CARGO) test --locked --quiet --workspace --test faults || exit 1; done

lint: ## Check format and lints
	$(CARGO) fmt --all --check
	$(CARGO) clippy --locked --workspace --all-targets -- -D warnings
	$(CARGO) clippy --locked --workspace --test kubernetes -- -D warnings

deny: ## Check where dependencies come from, under which licences, and what is known against them; installs cargo-deny where it is missing
	command -v cargo-deny >/dev/null || $(CARGO) install cargo-deny --locked --debug --root "$(TOOLS)"
	$(CARGO) deny --locked check bans licenses sources
	@if $(CARGO) deny fetch db >/dev/null 2>&1; then $(CARGO) deny --locked check advisories; \
	else echo "advisories were not checked: their database cannot be fetched from here"; fi

crds: ## Write deploy/crds and docs/api-reference.md anew from the types
	$(CARGO) run --quiet --locked -p aviary-api --example write-crds
	$(CARGO) run --quiet --locked -p aviary-api --example write-api-reference

bench: ## Measure what a pass costs, and that it grows no faster than the fleet
	$(CARGO) bench --locked -p aviary-engine

manifests: ## Write the Helm chart anew from deploy/kustomize; a test fails where it differs
	UPDATE_EXPECT=1 $(CARGO) test --quiet --locked -p aviary --bin aviary the_chart_is_made

release: ## Build the static binary, its bill of materials and checksums into dist/
	hack/release.sh

pictures: ## Take the pictures of docs/images anew, from a demo
	hack/screenshots.sh
