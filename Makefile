# What one does with Sluice. Everything here needs only Go, git and make; what else a target wants
# it finds, installs or tells in one line (tools/need). Every target runs from a fresh clone.

GO          ?= go
GOTESTFLAGS ?=
FUZZTIME    ?= 30s
BENCHTIME   ?= 200ms
VERSION     ?= $(shell sh tools/version)
IMAGE       ?= sluice:$(subst +,-,$(VERSION))
# Where docs/ can be read by those who get an alert, such as https://git.example.com/shop/sluice/docs.
DOCS_URL    ?=

# What is tested is compiled as what is shipped: so it is compiled once, and in any folder. The version comes from the
# file VERSION and from git: tools/version. Go's own stamp fails in a clone that belongs to another user, as in containers.
# An installed C compiler changes nothing, but under the race detector.
export CGO_ENABLED := 0
export GOFLAGS := $(shell $(GO) env GOFLAGS) -buildvcs=false -trimpath -tags=nethttpomithttp2

# The linters, the attacks and the benchmark live in modules of their own, so that a build of Sluice does not carry them.
TOOL = $(GO) tool -modfile=tools/go.mod

.PHONY: help build test promises race nightly test-long race-long test-noeventloop browser screenshots format vet staticcheck vulnerabilities lint fuzz bench bench-scale bench-go planted sim chaos chaos-settle bench-settle schedules conformance attack image clean image-here rules packages manifests licences reference sbom hangups

help: ## show this list
	@sed -n 's/^\([a-z-]*\):.*## /  \1|/p' Makefile | while IFS='|' read -r t d; do printf '%-18s %s\n' "$$t" "$$d"; done

build: ## the static binaries ./sluice and ./sluice-settle
	$(GO) build -ldflags '-s -w -X sluice/internal/cli.linked=$(VERSION)' -o ./ ./cmd/sluice ./cmd/sluice-settle

# Every package but the black-box tests, those whose tests take longest first. Most tests wait most of the time: four
# packages, and four tests of each, run at the same time. Debug information would cost a third of the time of linking.
FAST = ./stockgate/ledger ./internal/sim ./proxy ./gateway ./stockgate/sale ./stockgate $$($(GO) list ./... | grep -v /e2e)
TEST = $(GO) test -count=1 -vet=off -ldflags=-w -parallel 4
SHARING = ./accesslog ./cache ./gateway/... ./internal/batch ./internal/listener ./limiter ./proxy/... ./queue/... \
	./room/... ./stockgate/... ./upstream/...

test: ## the fast tests, on a real redis-server, which it installs when missing (flags: GOTESTFLAGS)
	@echo "test: 2 to 4 minutes on 2 cores; the first time 3 to 5 more, in which Go downloads and compiles the dependencies"
	@sh tools/need redis-server 'most tests run on a real one'
	$(TEST) -timeout 30m -p 4 $(GOTESTFLAGS) $(FAST)

# Its tests wait for processes most of the time, more than those of the packages do: twice as many run at once.
promises: ## the black-box tests of the promises, on the built binary: docs/testing.md (flags: GOTESTFLAGS)
	@for c in redis-server nginx haproxy promtool postgresql pgbouncer mariadbd; do sh tools/need $$c || exit 1; done
	$(TEST) -parallel 8 -timeout 15m $(GOTESTFLAGS) ./e2e

race: ## the fast tests of what shares memory, under the race detector (needs a C compiler)
	@for c in gcc redis-server; do sh tools/need $$c || exit 1; done
	CGO_ENABLED=1 $(TEST) -race -timeout 15m -p 4 $(GOTESTFLAGS) $(SHARING)

# Each step runs, whatever became of those before it. What cannot be installed is left out, in one line.
NIGHTLY = test-long test-noeventloop race-long fuzz sim planted chaos chaos-settle schedules attack conformance manifests

nightly: ## what measures the machine or runs long, in some hours: docs/testing.md (NIGHTLY='chaos fuzz' runs some of it)
	@failed=; for t in $(NIGHTLY); do echo "==> $$t"; $(MAKE) --no-print-directory $$t || failed="$$failed $$t"; done; \
	echo "nightly: failed:$${failed:- nothing}"; [ -z "$$failed" ]

test-long: ## every test, with those that measure the machine or run long
	@for c in redis-server nginx haproxy caddy promtool postgresql pgbouncer mariadbd php node javac $(BROWSER); do \
	sh tools/need $$c || exit 1; done
	@failed=; export SLUICE_NIGHTLY=1; $(TEST) -timeout 1h -p 1 $(GOTESTFLAGS) ./... || failed=1; \
	(cd bench && $(GO) test -count=1 -timeout 10m ./...) || failed=1; (cd tools && $(GO) test ./...) || failed=1; [ -z "$$failed" ]

