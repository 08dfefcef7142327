# What can be done with this repository; `make help` lists it. Everything is incremental.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.NOTPARALLEL:

TARGET := $(or $(CARGO_TARGET_DIR),$(CURDIR)/target)
HOST_CARGO := tools/build/host-cargo
KERNEL_CARGO := tools/build/kernel-cargo
EBB := $(TARGET)/release/ebb
KERNEL := $(TARGET)/x86_64-unknown-none/kernel/ebb
SELFTEST := $(TARGET)/x86_64-unknown-none/kernel/ebb-selftest
CHECKS := $(TARGET)/release/ebb-checks

# Static programs at a fixed address: what a kernel needs least for.
STATIC := CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUSTFLAGS="-C target-feature=+crt-static -C relocation-model=static"
GUEST_TARGET := --release --target x86_64-unknown-linux-gnu

define say
@printf '\n== %s\n' $(1)
endef

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# Running

.PHONY: run shell doctor
run: setup-run build ## Build Ebb, boot it in QEMU and show a short tour
	@$(EBB) tour

shell: setup-run build ## An interactive shell on Ebb
	@$(EBB) shell

doctor: tool ## Say what is missing on this machine
	@$(EBB) doctor

# Building

.PHONY: build kernel agent tool setup setup-run
build: kernel agent tool ## Build the kernel, the guest's agent and the command `ebb`

kernel: ## Build the kernel
	@$(KERNEL_CARGO) build -p ebb-image --profile kernel
	@$(HOST_CARGO) run --quiet --release -p ebb-symbols -- $(KERNEL)

agent: ## Build the agent, process 1 in guests
	@$(STATIC) $(HOST_CARGO) build -p ebb-agent $(GUEST_TARGET)

tool: ## Build the command `ebb`
	@$(HOST_CARGO) build --release -p ebb

.PHONY: cyc install-cyc
cyc: setup ## Build the Cyclone compiler, target/release/cyc
	@$(HOST_CARGO) build --release -p ebb-cyclone

PREFIX ?= /usr/local
install-cyc: cyc ## Install it with its library; PREFIX=/usr/local says where
	@install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/share/cyclone
	@install $(TARGET)/release/cyc $(DESTDIR)$(PREFIX)/bin/cyc
	@cp -R cyclone/lib cyclone/runtime $(DESTDIR)$(PREFIX)/share/cyclone/
	@echo 'installed $(DESTDIR)$(PREFIX)/bin/cyc'

setup: ## Install what is missing to build, run and test (apt, with sudo if needed)
	@tools/build/setup

setup-run:
	@tools/build/setup run

# Testing

.PHONY: test check selftest test-host test-kernel test-guest test-hello checks-tool
# Linking a kernel takes minutes of one core: both kernels are built beside what the other core does meanwhile.
test: setup ## Run all tests
	@mkdir -p $(TARGET); $(MAKE) --no-print-directory kernel selftest >$(TARGET)/kernels.log 2>&1 & kernels=$$!; \
		trap 'kill $$kernels 2>/dev/null || true' EXIT; \
		$(MAKE) --no-print-directory check lint test-host; \
		echo 'waiting for the kernels that are built beside this (what they print is in $(TARGET)/kernels.log)'; \
		wait $$kernels || { tail -n 40 $(TARGET)/kernels.log; exit 1; }
	@$(MAKE) --no-print-directory test-kernel build test-guest test-hello test-hostile

check: ## Formatting, clippy, and where `unsafe` may be
	$(call say,'Formatting and lints')
	@$(HOST_CARGO) fmt --all --check
	@$(HOST_CARGO) clippy --quiet --all-targets -- -D warnings
	@tools/build/kernel-check clippy -- -D warnings
	@tools/build/kernel-check clippy --features ebb-frame/selftest,stretch,check-locks,stalls,scarce -- -D warnings
	@tools/build/soundness compiles
	@$(HOST_CARGO) run --quiet --release -p ebb-measure >/dev/null

