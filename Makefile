# blitz: short names for what CMake, the tests and the tools do. `make help` lists them.
#
# Every target calls tools/setup for the tools it needs; on a fresh Debian with git, make and root
# that is the whole installation. A target says in a line what it is doing and shows the rest only
# when something fails; V=1 shows everything. J=n sets the number of jobs.

.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory
J ?= $(shell nproc)
export J V

PREFIX ?= /usr/local
DESTDIR ?=
LIBDIR ?=

.PHONY: help
help: ## this list
	@grep -hE '^[a-z][a-zA-Z0-9_% -]*:.*## ' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | \
	    awk -F'\t' '{gsub("%", "NAME", $$1); printf "  make %-16s %s\n", $$1, $$2}'

# -- build and use ---------------------------------------------------------------------------------

.PHONY: all lib demo debug install
all: ## build everything: library, tests, examples (build/release)
	@tools/setup build
	@tools/build release

lib: ## build the library alone: libblitz.so and libblitz.a
	@tools/setup build
	@tools/build release blitz_libraries

demo: ## build the library and run the demo; ARGS=--list names its scenes
	@tools/setup build
	@tools/build release demo
	@build/release/examples/demo/demo $(ARGS)

debug: ## build everything with assertions (build/debug)
	@tools/setup build
	@tools/build debug

install: ## install the library; PREFIX=/usr/local, LIBDIR=lib, DESTDIR=
	@tools/setup build
	@tools/build package -DCMAKE_INSTALL_PREFIX=$(PREFIX) $(LIBDIR:%=-DCMAKE_INSTALL_LIBDIR=%)
	@DESTDIR=$(DESTDIR) cmake --install build/package $(if $(V),,>build/package/install.log)
	@echo "install    $(DESTDIR)$(PREFIX)"

# -- tests -----------------------------------------------------------------------------------------

# The tools and the documents are the same in every build: `make test` checks them, once.
code_only := -LE 'tools|docs'
# Tests to run under another program (qemu, valgrind).
programs_only := -L 'unit|stress' -E '^(harness|gdb)$$'

# `make check-install` checks the installed files; `make test` leaves them out.
.PHONY: test asan tsan plain clang model model-docs mutants mutate testmap check-install check-bare
test: ## build and run the tests
	@tools/setup build test
	@tools/build release
	@tools/run-tests release -LE install

asan: ## the tests under AddressSanitizer and UBSan
	@tools/setup build test
	@tools/build asan
	@tools/run-tests asan $(code_only)

tsan: ## the tests under ThreadSanitizer (clang)
	@tools/setup build test clang tsan
	@tools/build tsan
	@tools/run-tests tsan $(code_only)

plain: ## the tests of the plain form of every protocol, with assertions
	@tools/setup build test
	@tools/build plain
	@tools/run-tests plain $(code_only)

model: ## the lock-free code in every order of events the memory model allows
	@tools/setup build test
	@tools/build model
	@tools/run-tests model; status=$$?; tests/model/table.py build/model && exit $$status

model-docs: ## write the reports of the planted bugs into docs/model-checking.md
	@tools/setup build test python
	@tools/build model model_planted
	@tests/model/docs.py build/model/tests/model/model_planted --write

mutants: ## weaken every memory order in turn: do the model tests notice? FILE=src/...
	@tools/setup build test python
	@tools/build model
	@tools/mutants $(FILE)

testmap: ## which functions each test case runs (build/testmap.json), for the next ones
	@tools/setup build test python coverage
	@tools/build coverage
	@tools/testmap

SEED ?= 1
COUNT ?= 300
mutate: testmap ## change COUNT=300 places by SEED=1, FILE=src/...: do the tests notice? (tools/mutate --help)
	@tools/build release
	@tools/build debug
	@tools/mutate --named
	@tools/mutate --seed $(SEED) --count $(COUNT) $(FILE)

check-install: ## install into a temporary place, build and run consumers, check the exports
	@tools/setup build test
	@tools/build release blitz_libraries
	@tests/install/check build/release

check-bare: ## the README's two commands on a bare Debian made by debootstrap (root)
	@tools/setup bare
	@tools/check-bare

clang: ## the tests, built by clang
	@tools/setup build test clang
	@tools/build clang
	@tools/run-tests clang $(code_only)

.PHONY: programs
programs: ## nc, socat, curl, wrk, openssl and nginx against our examples; BLITZ_IO=... for a keeper
	@tools/setup build python net-programs
	@tools/build release example_echo example_http example_fetch example_drain example_tls_echo example_https_hello
	@tests/programs/programs_test.py build/release/examples
	@tests/programs/drain_test.py build/release/examples/example_drain
	@tests/programs/tls_programs_test.py build/release/examples