race-long: ## the black-box tests, with a gateway that is built with the race detector
	@for c in gcc redis-server nginx postgresql pgbouncer mariadbd; do sh tools/need $$c || exit 1; done
	CGO_ENABLED=1 $(TEST) -race -timeout 1h $(GOTESTFLAGS) ./e2e

test-noeventloop: ## the request path without the event loop: the reference engine serves every connection
	@sh tools/need redis-server
	$(GO) vet -tags nethttpomithttp2,noeventloop ./proxy/...
	$(TEST) -tags nethttpomithttp2,noeventloop -timeout 10m $(GOTESTFLAGS) \
		./proxy ./proxy/server ./proxy/eventloop ./upstream ./gateway
	$(TEST) -tags nethttpomithttp2,noeventloop -timeout 5m $(GOTESTFLAGS) -run 'Wire|Once|Shutdown' ./e2e

# What the tests of e2e/browser are played by: the system's Chromium, driven by playwright-core from npm.
BROWSER = chromium node npm

browser: ## the tests in Chromium alone (SLUICE_SALE=long plays the sale in a minute)
	@for c in redis-server $(BROWSER); do sh tools/need $$c || exit 1; done
	$(TEST) -timeout 15m -v $(GOTESTFLAGS) ./e2e/browser

screenshots: ## docs/images anew: the dashboard during a sale
	@for c in $(BROWSER); do sh tools/need $$c || exit 1; done
	SLUICE_IMAGES=$(CURDIR)/docs/images $(GO) test -count=1 -timeout 5m -v -run 'Demo' ./e2e/browser

format: ## fail on a file that gofmt would change, and on a fixed sleep of a test without its reason
	@files=$$(gofmt -l .) && test -z "$$files" || { echo "not gofmt'd:" $$files; exit 1; }
	@for f in $$(grep -rlE --include='*_test.go' 'time\.Sleep\(' .); do \
		grep -qs synctest $$f || grep -nE 'time\.Sleep\(' $$f /dev/null | grep -v '//'; done | grep . && \
		{ echo "a test waits for a condition (testkit.Eventually), or the line states why it sleeps"; exit 1; } || true

vet: ## go vet
	$(GO) vet ./...
	$(GO) vet -tags nethttpomithttp2,failpoints ./cmd/... ./gateway/... ./internal/...
	for m in tools tools/attack bench; do (cd $$m && $(GO) vet ./...) || exit 1; done

staticcheck: ## staticcheck
	$(TOOL) staticcheck ./...
	cd bench && $(GO) tool -modfile=../tools/go.mod staticcheck ./...

vulnerabilities: ## govulncheck, where its database can be reached
	@sh tools/vulnerabilities $(TOOL) govulncheck ./...

lint: format vet staticcheck vulnerabilities ## the four above

fuzz: ## every fuzz target for FUZZTIME each
	@FUZZTIME=$(FUZZTIME) GO='$(GO)' sh tools/fuzz

bench: ## Sluice beside nginx with Lua, HAProxy and bare fasthttp, in 15 minutes: bench/README.md (BENCH=-quick looks whether it works)
	@for c in nginx nginx-lua haproxy wrk redis-server; do sh tools/need $$c || exit 1; done
	cd bench && $(GO) run . $(if $(findstring -quick,$(BENCH)),,-out .) $(BENCH)

bench-scale: ## how cost grows with connections, SKUs, routes, keys, instances, crowd and stock, in 24 minutes: docs/scale.md (BENCH=-quick looks whether it works)
	@for c in nginx redis-server; do sh tools/need $$c || exit 1; done
	cd bench && $(GO) run . scale $(if $(findstring -quick,$(BENCH)),,-out .) $(BENCH)

bench-go: ## every Go benchmark, BENCHTIME each
	$(GO) test -run '^$$' -bench . -benchmem -benchtime $(BENCHTIME) ./...

planted: ## plant known bugs in copies of the tree; the tests must catch each: docs/testing.md (PLANTED=-applies only looks at the patches)
	@sh tools/need redis-server
	@cd tools && $(GO) test ./... && SLUICE_NIGHTLY=1 $(GO) run ./planted $(PLANTED) ..

CHAOS ?= 4m
RUNS  ?= 3

chaos: ## RUNS sales for CHAOS (90s, 10m) each while gates, Redis and shop die, hang and lie; SEED=N plays a plan again
	@for c in gcc redis-server; do sh tools/need $$c || exit 1; done
	SLUICE_NIGHTLY=1 SLUICE_CHAOS=$(CHAOS) SLUICE_CHAOS_RUNS=$(RUNS) SLUICE_SEED=$(SEED) \
		$(GO) test -count=1 -timeout 2h -v -run 'BooksBalanceAfterChaos' ./e2e

ORDERS ?= 200000

