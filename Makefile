# Builds, installs and tests rowlock with GNU make. `make help` lists the targets and settings.
# All that is made is in build/. Each compiler and set of flags has a folder there.

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

CFLAGS ?= -O2 -g
WERROR ?= 1
PKG_CONFIG ?= pkg-config
INSTALL ?= install
AWK ?= awk
# The system's: the Python binding uses the cffi and setuptools of the system's packages.
PYTHON ?= $(firstword $(wildcard /usr/bin/python3) python3)

# WITH_POSTGRES and so on. The targets that need them set SANITIZE=…, COVERAGE=1 and FUZZING=1.
$(foreach w,POSTGRES MYSQL SQLITE CURSES,$(eval WITH_$(w) ?= 1)$(strip \
    )$(if $(filter 0 1,$(WITH_$(w))),,$(error WITH_$(w) must be 0 or 1)))

.DEFAULT_GOAL := all
.DELETE_ON_ERROR:
.SUFFIXES:

Q := $(if $(filter 1,$(V)),,@)
say := @$(if $(filter 1,$(V)),:,printf '  %-5s %s\n')
comma := ,
objects = $(patsubst %.c,$(BUILD)/%.o,$(sort $(1)))

# --- Version: only the header's macros contain it.

HEADERS := $(sort $(wildcard include/rowlock/*.h))
header_number = $(shell $(AWK) '$$2 == "ROWLOCK_VERSION_$(1)" { print $$3; exit }' include/rowlock/rowlock.h 2>/dev/null)
MAJOR := $(call header_number,MAJOR)
VERSION := $(MAJOR).$(call header_number,MINOR).$(call header_number,PATCH)
SONAME := librowlock.so.$(MAJOR)
SOFILE := librowlock.so.$(VERSION)

# --- Databases: which are built in, and the flags of their client libraries

DATABASES := postgres mysql sqlite
upper = $(subst postgres,POSTGRES,$(subst mysql,MYSQL,$(subst sqlite,SQLITE,$(1))))
BACKENDS := $(strip $(foreach d,$(DATABASES),$(if $(filter 1,$(WITH_$(call upper,$(d)))),$(d))))
NO_BACKENDS := $(filter-out $(BACKENDS),$(DATABASES))
# $(call without,WORDS,FILES): the files that have none of the words in their name.
without = $(foreach f,$(2),$(if $(strip $(foreach w,$(1),$(findstring $(w),$(notdir $(f))))),,$(f)))
for_backends = $(call without,$(NO_BACKENDS),$(1))

# The names that pkg-config knows. Either client library of MySQL is enough. Without curses
# `rowlock watch` prints lines. Only ncursesw can show all names.
first_pc = $(firstword $(foreach pc,$(1),$(shell $(PKG_CONFIG) --exists $(pc) 2>/dev/null && echo $(pc))))
POSTGRES_PC := libpq
MYSQL_PC := $(call first_pc,libmariadb mysqlclient)
SQLITE_PC := sqlite3
JANSSON_PC := jansson
CURSES_PC := $(if $(filter 1,$(WITH_CURSES)),$(call first_pc,ncursesw ncurses))

# $(call find_library,NAME): sets NAME_CFLAGS and NAME_LIBS from pkg-config unless the user has set
# NAME_LIBS. Headers of others are system headers, which give no warnings.
define find_library
ifndef $(1)_LIBS
$(1)_CFLAGS := $$(patsubst -I%,-isystem %,$$(shell $$(PKG_CONFIG) --cflags $$($(1)_PC) 2>/dev/null))
$(1)_LIBS := $$(shell $$(PKG_CONFIG) --libs $$($(1)_PC) 2>/dev/null)
$(1)_REQUIRES := $$($(1)_PC)
endif
endef
$(foreach name,$(call upper,$(BACKENDS)) JANSSON CURSES,$(eval $(call find_library,$(name))))
of_databases = $(foreach b,$(call upper,$(BACKENDS)),$($(b)$(1)))
DB_CFLAGS := $(call of_databases,_CFLAGS)
DB_LIBS := $(call of_databases,_LIBS)
CLI_CFLAGS := $(JANSSON_CFLAGS) $(CURSES_CFLAGS) \
              -DRLK_WITH_CURSES=$(if $(CURSES_LIBS),$(if $(findstring ncursesw,$(CURSES_LIBS)),2,1),0)
CLI_LIBS := $(JANSSON_LIBS) $(CURSES_LIBS)

# --- Flags. The user's CFLAGS, CPPFLAGS and LDFLAGS come last, so that they have priority.

OUR_CPPFLAGS := -Iinclude -D_GNU_SOURCE -D_FILE_OFFSET_BITS=64 -D_TIME_BITS=64 $(foreach d,$(call upper,$(DATABASES)),-DRLK_WITH_$(d)=$(WITH_$(d)))
OUR_CFLAGS := -std=c11 -fPIC -fvisibility=hidden -pthread -ffile-prefix-map=$(CURDIR)=. \
              -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wstrict-prototypes -Wmissing-prototypes
OUR_CFLAGS += $(if $(filter 1,$(WERROR)),-Werror)
OUR_LDFLAGS := -pthread
ifdef SANITIZE
OUR_CFLAGS += -fsanitize=$(SANITIZE) -fno-omit-frame-pointer \
              $(if $(findstring undefined,$(SANITIZE)),-fno-sanitize-recover=all)
OUR_LDFLAGS += -fsanitize=$(SANITIZE)
else
# With a sanitizer the program has its functions, so that the library has undefined symbols.
SO_LDFLAGS := -Wl,-z,defs
# Hardening. _FORTIFY_SOURCE needs optimization. The user's own value replaces ours.
FORTIFY := $(if $(filter-out -O0,$(filter -O%,$(CFLAGS))),$(if $(findstring _FORTIFY_SOURCE,$(CFLAGS) $(CPPFLAGS)),,\
           -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2))
OUR_CFLAGS += -fstack-protector-strong $(FORTIFY)
OUR_LDFLAGS += -Wl,-z,relro,-z,now
endif
OUR_CFLAGS += $(if $(filter 1,$(COVERAGE)),--coverage) $(if $(filter 1,$(FUZZING)),-fsanitize=fuzzer-no-link)
OUR_LDFLAGS += $(if $(filter 1,$(COVERAGE)),--coverage)
ALL_CFLAGS = $(OUR_CPPFLAGS) $(OUR_CFLAGS) $(OBJ_CFLAGS) $(CPPFLAGS) $(CFLAGS)
ALL_LDFLAGS = $(OUR_LDFLAGS) $(LDFLAGS)

# Objects of other flags have another folder, so that they do not mix.
FLAGS_TEXT := $(CC) $(shell $(CC) --version 2>/dev/null | head -n 1) $(VERSION) $(ALL_CFLAGS) $(DB_CFLAGS) \
              $(SO_LDFLAGS) $(ALL_LDFLAGS) $(DB_LIBS) $(CLI_CFLAGS) $(CLI_LIBS)
BUILD := build/$(shell printf '%s' '$(subst ','\'',$(subst $(CURDIR),.,$(FLAGS_TEXT)))' | cksum | cut -d ' ' -f 1)

# The prerequisites of a program are its objects and archives. LINKED: what else it is linked with.
define link
@mkdir -p $(@D)
$(say) LINK $@
$(Q)$(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) -o $@ $(filter %.o,$^) $(filter %.a,$^) $(DB_LIBS) $(LINKED)
endef
define archive
$(say) AR $@
$(Q)rm -f $@ && $(AR) rcsD $@ $(filter %.o,$^)
endef

# --- Build: the library and the command

# The rooms of the library, lowest first. Each calls only those before it.
ROOMS := base core pool quorum lock rows api admin
driver_objs = $(call objects,$(wildcard src/drivers/$(1)/*.c))
LIB_OBJS := $(call objects,$(wildcard $(ROOMS:%=src/%/*.c))) $(foreach b,$(BACKENDS),$(call driver_objs,$(b)))
CLI_OBJS := $(patsubst %.c,$(BUILD)/%.o,$(sort $(wildcard src/cli/*.c src/cli/*/*.c)))
$(CLI_OBJS): OUR_CPPFLAGS += -Isrc
SQL_FILES := $(sort $(wildcard sql/*/*.sql sql/*/*/*.sql))

LIB_A := $(BUILD)/librowlock.a
LIB_SO := $(BUILD)/$(SOFILE)
COMMAND := $(BUILD)/rowlock
EXAMPLES := $(patsubst %.c,$(BUILD)/%,$(call for_backends,$(wildcard examples/*.c)))
MAN_PAGES := $(sort $(wildcard docs/man/*.[1-9]))
MAN_MADE := $(BUILD)/man/made
COMPLETION := $(BUILD)/completion/rowlock.bash

.PHONY: all lib cli examples man completion libraries-found
## all: the library, the command, the examples, the manual, completions of shells: in build/
all: lib cli examples man completion
## lib, cli, examples, man, completion: only this, in build/
lib: $(LIB_A) $(LIB_SO)
	$(call publish,librowlock.a librowlock.so $(SONAME))
cli: $(COMMAND)
	$(call publish,rowlock)
examples: $(EXAMPLES)
man: $(MAN_MADE)
completion: $(COMPLETION)
python: $(BUILD)/python/built
examples man completion python:
	$(call publish,$@)

# Links in build/ lead to what a plain make has built.
publish = @$(if $(SANITIZE)$(filter 1,$(COVERAGE)),:,for name in $(1); do \
	    [ ! -e "$(BUILD)/$$name" ] || [ "build/$$name" -ef "$(BUILD)/$$name" ] || \
	    { rm -rf "build/$$name" && ln -s "$(notdir $(BUILD))/$$name" "build/$$name"; } || exit 1; \
	done)

# Missing packages are reported once, before the compiler reports them many times.
missing = $(if $(1),,echo "$(2) was not found: install $(3) (Debian's name)$(if $(4),$(comma) or build with $(4)=0)" >&2; )
MISSING = $(call missing,$(shell command -v $(firstword $(CC))),the compiler $(firstword $(CC)),gcc)$(strip \
    )$(call missing,$(JANSSON_LIBS)$(filter lib,$(MAKECMDGOALS)),jansson,libjansson-dev)$(strip \
    )$(call missing,$(POSTGRES_LIBS)$(filter 0,$(WITH_POSTGRES)),libpq,libpq-dev,WITH_POSTGRES)$(strip \
    )$(call missing,$(MYSQL_LIBS)$(filter 0,$(WITH_MYSQL)),a MySQL client library,libmariadb-dev or default-libmysqlclient-dev,WITH_MYSQL)$(strip \
    )$(call missing,$(SQLITE_LIBS)$(filter 0,$(WITH_SQLITE)),sqlite3,libsqlite3-dev,WITH_SQLITE)
libraries-found:
	@$(if $(MISSING),$(MISSING)echo "tools/install-deps.sh build installs all of it" >&2; exit 1)

$(BUILD)/%.o: %.c | libraries-found
	@mkdir -p $(@D)
	$(say) CC $<
	$(Q)$(CC) $(ALL_CFLAGS) -MMD -MP -c -o $@ $<

# Only a driver includes its database's header. SQL texts are longer than the C standard guarantees
# for one literal.
$(LIB_OBJS): OUR_CPPFLAGS += -Isrc
$(foreach d,$(DATABASES),$(eval $(call driver_objs,$(d)): OBJ_CFLAGS = $$($(call upper,$(d))_CFLAGS)))
$(BUILD)/src/core/dialects.o: OBJ_CFLAGS = -I$(BUILD) -Wno-overlength-strings
$(BUILD)/src/core/dialects.o: $(BUILD)/statements.inc
$(CLI_OBJS): OBJ_CFLAGS = $(CLI_CFLAGS)
$(BUILD)/examples/%.o: OBJ_CFLAGS = $(DB_CFLAGS)

# The folders are prerequisites so that a deleted file is noticed. This file chooses the files.
$(BUILD)/statements.inc: Makefile tools/embed-sql.awk $(SQL_FILES) $(wildcard sql/*/ sql/*/*/)
	@mkdir -p $(@D)
	$(say) SQL $@
	$(Q)$(AWK) -f tools/embed-sql.awk $(SQL_FILES) > $@
$(LIB_A): $(LIB_OBJS)
	$(archive)
$(LIB_SO): $(LIB_OBJS) src/rowlock.map
	$(say) LINK $@
	$(Q)$(CC) -shared -Wl,-soname,$(SONAME) -Wl,--version-script=src/rowlock.map $(SO_LDFLAGS) \
	    $(ALL_CFLAGS) $(ALL_LDFLAGS) -o $@ $(LIB_OBJS) $(DB_LIBS)
	$(Q)ln -sf $(SOFILE) $(BUILD)/$(SONAME) && ln -sf $(SONAME) $(BUILD)/librowlock.so

# The command contains the library: cron needs only one file and no library path.
$(COMMAND): LINKED = $(CLI_LIBS)
$(COMMAND): $(CLI_OBJS) $(LIB_A)
	$(link)

# Examples link with the shared library, like a user's program.
$(EXAMPLES): %: %.o $(LIB_SO)
	$(say) LINK $@
	$(Q)$(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) -o $@ $< -L$(BUILD) -lrowlock -Wl,-rpath,'$$ORIGIN/..' \
	    -Wl,--as-needed $(DB_LIBS)

$(MAN_MADE): Makefile debian/changelog tools/man-pages tools/man-pages.awk docs/man $(MAN_PAGES) $(HEADERS)
	@mkdir -p $(@D)
	$(say) MAN $(@D)
	$(Q)AWK='$(AWK)' tools/man-pages $(@D) $(VERSION) $(MAN_PAGES) && touch $@
# What the command's help says, for the shells. The rule makes three files.
$(COMPLETION): $(COMMAND) $(wildcard tools/completion/*)
	$(say) SHELL $(@D)
	$(Q)tools/completion/make $(COMMAND) $(@D)

.PHONY: python wheel run-wheel python-cdef python-if-possible demo
PYTHON_ROOT := $(abspath $(BUILD)/python/root)
# $(call pip,RPATH,WORDS): pip, which finds an installed copy of this library, like a user's.
pip = env -u PYTHONPATH PKG_CONFIG_PATH=$(PYTHON_ROOT)/lib/pkgconfig ROWLOCK_RPATH='$(1)' $(PYTHON) -m pip \
    --disable-pip-version-check -q $(2) --no-build-isolation --no-deps --no-index
## python: the Python package, against this library, in build/python/site
$(BUILD)/python/built: $(wildcard bindings/python/*.* bindings/python/src/rowlock/*.*) $(LIB_SO) $(LIB_A) $(HEADERS)
	$(say) PIP bindings/python
	@rm -rf $(@D) && mkdir -p $(@D)/source && cp -R bindings/python/. $(@D)/source/
	@$(MAKE) -s --no-print-directory install-lib install-headers install-pc DESTDIR=/ prefix=$(PYTHON_ROOT) >/dev/null
	$(Q)$(call pip,$(PYTHON_ROOT)/lib,install --root-user-action=ignore) --target $(@D)/site $(@D)/source
	@touch $@
## wheel: the Python package with this library inside, in build/wheel; installs what is missing
wheel: ; $(call run,wheel)
run-wheel: $(BUILD)/python/built
	@rm -rf build/wheel && mkdir -p build/wheel && cp -R bindings/python $(BUILD)/wheel
	@$(INSTALL) -s -m 644 $(LIB_SO) $(BUILD)/wheel/src/rowlock/$(SONAME)
	$(Q)$(call pip,$$ORIGIN,wheel) --wheel-dir build/wheel $(BUILD)/wheel && rm -rf $(BUILD)/wheel
	@ls build/wheel/*.whl
# Without Python's packages its tests are skipped, which is a failure in `make check`. setuptools is
# the first to be imported: it does not work after the distutils that pip may import.
python-if-possible: $(LIB_SO) $(LIB_A)
	@! $(PYTHON) -c 'import setuptools, cffi, pip, wheel' 2>/dev/null || \
	    $(MAKE) --no-print-directory $(BUILD)/python/built
## python-cdef: makes bindings/python/cdef.h of the headers
python-cdef:
	@mkdir -p $(BUILD)
	$(Q)$(PYTHON) bindings/python/tools/make-cdef > $(BUILD)/cdef.h
	$(Q)mv $(BUILD)/cdef.h bindings/python/cdef.h
# The demo needs only SQLite. If other client libraries are installed, the command gets them too.
## demo: two rivals share a lock on an embedded database; installs what is missing
demo:
	@tools/install-deps.sh sqlite
	@$(MAKE) --no-print-directory cli WITH_POSTGRES=$(if $(call first_pc,libpq),1,0) WITH_MYSQL=$(if $(MYSQL_PC),1,0)
	@examples/demo.sh

# --- Install

.PHONY: install install-lib install-cli install-headers install-man install-completion install-pc install-units uninstall
## install, uninstall: below DESTDIR and prefix (PREFIX); also install-lib, -cli, -headers, -man,
## -completion, -pc, -units
install: install-lib install-cli install-headers install-man install-completion install-pc install-units

# $(call put,MODE,FILES,FOLDER,NAME). Without NAME they keep their names.
put = $(INSTALL) -d '$(DESTDIR)$(3)' && $(INSTALL) -m $(1) $(2) '$(DESTDIR)$(3)/$(4)'
# Escapes a path for the replacement of sed: & | \ have a meaning there.
in_sed = $(subst |,\|,$(subst &,\&,$(subst \,\\,$(1))))
UNITS := $(notdir $(wildcard packaging/systemd/*))

install-lib: $(LIB_A) $(LIB_SO)
	$(call put,644,$(LIB_A) $(LIB_SO),$(libdir)) && cd '$(DESTDIR)$(libdir)' && ln -sf $(SOFILE) $(SONAME) && ln -sf $(SONAME) librowlock.so
	$(if $(DESTDIR),,@PATH=$$PATH:/sbin; ldconfig 2>/dev/null; ldconfig -p 2>/dev/null | grep -qF '$(libdir)/$(SONAME)' || echo \
	    'Programs do not look for libraries in $(libdir) yet: name it in /etc/ld.so.conf.d, and run ldconfig' >&2)
install-cli: $(COMMAND)
	$(call put,755,$(COMMAND),$(bindir),rowlock)
install-headers:
	$(call put,644,$(HEADERS),$(includedir)/rowlock)
install-man: $(MAN_MADE)
	@$(foreach s,$(patsubst .%,man%,$(sort $(suffix $(MAN_PAGES)))),$(call put,644,$(<D)/$(s)/*,$(mandir)/$(s)) &&) true
install-completion: $(COMPLETION)
	$(call put,644,$(COMPLETION),$(bashdir),rowlock)
	$(call put,644,$(<D)/_rowlock,$(zshdir),_rowlock)
	$(call put,644,$(<D)/rowlock.fish,$(fishdir),rowlock.fish)

# The other libraries of a program that links the archive. Not Requires.private: a user of rowlock
# may not have the .pc files of the client libraries.
DB_REQUIRES := $(call of_databases,_REQUIRES)
STATIC_LIBS = $(strip $(if $(DB_REQUIRES),$(shell $(PKG_CONFIG) --libs $(DB_REQUIRES) 2>/dev/null)) \
    $(foreach b,$(call upper,$(BACKENDS)),$(if $($(b)_REQUIRES),,$($(b)_LIBS))))
install-pc:
	$(call put,644,src/rowlock.pc.in,$(pkgconfigdir),rowlock.pc)
	sed -i -e 's|@prefix@|$(call in_sed,$(prefix))|' -e 's|@libdir@|$(call in_sed,$(libdir))|' \
	    -e 's|@includedir@|$(call in_sed,$(includedir))|' -e 's|@version@|$(VERSION)|' \
	    -e 's|@libs_private@|$(call in_sed,$(STATIC_LIBS))|' '$(DESTDIR)$(pkgconfigdir)/rowlock.pc'
install-units:
	$(call put,644,packaging/systemd/*,$(unitdir))
	cd '$(DESTDIR)$(unitdir)' && sed -i 's|/usr/bin/rowlock|$(call in_sed,$(bindir))/rowlock|' $(UNITS)

uninstall: $(MAN_MADE)
	rm -f '$(DESTDIR)$(libdir)/'librowlock.so '$(DESTDIR)$(libdir)/'librowlock.a \
	    '$(DESTDIR)$(libdir)/$(SOFILE)' '$(DESTDIR)$(libdir)/$(SONAME)' '$(DESTDIR)$(bindir)/rowlock' \
	    $(HEADERS:include/rowlock/%='$(DESTDIR)$(includedir)/rowlock/%') '$(DESTDIR)$(pkgconfigdir)/rowlock.pc' \
	    '$(DESTDIR)$(bashdir)/rowlock' '$(DESTDIR)$(zshdir)/_rowlock' '$(DESTDIR)$(fishdir)/rowlock.fish' \
	    $(UNITS:%='$(DESTDIR)$(unitdir)/%')
	@for page in $$(cd $(<D) && echo man?/*); do rm -f '$(DESTDIR)$(mandir)'/"$$page" || exit 1; done
	-rmdir '$(DESTDIR)$(includedir)/rowlock' 2>/dev/null

# --- Tests

# TESTS=word builds and runs only the tests with that word in their name. TEST_JOBS=1 runs one at a
# time. Tests that share a server always run one at a time.
TEST_JOBS ?= 9
PROVE ?= prove
# The programs of tests, benchmarks and fuzz targets, the lists of tests, and how they are run.
include tests/tests.mk

# $(call run,GROUPS,SETTINGS): installs packages of these groups that are missing, and makes run-NAME.
# Installing changes what this makefile finds at its start, so make runs again.
define run
@tools/install-deps.sh $(1)
+@$(MAKE) --no-print-directory run-$@ $(2)
endef

.PHONY: check run-check check-quick check-sqlite check-postgres check-mysql test-programs check-abi check-more
.PHONY: check-reproducible check-deb check-abidiff check-asan check-tsan check-valgrind run-check-valgrind
## check: every test, on a private PostgreSQL and MariaDB; installs what is missing
check:
	@tools/install-deps.sh all
	@$(MAKE) --no-print-directory -j$$(getconf _NPROCESSORS_ONLN) test-programs
	@$(MAKE) --no-print-directory run-check
run-check: test-programs
	$(Q)$(TEST_ENV) SKIPS_AS_FAILS=1 $(call run_on_servers,$(ALL_TESTS))
# Benchmarks are compiled too, so that a change of the header is noticed there.
test-programs: all $(call chosen,$(TEST_PROGRAMS)) $(STARTED) $(LEVEL_PROGRAMS) $(if $(SANITIZE),,python-if-possible) \
    $(SIMULATE) $(if $(TESTS),,$(BENCH_PROGRAMS) $(SOAK_PROGRAM))

## check-quick: unit, fuzz, ABI and SQLite tests; needs no server
# It builds only what it runs. Without a server there is no order either.
check-quick: PROVE_FLAGS += --rules 'par=**'
check-quick: all $(SIMULATE) $(filter $(BUILD)/%,$(QUICK_TESTS))
	$(Q)$(TEST_ENV) $(call run_tests,$(QUICK_TESTS))

## check-sqlite, check-postgres, check-mysql: all tests of one database
check-sqlite check-postgres check-mysql: check-%: test-programs
	$(Q)$(call run_of,$*,$(call tests_of,$*))
## check-abi: headers in five dialects of C and C++, exported names, layout of the source
check-abi: test-programs
	$(Q)$(TEST_ENV) $(call run_tests,$(call tests_in,abi))
# The table at the end lists what could not be installed.
## check-more: other versions of the databases, TLS, pgbouncer, clusters whose servers die
check-more:
	-@tools/install-deps.sh more
	+@tests/more/run.sh
## simulate: clients and servers with faults in one thread; WORLD=one SEED=1 GRANTS=100000
## check-reproducible: make dist and make install give the same bytes in any folder
## check-deb: make deb, lintian, and the packages unpacked into a folder
## check-abidiff: can programs that were linked with the last release use this library?
check-abidiff: lib
check-reproducible check-deb check-abidiff: check-%:
	@tools/install-deps.sh all $@
	$(Q)mkdir -p $(BUILD)
	$(Q)$(TEST_ENV) SKIPS_AS_FAILS=1 ROWLOCK_TEST_TIMEOUT=1200 $(call run_tests,tests/dist/$*.t)

.PHONY: fuzz run-fuzz coverage coverage-table
## check-asan, check-tsan: every test under sanitizers: of addresses and undefined behaviour, of threads
# The thread sanitizer does not support the memory layout of some kernels. setarch changes it. A
# child that a test has forked may start threads.
check-asan:
	@LSAN_OPTIONS=suppressions=$(CURDIR)/tests/lib/lsan.supp:print_suppressions=0 \
	    $(MAKE) --no-print-directory check SANITIZE=address,undefined ROWLOCK_TEST_SLOWDOWN=5
check-tsan:
	@TSAN_OPTIONS=die_after_fork=0 setarch -R $(MAKE) --no-print-directory check SANITIZE=thread ROWLOCK_TEST_SLOWDOWN=10 ROWLOCK_TEST_TIMEOUT=1200
## check-valgrind: unit and contract tests, and tests of faults, under valgrind
check-valgrind: ; $(call run,all valgrind,ROWLOCK_TEST_SLOWDOWN=20)
# A finding stays in build/fuzz. When the fault is mended, it goes into the corpus.
FUZZ_SECONDS ?= 20
## fuzz: each target of tests/fuzz for FUZZ_SECONDS (20), with sanitizers; installs clang
fuzz: ; $(call run,all fuzz,-k CC=clang SANITIZE=address$(comma)undefined FUZZING=1 WERROR=0)
## coverage: every test, then the covered lines of each source file
coverage:
	@find build -name '*.gcda' -delete 2>/dev/null || true
	@$(MAKE) --no-print-directory check COVERAGE=1 CFLAGS='-O0 -g'; status=$$?; \
	    $(MAKE) --no-print-directory coverage-table COVERAGE=1 CFLAGS='-O0 -g' && exit $$status
# --- Measure: models, benchmarks, figures

.PHONY: model run-model bench run-bench bench-peers run-bench-peers soak soak-short run-soak structure
# tests/model/models names the models, and the mutants of which a property must fail.
## model: the protocols in all their states, mutants that must fail, runs of the simulation; installs spin
model: ; $(call run,model)
run-model: $(SIMULATE)
	@grep -v '^#' tests/model/models | CC='$(CC)' xargs -P 2 -L 1 tests/model/check.sh$(if $(SIMULATE), && tests/model/trace.sh $<)

measured = $(Q)$(TEST_ENV) ROWLOCK_TEST_SQLITE_URL= $(1) $(foreach s,$(SERVERS),$(s) --durable)
## bench: rowlock compared with hand-written loops, on private servers with durable settings
bench: ; $(call run,all)
run-bench: all $(BENCH_PROGRAMS)
	$(call measured) tests/bench/run.sh

# PEERS='redis etcd' takes only those. CLIENTS: how many at once. SECONDS: how long a turn is.
CLIENTS ?= 1 8 64 256
SECONDS ?= 1
## bench-peers: rowlock beside Redis, etcd, ZooKeeper, memcached and the databases' own locks
bench-peers: ; $(call run,all peers)
run-bench-peers: all python $(PEERS_PROGRAM)
	$(call measured,PYTHON=$(PYTHON) PEERS='$(PEERS)' PEERS_CLIENTS='$(CLIENTS)' PEERS_SECONDS='$(SECONDS)') \
	    tests/peers/with-peers.sh tests/peers/run.sh

MINUTES ?= 10
## soak: locks come and go for MINUTES (10); sizes must stay bounded; draws build/soak.svg
soak: ; $(call run,all)
soak-short:
	@$(MAKE) --no-print-directory run-soak SOAK_SECONDS=20
run-soak: all $(SOAK_PROGRAM)
	$(call measured,MINUTES='$(MINUTES)' SOAK_SECONDS='$(SOAK_SECONDS)') tests/soak/run.sh
	$(call publish,soak.json soak.svg)
# FORMAT=json prints it for programs. TREE=folder measures a checkout of another commit.
## structure: circles of calls, lengths of files and functions, number of types
structure:
	@$(MAKE) --no-print-directory -C $(or $(TREE),.) all >&2
	@tools/structure $(if $(filter json,$(FORMAT)),--json) $(or $(TREE),.)

# --- Lint and format

C_FILES = $(wildcard include/rowlock/*.h src/*/*.[ch] src/*/*/*.[ch] examples/*.[ch] tests/*/*.[ch])
SHELL_FILES = .ci/run $(wildcard tools/*.sh tools/man-pages tools/completion/make tests/*/*.sh tests/*/*.t examples/*.sh) \
              $(shell grep -l '^\#!/bin/sh' debian/*.install debian/tests/* 2>/dev/null)
# A driver, test or example whose database is not built in may lack its headers.
TIDY_FILES = $(filter-out $(NO_BACKENDS:%=src/drivers/%/%),$(call for_backends,$(wildcard src/*/*.c src/drivers/*/*.c src/cli/*/*.c)))