.PHONY: fuzz-tls
fuzz-tls: ## ten million TLS records and hellos of odd sizes, under AddressSanitizer; BLITZ_FUZZ=n for another number
	@tools/setup build test
	@tools/build asan test_tls_fuzz
	@BLITZ_FUZZ=$${BLITZ_FUZZ:-5000000} build/asan/tests/tls/test_tls_fuzz

# -- the long sweep --------------------------------------------------------------------------------

.PHONY: procs
procs: ## the tests of the scheduler with 1, 2, 3 and 8 procs wherever none are asked for
	@tools/setup build test
	@tools/build release
	@for n in 1 2 3 8; do echo "$$n procs"; \
	    BLITZ_PROCS=$$n tools/run-tests release -L 'unit|stress' -E '^(harness|gdb)$$' || exit 1; done

ROUNDS ?= 20
.PHONY: busy
busy: ## the tests, ROUNDS=20 times in a row, beside six processes that burn the CPUs
	@tools/setup build test
	@tools/build release
	@tools/busy --rounds $(ROUNDS) --burners 6 -- tools/run-tests release -LE install

SEEDS ?= 8000
.PHONY: seeds
seeds: ## the whole scheduler in virtual time, SEEDS=8000 seeds a case, delays and checks included
	@tools/setup build test
	@tools/build watch sim_sched sim_random sim_accept sim_par sim_poll sim_wait sim_monitor \
	    sim_fair_random sim_handover sim_sync sim_sync_scenes sim_chan sim_time sim_combine sim_mix \
	    sim_inject
	@for p in sched random accept par poll wait monitor fair_random handover sync sync_scenes chan \
	          time combine mix inject; do \
	    BLITZ_SIM_SEEDS=$(SEEDS) build/watch/tests/sim/sim_$$p --time-limit=900 -v || exit 1; done

ACTOR_SEEDS ?= 100000
.PHONY: seeds-actors
seeds-actors: ## random graphs of actors in virtual time: cycles, calls, overload, kills; ACTOR_SEEDS=100000 a case
	@tools/setup build test
	@tools/build release sim_actor sim_pressure sim_receive sim_quiet
	@for p in actor pressure receive quiet; do \
	    BLITZ_SIM_SEEDS=$(ACTOR_SEEDS) \
	    build/release/tests/sim/sim_$$p --time-limit=900 -v || exit 1; done

NODE_SEEDS ?= 50000
.PHONY: seeds-nodes
seeds-nodes: ## two and three nodes on the simulated network: splits, delays, restarts; NODE_SEEDS=50000 a case
	@tools/setup build test
	@tools/build release sim_node
	@BLITZ_SIM_SEEDS=$(NODE_SEEDS) build/release/tests/sim/sim_node --time-limit=7200 -v

.PHONY: long
long: ## what is counted in millions: spawn and join, start and stop, crashes of actors, and a long overload
	@tools/setup build test
	@tools/build release test_accept_memory stress_turns stress_crash stress_overload
	@BLITZ_ROUNDS=100000000 BLITZ_STARTS=100000 \
	    build/release/tests/unit/test_accept_memory --time-limit=900 -v
	@BLITZ_TURNS_S=15 build/release/tests/stress/stress_turns --time-limit=300 -v
	@BLITZ_TEST_CRASHES=1000000 build/release/tests/stress/stress_crash --time-limit=900 -v
	@BLITZ_TEST_OVERLOAD_S=10 build/release/tests/stress/stress_overload --time-limit=300 -v

.PHONY: mix
mix: ## random mixes of fibers, stackless tasks, jobs and threads on every primitive; MIX_S=600 seconds
	@tools/setup build test python clang tsan
	@tools/mix

.PHONY: check-all lto cet valgrind aarch64 riscv64 musl windows
check-all: ## the long sweep: everything we can check; ARGS='lto cet' for some stages
	@tools/setup python
	@tools/stages tools/check-all.toml --keep-going $(ARGS)

lto: ## the tests with link-time optimization of position-independent code
	@tools/setup build test
	@tools/build lto
	@tools/run-tests lto $(code_only)

cet: ## the tests with -fcf-protection=full
	@tools/setup build test
	@tools/build cet
	@tools/run-tests cet $(code_only)

valgrind: ## unit tests and stress under valgrind's memcheck
	@tools/setup build test valgrind
	@tools/build valgrind
	@tools/run-tests valgrind $(programs_only)

aarch64 riscv64: ## unit tests and stress for that architecture, under qemu-user
	@tools/setup build test cross
	@tools/build $@
	@tools/run-tests $@ $(programs_only)

