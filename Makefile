# LGM: everything is built into $(BUILD); nothing generated lands in the tree.
#   make run      install what is missing, build, start `lgm standalone`
#   make test     all tests; the last line is "N passed, N failed"

BUILD ?= build
ifeq ($(origin CC),default)
CC = gcc
endif
MODE ?= release
DESTDIR ?=
PREFIX ?= /usr/local
SEEDS ?= 20000
ROUNDS ?= 30
MINUTES ?= 30
ARGS ?=

PACKAGES = libevent libevent_pthreads libevent_openssl libprotobuf-c rocksdb libzstd liblz4 \
	libisal json-c openssl zlib libcurl libnghttp2
WARN = -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wstrict-prototypes -Wmissing-prototypes \
	-Wimplicit-fallthrough -Wvla -Werror -Wno-variadic-macros
ifneq (,$(findstring clang,$(CC)))
# The first is how log_event() takes no field; the second is what json-c's loop macro is made of.
WARN += -Wno-gnu-zero-variadic-macro-arguments -Wno-gnu-statement-expression
endif

opt_release = -O2
opt_asan = -O1 -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
opt_tsan = -O1 -fsanitize=thread -fno-omit-frame-pointer
opt_fuzz = -O1 -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all

VERSION := $(shell cat VERSION)
CFLAGS = -std=gnu17 -g $(opt_$(MODE)) $(WARN) -D_GNU_SOURCE -DLGM_VERSION='"$(VERSION)"' \
	-I. -isystem $(BUILD)/gen -pthread $(EXTRA_CFLAGS)
LDFLAGS = $(filter -fsanitize=address% -fsanitize=thread,$(opt_$(MODE))) -pthread
# Asked for only when something is compiled, so that `make deps` works before they exist.
LIBS = $(shell pkg-config --libs $(PACKAGES)) -lroaring -lsnappy -lpcre2-8 -lm

FOLDERS = common proto metadata ledger bookie client broker cli
sources = $(filter-out %/main.c,$(shell find $(1) -name '*.c' 2>/dev/null | sort))
objects = $(patsubst %.c,$(BUILD)/%.o,$(1))
lib = $(BUILD)/lib$(1).a