.PHONY: lint run-lint lint-c lint-shell lint-man lint-layout format format-check
## lint: clang-tidy, cppcheck, shellcheck, warnings of man, tools/check-layout; installs them
lint: ; $(call run,all lint)
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
	    LC_ALL=C.UTF-8 MANWIDTH=80 man --warnings -E UTF-8 -l -Tutf8 -Z "$$page" 2>&1 >/dev/null; \
	done | { ! grep . >&2; }
lint-layout:
	$(say) TEXT "comments and columns"
	$(Q)tools/check-layout
## format, format-check: format the C files with clang-format, or report unformatted ones
format:
	$(Q)clang-format -i $(C_FILES)
format-check:
	$(Q)clang-format --dry-run -Werror $(C_FILES)

# --- Packages, and the rest

.PHONY: dist deb run-deb clean help
# REF=name packs another commit. An unpacked tarball packs itself.
REF ?= HEAD
PACKED := rowlock-$(VERSION)
# All times in the tarball are the time of the commit. SOURCE_DATE_EPOCH sets another.
## dist: build/rowlock-VERSION.tar.gz of the last commit, or of REF; its bytes depend on that alone
dist:
	$(Q)tools/copy-source.sh build/dist/$(PACKED) '$(REF)'
	$(Q)date=$${SOURCE_DATE_EPOCH:-$$(cat build/dist/$(PACKED)/tools/source-date)}; \
	    case $$date in *[!0-9]*|'') echo "git did not write tools/source-date: set SOURCE_DATE_EPOCH" >&2; exit 1 ;; esac; \
	    LC_ALL=C tar -cf build/$(PACKED).tar -C build/dist --format=gnu --sort=name --mtime=@$$date --owner=0 --group=0 \
	    --numeric-owner --mode=u=rwX,go=rX $(PACKED)
	$(Q)gzip -9nf build/$(PACKED).tar
	$(say) TAR build/$(PACKED).tar.gz
