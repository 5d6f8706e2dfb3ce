# Builds, installs and tests rowlock with GNU make. `make help` lists the targets and settings.
# tests/lib/ starts servers and runs tests.

# --- Settings

prefix ?= $(or $(PREFIX),/usr/local)
bindir ?= $(prefix)/bin
libdir ?= $(prefix)/lib
includedir ?= $(prefix)/include
mandir ?= $(prefix)/share/man
pkgconfigdir ?= $(libdir)/pkgconfig
bashdir ?= $(prefix)/share/bash-completion/completions
zshdir ?= $(prefix)/share/zsh/site-functions
fishdir ?= $(prefix)/share/fish/vendor_completions.d
unitdir ?= $(prefix)/lib/systemd/system
DESTDIR ?=

CFLAGS ?= -O2 -g
LDFLAGS ?=
WERROR ?= 1
PKG_CONFIG ?= pkg-config
INSTALL ?= install
AWK ?= awk

WITH_POSTGRES ?= 1
WITH_MYSQL ?= 1
WITH_SQLITE ?= 1
WITH_CURSES ?= 1
$(foreach w,WITH_POSTGRES WITH_MYSQL WITH_SQLITE WITH_CURSES,$(if $(filter 0 1,$($(w))),,$(error $(w) must be 0 or 1)))

# Set by the check-asan, check-ubsan, check-tsan, coverage and fuzz targets.
SANITIZE ?=
COVERAGE ?= 0
FUZZING ?= 0

.DEFAULT_GOAL := all
.DELETE_ON_ERROR:
.SUFFIXES:

ifeq ($(V),1)
Q :=
say := @:
else
Q := @
say := @printf '  %-5s %s\n'
endif

# --- Version: only the header's macros contain it.