PROTOS = $(wildcard proto/*.proto)
GEN = $(patsubst proto/%.proto,$(BUILD)/gen/proto/%.pb-c.c,$(PROTOS))
GEN_OBJ = $(GEN:.c=.o)

PROGRAMS = $(BUILD)/lgm $(BUILD)/lgm-broker $(BUILD)/lgm-bookie
ALL_LIBS = $(foreach f,cli broker client bookie ledger metadata proto common,$(call lib,$(f)))

TEST_LIB = $(BUILD)/libtests.a
UNIT_SRC = $(shell find tests/unit -name '*_test.c' 2>/dev/null | sort)
UNIT = $(patsubst tests/unit/%.c,$(BUILD)/unit/%,$(UNIT_SRC))
FUZZ_SRC = $(shell find tests/fuzz -name '*_fuzz.c' 2>/dev/null | sort)
FUZZ = $(patsubst tests/fuzz/%.c,$(BUILD)/fuzz/%,$(FUZZ_SRC))

.DEFAULT_GOAL = build
.SECONDARY:
.DELETE_ON_ERROR:

# ---- building -----------------------------------------------------------------------------

build: $(PROGRAMS)

$(BUILD)/gen/proto/%.pb-c.c $(BUILD)/gen/proto/%.pb-c.h: proto/%.proto
	@mkdir -p $(dir $@)
	@protoc-c --c_out=$(BUILD)/gen $<

$(BUILD)/gen/%.o: $(BUILD)/gen/%.c
	@$(CC) -std=gnu17 -g $(opt_$(MODE)) -w -I$(BUILD)/gen -c -o $@ $<

$(BUILD)/%.o: %.c | $(GEN)
	@mkdir -p $(dir $@)
	@echo "  CC $<"; $(CC) $(CFLAGS) -MD -MP -c -o $@ $<

define library
$(call lib,$(1)): $(call objects,$(call sources,$(1))) $(if $(filter proto,$(1)),$(GEN_OBJ))
	@mkdir -p $$(dir $$@)
	@rm -f $$@
	@ar rcs $$@ $$^
endef
$(foreach f,$(FOLDERS),$(eval $(call library,$(f))))

# What tests share, wherever it stands: all but the tests themselves.
$(TEST_LIB): $(call objects,$(shell find tests/lib tests/unit -name '*.c' ! -name '*_test.c' 2>/dev/null))
	@rm -f $@
	@ar rcs $@ $^

$(BUILD)/lgm: $(BUILD)/cli/main.o $(ALL_LIBS)
	@echo "  LD $@"; $(CC) $(LDFLAGS) -o $@ $^ $(LIBS)
$(BUILD)/lgm-broker: $(BUILD)/broker/main.o $(ALL_LIBS)
	@echo "  LD $@"; $(CC) $(LDFLAGS) -o $@ $^ $(LIBS)
$(BUILD)/lgm-bookie: $(BUILD)/bookie/main.o $(ALL_LIBS)
	@echo "  LD $@"; $(CC) $(LDFLAGS) -o $@ $^ $(LIBS)

# A unit test links its own folder's library and those below it; the linker takes what it needs.
.SECONDEXPANSION:
below_common = common
below_proto = proto common
below_metadata = metadata $(below_proto)
below_ledger = ledger $(below_metadata)
below_bookie = bookie $(below_ledger)
below_client = client $(below_proto)
below_broker = broker client bookie $(below_ledger)
below_cli = cli broker client bookie ledger metadata proto common
libs_under = $(foreach f,$(below_$(firstword $(subst /, ,$(1)))),$(call lib,$(f)))
$(BUILD)/unit/%: $(BUILD)/tests/unit/%.o $(TEST_LIB) $$(call libs_under,$$*)
	@mkdir -p $(dir $@)
	@echo "  LD $@"; $(CC) $(LDFLAGS) -o $@ $^ $(shell pkg-config --libs check) $(LIBS)

# Lives of the ledger cores on one seeded clock; only tests/sim and the cores are in it.
$(BUILD)/sim: $(call objects,$(wildcard tests/sim/*.c)) $(foreach f,$(below_ledger),$(call lib,$(f)))
	@echo "  LD $@"; $(CC) $(LDFLAGS) -o $@ $^ $(LIBS)
$(BUILD)/sim-topic: $(call objects,$(wildcard tests/sim/topic/*.c)) $(foreach f,$(below_broker),$(call lib,$(f)))
	@echo "  LD $@"; $(CC) $(LDFLAGS) -o $@ $^ $(LIBS)
$(BUILD)/exhaust: $(call objects,$(wildcard tests/sim/exhaust/*.c)) $(foreach f,$(below_ledger),$(call lib,$(f)))
	@echo "  LD $@"; $(CC) $(LDFLAGS) -o $@ $^ $(LIBS)

# Crashes of a bookie at any moment, and the layer below it that records what it does to its disk.
LAYER = tests/crashpoints/layer.c tests/crashpoints/layer_names.c
$(BUILD)/crashpoints: $(call objects,$(filter-out $(LAYER),$(wildcard tests/crashpoints/*.c))) $(foreach f,$(below_bookie),$(call lib,$(f)))
	@echo "  LD $@"; $(CC) $(LDFLAGS) -o $@ $^ $(LIBS)
$(BUILD)/crashpoints.so: $(LAYER) tests/crashpoints/layer.h tests/crashpoints/recording.h
	@echo "  LD $@"; $(CC) $(CFLAGS) -fPIC -shared -o $@ $(LAYER)

# What this machine could do at best, beside which bench/run.py measures.
$(BUILD)/ceiling: $(call objects,$(wildcard bench/ceiling/*.c)) $(call lib,common)
	@echo "  LD $@"; $(CC) $(LDFLAGS) -o $@ $^ $(LIBS)

# A load for one bookie.
$(BUILD)/bookie-load: $(BUILD)/bench/bookie_load.o $(call lib,proto) $(call lib,common)
	@echo "  LD $@"; $(CC) $(LDFLAGS) -o $@ $^ $(LIBS)

# A disk that is slow for one process.
$(BUILD)/slow_sync.so: bench/slow_sync.c
	@echo "  LD $@"; $(CC) $(CFLAGS) -fPIC -shared -o $@ $<

# A fuzzer links the libraries whose decoders are fuzzed.  `make fuzz` builds them in a directory of
# their own; what a run finds to be new stays in its corpus there for the next one.
FUZZ_SECONDS ?= 60
FUZZ_LIBS = $(call lib,bookie) $(call lib,metadata) $(call lib,proto) $(call lib,common)
# Of the broker only what decodes: not all of it is linked into each.
FUZZ_BROKER = $(call objects,$(addprefix broker/managed_ledger/,cursor_acks.c cursor_delta.c \
	cursor_parts.c cursor_record.c cursor_roaring.c cursor_set.c pairs.c segments.c))
$(BUILD)/fuzz/%: $(BUILD)/tests/fuzz/%.o $(FUZZ_BROKER) $(FUZZ_LIBS)
	@mkdir -p $(dir $@)
	@echo "  LD $@"; $(CC) -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all -pthread \
		-o $@ $^ $(LIBS)
fuzzers: $(FUZZ)
run-fuzzers: fuzzers
	@set -e; for f in $(FUZZ); do \
		corpus=$(BUILD)/corpus/$$(basename $$f); mkdir -p $$corpus; \
		echo "fuzzing $$(basename $$f) for $(FUZZ_SECONDS) s"; \
		$$f -max_total_time=$(FUZZ_SECONDS) -max_len=4096 -timeout=10 -print_funcs=0 -verbosity=0 \
			-artifact_prefix=$(BUILD)/fuzz/ $$corpus; \
	done; echo "$(words $(FUZZ)) fuzzers found nothing"
fuzz: deps-test
	@$(MAKE) --no-print-directory CC=clang MODE=fuzz BUILD=$(BUILD)-fuzz -j$(JOBS) fuzzers
	@$(MAKE) --no-print-directory CC=clang MODE=fuzz BUILD=$(BUILD)-fuzz run-fuzzers

# ---- what must be installed ----------------------------------------------------------------

DEPS = gcc libc6-dev make pkg-config libevent-dev libprotobuf-c-dev protobuf-c-compiler librocksdb-dev \
	libzstd-dev liblz4-dev libsnappy-dev zlib1g-dev libssl-dev libisal-dev libroaring-dev \
	libjson-c-dev libpcre2-dev libcurl4-openssl-dev uthash-dev libnghttp2-dev
DEPS_TEST = check python3 python3-venv openssl clang clang-format libclang-rt-14-dev etcd-server
SUDO = $(shell [ "$$(id -u)" = 0 ] || echo sudo)
# Quiet and offline when everything is there.
need = missing=""; for p in $(1); do dpkg-query -W -f '$${Status}' $$p 2>/dev/null | grep -q '^install ok' \
	|| missing="$$missing $$p"; done; \
	if [ -n "$$missing" ]; then echo "installing:$$missing"; $(SUDO) apt-get update -q && \
	DEBIAN_FRONTEND=noninteractive $(SUDO) apt-get install -y -q --no-install-recommends $$missing; fi

deps:
	@$(call need,$(DEPS))
deps-test: deps
	@$(call need,$(DEPS_TEST))

# ---- running -------------------------------------------------------------------------------

run: deps
	@$(MAKE) -s --no-print-directory -j$$(nproc) build
	@exec $(BUILD)/lgm standalone $(ARGS)

install: build
	install -D -m 755 -t $(DESTDIR)$(PREFIX)/bin $(PROGRAMS)

# ---- tests ---------------------------------------------------------------------------------

JOBS ?= $(shell nproc)
unit: $(UNIT)
INTEGRATION = $(sort $(wildcard tests/integration/*_test.py))

# The last line is "N passed, N failed".
test: deps-test
	@$(MAKE) --no-print-directory -j$(JOBS) build unit $(BUILD)/sim
	@python3 tests/run.py --build $(BUILD) --jobs $(JOBS) $(UNIT) \
		"$(BUILD)/sim --seeds 2000" $(INTEGRATION)
check: test
unit-test: unit
	@python3 tests/run.py --build $(BUILD) --jobs $(JOBS) $(UNIT)

asan: deps-test
	@$(MAKE) --no-print-directory MODE=asan BUILD=$(BUILD)-asan -j$(JOBS) build unit $(BUILD)-asan/sim
	@python3 tests/run.py --build $(BUILD)-asan --jobs $(JOBS) --slow 4 \
		$(UNIT:$(BUILD)/%=$(BUILD)-asan/%) "$(BUILD)-asan/sim --seeds 500" $(INTEGRATION)
# RocksDB is not built for it: what happens inside is not looked at.
tsan: deps-test
	@$(MAKE) --no-print-directory MODE=tsan BUILD=$(BUILD)-tsan -j$(JOBS) unit
	@TSAN_OPTIONS="ignore_noninstrumented_modules=1 $$TSAN_OPTIONS" python3 tests/run.py \
		--build $(BUILD)-tsan --jobs $(JOBS) --slow 6 $(UNIT:$(BUILD)/%=$(BUILD)-tsan/%)

sim: $(BUILD)/sim $(BUILD)/sim-topic
	@$(BUILD)/sim --seeds $(SEEDS)
	@$(BUILD)/sim-topic --seeds $(SEEDS)
exhaust: $(BUILD)/exhaust
	@$(BUILD)/exhaust
mutants: deps-test
	@$(MAKE) --no-print-directory -j$(JOBS) $(BUILD)/sim $(BUILD)/sim-topic $(BUILD)/exhaust $(filter $(BUILD)/unit/common/rocks_writer_test $(BUILD)/unit/ledger/% $(BUILD)/unit/bookie/% $(BUILD)/unit/broker/managed_ledger/%,$(UNIT))
	@python3 tests/mutants/run.py --build $(BUILD) --jobs $(JOBS)

interop: deps-test
	-@$(call need,default-jdk-headless maven)
	@$(MAKE) --no-print-directory -j$(JOBS) build
	@python3 tests/interop/run.py --build $(BUILD)
crash: deps-test
	@$(MAKE) --no-print-directory -j$(JOBS) build
	@python3 tests/crash.py --build $(BUILD) --rounds $(ROUNDS)
	@python3 tests/tiers.py --build $(BUILD) --rounds $(ROUNDS) crash
# A whole cluster under faults of all kinds; root sees the most.  FAULTS="--seed N --only kill cut"
faults: deps-test
	@$(MAKE) --no-print-directory -j$(JOBS) build
	@python3 tests/faults.py --build $(BUILD) --minutes $(MINUTES) $(FAULTS)
	@python3 tests/faults.py --build $(BUILD) --restore
# SECONDS=0: every crash, every failure and every planted bug, an hour and more.
SECONDS ?= 150
crashpoints: deps-test
	@$(MAKE) --no-print-directory -j$(JOBS) build $(BUILD)/crashpoints $(BUILD)/crashpoints.so
	@python3 tests/crashpoints/run.py --build $(BUILD) --seconds $(SECONDS)
# An hour: MINUTES=60 unless it is said.
soak: MINUTES = 60
soak: deps-test
	@$(MAKE) --no-print-directory -j$(JOBS) build
	@python3 tests/soak.py --build $(BUILD) --minutes $(MINUTES)
# BENCH="--only batched-2 --runs 3": bench/run.py --help
bench: deps-test
	@$(MAKE) --no-print-directory -j$(JOBS) build $(BUILD)/ceiling $(BUILD)/slow_sync.so \
		$(BUILD)/bookie-load
	@python3 bench/run.py --build $(BUILD) $(BENCH)

# ---- how the code reads --------------------------------------------------------------------

STYLED = $(shell find $(FOLDERS) tests bench -name '*.[ch]' 2>/dev/null)
format:
	clang-format -i $(STYLED)
lint: tidy
	@clang-format --dry-run -Werror $(STYLED)
tidy:
	@python3 tests/tidy.py

# docs/configuration.md and docs/errors.md come from the tables.
docs: build
	python3 docs/generate.py --build $(BUILD)

clean:
	rm -rf $(BUILD) $(BUILD)-asan $(BUILD)-tsan $(BUILD)-fuzz

.PHONY: build run test check unit unit-test sim exhaust mutants interop crash crashpoints soak faults bench fuzz fuzzers run-fuzzers asan \
	tsan deps deps-test format lint tidy docs clean install

-include $(shell find $(BUILD) -name '*.d' 2>/dev/null)