.PHONY: lint
PUBLISHED := ebb-refs ebb-tasks ebb-ac ebb-ipc ebb-groups
LINTED := ebb-refs ebb-tasks ebb-ac ebb-ipc ebb-groups ebb-crc32c ebb-decompress ebb-erofs ebb-exfat ebb-ninep ebb-squashfs ebb-tcpip ebb-usb ebb-example-kv
lint: ## The names and types of what may suspend
	$(call say,'What may suspend')
	@$(HOST_CARGO) build --quiet --release -p ebb-lint
	@export PATH="$(TARGET)/release:$$PATH" && \
		$(HOST_CARGO) ebb-lint --quiet $(addprefix -p ,$(LINTED)) && tools/build/kernel-check ebb-lint

test-host: ## Tests of the libraries and tools, on this machine
	$(call say,'Libraries and tools')
	@$(HOST_CARGO) test --quiet
	@$(HOST_CARGO) test --quiet -p ebb-frame -p ebb-kernel
	@$(HOST_CARGO) test --quiet -p ebb-refs --features check-locks --test lock_order

selftest:
	@$(KERNEL_CARGO) build -p ebb-image --bin ebb-selftest --profile kernel --no-default-features --features selftest
	@$(HOST_CARGO) run --quiet --release -p ebb-symbols -- $(SELFTEST)

test-kernel: selftest ## Tests inside the kernel, in QEMU
	$(call say,'Inside the kernel')
	@tools/build/kernel-selftest $(SELFTEST)

checks-tool:
	@$(HOST_CARGO) build --release -p ebb-checks