HEADER := include/rowlock/rowlock.h
HEADERS := $(sort $(wildcard include/rowlock/*.h))
header_number = $(shell $(AWK) '$$2 == "ROWLOCK_VERSION_$(1)" { print $$3; exit }' $(HEADER) 2>/dev/null)
MAJOR := $(call header_number,MAJOR)
VERSION := $(MAJOR).$(call header_number,MINOR).$(call header_number,PATCH)
SONAME := librowlock.so.$(MAJOR)
SOFILE := librowlock.so.$(VERSION)

# --- Databases: which are built in, and the flags of their client libraries.

BACKENDS := $(if $(filter 1,$(WITH_POSTGRES)),postgres) \
            $(if $(filter 1,$(WITH_MYSQL)),mysql) \
            $(if $(filter 1,$(WITH_SQLITE)),sqlite)
BACKENDS := $(strip $(BACKENDS))
NO_BACKENDS := $(filter-out $(BACKENDS),postgres mysql sqlite)

POSTGRES_PC := libpq
SQLITE_PC := sqlite3
JANSSON_PC := jansson
# For the screen of `rowlock watch`. Without either the lines are printed. Only ncursesw can show
# all names.
CURSES_PC := $(if $(filter 1,$(WITH_CURSES)),$(firstword $(foreach pc,ncursesw ncurses,\
             $(shell $(PKG_CONFIG) --exists $(pc) 2>/dev/null && echo $(pc)))))
# Either client library is enough. MYSQL_CFLAGS and MYSQL_LIBS set one that pkg-config does not
# know.
MYSQL_PC := $(firstword $(foreach pc,libmariadb mysqlclient,$(shell $(PKG_CONFIG) --exists $(pc) 2>/dev/null && echo $(pc))))

# $(call find_library,NAME): sets NAME_CFLAGS and NAME_LIBS from pkg-config unless the user has.
# Their headers are system headers, which give no warnings.
define find_library
ifndef $(1)_LIBS
$(1)_CFLAGS := $$(patsubst -I%,-isystem %,$$(if $$($(1)_PC),$$(shell $$(PKG_CONFIG) --cflags $$($(1)_PC) 2>/dev/null)))
$(1)_LIBS := $$(if $$($(1)_PC),$$(shell $$(PKG_CONFIG) --libs $$($(1)_PC) 2>/dev/null))
$(1)_REQUIRES := $$($(1)_PC)
endif
endef
$(foreach name,$(if $(filter postgres,$(BACKENDS)),POSTGRES) $(if $(filter mysql,$(BACKENDS)),MYSQL) \
    $(if $(filter sqlite,$(BACKENDS)),SQLITE) JANSSON CURSES,$(eval $(call find_library,$(name))))

upper = $(subst postgres,POSTGRES,$(subst mysql,MYSQL,$(subst sqlite,SQLITE,$(1))))
DB_CFLAGS := $(foreach b,$(BACKENDS),$($(call upper,$(b))_CFLAGS))
DB_LIBS := $(foreach b,$(BACKENDS),$($(call upper,$(b))_LIBS))
DB_REQUIRES := $(foreach b,$(BACKENDS),$($(call upper,$(b))_REQUIRES))
CLI_CFLAGS := $(JANSSON_CFLAGS) $(CURSES_CFLAGS) \
              -DRLK_WITH_CURSES=$(if $(CURSES_LIBS),$(if $(findstring ncursesw,$(CURSES_LIBS)),2,1),0)
CLI_LIBS := $(JANSSON_LIBS) $(CURSES_LIBS)
# rowlock.pc names these libraries by their flags, because pkg-config does not know them.
DB_OTHER_LIBS := $(foreach b,$(BACKENDS),$(if $($(call upper,$(b))_REQUIRES),,$($(call upper,$(b))_LIBS)))

# --- Flags. The user's CFLAGS, CPPFLAGS and LDFLAGS come last, so that they have priority.

OUR_CPPFLAGS := -Iinclude -D_GNU_SOURCE $(foreach b,$(BACKENDS),-DRLK_WITH_$(call upper,$(b))=1) \
                $(foreach b,$(NO_BACKENDS),-DRLK_WITH_$(call upper,$(b))=0)
OUR_CFLAGS := -std=c11 -fPIC -fvisibility=hidden -pthread -ffile-prefix-map=$(CURDIR)=. \
              -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wstrict-prototypes -Wmissing-prototypes
OUR_CFLAGS += $(if $(filter 1,$(WERROR)),-Werror)
OUR_LDFLAGS := -pthread
ifneq ($(SANITIZE),)
OUR_CFLAGS += -fsanitize=$(SANITIZE) -fno-omit-frame-pointer
OUR_CFLAGS += $(if $(findstring undefined,$(SANITIZE)),-fno-sanitize-recover=all)
OUR_LDFLAGS += -fsanitize=$(SANITIZE)
else
# With a sanitizer the program provides its functions, so a library may have undefined symbols.
SO_LDFLAGS := -Wl,-z,defs
# Hardening. _FORTIFY_SOURCE needs optimization. The user's own value replaces ours.
FORTIFY := $(if $(filter-out -O0,$(filter -O%,$(CFLAGS))),$(if $(findstring _FORTIFY_SOURCE,$(CFLAGS) $(CPPFLAGS)),,\
           -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2))
OUR_CFLAGS += -fstack-protector-strong $(FORTIFY)
OUR_LDFLAGS += -Wl,-z,relro,-z,now
endif
ifeq ($(COVERAGE),1)
OUR_CFLAGS += --coverage
OUR_LDFLAGS += --coverage
endif
ifeq ($(FUZZING),1)
OUR_CFLAGS += -fsanitize=fuzzer-no-link
endif

ALL_CFLAGS = $(OUR_CPPFLAGS) $(OUR_CFLAGS) $(OBJ_CFLAGS) $(CPPFLAGS) $(CFLAGS)
ALL_LDFLAGS = $(OUR_LDFLAGS) $(LDFLAGS)

# Each compiler and set of flags has a folder for its objects, so that objects do not mix.
CC_VERSION := $(shell $(CC) --version 2>/dev/null | head -n 1)
FLAGS_TEXT := $(CC) $(CC_VERSION) $(VERSION) $(ALL_CFLAGS) $(COVERAGE) $(DB_CFLAGS) $(SO_LDFLAGS) $(ALL_LDFLAGS) $(DB_LIBS) \
              $(CLI_CFLAGS) $(CLI_LIBS)
BUILD := build/$(shell printf '%s' '$(subst ','\'',$(subst $(CURDIR),.,$(FLAGS_TEXT)))' | cksum | cut -d ' ' -f 1)

# --- Library and command

# The rooms of the library, lowest first. Each calls only those before it.
ROOMS := base core pool quorum lock rows api admin
CORE_SRCS := $(sort $(wildcard $(ROOMS:%=src/%/*.c)))
CORE_OBJS := $(CORE_SRCS:%.c=$(BUILD)/%.o)
# A driver is a file src/drivers/NAME.c, or a folder src/drivers/NAME/.
driver_objs = $(patsubst %.c,$(BUILD)/%.o,$(sort $(wildcard src/drivers/$(1).c src/drivers/$(1)/*.c)))
BACKEND_OBJS := $(foreach b,$(BACKENDS),$(call driver_objs,$(b)))
LIB_OBJS := $(CORE_OBJS) $(BACKEND_OBJS)
$(LIB_OBJS): OUR_CPPFLAGS += -Isrc
CLI_OBJS := $(patsubst %.c,$(BUILD)/%.o,$(sort $(wildcard src/cli/*.c src/cli/*/*.c)))
$(CLI_OBJS): OUR_CPPFLAGS += -Isrc
# Files of GRANT examples are for people. All others are steps of the protocol.
SQL_DIRS := $(wildcard sql/*/ sql/*/*/)
SQL_FILES := $(filter-out %/grants.sql,$(sort $(wildcard sql/*/*.sql sql/*/*/*.sql)))

LIB_A := $(BUILD)/librowlock.a
LIB_SO := $(BUILD)/$(SOFILE)
COMMAND := $(BUILD)/rowlock
MAN_PAGES := $(sort $(wildcard docs/man/*.[1-9]))
# It is newer than all pages.
MAN_MADE := $(BUILD)/man/made
COMPLETION := $(BUILD)/completion/rowlock.bash

.PHONY: all lib cli examples man completion
## all: the library, the command, the examples, the manual and the completions of shells:
## build/librowlock.so, .a, build/rowlock, build/man, build/completion
all: lib cli examples man completion

## lib: the library only
lib: $(LIB_A) $(LIB_SO)
	$(call publish,librowlock.a librowlock.so $(SONAME))

## cli: the command only
cli: $(COMMAND)
	$(call publish,rowlock)

## man: the manual only: build/man
man: $(MAN_MADE)
	$(call publish,man)

## completion: the completions for bash, zsh and fish only: build/completion
completion: $(COMPLETION)
	$(call publish,completion)

# Links in build/ lead to the results of a plain make. Builds with sanitizers or coverage do not
# change them.
ifeq ($(SANITIZE)$(filter 1,$(COVERAGE)),)
publish = @for name in $(1); do \
	    [ ! -e "$(BUILD)/$$name" ] || [ "build/$$name" -ef "$(BUILD)/$$name" ] || \
	    { rm -rf "build/$$name" && ln -s "$(notdir $(BUILD))/$$name" "build/$$name"; } || exit 1; \
	done
else
publish = @:
endif

$(BUILD)/%.o: %.c | libraries-found
	@mkdir -p $(@D)
	$(say) CC $<
	$(Q)$(CC) $(ALL_CFLAGS) -MMD -MP -c -o $@ $<

# Only a driver includes its database's header. SQL texts are longer than the C standard guarantees
# for one literal.
$(call driver_objs,postgres): OBJ_CFLAGS = $(POSTGRES_CFLAGS)
$(call driver_objs,mysql): OBJ_CFLAGS = $(MYSQL_CFLAGS)
$(call driver_objs,sqlite): OBJ_CFLAGS = $(SQLITE_CFLAGS)
$(BUILD)/src/core/dialects.o: OBJ_CFLAGS = -I$(BUILD) -Wno-overlength-strings
$(BUILD)/src/core/dialects.o: $(BUILD)/statements.inc
$(CLI_OBJS): OBJ_CFLAGS = $(CLI_CFLAGS)

# The folders are prerequisites too, so that a deleted file is noticed. So is this file, which
# chooses the files.
$(BUILD)/statements.inc: Makefile tools/embed-sql.awk $(SQL_FILES) $(SQL_DIRS)
	@mkdir -p $(@D)
	$(say) SQL $@
	$(Q)$(AWK) -f tools/embed-sql.awk $(SQL_FILES) > $@

$(LIB_A): $(LIB_OBJS)
	$(say) AR $@
	$(Q)rm -f $@ && $(AR) rcsD $@ $(LIB_OBJS)

$(LIB_SO): $(LIB_OBJS) src/rowlock.map
	$(say) LINK $@
	$(Q)$(CC) -shared -Wl,-soname,$(SONAME) -Wl,--version-script=src/rowlock.map $(SO_LDFLAGS) \
	    $(ALL_CFLAGS) $(ALL_LDFLAGS) -o $@ $(LIB_OBJS) $(DB_LIBS)
	$(Q)ln -sf $(SOFILE) $(BUILD)/$(SONAME)
	$(Q)ln -sf $(SONAME) $(BUILD)/librowlock.so

# The command contains the library: cron needs only one file and no library path.
$(COMMAND): $(CLI_OBJS) $(LIB_A)
	$(say) LINK $@
	$(Q)$(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) -o $@ $(CLI_OBJS) $(LIB_A) $(DB_LIBS) $(CLI_LIBS)

$(MAN_MADE): Makefile tools/man-pages tools/man-pages.awk docs/man $(MAN_PAGES) $(HEADERS)
	@mkdir -p $(@D)
	$(say) MAN $(@D)
	$(Q)AWK='$(AWK)' tools/man-pages $(@D) $(VERSION) $(MAN_PAGES) && touch $@

# What the command's help says, for the shells. The rule makes three files.
$(COMPLETION): $(COMMAND) $(wildcard tools/completion/*)
	$(say) SHELL $(@D)
	$(Q)tools/completion/make $(COMMAND) $(@D)

# Reports missing packages once, before the compiler reports them many times.
.PHONY: libraries-found
libraries-found:
	@ok=1; \
	missing() { echo "$$1 was not found: install $$2 (Debian's name)$${3:+, or build with $$3}" >&2; ok=0; }; \
	command -v $(firstword $(CC)) >/dev/null || missing "the compiler $(firstword $(CC))" gcc; \
	$(if $(or $(JANSSON_LIBS),$(filter lib,$(MAKECMDGOALS))),:,missing jansson libjansson-dev); \
	$(if $(or $(NO_POSTGRES),$(POSTGRES_LIBS)),:,missing libpq libpq-dev WITH_POSTGRES=0); \
	$(if $(or $(NO_MYSQL),$(MYSQL_LIBS)),:,missing "a MySQL client library" \
	    "libmariadb-dev or default-libmysqlclient-dev" WITH_MYSQL=0); \
	$(if $(or $(NO_SQLITE),$(SQLITE_LIBS)),:,missing sqlite3 libsqlite3-dev WITH_SQLITE=0); \
	[ $$ok = 1 ] || { echo "tools/install-deps.sh installs all of it" >&2; exit 1; }

NO_POSTGRES := $(filter postgres,$(NO_BACKENDS))
NO_MYSQL := $(filter mysql,$(NO_BACKENDS))
NO_SQLITE := $(filter sqlite,$(NO_BACKENDS))

# --- Examples, which link with the shared library like a user's program

# $(call for_backends,FILES): without those with a database in their name that is not built in.
for_backends = $(foreach f,$(1),$(if $(strip $(foreach b,$(NO_BACKENDS),$(findstring $(b),$(notdir $(f))))),,$(f)))

EXAMPLES := $(patsubst %.c,$(BUILD)/%,$(call for_backends,$(wildcard examples/*.c)))

## examples: the programs under examples/
examples: $(EXAMPLES)
	$(call publish,examples)

$(BUILD)/examples/%.o: OBJ_CFLAGS = $(DB_CFLAGS)
$(EXAMPLES): %: %.o $(LIB_SO)
	$(say) LINK $@
	$(Q)$(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) -o $@ $< -L$(BUILD) -lrowlock -Wl,-rpath,'$$ORIGIN/..' \
	    -Wl,--as-needed $(DB_LIBS)

# --- Python

# The binding is built for the python3 of the system, with the cffi and setuptools of its packages.
PYTHON ?= $(firstword $(wildcard /usr/bin/python3) python3)
PYTHON_HOME := $(BUILD)/python
PYTHON_SRCS := $(wildcard bindings/python/*.* bindings/python/src/rowlock/*.*)

.PHONY: python python-cdef
## python: the Python package, against this library, in build/python/site
python: $(PYTHON_HOME)/built
	$(call publish,python)

# Against an installed copy of this library, as a user builds it. The copy is in the build's folder.
$(PYTHON_HOME)/built: $(PYTHON_SRCS) $(LIB_SO) $(LIB_A) $(HEADERS)
	$(say) PIP bindings/python
	@rm -rf $(PYTHON_HOME) && mkdir -p $(PYTHON_HOME)/source && cp -R bindings/python/. $(PYTHON_HOME)/source/
	@$(MAKE) -s --no-print-directory install-lib install-headers install-pc DESTDIR= \
	    prefix=$(abspath $(PYTHON_HOME))/root >/dev/null
	$(Q)env -u PYTHONPATH PKG_CONFIG_PATH=$(abspath $(PYTHON_HOME))/root/lib/pkgconfig \
	    ROWLOCK_RPATH=$(abspath $(PYTHON_HOME))/root/lib $(PYTHON) -m pip --disable-pip-version-check -q \
	    install --root-user-action=ignore --no-build-isolation --no-deps --no-index --target $(PYTHON_HOME)/site $(PYTHON_HOME)/source
	@touch $@

# Without Python's packages its tests are skipped, which is a failure in `make check`. setuptools is
# the first to be imported: it does not work after the distutils that pip may import.
.PHONY: python-if-possible
python-if-possible: $(LIB_SO) $(LIB_A)
	@! $(PYTHON) -c 'import setuptools, cffi, pip, wheel' 2>/dev/null || \
	    $(MAKE) --no-print-directory $(PYTHON_HOME)/built

## python-cdef: makes bindings/python/cdef.h of the headers
python-cdef:
	@mkdir -p $(BUILD)
	$(Q)$(PYTHON) bindings/python/tools/make-cdef > $(BUILD)/cdef.h
	$(Q)mv $(BUILD)/cdef.h bindings/python/cdef.h

# --- Tests

# There is a folder for each subject of the library.
#   test_*.c    a program: a unit test, or with a database in its name a test of that database
#   each_*.c    a program for each database: each_line.c becomes test_line_sqlite and so on
#   served_*.c  a program for each database with a server
# All other files are helpers, like those in lib/, or subjects of the contract.
SUBJECTS := lock rows admin pool drivers quorum
TEST_DIRS := $(if $(filter 1,$(FUZZING)),fuzz,$(SUBJECTS) fuzz memory contract interleave abi cluster)
in_tests = $(foreach d,$(TEST_DIRS),$(wildcard tests/$(d)/$(1)))
without_database = $(foreach f,$(1),$(if $(strip $(foreach b,postgres mysql sqlite,$(findstring $(b),$(notdir $(f))))),,$(f)))

TEST_SRCS := $(call for_backends,$(call in_tests,test_*.c))
UNIT_SRCS := $(call without_database,$(filter $(SUBJECTS:%=tests/%/%) tests/cluster/%,$(TEST_SRCS)))
EACH_SRCS := $(call in_tests,each_*.c)
SERVED_SRCS := $(call in_tests,served_*.c)
# $(call unit_of,SOURCE), $(call program_of,SOURCE,DATABASE)
unit_of = $(BUILD)/tests/unit/$(notdir $(1:.c=))
program_of = $(dir $(BUILD)/$(1))test$(patsubst served%,%,$(patsubst each%,%,$(notdir $(1:.c=))))_$(2)
UNIT_PROGRAMS := $(foreach s,$(UNIT_SRCS),$(call unit_of,$(s)))
EACH_PROGRAMS := $(foreach b,$(BACKENDS),$(foreach s,$(EACH_SRCS),$(call program_of,$(s),$(b)))) \
                 $(foreach b,$(filter-out sqlite,$(BACKENDS)),$(foreach s,$(SERVED_SRCS),$(call program_of,$(s),$(b))))
PLAIN_PROGRAMS := $(patsubst %.c,$(BUILD)/%,$(filter-out $(UNIT_SRCS),$(TEST_SRCS)))
# The contract is one program with a name for each database and each part of its subjects.
# tests/pool/test_PART_pooled_DATABASE runs a part with handles of a pool. check-more runs all parts
# so, on MySQL too: what a pool packs there differs from PostgreSQL by its SQL alone.
CONTRACT := $(BUILD)/tests/contract/contract
POOLED ?= $(filter-out mysql,$(BACKENDS))
POOLED_PARTS ?= lock queue rows
CONTRACT_PROGRAMS := $(if $(filter contract,$(TEST_DIRS)),$(foreach b,$(BACKENDS),$(foreach p,lock queue tx rows,\
                     $(BUILD)/tests/contract/test_$(p)_$(b))) $(foreach b,$(POOLED),$(POOLED_PARTS:%=$(BUILD)/tests/pool/test_%_pooled_$(b))))
TEST_PROGRAMS := $(UNIT_PROGRAMS) $(PLAIN_PROGRAMS) $(EACH_PROGRAMS) $(CONTRACT_PROGRAMS)
# The load of the tests of clusters.
LOAD := $(if $(filter cluster,$(TEST_DIRS)),$(BUILD)/tests/cluster/load)
# The clients of the tests of a quorum.
CREW := $(if $(filter quorum,$(TEST_DIRS)),$(BUILD)/tests/quorum/crew)
MAIN_SRCS := tests/contract/main.c tests/cluster/load.c tests/quorum/crew.c $(TEST_SRCS) $(EACH_SRCS) $(SERVED_SRCS)
TEST_HELPERS := $(filter-out $(MAIN_SRCS) $(call in_tests,test_*.c),$(call in_tests,*.c) $(wildcard tests/lib/*.c))
TEST_HELPER_OBJS := $(patsubst %.c,$(BUILD)/%.o,$(call for_backends,$(TEST_HELPERS)))
# The Python package cannot be loaded with a sanitizer's library.
TEST_SCRIPTS := $(call for_backends,$(foreach d,$(TEST_DIRS) cli upgrade $(if $(SANITIZE),,python),$(wildcard tests/$(d)/*.t)))
TEST_HELPERS_A := $(BUILD)/tests/helpers.a

# Tests may include internal headers and use the databases directly.
$(BUILD)/tests/%.o: OBJ_CFLAGS = -Isrc -Itests/lib -Itests/contract -Itests/drivers $(DB_CFLAGS)

# A fourth database has its driver, its SQL and its test in one folder.
$(BUILD)/tests/memory/test_memory.o: OBJ_CFLAGS = -Isrc -Itests -Itests/lib -I$(BUILD)
$(BUILD)/tests/memory/test_memory.o: $(BUILD)/tests/memory/statements.inc
$(BUILD)/tests/memory/statements.inc: tools/embed-sql.awk $(wildcard tests/memory/sql/memory/*.sql)
	@mkdir -p $(@D)
	$(Q)cd tests/memory && $(AWK) -f $(CURDIR)/$< sql/memory/*.sql > $(CURDIR)/$@

$(TEST_HELPERS_A): $(TEST_HELPER_OBJS)
	@mkdir -p $(@D)
	$(Q)rm -f $@ && $(AR) rcsD $@ $(TEST_HELPER_OBJS)

$(foreach s,$(UNIT_SRCS),$(eval $(call unit_of,$(s)): $(BUILD)/$(s:.c=.o)))
$(foreach s,$(EACH_SRCS) $(SERVED_SRCS),$(foreach b,$(BACKENDS),$(eval $(call program_of,$(s),$(b)): $(BUILD)/$(s:.c=.o))))
$(PLAIN_PROGRAMS): %: %.o
$(CONTRACT): $(BUILD)/tests/contract/main.o
$(LOAD): $(BUILD)/tests/cluster/load.o
$(CREW): $(BUILD)/tests/quorum/crew.o
# tests/lib/fail_alloc.h: what a server's driver asks of these functions is told from all else.
DRIVER_ASKS := rlk_alloc rlk_buffer_add rlk_buffer_value rlk_room_for rlk_url_split
define tell_driver
$(BUILD)/tests/driver_$(1).o: $(call driver_objs,$(1))
	$(Q)mkdir -p $$(@D) && $(LD) -r -o $$@ $$^ && objcopy $(foreach f,$(DRIVER_ASKS),--redefine-sym $(f)=driver_$(f)) $$@
$(BUILD)/tests/drivers/test_memory_$(1): $(BUILD)/tests/driver_$(1).o
endef
$(foreach b,$(filter-out sqlite,$(BACKENDS)),$(eval $(call tell_driver,$(b))))
LINKED_TESTS := $(UNIT_PROGRAMS) $(PLAIN_PROGRAMS) $(EACH_PROGRAMS) $(CONTRACT) $(LOAD) $(CREW)
# TEST_LIB: the archive of an installed package, of the same source.
TEST_LIB ?= $(LIB_A)
$(LINKED_TESTS): $(TEST_HELPERS_A) $(TEST_LIB)
	@mkdir -p $(@D)
	$(say) LINK $@
	$(Q)$(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) -o $@ $(filter %.o,$^) $(TEST_HELPERS_A) $(TEST_LIB) $(DB_LIBS) -ldl -lm
$(CONTRACT_PROGRAMS): $(CONTRACT)
	@mkdir -p $(@D)
	$(Q)ln -f $< $@

# For tests/upgrade: a client of this release, and a client and the command of a stand-in for the
# next one. Only these files know the level. make-level2 makes the SQL.
NEXT := $(BUILD)/level2
NEXT_OBJS := $(patsubst %.c,$(NEXT)/%.o,src/core/dialects.c $(shell grep -lE 'RLK_(LEVEL|CODE)' src/*/*.c))
NEXT_A := $(NEXT)/librowlock.a
LEVEL_PROGRAMS := $(BUILD)/tests/upgrade/client $(NEXT)/tests/upgrade/client $(NEXT)/rowlock

$(NEXT)/statements.inc: tests/upgrade/make-level2 $(BUILD)/statements.inc
	@mkdir -p $(@D)
	$(Q)$< $(@D)/source
	$(Q)cd $(@D)/source && $(AWK) -f $(CURDIR)/tools/embed-sql.awk $$(ls sql/*/*.sql sql/*/*/*.sql | \
	    grep -v '/grants.sql$$' | LC_ALL=C sort) > ../statements.inc

$(NEXT)/%.o: %.c $(NEXT)/statements.inc | libraries-found
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) -DRLK_LEVEL=2 -Isrc -I$(NEXT) -Wno-overlength-strings -MMD -MP -c -o $@ $<

$(NEXT_A): $(NEXT_OBJS) $(LIB_OBJS)
	$(Q)rm -f $@ && $(AR) rcsD $@ $(NEXT_OBJS) $(filter-out $(NEXT_OBJS:$(NEXT)/%=$(BUILD)/%),$(LIB_OBJS))

$(BUILD)/tests/upgrade/client: $(LIB_A)
$(NEXT)/tests/upgrade/client $(NEXT)/rowlock: $(NEXT_A)
$(NEXT)/rowlock: $(CLI_OBJS)
$(BUILD)/tests/upgrade/client $(NEXT)/tests/upgrade/client: $(BUILD)/tests/upgrade/client.o
$(LEVEL_PROGRAMS):
	@mkdir -p $(@D)
	$(say) LINK $@
	$(Q)$(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) -o $@ $(filter %.o,$^) $(filter %.a,$^) $(DB_LIBS) $(CLI_LIBS)

# TESTS=word builds and runs only the tests with that word in their name.
TESTS ?=
chosen = $(if $(TESTS),$(foreach t,$(1),$(if $(findstring $(TESTS),$(t)),$(t))),$(1))

.PHONY: test-programs
test-programs: all $(call chosen,$(TEST_PROGRAMS)) $(LOAD) $(CREW) $(if $(filter 1,$(FUZZING)),,$(LEVEL_PROGRAMS) \
    $(if $(SANITIZE),,python-if-possible))

# TEST_JOBS=1 runs one at a time. Tests that share a server always run one at a time.
TEST_JOBS ?= 6
PROVE ?= prove
PROVE_FLAGS ?=
TEST_ENV = HARNESS_RULESFILE=tests/lib/order.yml ROWLOCK_TEST_BUILD=$(CURDIR)/$(BUILD) \
           ROWLOCK_TEST_COMMAND=$(CURDIR)/$(COMMAND) ROWLOCK_TEST_SQLITE_URL='$(SQLITE_URL)' \
           ROWLOCK_TEST_BACKENDS='$(BACKENDS)' ROWLOCK_TEST_CURSES=$(WITH_CURSES) CC='$(CC)' \
           ROWLOCK_TEST_HARDENED='$(if $(SANITIZE),,protected $(if $(FORTIFY),fortified))' \
           tests/lib/run-tests.sh env
SQLITE_URL = $(if $(NO_SQLITE),,$(or $(ROWLOCK_TEST_SQLITE_URL),sqlite:@TMPDIR@/rowlock.db))
WITH_SERVER_postgres := tests/lib/with-postgres.sh
WITH_SERVER_mysql := tests/lib/with-mysql.sh
SERVERS = $(foreach b,$(BACKENDS),$(WITH_SERVER_$(b)))

# Tests in cluster/ need several servers. check-more starts these.
CLUSTER_TESTS := $(filter $(BUILD)/tests/cluster/% tests/cluster/%,$(TEST_PROGRAMS) $(TEST_SCRIPTS))
ALL_TESTS := $(filter-out $(CLUSTER_TESTS),$(TEST_PROGRAMS) $(TEST_SCRIPTS))
# $(call tests_in,FOLDERS)
tests_in = $(foreach d,$(1),$(filter $(BUILD)/tests/$(d)/% tests/$(d)/%,$(ALL_TESTS)))
# $(call tests_of,DATABASE): without those with another database in their name.
tests_of = $(foreach t,$(call tests_in,contract interleave $(SUBJECTS) cli upgrade python),$(if $(strip \
           $(foreach b,$(filter-out $(1),postgres mysql sqlite),$(findstring $(b),$(notdir $(t))))),,$(t)))
run_tests = $(PROVE) $(PROVE_FLAGS) -j$(or $(2),$(TEST_JOBS)) --exec tests/lib/run-test.sh $(call chosen,$(1))
# Each test of a server gets its own server, unless the user has set the URL of one.
BROUGHT := $(ROWLOCK_TEST_POSTGRES_URL)$(ROWLOCK_TEST_MYSQL_URL)
run_on_servers = $(if $(BROUGHT),,ROWLOCK_TEST_OWN_SERVERS=1) $(SERVERS) $(call run_tests,$(1),$(if $(BROUGHT),1))

.PHONY: check check-quick check-sqlite check-postgres check-mysql check-more check-abi
.PHONY: check-asan check-ubsan check-tsan check-valgrind coverage run-all-tests run-valgrind-tests

# Installing changes what this makefile finds at its start, so make runs again.
## check: every test, on a private PostgreSQL and MariaDB; installs what is missing
check:
	@tools/install-deps.sh all
	@$(MAKE) --no-print-directory -j$$(getconf _NPROCESSORS_ONLN) test-programs
	@$(MAKE) --no-print-directory run-all-tests

run-all-tests: test-programs
	$(Q)$(TEST_ENV) SKIPS_AS_FAILS=1 $(call run_on_servers,$(ALL_TESTS))

# check-quick builds only what it runs, so this stands before its rule. No server: no order either.
QUICK_TESTS := $(call tests_in,unit fuzz memory abi) $(filter $(call tests_in,contract),$(call tests_of,sqlite))
## check-quick: unit, fuzz, ABI and SQLite tests; needs no server
check-quick: PROVE_FLAGS += --rules 'par=**'
check-quick: all $(filter $(BUILD)/%,$(QUICK_TESTS))
	$(Q)$(TEST_ENV) $(call run_tests,$(QUICK_TESTS))

## check-sqlite, check-postgres, check-mysql: all tests of one database
check-sqlite: test-programs
	$(Q)$(TEST_ENV) $(call run_tests,$(call tests_of,sqlite))

check-postgres check-mysql: check-%: test-programs
	$(Q)$(TEST_ENV) ROWLOCK_TEST_SQLITE_URL= $(WITH_SERVER_$*) $(call run_tests,$(call tests_of,$*),1)

# Only the contract tests, on one database. check-more runs them on each version.
.PHONY: contract-postgres contract-mysql contract-sqlite
CONTRACT_TESTS = $(filter $(call tests_in,contract),$(call tests_of,$(1)))
contract-postgres contract-mysql: contract-%: $(filter $(BUILD)/tests/contract/%,$(TEST_PROGRAMS))
	$(Q)$(TEST_ENV) ROWLOCK_TEST_SQLITE_URL= $(WITH_SERVER_$*) $(call run_tests,$(call CONTRACT_TESTS,$*),1)

contract-sqlite: $(filter $(BUILD)/tests/contract/%,$(TEST_PROGRAMS))
	$(Q)$(TEST_ENV) $(call run_tests,$(call CONTRACT_TESTS,sqlite))

# The tests of several nodes. TESTS=cluster/test_: on the nodes whose URLs are in ROWLOCK_TEST_NODES.
# TESTS=cluster/postgres_: each starts its own servers.
.PHONY: cluster-tests
cluster-tests: all $(LOAD) $(filter $(BUILD)/%,$(CLUSTER_TESTS))
	$(Q)$(TEST_ENV) ROWLOCK_TEST_SQLITE_URL= $(call run_tests,$(CLUSTER_TESTS),1)

# Histories of a quorum, with servers of their own.
.PHONY: quorum-histories
quorum-histories: test-programs
	$(Q)$(TEST_ENV) $(call run_tests,$(filter tests/quorum/%.t,$(TEST_SCRIPTS)),1)

# The table at the end lists what could not be installed.
## check-more: other versions of the databases, TLS, pgbouncer, clusters whose servers die
check-more:
	-@tools/install-deps.sh more
	+@tests/more/run.sh

.PHONY: check-often
## check-often: make check, RUNS times (20); BUSY=8 beside busy processes, CPUS=0 on one processor
check-often:
	@tests/more/often.sh

## check-abi: headers in five dialects of C and C++, exported names, layout of the source
check-abi: test-programs
	$(Q)$(TEST_ENV) $(call run_tests,$(call tests_in,abi))

# make dist packs the last commit. What is not committed is not tested.
.PHONY: check-reproducible
## check-reproducible: make dist and make install give the same bytes in any folder
check-reproducible:
	@tools/install-deps.sh all dist
	$(Q)mkdir -p $(BUILD)
	$(Q)$(TEST_ENV) SKIPS_AS_FAILS=1 $(call run_tests,tests/dist/reproducible.t)

.PHONY: check-deb
## check-deb: make deb, lintian, and the packages unpacked into a folder
check-deb:
	@tools/install-deps.sh all check-deb
	$(Q)mkdir -p $(BUILD)
	$(Q)$(TEST_ENV) SKIPS_AS_FAILS=1 ROWLOCK_TEST_TIMEOUT=1200 $(call run_tests,tests/dist/deb.t)

.PHONY: check-abidiff
## check-abidiff: can programs that were linked with the last release use this library?
check-abidiff: lib
	@tools/install-deps.sh all abidiff
	$(Q)$(TEST_ENV) SKIPS_AS_FAILS=1 $(call run_tests,tests/dist/abidiff.t)

## check-asan, check-ubsan, check-tsan: every test under a sanitizer
# The thread sanitizer does not support the memory layout of some kernels. setarch changes it. A
# child that a test has forked may start threads.
check-asan:
	@$(MAKE) --no-print-directory check SANITIZE=address ROWLOCK_TEST_SLOWDOWN=3
check-ubsan:
	@$(MAKE) --no-print-directory check SANITIZE=undefined
check-tsan:
	@TSAN_OPTIONS=die_after_fork=0 setarch -R $(MAKE) --no-print-directory check SANITIZE=thread ROWLOCK_TEST_SLOWDOWN=10 ROWLOCK_TEST_TIMEOUT=1200

## check-valgrind: unit and contract tests, and tests of faults, under valgrind
check-valgrind:
	@tools/install-deps.sh all valgrind
	@$(MAKE) --no-print-directory run-valgrind-tests ROWLOCK_TEST_SLOWDOWN=20

VALGRIND := valgrind --quiet --error-exitcode=99 --leak-check=full --errors-for-leak-kinds=definite \
            --suppressions=tests/lib/valgrind.supp
run-valgrind-tests: test-programs
	$(Q)$(TEST_ENV) SKIPS_AS_FAILS=1 ROWLOCK_TEST_TIMEOUT=1200 ROWLOCK_TEST_WRAPPER='$(VALGRIND)' \
	    $(call run_on_servers,$(filter-out %.t,$(call tests_in,unit contract backend)))

# A target is a test that `make check` runs on its corpus. A finding stays in build/fuzz. When the
# fault is mended, the finding goes into the corpus.
FUZZ_SECONDS ?= 20
FUZZ_TARGETS := $(patsubst tests/fuzz/test_%.c,%,$(shell grep -l LLVMFuzzerTestOneInput \
                $(wildcard tests/fuzz/test_*.c) /dev/null))
FUZZ_PROGRAMS := $(FUZZ_TARGETS:%=$(BUILD)/tests/fuzz/fuzz_%)

$(FUZZ_PROGRAMS): $(BUILD)/tests/fuzz/fuzz_%: $(BUILD)/tests/fuzz/test_%.o $(TEST_HELPERS_A) $(LIB_A)
	$(say) LINK $@
	$(Q)$(CC) $(ALL_CFLAGS) -fsanitize=fuzzer $(ALL_LDFLAGS) -o $@ $< $(TEST_HELPERS_A) $(LIB_A) $(DB_LIBS)

.PHONY: fuzz run-fuzz
## fuzz: each target of tests/fuzz for FUZZ_SECONDS (20), with sanitizers; installs clang
fuzz:
	@tools/install-deps.sh all fuzz
	@$(MAKE) --no-print-directory run-fuzz CC=clang SANITIZE=address,undefined FUZZING=1 WERROR=0

run-fuzz: $(FUZZ_PROGRAMS)
	$(Q)mkdir -p $(FUZZ_TARGETS:%=build/fuzz/%)
	$(Q)failed=; for target in $(filter $(or $(TESTS),%),$(FUZZ_TARGETS)); do \
	    echo "  FUZZ  $$target"; \
	    $(BUILD)/tests/fuzz/fuzz_$$target -max_total_time=$(FUZZ_SECONDS) -max_len=4096 -timeout=10 \
	        -artifact_prefix=build/fuzz/$$target- build/fuzz/$$target tests/fuzz/corpus/$$target \
	        >build/fuzz/$$target.log 2>&1 || { failed=1; tail -n 40 build/fuzz/$$target.log >&2; }; \
	done; [ -z "$$failed" ]

## coverage: every test, then the covered lines of each source file
coverage:
	@find build -name '*.gcda' -delete 2>/dev/null || true
	@$(MAKE) --no-print-directory check COVERAGE=1 CFLAGS='-O0 -g'; status=$$?; \
	    $(MAKE) --no-print-directory coverage-table COVERAGE=1 CFLAGS='-O0 -g' && exit $$status

.PHONY: coverage-table
coverage-table:
	@find $(BUILD)/src -name '*.gcno' -exec gcov --no-output --source-prefix=$(CURDIR) {} + 2>/dev/null | \
	    $(AWK) -f tools/coverage.awk | sort -k 6

# FORMAT=json prints it for programs. TREE=folder measures a checkout of another commit.
TREE ?= .
FORMAT ?=
.PHONY: structure
## structure: circles of calls, lengths of files and functions, number of types
structure:
	@$(MAKE) --no-print-directory -C $(TREE) all >&2
	@tools/structure $(if $(filter json,$(FORMAT)),--json) $(TREE)

# --- The models

# What must hold: a name, a file of tests/model, and its constants. Each is checked in all states.
define MODELS
network             lease.pml LOSSES=1 TOKENS=4
network-deaths      lease.pml LOSSES=1 DEATHS=1 TOKENS=2
network-crashes     lease.pml LOSSES=1 CRASHES=1
network-jumps       lease.pml LOSSES=1 JUMPS=1
network-pooler      lease.pml LOSSES=1 OLD_SESSION_GOES_ON P5=0 CLIENTS=2
operators           lease.pml OPERATORS=1
operators-network   lease.pml OPERATORS=1 LOSSES=1 TOKENS=2
operators-crashes   lease.pml OPERATORS=1 CRASHES=1 TOKENS=2
all-but-queue       lease.pml OPERATORS=1 CRASHES=1 LOSSES=1 DEATHS=1 CLIENTS=2 TOKENS=2
queue               lease.pml QUEUE=1 DEATHS=1 TOKENS=2
queue-network       lease.pml QUEUE=1 LOSSES=1 TOKENS=2
two-nodes           nodes.pml
quorum              quorum.pml
quorum-faults       quorum.pml LOSSES=1 LATE=1 DEATHS=1 TOKENS=2
quorum-three        quorum.pml CLIENTS=3 TOKENS=2
quorum-no-clocks    quorum.pml CLOCKS=0
quorum-top-up       quorum.pml TOPS_UP=1
quorum-all          quorum.pml TOPS_UP=1 LOSSES=1 LATE=1 DEATHS=1 TOKENS=2
endef

# Mutants are models with a wrong rule. A property must fail for each.
define MUTANTS
top-up-over-own-row           quorum.pml TOP_UP_OVER_OWN_ROW TOPS_UP=1 TOKENS=4 AHEAD=1
plain-select-guard            lease.pml PLAIN_GUARD
release-by-owner-only         lease.pml RELEASE_BY_OWNER LOSSES=1 DEATHS=1
fold-without-floor            lease.pml FOLD_WITHOUT_FLOOR OPERATORS=1
renewal-that-inserts          lease.pml RENEWAL_INSERTS
takeover-without-token-row    lease.pml TAKEOVER_WITHOUT_TOKEN_ROW
deadline-from-the-answer      lease.pml DEADLINE_FROM_ANSWER
old-session-goes-on           lease.pml OLD_SESSION_GOES_ON LOSSES=1
ticket-without-lease          lease.pml TICKET_WITHOUT_LEASE QUEUE=1 DEATHS=1
share-lock-on-two-nodes       nodes.pml SHARE_LOCK_ON_TWO_NODES
highest-without-lift          quorum.pml HIGHEST_WITHOUT_LIFT CLOCKS=0
writes-highest-plus-one       quorum.pml WRITES_HIGHEST_PLUS_ONE CLOCKS=0
member-that-forgets           quorum.pml MEMBER_FORGETS CLOCKS=0 TOKENS=2
top-up-without-check          quorum.pml TOP_UP_WITHOUT_CHECK TOPS_UP=1
top-up-by-comparison          quorum.pml TOP_UP_BY_COMPARISON TOPS_UP=1
undoes-what-was-renewed       quorum.pml UNDOES_WHAT_WAS_RENEWED LOSSES=1 TOKENS=2
endef

.PHONY: model run-model
## model: the protocols in all their states, and mutants that must fail; installs spin
model:
	@tools/install-deps.sh model
	@$(MAKE) --no-print-directory run-model

export MODELS MUTANTS
run-model:
	@{ echo "$$MODELS" | sed 's/^/holds /'; echo "$$MUTANTS" | sed 's/^/fails /'; } | \
	    CC='$(CC)' xargs -P 2 -L 1 tests/model/check.sh

# --- Benchmarks and demo

# Files with a main function are programs. The others, and the tests' proxy, are helpers of all.
BENCH_SRCS := $(call for_backends,$(wildcard tests/bench/*.c))
BENCH_MAINS := $(if $(BENCH_SRCS),$(shell grep -l '^int main' $(BENCH_SRCS)))
BENCH_HELPER_OBJS := $(patsubst %.c,$(BUILD)/%.o,$(filter-out $(BENCH_MAINS),$(BENCH_SRCS)) \
                     tests/lib/faultproxy.c)
BENCH_PROGRAMS := $(BENCH_MAINS:%.c=$(BUILD)/%)

# Compiled with the tests, so that a change of the header is noticed here too.
test-programs: $(if $(TESTS),,$(BENCH_PROGRAMS))

$(BENCH_PROGRAMS): %: %.o $(BENCH_HELPER_OBJS) $(LIB_A)
	$(say) LINK $@
	$(Q)$(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) -o $@ $< $(BENCH_HELPER_OBJS) $(LIB_A) $(DB_LIBS) $(JANSSON_LIBS) -lm

.PHONY: bench run-bench demo
## bench: rowlock compared with hand-written loops, on private servers with durable settings
bench:
	@tools/install-deps.sh all
	@$(MAKE) --no-print-directory run-bench

DURABLE_SERVERS = $(foreach s,$(SERVERS),$(s) --durable)
run-bench: all $(BENCH_PROGRAMS)
	$(Q)$(TEST_ENV) ROWLOCK_TEST_SQLITE_URL= $(DURABLE_SERVERS) tests/bench/run.sh

# rowlock beside other servers. Nothing else is built with their client libraries.
# PEERS='redis etcd' takes only those. CLIENTS: how many at once. SECONDS: how long a turn is.
PEERS ?=
CLIENTS ?= 1 8 64
SECONDS ?= 1
PEERS_PC := hiredis libmemcached libcurl
PEERS_OBJS := $(patsubst %.c,$(BUILD)/%.o,$(sort $(wildcard tests/peers/*.c)))
PEERS_PROGRAM := $(BUILD)/tests/peers/peers
$(BUILD)/tests/peers/%.o: OBJ_CFLAGS = -Itests/lib -Itests/bench $(JANSSON_CFLAGS) \
    $(shell $(PKG_CONFIG) --cflags $(PEERS_PC) 2>/dev/null)
$(PEERS_OBJS): | peer-libraries-found

.PHONY: bench-peers run-bench-peers peer-libraries-found
peer-libraries-found:
	@for pc in $(PEERS_PC); do $(PKG_CONFIG) --exists $$pc || \
	    { echo "$$pc was not found: tools/install-deps.sh peers installs what make bench-peers needs" >&2; exit 1; }; done
	@printf '\043include <zookeeper/zookeeper.h>\n' | $(CC) -E - >/dev/null 2>&1 || \
	    { echo "zookeeper.h was not found: install libzookeeper-mt-dev (Debian's name)" >&2; exit 1; }

$(PEERS_PROGRAM): $(PEERS_OBJS) $(BENCH_HELPER_OBJS) $(LIB_A)
	$(say) LINK $@
	$(Q)$(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) -o $@ $^ $(DB_LIBS) $(JANSSON_LIBS) \
	    $$($(PKG_CONFIG) --libs $(PEERS_PC)) -lzookeeper_mt -lm

## bench-peers: rowlock beside Redis, etcd, ZooKeeper, memcached and the databases' own locks
bench-peers:
	@tools/install-deps.sh all peers
	@$(MAKE) --no-print-directory run-bench-peers

run-bench-peers: all $(PEERS_PROGRAM)
	$(Q)$(TEST_ENV) ROWLOCK_TEST_SQLITE_URL= PEERS='$(PEERS)' PEERS_CLIENTS='$(CLIENTS)' PEERS_SECONDS='$(SECONDS)' \
	    $(DURABLE_SERVERS) tests/peers/with-peers.sh tests/peers/run.sh

# --- Soak

SOAK_OBJS := $(patsubst %.c,$(BUILD)/%.o,$(sort $(wildcard tests/soak/*.c)))
SOAK_PROGRAM := $(BUILD)/tests/soak/soak
$(BUILD)/tests/soak/%.o: OBJ_CFLAGS = -Itests/lib -Itests/bench
$(SOAK_PROGRAM): $(SOAK_OBJS) $(BENCH_HELPER_OBJS) $(LIB_A)
	$(say) LINK $@
	$(Q)$(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) -o $@ $^ $(DB_LIBS) $(JANSSON_LIBS) -lm
test-programs: $(if $(TESTS),,$(SOAK_PROGRAM))

# MINUTES: how long it takes in all. soak-short takes 20 s.
MINUTES ?= 10
.PHONY: soak run-soak soak-short
## soak: locks come and go for MINUTES (10); sizes must stay bounded; draws build/soak.svg
soak:
	@tools/install-deps.sh all
	@$(MAKE) --no-print-directory run-soak
soak-short:
	@$(MAKE) --no-print-directory run-soak SOAK_SECONDS=20

run-soak: all $(SOAK_PROGRAM)
	$(Q)$(TEST_ENV) ROWLOCK_TEST_SQLITE_URL= MINUTES='$(MINUTES)' SOAK_SECONDS='$(SOAK_SECONDS)' \
	    $(DURABLE_SERVERS) tests/soak/run.sh
	$(call publish,soak.json soak.svg)

# The demo needs only SQLite. If other client libraries are installed, the command gets them too.
have = $$($(PKG_CONFIG) --exists $(1) 2>/dev/null && echo 1 || echo 0)
## demo: two rivals share a lock on an embedded database; installs what is missing
demo:
	@tools/install-deps.sh sqlite
	@$(MAKE) --no-print-directory cli WITH_POSTGRES=$(call have,libpq) \
	    WITH_MYSQL=$$(($(call have,libmariadb) | $(call have,mysqlclient)))
	@examples/demo.sh

# --- Lint and format

C_FILES = $(wildcard include/rowlock/*.h src/*/*.[ch] src/*/*/*.[ch] examples/*.[ch] tests/*/*.[ch])
SHELL_FILES = .ci/run $(wildcard tools/*.sh tools/man-pages tools/completion/make tests/*/*.sh tests/*/*.t examples/*.sh) \
              $(shell grep -l '^\#!/bin/sh' debian/*.install debian/tests/* 2>/dev/null)
# A driver, test or example whose database is not built in may lack its headers.
TIDY_FILES = $(filter-out $(NO_BACKENDS:%=src/drivers/%/%),$(call for_backends,$(wildcard src/*/*.c src/drivers/*/*.c src/cli/*/*.c)))

