# Common commands. CI runs `lint`, `test`, `faults`, `deny`, `test-kubernetes` and `test-clusters`
# (.ci/run).

CARGO ?= cargo
# Tools outside the toolchain are installed here, and survive `cargo clean`.
TOOLS ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/aviary
export PATH := $(TOOLS)/bin:$(PATH)

.DEFAULT_GOAL := help
.PHONY: help test test-kubernetes test-clusters faults load soak lint deny crds page bench bench-hub manifests release pictures

help: ## List the commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-15s  %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

test: ## Run all tests; installs kubectl, chromium, zsh and fish if they are missing
	hack/install-kubectl.sh
	hack/install-chromium.sh
	hack/install-shells.sh
	$(CARGO) test --locked --workspace

test-kubernetes: ## Run on a real kube-apiserver: conformance, shipped manifests, end-to-end tests, roles
	hack/test-kubernetes.sh

test-clusters: ## Run on real clusters with kubelets and pods: upgrades, bad versions, outages; needs root
	hack/test-clusters.sh

# `make faults AVIARY_FAULTS=ci` runs all crashes, and every other fault at one of 40 of its points, at least at two in
# each scenario. Every choice prints how many plans it has run, of how many.
faults: AVIARY_FAULTS ?= all
faults: ## Inject every fault at every point of every scenario; `make test` runs every fortieth plan
	AVIARY_FAULTS=$(AVIARY_FAULTS) $(CARGO) test --locked --workspace --test faults

load: ## Run 20,000 simulated clusters through install, upgrade and rollback, every plan verified; takes minutes
	$(CARGO) test --locked --workspace --test processes -- --ignored --nocapture twenty_thousand

soak: ## Run random fleets and faults with new seeds until one fails or you stop it; a failure prints how to replay it
	@while seed=$$(od -An -N4 -tu4 /dev/urandom | tr -d ' '); do echo "PROPTEST_RNG_SEED=$$seed"; \
	PROPTEST_RNG_SEED=$$seed $(CARGO) test --locked --quiet --workspace --test engine -- reference_model:: properties:: || exit 1; \
	AVIARY_FAULTS=soak AVIARY_FAULT_SECONDS=600 AVIARY_FAULT_SEED=$$seed \
	$(CARGO) test --locked --quiet --workspace --test faults || exit 1; done

lint: ## Check format and lints
	$(CARGO) fmt --all --check
	$(CARGO) clippy --locked --workspace --all-targets -- -D warnings
	$(CARGO) clippy --locked --workspace --test kubernetes --test clusters -- -D warnings

deny: ## Check sources, licences and advisories of the dependencies; installs cargo-deny if it is missing
	command -v cargo-deny >/dev/null || $(CARGO) install cargo-deny --locked --debug --root "$(TOOLS)"
	$(CARGO) deny --locked check bans licenses sources
	@if $(CARGO) deny fetch db >/dev/null 2>&1; then $(CARGO) deny --locked check advisories; \
	else echo "advisories were not checked: their database cannot be fetched from here"; fi

crds: ## Regenerate deploy/crds and docs/api-reference.md from the types
	$(CARGO) run --quiet --locked -p aviary-api --example write-crds
	$(CARGO) run --quiet --locked -p aviary-api --example write-api-reference

page: ## Check the types of the dashboard's scripts; needs npx
	npx --yes --package typescript@5 tsc -p crates/dashboard/page/jsconfig.json

bench: ## Benchmark a planning pass, and check how its cost grows with the fleet
	$(CARGO) bench --locked -p aviary-engine

# `make bench-hub ARGS='--clusters 500,2000 -o json'` measures two sizes, and prints every run.
bench-hub: ## Measure what a manager costs on the embedded hub or any other; ARGS='--help' lists the options
	$(CARGO) build --locked --profile dist -p aviary --bins
	$${CARGO_TARGET_DIR:-target}/dist/aviary-bench $(ARGS)

manifests: ## Regenerate the Helm chart from deploy/kustomize
	UPDATE_EXPECT=1 $(CARGO) test --quiet --locked -p aviary --bin aviary the_chart_is_made

release: ## Build the static binary, its bill of materials and checksums into dist/
	hack/release.sh

pictures: ## Regenerate the pictures in docs/images, from a demo
	hack/screenshots.sh