chaos-settle: ## ORDERS (2000, 200000) on PostgreSQL, MariaDB and SQLite each, while settlers and database are killed
	@for c in redis-server postgresql mariadbd; do sh tools/need $$c || exit 1; done
	SLUICE_NIGHTLY=1 SLUICE_SETTLE_ORDERS=$(ORDERS) $(GO) test -count=1 -timeout 2h -v -run 'BalancesAfterCrashes' ./e2e

BACKLOG ?= 600000

bench-settle: ## sluice-settle run beside a transaction an order: speed, CPU, memory and lag on each database, with BACKLOG orders, in 5 minutes
	@for c in redis-server postgresql mariadbd; do sh tools/need $$c || exit 1; done
	SLUICE_NIGHTLY=1 SLUICE_SETTLE_BENCH=$(BACKLOG) $(GO) test -count=1 -timeout 1h -v -run 'SettlementBench' ./e2e

SEEDS ?= 100000
FIRST ?= 1

sim: ## SEEDS random sales in virtual time, from seed FIRST on: docs/testing.md (16 a second of one core)
	$(GO) test -count=1 -timeout 12h -v -run Schedules ./internal/sim -args -seeds $(SEEDS) -first $(FIRST)

schedules: ## 260 random schedules of fail-over with real processes; those of make sim are in virtual time
	@sh tools/need redis-server
	SLUICE_NIGHTLY=1 SLUICE_RETURNS=200 $(GO) test -count=1 -timeout 2h -run 'GateAndRedisThatDieTogether' ./e2e
	SLUICE_NIGHTLY=1 SLUICE_RECREATES=60 $(GO) test -count=1 -timeout 1h -run 'LedgerThatVanishesInASale' ./e2e

attack: build ## attacks on memory, connections and processors, beside nginx, in 10 minutes: docs/testing.md (ATTACK='-short -only NAME')
	@sh tools/need nginx
	@cd tools/attack && $(GO) run . $(ATTACK) ../../sluice

RATE ?= 5000

hangups: ## forty reloads, good and bad by turns, under RATE requests a second
	SLUICE_RATE=$(RATE) $(GO) test -count=1 -timeout 5m -v -run 'Reload_UnderLoad' ./e2e

# What others wrote, and what is too long for every day. What is not there and cannot be installed is left out.
FOREIGN = nginx curl npm python3 javac php ab wrk h2load slowhttptest

conformance: ## clients, corpora and failing shops of others, in full: docs/testing.md (CONFORMANCE=-update rewrites it)
	@for c in $(FOREIGN); do sh tools/need $$c || exit 1; done
	SLUICE_NIGHTLY=1 SLUICE_CLIENTS=1 SLUICE_SLOW=4000 SLUICE_MIB=1024 $(GO) test -count=1 -timeout 20m -v \
		-run 'Wire|ForeignClients|SlowClients|LargeBodies' ./e2e $(CONFORMANCE)

image: ## the container image, with docker, podman or buildah
	@sh tools/image '$(IMAGE)' '$(VERSION)'

image-here: build ## the same image out of ./sluice and ./sluice-settle, with no registry and no daemon (buildah)
	@GO='$(GO)' sh tools/image-here '$(IMAGE)' sluice

rules: ## the alert rules with links to the runbook below DOCS_URL: dist/*rule*.yaml; and those of deploy/kustomize anew
	@mkdir -p dist
	@sh tools/rules '$(DOCS_URL)' >dist/sluice.rules.yaml
	@sh tools/rules --kubernetes '$(DOCS_URL)' >dist/prometheusrule.yaml
	@sh tools/rules --kubernetes >deploy/kustomize/monitoring/prometheusrule.yaml
	@cp deploy/prometheus/sluice.rules.yaml deploy/helm/sluice/files/sluice.rules.yaml # a chart holds no links to the outside

manifests: ## render the Helm chart and the kustomizations, and check each field of what they give
	SLUICE_NIGHTLY=1 $(GO) test -count=1 -timeout 9m -v -run 'Manifests' ./deploy

packages: ## .deb, .rpm and .apk for amd64 and arm64 in dist (DOCS_URL: links of the alerts)
	@GO='$(GO)' VERSION='$(VERSION)' DOCS_URL='$(DOCS_URL)' sh tools/packages

licences: ## write docs/licences.md anew, when a dependency has changed
	cd tools && $(GO) run ./modules licences .. >../docs/licences.md.new && mv ../docs/licences.md.new ../docs/licences.md

reference: ## write the schema, docs/configuration.md and the reasons in docs/http.md anew, when a key or a reason has changed
	$(GO) test ./config -run 'Structs' -update
	$(GO) test ./proxy/reject -run 'Page|Answers' -update

sbom: build ## the bills of materials of both binaries, in CycloneDX: sluice.cdx.json, sluice-settle.cdx.json
	@for b in sluice sluice-settle; do GO='$(GO)' sh tools/sbom $$b $$b.cdx.json || exit 1; done

clean: ## remove what was built here
	rm -f sluice sluice-settle sluice.cdx.json sluice-settle.cdx.json coverage.out