musl: ## unit tests, simulations and stress as static programs with musl
	@tools/setup build test cross
	@tools/build $@
	@tools/run-tests $@ -L 'unit|sim|stress' -E '^(harness|gdb)$$'

windows: ## unit tests as Windows programs, under Wine
	@tools/setup build windows
	@tools/build $@
	@tools/run-tests $@

.PHONY: cross
cross: ## compile and link the library for aarch64, riscv64, musl and Windows, where their compilers are
	@tools/setup build cross windows
	@tools/cross

# -- documents -------------------------------------------------------------------------------------

.PHONY: acceptance acceptance-covered
acceptance: ## what was asked for: check the tables in docs/ and count the rows
	@tools/setup python
	@tools/acceptance

acceptance-covered: testmap ## the same, and do the named tests run the files that rows name?
	@tools/acceptance --covered

# -- figures ---------------------------------------------------------------------------------------

# Not .PHONY: a phony target is never made by a pattern rule.
bench-%: ## ours against its peers; NAMEs: tools/bench --list; ARGS=--quick for a minute's look
	@tools/setup build python valgrind
	@tools/bench $* $(ARGS)

.PHONY: bench-sync
bench-sync: ## locks and channels against their peers; fails unless every row is ahead of every peer
	@tools/setup build python valgrind
	@status=0; for name in sync chan; do \
	    [ ! -f bench/$$name.toml ] || tools/bench $$name --verdict $(ARGS) || status=1; done; exit $$status

.PHONY: budget
budget: ## count the instructions of every hot path; fails if one exceeds its budget (tools/budget --help)
	@tools/setup build python valgrind
	@tools/build bench budget
	@tools/budget $(ARGS)

.PHONY: scale
scale: ## cost of an operation on simulated machines of 1 to 64 CPUs; ARGS=--check, --sites (tools/scale --help)
	@tools/setup build python
	@tools/build scale scale
	@tools/scale $(ARGS)

.PHONY: bench-report
bench-report: ## all figures so far as one page, build/bench/report.html
	@tools/setup python
	@tools/bench --report

# -- lint, documents, acceptance ------------------------------------------------------------------

.PHONY: lint
lint: ## format, clang-tidy, shellcheck and our own rules (tools/lint --list)
	@tools/setup lint python
	@tools/lint

.PHONY: fuzz
FUZZ ?= 3400000
fuzz: ## random DNS answers, resolv.conf and hosts files under AddressSanitizer: FUZZ of each (10 million in all)
	@tools/setup build test
	@tools/build asan test_dns_fuzz
	@BLITZ_FUZZ_INPUTS=$(FUZZ) build/asan/tests/unit/test_dns_fuzz

.PHONY: fuzz-terms
FUZZ_TERMS ?= 6000000
fuzz-terms: ## damaged and random Erlang terms under AddressSanitizer: FUZZ_TERMS of each (12 million in all)
	@tools/setup build test
	@tools/build asan test_term_fuzz
	@BLITZ_FUZZ_INPUTS=$(FUZZ_TERMS) build/asan/tests/unit/test_term_fuzz

.PHONY: fuzz-heap
HEAP_OPS ?= 10000000
fuzz-heap: ## random graphs in a heap, changed and collected, against a shadow under AddressSanitizer: HEAP_OPS in each of 5 modes
	@tools/setup build test
	@tools/build asan stress_heap
	@BLITZ_HEAP_OPS=$(HEAP_OPS) build/asan/tests/stress/stress_heap --time-limit=3600

.PHONY: fuzz-node
FUZZ_NODE ?= 5000000
fuzz-node: ## what a peer of the cluster sends, damaged, under AddressSanitizer: FUZZ_NODE of each (10 million in all)
	@tools/setup build test
	@tools/build asan test_node_fuzz
	@BLITZ_FUZZ_INPUTS=$(FUZZ_NODE) build/asan/tests/unit/test_node_fuzz

.PHONY: canaries
canaries: ## every net catches the bug that was planted for it (tools/canaries --list)
	@tools/setup build test python clang tsan
	@tools/canaries

.PHONY: coverage
coverage: ## which lines the tests run, as a table and as a page (tools/coverage --help)
	@tools/setup build test python coverage
	@tools/coverage --html build/coverage.html

show-%: ## every sentence that was to be shown under that tag, shown (tools/show names the tags)
	@tools/setup build test python
	@tools/show $(if $(RESUME),--resume) $*

# -- tidy ------------------------------------------------------------------------------------------

.PHONY: clean
clean: ## remove everything that was built
	@rm -rf build compile_commands.json
