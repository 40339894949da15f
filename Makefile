# `make help` lists every target. Variables: MEMBERS (lab), TESTFLAGS (go test), CACHES,
# TRIALS and BENCHFLAGS (bench), FULL, PART, SEED, CASE and FAULT (faults).
SHELL       := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

MEMBERS   ?= 3
CACHES    ?= 50
TRIALS    ?= 100
TESTFLAGS ?=
BENCHFLAGS ?=
TOOL      := go tool -modfile=hack/tools/go.mod
BINARIES  := go run ./hack/binaries
GOTEST    := go test -race -count=1

##@ Start here

.PHONY: help
help: ## List the targets.
	@awk 'BEGIN {FS = ":.*## "; print "make TARGET"} \
	  /^##@ / {printf "\n%s\n", substr($$0, 5)} \
	  /^[a-z0-9-]+:.*## / {printf "  %-17s %s\n", $$1, $$2}' Makefile

.PHONY: lab
lab: build ## Start an embedded lab, apply the example, change one member by hand, show the correction.
	@hack/lab-tour.sh $(MEMBERS)

.PHONY: test
test: binaries test-unit test-integration faults e2e-embedded ## Run every test; on kind too if Docker can run.
	@hack/e2e-kind.sh --where-possible

##@ Build

.PHONY: build
build: ## Build ./reconcile-lab, ./kubectl-cachecluster and ./bin/hub.
	CGO_ENABLED=0 go build -trimpath -o reconcile-lab ./cmd/reconcile-lab
	CGO_ENABLED=0 go build -trimpath -o bin/hub ./cmd/hub
	@ln -sf reconcile-lab kubectl-cachecluster

.PHONY: binaries
binaries: ## Download or build the Kubernetes binaries of the embedded lab (cached outside the tree).
	$(BINARIES) ensure etcd kube-apiserver kube-controller-manager kube-scheduler kubectl kwok

.PHONY: clean
clean: ## Remove the files that build, tests and benchmarks create in the tree.
	rm -rf reconcile-lab kubectl-cachecluster bin cover.out bench.json faults.json

##@ Test

.PHONY: test-unit
test-unit: ## Run the unit tests, which need no API server, with -race.
	packages=$$(go list ./... | grep -vE '/test/(e2e|harness|integration)'); $(GOTEST) $(TESTFLAGS) $$packages

.PHONY: test-integration
test-integration: ## Run the controllers against real API servers, with -race and the cache mutation detector.
	assets=$$($(BINARIES) dir); KUBEBUILDER_ASSETS=$$assets KUBE_CACHE_MUTATION_DETECTOR=true $(GOTEST) -timeout 15m $(TESTFLAGS) ./test/integration/...

.PHONY: faults
faults: ## Inject every fault at every request: a sample of SEED, all with FULL=1, one with CASE=.
	assets=$$($(BINARIES) dir); KUBEBUILDER_ASSETS=$$assets FAULTS_FULL=$(FULL) FAULTS_SEED=$(SEED) FAULTS_CASE='$(CASE)' FAULTS_ONLY=$(FAULT) FAULTS_PART=$(PART) \
	  FAULTS_REPORT=$${FAULTS_REPORT:-$(CURDIR)/faults.json} KUBE_CACHE_MUTATION_DETECTOR=true \
	  go test -tags faults -count=1 -timeout 2h -v $(TESTFLAGS) ./test/faults/

.PHONY: e2e-embedded
e2e-embedded: build ## Run the end-to-end tests on an embedded lab.
	E2E_PROVIDER=embedded go test -tags e2e -count=1 -timeout 40m -v $(TESTFLAGS) ./test/e2e/...

.PHONY: e2e-kind
e2e-kind: ## Run the end-to-end tests on kind clusters; needs Docker.
	@hack/e2e-kind.sh

.PHONY: bench
bench: build ## Measure an embedded lab with MEMBERS, CACHES, TRIALS; writes bench.json.
	go run ./test/bench --members $(MEMBERS) --caches $(CACHES) --trials $(TRIALS) $(BENCHFLAGS)

##@ Check

.PHONY: lint
lint: ## Run golangci-lint, import rules included.
	$(TOOL) golangci-lint run --allow-parallel-runners ./...

.PHONY: prose
prose: ## Check documents and Go comments for the terms of docs/glossary.md and for long sentences.
	go tool -modfile=hack/tools/prose.mod vale --config hack/prose/vale.ini --output line $$(git ls-files '*.md' '*.go' | grep -vE '^docs/api.md$$|zz_generated')

.PHONY: generate
generate: ## Regenerate deepcopy code, CRDs, docs/api.md and the tables of docs/conditions.md.
	$(TOOL) controller-gen object crd paths=./api/... output:crd:dir=deploy/crd
	install -m 644 "$$(go list -m -f '{{.Dir}}' sigs.k8s.io/cluster-inventory-api)/config/crd/bases/multicluster.x-k8s.io_clusterprofiles.yaml" deploy/crd/
	$(TOOL) crd-ref-docs --log-level=ERROR --source-path=api --config=docs/.crd-ref-docs.yaml --renderer=markdown --output-path=docs/api.md
	go run ./hack/glossary docs/conditions.md

.PHONY: verify
verify: ## Check generated files, formatting, vet, go.mod, lint and prose.
	@hack/verify.sh

##@ kind clusters

.PHONY: docker
docker: ## Start Docker Engine; on Debian, install it if it is missing.
	hack/docker/docker.sh start

.PHONY: docker-stop
docker-stop: ## Stop the Docker Engine that `make docker` started.
	hack/docker/docker.sh stop

.PHONY: clusters
clusters: build docker ## Create a lab on kind with MEMBERS member clusters.
	./reconcile-lab up --provider kind --members $(MEMBERS)

.PHONY: clusters-down
clusters-down: build ## Remove the lab on kind.
	./reconcile-lab down --name kind

.PHONY: deploy
deploy: build ## Build the image of the hub manager, load it into the hub, apply CRDs, RBAC and manager.
	hack/deploy.sh

.PHONY: undeploy
undeploy: ## Remove the hub manager; caches in the members stay.
	hack/deploy.sh undeploy

##@ Stop

.PHONY: down
down: build ## Remove every lab of this user, embedded and kind.
	./reconcile-lab down --all