.PHONY: lint run-lint lint-c lint-shell lint-man lint-layout format format-check
## lint: clang-tidy, cppcheck, shellcheck, warnings of man, tools/check-layout; installs them
lint:
	@tools/install-deps.sh all lint
	@$(MAKE) --no-print-directory run-lint
run-lint: lint-c lint-shell lint-man lint-layout

# One file at a time: after a file with va_list clang-tidy reports false faults in the next.
lint-c: $(BUILD)/statements.inc
	$(say) TIDY src
	$(Q)printf '%s\n' $(TIDY_FILES) | xargs -P 2 -I {} clang-tidy --quiet {} -- -std=c11 \
	    $(OUR_CPPFLAGS) -Isrc -I$(BUILD) -Wno-overlength-strings $(DB_CFLAGS) $(CLI_CFLAGS)
	$(say) CHECK src
	$(Q)cppcheck --quiet --std=c11 --language=c --inline-suppr --error-exitcode=1 \
	    --enable=warning,performance,portability --suppress=missingIncludeSystem --suppress=ctuuninitvar \
	    $(filter-out -D_GNU_SOURCE,$(OUR_CPPFLAGS)) -Isrc -I$(BUILD) $(TIDY_FILES)

lint-shell: $(COMPLETION)
	$(say) SHELL "$(words $(SHELL_FILES) $(COMPLETION)) files"
	$(Q)shellcheck -x $(SHELL_FILES) $(COMPLETION)

