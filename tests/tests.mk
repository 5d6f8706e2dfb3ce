# The Makefile includes this: the programs of tests, benchmarks and fuzz targets, and how they run.

# --- Programs

# There is a folder for each subject of the library.
#   test_*.c    a program: a unit test, or with a database in its name a test of that database
#   each_*.c    a program for each database: each_line.c becomes test_line_sqlite and so on
#   served_*.c  a program for each database with a server
# All other files are helpers, like those in lib/, or subjects of the contract.
SUBJECTS := lock rows admin pool drivers quorum
TEST_DIRS := $(if $(filter 1,$(FUZZING)),fuzz,$(SUBJECTS) fuzz memory contract interleave abi cluster)
in_tests = $(foreach d,$(TEST_DIRS),$(wildcard tests/$(d)/$(1)))
SERVED := $(filter-out sqlite,$(BACKENDS))

TEST_SRCS := $(call for_backends,$(call in_tests,test_*.c))
UNIT_SRCS := $(call without,$(DATABASES),$(filter $(SUBJECTS:%=tests/%/%) tests/cluster/%,$(TEST_SRCS)))
EACH_SRCS := $(call in_tests,each_*.c)
SERVED_SRCS := $(call in_tests,served_*.c)
# $(call unit_of,SOURCE), $(call program_of,SOURCE,DATABASE)
unit_of = $(BUILD)/tests/unit/$(notdir $(1:.c=))
program_of = $(dir $(BUILD)/$(1))test$(patsubst served%,%,$(patsubst each%,%,$(notdir $(1:.c=))))_$(2)
UNIT_PROGRAMS := $(foreach s,$(UNIT_SRCS),$(call unit_of,$(s)))
EACH_PROGRAMS := $(foreach b,$(BACKENDS),$(foreach s,$(EACH_SRCS),$(call program_of,$(s),$(b)))) \
                 $(foreach b,$(SERVED),$(foreach s,$(SERVED_SRCS),$(call program_of,$(s),$(b))))
PLAIN_PROGRAMS := $(patsubst %.c,$(BUILD)/%,$(filter-out $(UNIT_SRCS),$(TEST_SRCS)))
# The contract is one program with a name for each database and each part of its subjects.
# tests/pool/test_PART_pooled_DATABASE runs a part with handles of a pool. check-more runs all parts
# so, on MySQL too: what a pool packs there differs from PostgreSQL by its SQL alone.
POOLED ?= $(filter-out mysql,$(BACKENDS))
POOLED_PARTS ?= lock queue rows
CONTRACT_PROGRAMS := $(foreach b,$(BACKENDS),$(foreach p,lock queue tx rows,$(BUILD)/tests/contract/test_$(p)_$(b))) \
                     $(foreach b,$(POOLED),$(POOLED_PARTS:%=$(BUILD)/tests/pool/test_%_pooled_$(b)))
# The contract, the load of clusters and the clients of a quorum, which other tests start.
STARTED_SRCS := tests/contract/main.c tests/cluster/load.c tests/quorum/crew.c
CONTRACT := $(BUILD)/tests/contract/contract
STARTED := $(BUILD)/tests/cluster/load $(BUILD)/tests/quorum/crew