# The tree that is packed is the one that is there, also what is not committed.
## deb: Debian packages of the library, its headers and the command, in build/deb/
deb: ; $(call run,deb)
run-deb:
	$(Q)rm -rf build/deb && tools/copy-source.sh build/deb/$(PACKED)
	$(Q)cd build/deb/$(PACKED) && env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL dpkg-buildpackage -us -uc -b
	@ls build/deb/*.deb
## clean: removes build/
clean:
	rm -rf build
## help: this list
help:
	@$(AWK) '/^# --- / { head = substr($$0, 7) } /^## / { \
	    if (head) print "\n" head; head = ""; text = substr($$0, 4); at = index(text, ": "); name = substr(text, 1, at - 1); \
	    printf !at ? "%17s" : at < 16 ? "  %-14s " : "  %s\n%17s", name, ""; print at ? substr(text, at + 2) : text }' Makefile
	@echo
	@echo 'Settings: CC, CFLAGS, LDFLAGS, prefix, DESTDIR, WITH_POSTGRES=0, WITH_MYSQL=0, WITH_SQLITE=0, WITH_CURSES=0,'
	@echo '          WERROR=0, V=1 (show the commands), TESTS=word (only tests with it in their name)'

-include $(shell find $(addprefix $(BUILD)/,src tests examples level2) -name '*.d' 2>/dev/null)