# What is to be the same where the working directory is on a disk: all but how many pages go through the kernel at once (files/copy_pages, which also contains files/copy).
ON_EXT4 := dirs/ links/ permissions/ memory/ $(filter-out files/copy%,$(patsubst user/checks/%.c,%,$(wildcard user/checks/files/*.c)))

test-guest: build checks-tool ## Programs that must do the same on Ebb and on Linux
	$(call say,'Programs on Ebb and on Linux')
	@$(HOST_CARGO) test --quiet --release -p ebb -- --ignored --test-threads 2
	@$(CHECKS) programs
	@$(CHECKS) --on-disk ext4 programs $(ON_EXT4)
	@$(CHECKS) applets
	@$(CHECKS) script

CPUS ?= 2
.PHONY: workloads
workloads: build checks-tool ## Programs of Debian's that use threads (Python, make, xz, git, Node.js, Java ...): the same output on Ebb and Linux, and the time of both; CPUS=N
	@linux=$$(tools/build/linux-kernel $(TARGET)/linux) && $(CHECKS) --cpus $(CPUS) --reference "$$linux" workloads

.PHONY: test-debian
test-debian: build checks-tool ## Debian's programs on a disk (apt, gcc, git, Python, Java, vim ...): the same output on Ebb and Linux, and the time of both; downloads packages; ONLY="ROW..." some, CPUS=N, REFRESH=1 fetches them anew, WRITE=1 writes the book's table
	$(call say,'Debian on Ebb and on Linux')
	@tools/build/setup debian
	@linux=$$(tools/build/linux-kernel $(TARGET)/linux) && $(CHECKS) --cpus $(CPUS) --reference "$$linux" debian \
		$(if $(REFRESH),--refresh) $(if $(WRITE),--write) $(ONLY)

.PHONY: ltp
ltp: build checks-tool ## The Linux Test Project's tests of system calls: what passes, and why the rest does not; LTP=DIR names a checkout, LINUX=1 runs them on Linux as well, ONLY="TEST..." some, CPUS=N, JOBS=N machines at a time, WRITE=1 writes the book's table
	@if [[ -z "$(LTP)" ]]; then echo "LTP=DIR must name a checkout of the Linux Test Project"; exit 1; fi
	@tools/build/setup ltp
	@linux=$$([[ -z "$(LINUX)" ]] || tools/build/linux-kernel $(TARGET)/linux) && $(CHECKS) --cpus $(CPUS) $${linux:+--reference "$$linux"} ltp "$(LTP)" \
		$(addprefix --jobs ,$(JOBS)) $(if $(WRITE),--write) $(if $(ONLY),--only $(ONLY))

.PHONY: xfstests
xfstests: build checks-tool ## xfstests' generic tests on ext4 in a Debian: what passes, and why the rest does not; XFSTESTS=DIR names a checkout, LINUX=1 runs them on Linux as well, ONLY="generic/001 ..." some, CPUS=N, JOBS=N machines at a time, WRITE=1 writes the book's table
	@if [[ -z "$(XFSTESTS)" ]]; then echo "XFSTESTS=DIR must name a checkout of xfstests"; exit 1; fi
	@tools/build/setup xfstests
	@linux=$$([[ -z "$(LINUX)" ]] || tools/build/linux-kernel $(TARGET)/linux) && $(CHECKS) --cpus $(CPUS) $${linux:+--reference "$$linux"} xfstests "$(XFSTESTS)" \
		$(addprefix --jobs ,$(JOBS)) $(if $(WRITE),--write) $(if $(ONLY),--only $(ONLY))

.PHONY: test-hostile fuzz stress-cores stress-ext
test-hostile: build ## A sample of hostile input: random system calls, broken programs and archives
	$(call say,'Hostile input')
	@$(HOST_CARGO) build --release -p ebb-fuzz
	@$(TARGET)/release/ebb-fuzz

fuzz: build ## Random system calls for ten minutes of guest time; SEED=N chooses others
	@$(HOST_CARGO) build --release -p ebb-fuzz
	@$(TARGET)/release/ebb-fuzz --seed $(or $(SEED),1) calls 600

stress-cores: build ## All kinds of work on all cores against each other, for ten minutes; CPUS=N, SEED=N, SECONDS_EACH=N choose others, FAMILIES="NAME..." some
	@$(HOST_CARGO) build --release -p ebb-fuzz
	@$(TARGET)/release/ebb-fuzz --cpus $(CPUS) --seed $(or $(SEED),1) stress $(or $(SECONDS_EACH),300) $(FAMILIES)

stress-ext: ## ext2 and ext4 against a model, power cuts and damage, for long; TIMES=N says how many times as long as in `make test`
	@EXT_STRESS=$(or $(TIMES),20) $(HOST_CARGO) test --quiet --release -p ebb-ext

STRETCH := $(TARGET)/stretch/x86_64-unknown-none/kernel/ebb
.PHONY: stretch
stretch: agent checks-tool ## For how long interrupts are off at most, over all checks, random system calls and programs that exhaust the machine
	$(call say,'The longest stretch with interrupts off')
	@$(KERNEL_CARGO) build -p ebb-image --profile kernel --features stretch --target-dir $(TARGET)/stretch
	@$(HOST_CARGO) build --release -p ebb-fuzz
	@$(CHECKS) --kernel $(STRETCH) stretch
	@for seed in 1 2 3 4; do $(TARGET)/release/ebb-fuzz --kernel $(STRETCH) --stretch --seed $$seed calls 10 || exit 1; done
	@$(TARGET)/release/ebb-fuzz --kernel $(STRETCH) --stretch exhaust

LOCKS := $(TARGET)/locks/x86_64-unknown-none/kernel-dev/ebb
.PHONY: check-locks
check-locks: agent checks-tool ## That locks are taken in the order of docs/src/locks.md, over all checks on one core and on two
	$(call say,'The order of locks')
	@$(HOST_CARGO) test --quiet -p ebb-refs --features check-locks --test lock_order
	@$(KERNEL_CARGO) build -p ebb-image --profile kernel-dev --features check-locks --target-dir $(TARGET)/locks
	@$(HOST_CARGO) run --quiet --release -p ebb-symbols -- $(LOCKS)
	@for cpus in 1 2; do $(CHECKS) --cpus $$cpus --kernel $(LOCKS) locks || exit 1; done

STALLS := $(TARGET)/stalls/x86_64-unknown-none/kernel-dev/ebb
.PHONY: check-stalls
check-stalls: agent checks-tool ## The behaviour checks on cores that stand still now and then, which makes races frequent
	$(call say,'On cores that stand still now and then')
	@$(KERNEL_CARGO) build -p ebb-image --profile kernel-dev --features stalls --target-dir $(TARGET)/stalls
	@$(CHECKS) --kernel $(STALLS) programs
	@$(CHECKS) --kernel $(STALLS) --on-disk ext4 programs $(ON_EXT4)

SCARCE := $(TARGET)/scarce/x86_64-unknown-none/kernel-dev/ebb
.PHONY: check-scarce
check-scarce: agent ## That nothing in the kernel needs a large block of memory that it cannot be refused, over programs that take all there is and random work
	$(call say,'As if no large block of memory could be had')
	@$(KERNEL_CARGO) build -p ebb-image --profile kernel-dev --features scarce --target-dir $(TARGET)/scarce
	@$(HOST_CARGO) run --quiet --release -p ebb-symbols -- $(SCARCE)
	@$(HOST_CARGO) build --release -p ebb-fuzz
	@for memory in 64 512; do $(TARGET)/release/ebb-fuzz --kernel $(SCARCE) exhaust $$memory || exit 1; done
	@$(TARGET)/release/ebb-fuzz --kernel $(SCARCE) --seed $(or $(SEED),1) calls 60
	@$(TARGET)/release/ebb-fuzz --kernel $(SCARCE) --seed $(or $(SEED),1) kills 200

HELLO := $(TARGET)/hello
test-hello: build ## Small programs built in every way, on Ebb
	$(call say,'Hello from every kind of program')
	@$(HOST_CARGO) build --quiet --release -p ebb-cyclone
	@$(MAKE) --no-print-directory -s -C user/hello OUT=$(HELLO) CYC=$(TARGET)/release/cyc
	@for program in $$($(MAKE) --no-print-directory -s -C user/hello OUT=$(HELLO) list); do \
		$(EBB) run --timeout 600s $$program | diff -u user/hello/expected - || exit 1; \
		echo "$$(basename $$program): as expected"; \
	done

.PHONY: check-soundness check-executed
check-soundness: ## Unsafe code under loom and the sanitizers; CHECKER=thread, PACKAGE=ebb-refs run a part
	@tools/build/soundness $(or $(CHECKER),all) $(PACKAGE)

check-executed: ## Which unsafe blocks of the libraries and of frame::mm run under those checkers; PACKAGE=ebb-frame one's by its own tests
	@$(HOST_CARGO) run --quiet --release -p ebb-measure -- --executed $(addprefix --package ,$(PACKAGE))

.PHONY: package
package: ## Package the libraries as a registry would get them, and build the packages
	@$(HOST_CARGO) package $(PUBLISHED:%=-p %)

.PHONY: bench-cyclone cyclone-differ
bench-cyclone: ## Cyclone programs beside the same in C, with the same allocation and with malloc; ORIGINAL=PROGRAM also the original compiler's, ONLY=NAME some
	@$(HOST_CARGO) build --quiet --release -p ebb-cyclone -p ebb-cyclone-bench
	@$(TARGET)/release/ebb-cyclone-bench --cyc $(TARGET)/release/cyc $(if $(ORIGINAL),--original $(ORIGINAL)) $(if $(ONLY),--only $(ONLY))

cyclone-differ: ## Random Cyclone programs must do the same however they are compiled, functions what an interpreter says, owners no harm; COUNT=N, FUNCTIONS=N, OWNERS=N, SEED=N
	@$(HOST_CARGO) build --quiet --release -p ebb-cyclone -p ebb-cyclone-differ
	@$(TARGET)/release/ebb-cyclone-differ --cyc $(TARGET)/release/cyc --seed $(or $(SEED),1) --count $(or $(COUNT),100) \
		--functions $(or $(FUNCTIONS),2000) --owners $(or $(OWNERS),4000)

.PHONY: cyclone-corpus
cyclone-corpus: ## The original Cyclone's programs: what parses, what runs alike, where errors are; CORPUS=DIR names a checkout
	@if [[ -z "$(CORPUS)" || ! -d "$(CORPUS)/tests" ]]; then \
		echo "Skipped: CORPUS=DIR must name a checkout of the Cyclone repository"; \
	else \
		$(HOST_CARGO) build --quiet --release -p ebb-cyclone -p ebb-corpus && \
		$(TARGET)/release/ebb-corpus "$(CORPUS)" --cyc $(TARGET)/release/cyc $(ARGS); \
	fi

# Measuring and reading

.PHONY: bench bench-cores bench-disks bench-network bench-groups study measure docs syscall-table
measure: kernel ## Print lines per crate and the trusted share of the kernel
	@$(KERNEL_CARGO) build -p ebb-image --profile kernel-lines
	@$(HOST_CARGO) run --quiet --release -p ebb-measure -- --kernel $(KERNEL:kernel/ebb=kernel-lines/ebb) --kernel $(KERNEL)

syscall-table: ## Write the book's table of system calls
	@EBB_UPDATE_BOOK=1 $(HOST_CARGO) test --quiet -p ebb-kernel --lib the_page

bench: setup build ## Measure Ebb against Linux, in guest instructions; WRITE=1 writes the book's page
	@$(HOST_CARGO) build --release -p ebb-bench
	@$(KERNEL_CARGO) build -p ebb-image --profile kernel --features hold-strong --target-dir $(TARGET)/strong
	@$(KERNEL_CARGO) build -p ebb-image --profile kernel --features stretch --target-dir $(TARGET)/stretch
	@linux=$$(tools/build/linux-kernel $(TARGET)/linux) && $(TARGET)/release/ebb-bench --linux "$$linux" \
		--strong $(TARGET)/strong/x86_64-unknown-none/kernel/ebb --stretch $(TARGET)/stretch/x86_64-unknown-none/kernel/ebb \
		$(if $(WRITE),--write)

bench-cores: setup build ## Measure what two cores reach beside one, and how soon memory comes back, Ebb and Linux in turn; WRITE=1 writes the book's page
	@$(HOST_CARGO) build --release -p ebb-bench
	@linux=$$(tools/build/linux-kernel $(TARGET)/linux) && $(TARGET)/release/ebb-bench cores --linux "$$linux" $(if $(WRITE),--write)

bench-disks: setup build ## Measure programs with files on a disk (fio's accesses, sqlite3, tar, git, grep, Python), Ebb and Linux; ONLY="ROW..." some, WRITE=1 writes the book's page
	@$(HOST_CARGO) build --release -p ebb-bench
	@linux=$$(tools/build/linux-kernel $(TARGET)/linux) && $(TARGET)/release/ebb-bench disks --linux "$$linux" \
		$(addprefix --only ,$(ONLY)) $(if $(WRITE),--write)

SERVER_PACKAGES := nginx-light,redis-server,redis-tools,apache2-utils
bench-network: setup build ## Measure sockets on the loopback device (round trips, bytes, messages, many connections, memory), Ebb and Linux; SERVERS=1 nginx and redis of Debian's, too, ONLY="ROW..." some, WRITE=1 writes the book's page
	@$(HOST_CARGO) build --release -p ebb-bench
	@linux=$$(tools/build/linux-kernel $(TARGET)/linux) && servers=$(if $(SERVERS),$$($(TARGET)/release/ebb image debian --include $(SERVER_PACKAGES))) && \
		$(TARGET)/release/ebb-bench network --linux "$$linux" $${servers:+--servers "$$servers"} \
		$(addprefix --only ,$(ONLY)) $(if $(WRITE),--write)

bench-groups: setup build ## Measure what it takes to end a workload with very many objects, Ebb and Linux; ONLY=ROW one class, WRITE=1 writes the book's page
	@$(HOST_CARGO) build --release -p ebb-bench
	@linux=$$(tools/build/linux-kernel $(TARGET)/linux) && $(TARGET)/release/ebb-bench groups --linux "$$linux" \
		$(addprefix --only ,$(ONLY)) $(if $(WRITE),--write)

study: setup build ## How processes end on Ebb and Linux, as a published study shows it: tables and plots; OUT=DIR says where (target/study)
	@$(HOST_CARGO) build --release -p ebb-bench
	@linux=$$(tools/build/linux-kernel $(TARGET)/linux) && $(TARGET)/release/ebb-bench study --linux "$$linux" $(or $(OUT),$(TARGET)/study)

.PHONY: bench-libs check-bench
LIBS_BENCH := --manifest-path libs/bench/Cargo.toml --target-dir $(TARGET)/bench
bench-libs: ## Measure the libraries beside their peers, in cycles; TABLES="refs tasks ipc memory" chooses, WRITE=1 writes the book's page
	@$(HOST_CARGO) build --release $(LIBS_BENCH)
	@$(TARGET)/bench/release/ebb-libs-bench $(TABLES) $(if $(WRITE),--write)

check-bench: ## Lints and tests of what `make bench-libs` runs
	@$(HOST_CARGO) fmt --manifest-path libs/bench/Cargo.toml --check
	@$(HOST_CARGO) clippy --quiet $(LIBS_BENCH) --all-targets -- -D warnings
	@$(HOST_CARGO) test --quiet $(LIBS_BENCH)

docs: ## Build the book in docs/book
	@command -v mdbook >/dev/null || $(HOST_CARGO) install --quiet --root $(TARGET)/tools mdbook
	@PATH="$(TARGET)/tools/bin:$$PATH" mdbook build docs