TEST_PROGRAMS := $(UNIT_PROGRAMS) $(PLAIN_PROGRAMS) $(EACH_PROGRAMS) $(CONTRACT_PROGRAMS)
# The Python package cannot be loaded with a sanitizer's library.
TEST_SCRIPTS := $(call for_backends,$(foreach d,$(TEST_DIRS) cli upgrade $(if $(SANITIZE),,python simulate),$(wildcard tests/$(d)/*.t)))
TEST_HELPERS_A := $(BUILD)/tests/helpers.a
TEST_HELPERS := $(filter-out $(STARTED_SRCS) $(foreach kind,test each served,$(call in_tests,$(kind)_*.c)),\
                $(call in_tests,*.c) $(wildcard tests/lib/*.c))

# Tests may include internal headers and use the databases directly.
# A callback need not use each of its parameters.
OF_TESTS := -Itests/lib -Wno-unused-parameter
$(BUILD)/tests/%.o: OBJ_CFLAGS = $(OF_TESTS) -Isrc -Itests/contract -Itests/drivers $(DB_CFLAGS)

# A fourth database has its driver, its SQL and its test in one folder.
$(BUILD)/tests/memory/test_memory.o: OBJ_CFLAGS = $(OF_TESTS) -Isrc -Itests -I$(BUILD)
$(BUILD)/tests/memory/test_memory.o: $(BUILD)/tests/memory/statements.inc
$(BUILD)/tests/memory/statements.inc: tools/embed-sql.awk $(wildcard tests/memory/sql/memory/*.sql)
	@mkdir -p $(@D)
	$(Q)cd tests/memory && $(AWK) -f $(CURDIR)/$< sql/memory/*.sql > $(CURDIR)/$@

$(TEST_HELPERS_A): $(call objects,$(call for_backends,$(TEST_HELPERS)))
	$(archive)

$(foreach s,$(UNIT_SRCS),$(eval $(call unit_of,$(s)): $(BUILD)/$(s:.c=.o)))
$(foreach s,$(EACH_SRCS) $(SERVED_SRCS),$(foreach b,$(BACKENDS),$(eval $(call program_of,$(s),$(b)): $(BUILD)/$(s:.c=.o))))
$(PLAIN_PROGRAMS) $(STARTED): %: %.o
$(CONTRACT): $(BUILD)/tests/contract/main.o
# tests/lib/fail_alloc.h: what a server's driver asks of these functions is told from all else.
DRIVER_ASKS := rlk_alloc rlk_buffer_add rlk_buffer_value rlk_room_for rlk_url_split
define tell_driver
$(BUILD)/tests/driver_$(1).o: $(call driver_objs,$(1))
	$(Q)mkdir -p $$(@D) && $(LD) -r -o $$@ $$^ && objcopy $(foreach f,$(DRIVER_ASKS),--redefine-sym $(f)=driver_$(f)) $$@
$(BUILD)/tests/drivers/test_memory_$(1): $(BUILD)/tests/driver_$(1).o
endef
$(foreach b,$(SERVED),$(eval $(call tell_driver,$(b))))
# TEST_LIB: the archive of an installed package, of the same source.
TEST_LIB ?= $(LIB_A)
LINKED_TESTS := $(UNIT_PROGRAMS) $(PLAIN_PROGRAMS) $(EACH_PROGRAMS) $(CONTRACT) $(STARTED)
$(LINKED_TESTS): LINKED = -ldl -lm
$(LINKED_TESTS): $(TEST_HELPERS_A) $(TEST_LIB)
	$(link)
$(CONTRACT_PROGRAMS): $(CONTRACT)
	@mkdir -p $(@D)
	$(Q)ln -f $< $@

# For tests/upgrade: a client of this release, and a client and the command of a stand-in for the
# next one. Only these files know the level. make-level2 makes the SQL.
NEXT := $(BUILD)/level2
NEXT_OBJS := $(patsubst %.c,$(NEXT)/%.o,src/core/dialects.c $(shell grep -lE 'RLK_(LEVEL|CODE)' src/*/*.c))
LEVEL_PROGRAMS := $(BUILD)/tests/upgrade/client $(NEXT)/tests/upgrade/client $(NEXT)/rowlock

$(NEXT)/statements.inc: tests/upgrade/make-level2 $(BUILD)/statements.inc
	@mkdir -p $(@D)
	$(Q)$< $(@D)/source
	$(Q)cd $(@D)/source && $(AWK) -f $(CURDIR)/tools/embed-sql.awk $$(ls sql/*/*.sql sql/*/*/*.sql | \
	    LC_ALL=C sort) > ../statements.inc
$(NEXT)/%.o: %.c $(NEXT)/statements.inc | libraries-found
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) -DRLK_LEVEL=2 -Isrc -I$(NEXT) -Wno-overlength-strings -MMD -MP -c -o $@ $<
$(NEXT)/librowlock.a: $(NEXT_OBJS) $(filter-out $(NEXT_OBJS:$(NEXT)/%=$(BUILD)/%),$(LIB_OBJS))
	$(archive)

$(BUILD)/tests/upgrade/client: $(LIB_A)
$(NEXT)/tests/upgrade/client $(NEXT)/rowlock: $(NEXT)/librowlock.a
$(NEXT)/rowlock: $(CLI_OBJS)
$(BUILD)/tests/upgrade/client $(NEXT)/tests/upgrade/client: $(BUILD)/tests/upgrade/client.o
$(LEVEL_PROGRAMS): LINKED = $(CLI_LIBS)
$(LEVEL_PROGRAMS):
	$(link)

# Benchmarks, the soak and the peers. Files with a main function are programs. The others, and the
# tests' proxy, are helpers of all.
BENCH_SRCS := $(call for_backends,$(wildcard tests/bench/*.c))
BENCH_MAINS := $(if $(BENCH_SRCS),$(shell grep -l '^int main' $(BENCH_SRCS)))
BENCH_PROGRAMS := $(BENCH_MAINS:%.c=$(BUILD)/%)
SOAK_PROGRAM := $(BUILD)/tests/soak/soak
PEERS_PROGRAM := $(BUILD)/tests/peers/peers
# Nothing else is built with the client libraries of peers.
PEERS_PC := hiredis libmemcached libcurl
PEERS_OBJS := $(call objects,$(wildcard tests/peers/*.c))
$(BUILD)/tests/soak/%.o: OBJ_CFLAGS = $(OF_TESTS) -Itests/bench
$(BUILD)/tests/peers/%.o: OBJ_CFLAGS = $(OF_TESTS) -Itests/bench $(JANSSON_CFLAGS) \
    $(shell $(PKG_CONFIG) --cflags $(PEERS_PC) 2>/dev/null)
$(PEERS_OBJS): | peer-libraries-found
.PHONY: peer-libraries-found
peer-libraries-found:
	@{ $(PKG_CONFIG) --print-errors --exists $(PEERS_PC) && echo '#include <zookeeper/zookeeper.h>' | $(CC) -E - >/dev/null; } || \
	    { echo "tools/install-deps.sh peers installs what make bench-peers needs" >&2; exit 1; }

$(BENCH_PROGRAMS): %: %.o
$(SOAK_PROGRAM): $(call objects,$(wildcard tests/soak/*.c))
$(PEERS_PROGRAM): $(PEERS_OBJS)
$(BENCH_PROGRAMS) $(SOAK_PROGRAM): LINKED = $(JANSSON_LIBS) -lm
$(PEERS_PROGRAM): LINKED = $(JANSSON_LIBS) $$($(PKG_CONFIG) --libs $(PEERS_PC)) -lzookeeper_mt -lm
$(BENCH_PROGRAMS) $(SOAK_PROGRAM) $(PEERS_PROGRAM): \
    $(call objects,$(filter-out $(BENCH_MAINS),$(BENCH_SRCS)) tests/lib/faultproxy.c $(call for_backends,$(wildcard tests/lib/raw*.c))) $(LIB_A)
	$(link)

# The simulation has files in place of the library's of these names: the linker takes the first. Its
# fibers have stacks of their own, and longjmp() goes from one to another.
SIMULATE := $(if $(filter sqlite,$(BACKENDS)),$(if $(SANITIZE),,$(BUILD)/tests/simulate/simulate))
$(BUILD)/tests/simulate/%.o: OBJ_CFLAGS = $(OF_TESTS) -Isrc -U_FORTIFY_SOURCE $(SQLITE_CFLAGS)
$(SIMULATE): $(call objects,$(wildcard tests/simulate/*.c)) $(LIB_A)
	$(link)
SEED ?= $(shell date +%s)
GRANTS ?= 100000
WORLD ?= one keepers pool quorum rows
.PHONY: simulate simulate-program simulate-mutants simulate-states run-simulate-states
simulate-program: $(SIMULATE)
simulate-mutants: $(SIMULATE)
	@tests/simulate/mutants.sh $< '$(TESTS)'
simulate: $(SIMULATE)
	$(Q)folder=$$(mktemp -d) && trap 'rm -rf "$$folder"' EXIT && trap 'exit 130' INT TERM && chmod 711 "$$folder" && \
	    for world in $(WORLD); do TMPDIR=$$folder $(if $(SHRINK),tests/simulate/shrink.sh) $< $$world $(SEED) $(GRANTS) || exit 1; done
# Only clang counts each branch of a line.
OF_REGIONS := -fprofile-instr-generate -fcoverage-mapping
simulate-states:
	@tools/install-deps.sh states
	@rm -rf build/states && LLVM_PROFILE_FILE=$(CURDIR)/build/states/%m $(MAKE) --no-print-directory \
	    run-simulate-states CC=clang CFLAGS='-O1 -g $(OF_REGIONS)' LDFLAGS='$(OF_REGIONS)'
run-simulate-states: simulate
	@llvm-profdata merge -o build/states/all build/states/*[0-9]* && \
	    llvm-cov export -instr-profile build/states/all $(SIMULATE) | tools/states.py $(wildcard src/*/*.h src/*/*/*.h)

# A target of fuzz is a test that `make check` runs on its corpus.
FUZZ_TARGETS := $(patsubst tests/fuzz/test_%.c,%,$(shell grep -l LLVMFuzzerTestOneInput $(wildcard tests/fuzz/test_*.c) /dev/null))
FUZZ_PROGRAMS := $(FUZZ_TARGETS:%=$(BUILD)/tests/fuzz/fuzz_%)
$(FUZZ_PROGRAMS): LINKED = -fsanitize=fuzzer
$(FUZZ_PROGRAMS): $(BUILD)/tests/fuzz/fuzz_%: $(BUILD)/tests/fuzz/test_%.o $(TEST_HELPERS_A) $(LIB_A)
	$(link)

# --- Lists of tests, and how they are run

TEST_ENV = HARNESS_RULESFILE=tests/lib/order.yml ROWLOCK_TEST_BUILD=$(CURDIR)/$(BUILD) \
           ROWLOCK_TEST_COMMAND=$(CURDIR)/$(COMMAND) ROWLOCK_TEST_SQLITE_URL='$(SQLITE_URL)' \
           ROWLOCK_TEST_BACKENDS='$(BACKENDS)' ROWLOCK_TEST_CURSES=$(WITH_CURSES) CC='$(CC)' \
           ROWLOCK_TEST_HARDENED='$(if $(SANITIZE),,protected $(if $(FORTIFY),fortified))' \
           tests/lib/run-tests.sh env
SQLITE_URL = $(if $(filter sqlite,$(BACKENDS)),$(or $(ROWLOCK_TEST_SQLITE_URL),sqlite:@TMPDIR@/rowlock.db))
SERVERS = $(SERVED:%=tests/lib/with-%.sh)

chosen = $(if $(TESTS),$(foreach t,$(1),$(if $(findstring $(TESTS),$(t)),$(t))),$(1))
# Tests in cluster/ need several servers. check-more starts these.
CLUSTER_TESTS := $(filter $(BUILD)/tests/cluster/% tests/cluster/%,$(TEST_PROGRAMS) $(TEST_SCRIPTS))
# What concerns other programs than ours is for check-more too, or for who names it with TESTS.
MORE_TESTS := $(if $(TESTS),,tests/python/sharing_% tests/python/wheel.t)
ALL_TESTS := $(filter-out $(CLUSTER_TESTS) $(MORE_TESTS),$(TEST_PROGRAMS) $(TEST_SCRIPTS))
# $(call tests_in,FOLDERS), $(call tests_of,DATABASE): without those with another database in their name.
tests_in = $(foreach d,$(1),$(filter $(BUILD)/tests/$(d)/% tests/$(d)/%,$(ALL_TESTS)))
tests_of = $(call without,$(filter-out $(1),$(DATABASES)),$(call tests_in,contract interleave $(SUBJECTS) cli upgrade python))
QUICK_TESTS := $(call tests_in,unit fuzz memory abi simulate) $(filter $(call tests_in,contract),$(call tests_of,sqlite))
# $(call run_tests,TESTS,JOBS), $(call run_of,DATABASE,TESTS), $(call run_on_servers,TESTS): each test of a server
# gets its own server in the last, unless the user has set the URL of one.
run_tests = $(PROVE) $(PROVE_FLAGS) -j$(or $(2),$(TEST_JOBS)) --exec tests/lib/run-test.sh $(call chosen,$(1))
run_of = $(TEST_ENV) $(if $(filter-out sqlite,$(1)),ROWLOCK_TEST_SQLITE_URL= tests/lib/with-$(1).sh) \
         $(call run_tests,$(2),$(if $(filter-out sqlite,$(1)),1))
BROUGHT := $(ROWLOCK_TEST_POSTGRES_URL)$(ROWLOCK_TEST_MYSQL_URL)
run_on_servers = $(if $(BROUGHT),,ROWLOCK_TEST_OWN_SERVERS=1) $(SERVERS) $(call run_tests,$(1),$(if $(BROUGHT),1))

# For check-more: the contract on one database, the tests of several nodes, and histories of a
# quorum. TESTS=cluster/test_ uses the nodes whose URLs are in ROWLOCK_TEST_NODES.
# TESTS=cluster/postgres_ starts its own servers.
.PHONY: contract-postgres contract-mysql contract-sqlite cluster-tests quorum-histories port-tests
contract-sqlite contract-postgres contract-mysql: contract-%: $(filter $(BUILD)/tests/contract/%,$(TEST_PROGRAMS))
	$(Q)$(call run_of,$*,$(filter $(call tests_in,contract),$(call tests_of,$*)))
# Programs that need no server, for other machines. Emulated, those of drivers/ take too long.
PORT_TESTS := $(filter-out $(BUILD)/tests/drivers/%,$(filter $(BUILD)/%,$(call tests_in,unit fuzz memory) \
    $(call tests_of,sqlite)))
port-tests: lib $(call chosen,$(PORT_TESTS))
	$(Q)$(TEST_ENV) $(call run_tests,$(PORT_TESTS))
cluster-tests: all python-if-possible $(STARTED) $(filter $(BUILD)/%,$(CLUSTER_TESTS))
	$(Q)$(TEST_ENV) ROWLOCK_TEST_SQLITE_URL= $(call run_tests,$(CLUSTER_TESTS),1)
quorum-histories: test-programs
	$(Q)$(TEST_ENV) $(call run_tests,$(filter tests/quorum/%.t,$(TEST_SCRIPTS)),1)

# The second halves of targets of the Makefile
VALGRIND := valgrind --quiet --error-exitcode=99 --leak-check=full --errors-for-leak-kinds=definite \
            --suppressions=tests/lib/valgrind.supp
run-check-valgrind: test-programs
	$(Q)$(TEST_ENV) SKIPS_AS_FAILS=1 ROWLOCK_TEST_TIMEOUT=1200 ROWLOCK_TEST_WRAPPER='$(VALGRIND)' \
	    $(call run_on_servers,$(filter-out %.t %clientmemory_postgres,$(call tests_in,unit contract drivers)))
run-fuzz: $(addprefix fuzz-,$(filter $(or $(TESTS),%),$(FUZZ_TARGETS)))
fuzz-%: $(BUILD)/tests/fuzz/fuzz_%
	@echo "  FUZZ  $*" && mkdir -p build/fuzz/$*
	$(Q)$< -max_total_time=$(FUZZ_SECONDS) -max_len=4096 -timeout=10 -artifact_prefix=build/fuzz/$*- build/fuzz/$* \
	    tests/fuzz/corpus/$* >build/fuzz/$*.log 2>&1 || { tail -n 40 build/fuzz/$*.log >&2; exit 1; }

coverage-table:
	@find $(BUILD)/src -name '*.gcno' -exec gcov --no-output --source-prefix=$(CURDIR) {} + 2>/dev/null | \
	    $(AWK) -f tools/coverage.awk | sort -k 6