# groff and mandoc read the pages in different ways, so both check them. tests/abi/manual.t runs mandoc.
lint-man: $(MAN_MADE)
	$(say) MAN docs/man
	@for page in $$(grep -L '^\.so ' $(<D)/man?/*); do \
	    said=$$(LC_ALL=C.UTF-8 MANWIDTH=80 man --warnings -E UTF-8 -l -Tutf8 -Z "$$page" 2>&1 >/dev/null); \
	    if [ -n "$$said" ]; then echo "$$said" >&2; bad=1; fi; \
	done; [ -z "$$bad" ]

lint-layout:
	$(say) TEXT "comments and columns"
	$(Q)tools/check-layout

## format, format-check: format the C files with clang-format, or report unformatted ones
format:
	$(Q)clang-format -i $(C_FILES)
format-check:
	$(Q)clang-format --dry-run -Werror $(C_FILES)

# --- Install

.PHONY: install install-lib install-cli install-headers install-man install-completion install-pc install-units uninstall
## install, uninstall: below DESTDIR and prefix (PREFIX); also install-lib, -cli, -headers, -man,
## -completion, -pc, -units
install: install-lib install-cli install-headers install-man install-completion install-pc install-units

install-lib: $(LIB_A) $(LIB_SO)
	$(INSTALL) -d '$(DESTDIR)$(libdir)'
	$(INSTALL) -m 644 $(LIB_SO) '$(DESTDIR)$(libdir)/$(SOFILE)'
	ln -sf $(SOFILE) '$(DESTDIR)$(libdir)/$(SONAME)'
	ln -sf $(SONAME) '$(DESTDIR)$(libdir)/librowlock.so'
	$(INSTALL) -m 644 $(LIB_A) '$(DESTDIR)$(libdir)/librowlock.a'

install-cli: $(COMMAND)
	$(INSTALL) -d '$(DESTDIR)$(bindir)'
	$(INSTALL) -m 755 $(COMMAND) '$(DESTDIR)$(bindir)/rowlock'

install-headers:
	$(INSTALL) -d '$(DESTDIR)$(includedir)/rowlock'
	$(INSTALL) -m 644 $(HEADERS) '$(DESTDIR)$(includedir)/rowlock/'

install-man: $(MAN_MADE)
	@for folder in $(<D)/man?; do \
	    $(INSTALL) -d '$(DESTDIR)$(mandir)'/"$${folder##*/}" && \
	    $(INSTALL) -m 644 "$$folder"/* '$(DESTDIR)$(mandir)'/"$${folder##*/}" || exit 1; \
	done

install-completion: $(COMPLETION)
	$(INSTALL) -d '$(DESTDIR)$(bashdir)' '$(DESTDIR)$(zshdir)' '$(DESTDIR)$(fishdir)'
	$(INSTALL) -m 644 $(COMPLETION) '$(DESTDIR)$(bashdir)/rowlock'
	$(INSTALL) -m 644 $(<D)/_rowlock '$(DESTDIR)$(zshdir)/_rowlock'
	$(INSTALL) -m 644 $(<D)/rowlock.fish '$(DESTDIR)$(fishdir)/rowlock.fish'

# Escapes a path for the replacement of sed: & | \ have a meaning there.
in_sed = $(subst |,\|,$(subst &,\&,$(subst \,\\,$(1))))
# The other libraries of a program that links the archive. Not Requires.private: pkg-config would
# then need the .pc files of the client libraries, which a user of rowlock may not have.
STATIC_LIBS = $(strip $(if $(DB_REQUIRES),$(shell $(PKG_CONFIG) --libs $(DB_REQUIRES) 2>/dev/null)) \
    $(DB_OTHER_LIBS))

install-pc:
	$(INSTALL) -d '$(DESTDIR)$(pkgconfigdir)'
	sed -e 's|@prefix@|$(call in_sed,$(prefix))|' -e 's|@libdir@|$(call in_sed,$(libdir))|' \
	    -e 's|@includedir@|$(call in_sed,$(includedir))|' -e 's|@version@|$(VERSION)|' \
	    -e 's|@libs_private@|$(call in_sed,$(STATIC_LIBS))|' \
	    src/rowlock.pc.in > '$(DESTDIR)$(pkgconfigdir)/rowlock.pc'
	chmod 644 '$(DESTDIR)$(pkgconfigdir)/rowlock.pc'

UNITS := $(notdir $(wildcard packaging/systemd/*))

install-units:
	$(INSTALL) -d '$(DESTDIR)$(unitdir)'
	@for unit in $(UNITS); do \
	    sed 's|/usr/bin/rowlock|$(call in_sed,$(bindir))/rowlock|' packaging/systemd/$$unit >'$(DESTDIR)$(unitdir)'/$$unit && \
	    chmod 644 '$(DESTDIR)$(unitdir)'/$$unit || exit 1; \
	done

uninstall: $(MAN_MADE)
	rm -f '$(DESTDIR)$(libdir)/$(SOFILE)' '$(DESTDIR)$(libdir)/$(SONAME)' \
	    '$(DESTDIR)$(libdir)/librowlock.so' '$(DESTDIR)$(libdir)/librowlock.a' \
	    '$(DESTDIR)$(bindir)/rowlock' $(HEADERS:include/rowlock/%='$(DESTDIR)$(includedir)/rowlock/%') \
	    '$(DESTDIR)$(pkgconfigdir)/rowlock.pc' '$(DESTDIR)$(bashdir)/rowlock' \
	    '$(DESTDIR)$(zshdir)/_rowlock' '$(DESTDIR)$(fishdir)/rowlock.fish' \
	    $(UNITS:%='$(DESTDIR)$(unitdir)/%')
	@cd $(<D) && for page in man?/*; do rm -f '$(DESTDIR)$(mandir)'/"$$page" || exit 1; done
	-rmdir '$(DESTDIR)$(includedir)/rowlock' 2>/dev/null

# --- The rest

.PHONY: dist clean help
# REF=name packs another commit. An unpacked tarball packs itself.
REF ?= HEAD
PACKED := rowlock-$(VERSION)
DIST := build/dist/$(PACKED)
# All times in the tarball are the time of the commit. SOURCE_DATE_EPOCH sets another.
## dist: build/rowlock-VERSION.tar.gz of the last commit, or of REF; its bytes depend on that alone
dist:
	$(Q)tools/copy-source.sh $(DIST) '$(REF)'
	$(Q)date=$${SOURCE_DATE_EPOCH:-$$(cat $(DIST)/tools/source-date)}; \
	    case $$date in *[!0-9]*|'') echo "git did not write tools/source-date: set SOURCE_DATE_EPOCH" >&2; exit 1 ;; esac; \
	    LC_ALL=C tar -cf build/$(PACKED).tar -C build/dist --format=gnu --sort=name --mtime=@$$date --owner=0 --group=0 \
	    --numeric-owner --mode=u=rwX,go=rX $(PACKED)
	$(Q)gzip -9nf build/$(PACKED).tar
	$(say) TAR build/$(PACKED).tar.gz

# The tree that is packed is the one that is there, also what is not committed.
DEB := build/deb/$(PACKED)
.PHONY: deb run-deb
## deb: Debian packages of the library, its headers and the command, in build/deb/
deb:
	@tools/install-deps.sh deb
	@$(MAKE) --no-print-directory run-deb
run-deb:
	$(Q)rm -rf build/deb && tools/copy-source.sh $(DEB)
	$(Q)cd $(DEB) && env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL dpkg-buildpackage -us -uc -b
	@ls build/deb/*.deb

## clean: removes build/
clean:
	rm -rf build

## help: this list
help:
	@sed -n 's/^## //p' $(firstword $(MAKEFILE_LIST)) | \
	    $(AWK) -F ": " '{ printf length($$1) < 15 ? "  %-14s " : "  %s\n%17s", $$1, ""; print substr($$0, length($$1) + 3) }'
	@echo
	@echo 'Settings: CC, CFLAGS, LDFLAGS, prefix, DESTDIR, WITH_POSTGRES=0, WITH_MYSQL=0, WITH_SQLITE=0, WITH_CURSES=0,'
	@echo '          WERROR=0, V=1 (show the commands), TESTS=word (only tests with it in their name)'

-include $(patsubst %.o,%.d,$(LIB_OBJS) $(NEXT_OBJS) $(CLI_OBJS) $(TEST_HELPER_OBJS) $(BENCH_HELPER_OBJS))
-include $(PEERS_OBJS:.o=.d)
-include $(addsuffix .d,$(EXAMPLES) $(BENCH_PROGRAMS)) $(MAIN_SRCS:%.c=$(BUILD)/%.d)
