# Touchstone's tools. `make` alone lists them.
#
#   make test                    builds, and runs the tests
#   make test SANITIZE=thread    the same under the thread sanitizer (or: address), in a build of its own
#   make quick PART=Query        builds and runs the tests of one part only
#   make test-long               everything: long campaigns, strict engines, sanitizers, valgrind (docs/testing.md)
#   make bench                   builds, weighs the engines against each other, prints who won what
#   make bench-full              all suites, and a web page of them
#   make library                 builds libtouchstone.so for C
#   make wheel                   builds the Python package: dist/touchstone-….whl
#   make test-python             tests the wheel in a virtual environment of its own
#   make docs                    compiles the code in the pages, and builds the API reference
#
# Everything is built in release mode: a debug build is tens of times slower. `-enable-testing` is given to
# every build, so that the tests and the bench share one. A compiler that writes a module's interface before its code
# checks all types twice. That lets other modules begin earlier, but costs two cores more than it saves.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.ONESHELL:
.DEFAULT_GOAL := help
.PHONY: help deps build library wheel test-python bench-python fuzz-c install uninstall deb test quick test-weights test-long simulate planted valgrind examples examples-c bench bench-full docs lint test-http test-failover fuzz fuzz-queries fuzz-storage clean

# thread or address: builds and tests under that sanitizer.
SANITIZE ?=
# Seconds that `make fuzz` spends on each target.
SECONDS ?= 60
# Runs of each workload on each engine that `make bench-full` makes, and the documents of its suite `scale`.
SAMPLES ?= 3
SCALE_DOCS ?= 1000000
# Where `make bench-full` writes.
RESULTS ?= results/local
# Where `make docs` writes.
DOCS ?= .build/docs
# A directory with suites of others that `make test-http` runs too: its executable files run-NAME (docs/testing.md).
SUITES ?=
# What `make test-http` runs on.
ENGINES ?= sqlite lmdb sqlcipher lmdb-encrypted
# The tests to run, all when empty, as a regular expression: make test FILTER='Revision|Fleece'
FILTER ?=
# Seconds after which a test that says nothing is taken for hung: it is named, and killed with its process. 0: never.
HUNG_AFTER ?= $(if $(SANITIZE),0,900)
# Processes of tests at the same time; by default four for each core.
JOBS ?=
# The first seed of `make simulate`.
SIMULATION_SEED ?= $(shell date +%s)
# A part of the tests, for `make quick` and `make test-long`: the beginning of names of folders of tests.
PART ?=

ifneq ($(SANITIZE),)
  ifeq ($(filter $(SANITIZE),thread address),)
    $(error SANITIZE is 'thread' or 'address', not '$(SANITIZE)')
  endif
  SCRATCH := .build/$(SANITIZE)
  # What a test measures of memory means nothing then.
  export TOUCHSTONE_SANITIZE := $(SANITIZE)
  # Bounds and lifetimes, not leaks: Swift keeps tags in the bits of an enum's pointers, so that the leak
  # detector takes what global constants hold for lost.
  export ASAN_OPTIONS := detect_leaks=0
  SWIFT_FLAGS := -c release -Xswiftc -enable-testing --scratch-path $(SCRATCH) --sanitize $(SANITIZE)
  # The default linker warns about each of the sanitizer's own symbols.
  SWIFT_FLAGS += -Xswiftc -use-ld=lld
else
  SCRATCH := .build
  SWIFT_FLAGS := -c release -Xswiftc -enable-testing
endif

SWIFT_FLAGS += -Xswiftc -no-emit-module-separately-wmo

# The engines whose libraries are installed, looked for when a recipe begins, and so after `deps` (Package.swift).
export TOUCHSTONE_ENGINES = $(or $(strip $(foreach engine,rocksdb wiredtiger libpq:postgres,$(shell pkg-config --exists $(firstword $(subst :, ,$(engine))) 2>/dev/null && echo $(lastword $(subst :, ,$(engine)))))),none)

# The commit, which `touchstone version` tells.
export TOUCHSTONE_COMMIT := $(shell git describe --always --dirty --abbrev=12 --exclude '*' 2>/dev/null)

# What belongs to one thread is checked to be used on it alone (Package.swift, docs/testing.md).
export TOUCHSTONE_CHECKS := 1

# Debian's packages: what pkg-config knows, as NAME.pc:package, and what only dpkg knows.
PC_PACKAGES := sqlite3:libsqlite3-dev lmdb:liblmdb-dev libcrypto:libssl-dev libssl:libssl-dev zlib:zlib1g-dev \
  simdjson:libsimdjson-dev icu-i18n:libicu-dev libzip:libzip-dev libisal:libisal-dev \
  mozjs-102:libmozjs-102-dev libcurl:libcurl4-openssl-dev libmicrohttpd:libmicrohttpd-dev \
  snappy:libsnappy-dev rocksdb:librocksdb-dev wiredtiger:libwiredtiger-dev libedit:libedit-dev libpq:libpq-dev
DPKG_PACKAGES := postgresql-15 libsqlcipher0 sqlite3 sqlcipher lmdb-utils gnuplot-nox libstemmer-dev libwslay-dev

# The interactive backtracer holds a crashed child for seconds; tests that kill children on purpose are many.
export SWIFT_BACKTRACE := enable=no

help: ## Lists these targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /make \1|/' | column -t -s '|'

deps: ## Installs the missing Debian packages; does nothing when none is missing
	@missing=()
	if ! command -v swift >/dev/null; then
	  echo "deps: there is no 'swift' on the PATH; Swift 6.3 is needed (https://www.swift.org/install)" >&2
	  exit 2
	fi
	command -v pkg-config >/dev/null || missing+=(pkg-config)
	installed() { [ "$$(dpkg-query -W -f '$${db:Status-Status}' "$$1" 2>/dev/null)" = installed ]; }
	for entry in $(PC_PACKAGES); do
	  if command -v pkg-config >/dev/null; then
	    pkg-config --exists "$${entry%%:*}" || missing+=("$${entry#*:}")
	  else
	    installed "$${entry#*:}" || missing+=("$${entry#*:}")
	  fi
	done
	for package in $(DPKG_PACKAGES); do installed "$$package" || missing+=("$$package"); done
	[ "$${#missing[@]}" -gt 0 ] || exit 0
	echo "deps: missing: $${missing[*]}"
	install=(apt-get install -y -qq --no-install-recommends "$${missing[@]}")
	if ! command -v apt-get >/dev/null; then
	  echo "deps: this is no Debian (no apt-get); install what these packages hold by hand" >&2
	  exit 2
	elif [ "$$(id -u)" = 0 ]; then
	  as_root=(env DEBIAN_FRONTEND=noninteractive)
	elif command -v sudo >/dev/null; then
	  as_root=(sudo DEBIAN_FRONTEND=noninteractive)
	else
	  echo "deps: neither root nor sudo here; as root, run: apt-get update && $${install[*]}" >&2
	  exit 2
	fi
	echo "deps: $${as_root[*]} apt-get update"
	"$${as_root[@]}" apt-get update -qq
	echo "deps: $${as_root[*]} $${install[*]}"
	"$${as_root[@]}" "$${install[@]}"

build: deps ## Builds the library and the touchstone command
	@swift build $(SWIFT_FLAGS)

# The shared library for C. Swift's runtime is inside, so it loads where no Swift is installed.
SONAME = libtouchstone.so.0
LIBRARY = $(SCRATCH)/library/$(SONAME)
# What it links: what pkg-config knows, and what has no .pc file (Package.swift).
LIBRARY_PACKAGES = libcrypto libcurl libisal lmdb libmicrohttpd libssl snappy libzip zlib $(filter rocksdb,$(TOUCHSTONE_ENGINES))
LIBRARY_LIBRARIES = -licui18n -licuuc -lsimdjson -lstemmer -lwslay -lstdc++ -ldl
# Parts of Swift's static Foundation that its archives need but don't name.
FOUNDATION = -lFoundationEssentials -l_FoundationCollections -l_FoundationCShims

library: deps ## Builds the shared library for C, and checks that it exports what touchstone.h declares
	@TOUCHSTONE_LIBRARY=1 swift build $(SWIFT_FLAGS) --product touchstone-c
	folder=$(dir $(LIBRARY))
	mkdir -p "$$folder"
	printf '{ global: touchstone_*; local: *; };\n' > "$$folder/exports.map"
	# The objects, and not their archive: what protocols a type conforms to is found at run time, and nothing refers to it.
	# Libraries beside it are found first: those of the wheel.
	# shellcheck disable=SC2046
	swiftc -emit-library -static-stdlib -use-ld=lld -o "$(LIBRARY)" \
	  @$(SCRATCH)/release/touchstone-c.product/Objects.LinkFileList \
	  $(if $(SANITIZE),-sanitize=$(SANITIZE),-Xlinker -z -Xlinker defs) -Xlinker --gc-sections \
	  -Xlinker --version-script="$$folder/exports.map" -Xlinker -soname=$(SONAME) \
	  -Xlinker --disable-new-dtags -Xlinker -rpath='$$ORIGIN' \
	  $(LIBRARY_LIBRARIES) $$(pkg-config --libs $(LIBRARY_PACKAGES)) $(FOUNDATION)
	ln -sf $(SONAME) "$$folder/libtouchstone.so"
	Tests/Bindings/check-exports "$(LIBRARY)"
	echo "library: $(LIBRARY)"

# Where `make wheel` writes.
DIST ?= dist
# The Python that `make wheel` and `make test-python` use, from 3.9.
PYTHON ?= python3

wheel: library ## Builds the Python package with all libraries inside: DIST=DIR
	@rm -f $(DIST)/touchstone-*.whl
	$(PYTHON) python/make-wheel.py "$(LIBRARY)" "$(DIST)"

# Arguments of pytest.
PYTEST ?=
# 1: `make test-python` runs the notebook in Examples too, with the command that `make build` has built.
NOTEBOOK ?=
# 1: it checks the types too, with mypy.
TYPES ?=

test-python: deps ## Tests the wheel in an empty virtual environment without Swift on the PATH; skips without Python or PyPI
	@if ! $(PYTHON) -c 'import ensurepip, venv' 2>/dev/null; then
	  echo "test-python: skipped: there is no $(PYTHON) with venv (python3-venv)" >&2
	  exit 0
	fi
	$(MAKE) --no-print-directory wheel
	folder=$(SCRATCH)/python
	rm -rf "$$folder"
	$(PYTHON) -m venv "$$folder"
	if ! "$$folder/bin/pip" install -q --disable-pip-version-check pytest pandas pyarrow $(if $(NOTEBOOK),nbclient ipykernel matplotlib) $(if $(TYPES),mypy pandas-stubs); then
	  echo "test-python: skipped: pip can't install what it needs" >&2
	  exit 0
	fi
	"$$folder/bin/pip" install -q --disable-pip-version-check $(DIST)/touchstone-*.whl
	tests=$$PWD/python/tests
	bin=$$PWD/$$folder/bin
	notebook=($(if $(NOTEBOOK),TOUCHSTONE_COMMAND="$(abspath $(SCRATCH))/release/touchstone" TOUCHSTONE_NOTEBOOK="$$PWD/Examples/WhichEngine/which-engine.ipynb"))
	cd "$$folder"
	package=$$(env -i PATH="$$bin:/usr/bin:/bin" HOME="$$HOME" "$$bin/python" -c 'import touchstone; print(*touchstone.__path__)')
	env -i PATH="$$bin:/usr/bin:/bin" HOME="$$HOME" PYTHONDEVMODE=1 "$${notebook[@]}" \
	  "$$bin/python" -m pytest -q -p no:cacheprovider --doctest-modules "$$package" "$$tests" $(PYTEST)

# Documents for `make bench-python`, as JSON lines; without it some are made up.
DOCUMENTS ?=

bench-python: ## Measures the Python package, beside DuckDB, in the environment of `make test-python`: DOCUMENTS=FILE
	@bin=$$PWD/$(SCRATCH)/python/bin
	[ -x "$$bin/python" ] || { echo "bench-python: run make test-python first" >&2; exit 2; }
	"$$bin/pip" install -q --disable-pip-version-check duckdb
	documents=$(if $(DOCUMENTS),"$(abspath $(DOCUMENTS))")
	cd $(SCRATCH)/python
	"$$bin/python" "$(abspath python/tests/measure.py)" $$documents

# Where `make install` puts the command, below DESTDIR if that is set.
PREFIX ?= /usr/local
DESTDIR ?=
INSTALLED = bin/touchstone bin/touchstone-scripts share/man/man1/touchstone.1 \
  share/bash-completion/completions/touchstone share/zsh/site-functions/_touchstone \
  share/fish/vendor_completions.d/touchstone.fish
# And, if `make library` has built it.
INSTALLED_LIBRARY = lib/$(SONAME) lib/libtouchstone.so include/touchstone.h lib/pkgconfig/touchstone.pc

install: ## Installs what `make build` built, with a manual page and completions: PREFIX=DIR
	@built=$(SCRATCH)/release
	for program in touchstone touchstone-scripts; do
	  [ -x "$$built/$$program" ] || { echo "install: run make build first: there is no $$built/$$program" >&2; exit 2; }
	done
	to="$(DESTDIR)$(PREFIX)"
	install -d "$$to/bin" "$$to/share/man/man1" "$$to/share/bash-completion/completions" \
	  "$$to/share/zsh/site-functions" "$$to/share/fish/vendor_completions.d"
	install "$$built/touchstone" "$$built/touchstone-scripts" "$$to/bin"
	"$$built/touchstone" help --man > "$$to/share/man/man1/touchstone.1"
	"$$built/touchstone" completions bash > "$$to/share/bash-completion/completions/touchstone"
	"$$built/touchstone" completions zsh > "$$to/share/zsh/site-functions/_touchstone"
	"$$built/touchstone" completions fish > "$$to/share/fish/vendor_completions.d/touchstone.fish"
	for file in $(INSTALLED); do echo "install: $$to/$$file"; done
	[ -e "$(LIBRARY)" ] || { echo "install: without the library for C: make library builds it"; exit 0; }
	install -d "$$to/lib/pkgconfig" "$$to/include"
	install -m 644 -s "$(LIBRARY)" "$$to/lib/$(SONAME)"
	ln -sf $(SONAME) "$$to/lib/libtouchstone.so"
	install -m 644 Sources/Bindings/CTouchstone/touchstone.h "$$to/include/touchstone.h"
	version=$$(sed -n 's/^package let touchstoneVersion = "\(.*\)"/\1/p' Sources/Facade/Touchstone/Version.swift)
	printf '%s\n' 'prefix=$(PREFIX)' 'Name: touchstone' 'Description: A database of JSON documents' "Version: $$version" \
	  'Cflags: -I$${prefix}/include' 'Libs: -L$${prefix}/lib -ltouchstone' > "$$to/lib/pkgconfig/touchstone.pc"
	for file in $(INSTALLED_LIBRARY); do echo "install: $$to/$$file"; done

uninstall: ## Removes what `make install` installed: PREFIX=DIR
	@for file in $(INSTALLED) $(INSTALLED_LIBRARY); do rm -f "$(DESTDIR)$(PREFIX)/$$file"; done

# Packages that only `make deb` needs, and where it writes.
DEB_PACKAGES := dpkg-dev patchelf fakeroot lintian
DEB ?= .build/deb

# What is installed elsewhere has no checks of threads.
deb: export TOUCHSTONE_CHECKS =
deb: deps ## Makes a Debian package that needs no Swift, and checks it with lintian: DEB=DIR
	@missing=()
	for package in $(DEB_PACKAGES); do
	  [ "$$(dpkg-query -W -f '$${db:Status-Status}' "$$package" 2>/dev/null)" = installed ] || missing+=("$$package")
	done
	if [ "$${#missing[@]}" -gt 0 ]; then
	  echo "deb: these packages are missing: apt-get install $${missing[*]}" >&2
	  exit 2
	fi
	# The runtime is linked into the programs, so what is built is kept apart. A package that is passed on has no WiredTiger, whose
	# licence is the GPL (docs/storage-wiredtiger.md).
	export TOUCHSTONE_ENGINES='$(or $(strip $(filter-out wiredtiger,$(TOUCHSTONE_ENGINES))),none)'
	# Nothing opens the programs as libraries, so they export nothing, which the compiler asks for with a static runtime. Relative
	# relocations are packed: glibc reads these from 2.36 on.
	linking=(-Xswiftc -use-ld=lld -Xlinker --no-export-dynamic -Xlinker -z -Xlinker pack-relative-relocs)
	for product in touchstone touchstone-scripts; do
	  swift build -c release -Xswiftc -no-emit-module-separately-wmo --static-swift-stdlib "$${linking[@]}" --scratch-path .build/static \
	    --product "$$product"
	done
	package=$$(Packaging/make-deb .build/static/release "$(DEB)")
	lintian --fail-on error --no-tag-display-limit "$$package"
	echo "deb: $$package, $$(stat -c %s "$$package") bytes"

# Builds and runs the tests: in several processes, the longest first (Tests/Support/TestRunner). The build makes the
# command too: one without tests before it would make everything twice.
define build-tests
	swift build $(SWIFT_FLAGS) --build-tests
	run_tests() {
	  $(SCRATCH)/release/test-runner $(SCRATCH)/release/TouchstonePackageTests.xctest \
	    --weights Tests/weights.txt --logs $(SCRATCH)/test-logs --hung-after $(HUNG_AFTER) \
	    $(if $(JOBS),--jobs $(JOBS)) $(IN_MEMORY) "$$@"
	}
endef

# The suites that are about disks.
ON_DISK := ColdSuite|DatabaseFolderReplace
# The temporary files of short runs are in memory, where there is room. IN_MEMORY= puts them on the disk.
IN_MEMORY ?= $(if $(SANITIZE)$(TOUCHSTONE_LONG),,--in-memory --on-disk '$(ON_DISK)')
test-long: IN_MEMORY :=

# What is run on strict engines (docs/testing.md): their conformance, and the suites above the engines, whose databases are
# on them when TOUCHSTONE_STRICT=1.
STRICT_CONFORMANCE := ^StorageTests[.]StrictConformanceTests
STRICT_SUITES := $(STRICT_CONFORMANCE)|^(DocumentsTests|BlobsTests|QueryTests|FullTextTests|TouchstoneTests|ReplicationTests|HTTPAPITests)[.]
# What asks for a certain plan: strict engines count wrongly, and so plans differ.
STRICT_PLANS := PlanTests
# What says nothing about strict engines, since its children, its syntax trees or its messages know none; or takes long there, as damage.
STRICT_OTHERS := Process|Kill|HostileClient|LargeAttachment|Syntax|Builder|Function|Cancellation|Differential|Original|SharedOpens
STRICT_QUERIES := QuerySize|RowFile|RowChanges|JSONQuery|LikeTests|LongCondition|ExactSum|SlidingFrame|ForeignWindow|SpillingFault|smallGroups
STRICT_WIRE := TokenTests|UserDocument|UserListener|RequestLimit|WireBody|TooLong|JSONDelta|LongList|RefusedPush
STRICT_UNREAD := PublicSurface|WordBreak|StemTests|$(STRICT_QUERIES)|$(STRICT_WIRE)
STRICT_LONG := Transcript|HostilePeer|BodyMemory|Observer|CompactionPolicy|ComparisonTests|MemoryLimit|Checksum|Damage|damage
# What is run with commits of others between any two transactions: what keeps something in memory meanwhile.
STRANGER_SUITES := ^DocumentsTests[.]|^QueryTests[.](IndexMaintenance|FullTextIndex|FullTextQuery|WorkedExample|Execution)Tests

# What the tests are run with, ordinary ones and those on strict engines.
RUN_ALL := --filter '$(FILTER)' --skip '$(STRICT_CONFORMANCE)'
RUN_STRICT := --strict-filter '$(STRICT_SUITES)' --strict-skip '$(STRICT_PLANS)|$(STRICT_OTHERS)|$(STRICT_UNREAD)|$(STRICT_LONG)'
RUN_STRICT_LONG := --strict-filter '$(STRICT_SUITES)' --strict-skip '$(STRICT_PLANS)'

test: deps ## Builds, and runs the tests; SANITIZE=thread or address runs them under a sanitizer
	@$(build-tests)
	run_tests $(if $(FILTER),--filter '$(FILTER)',$(RUN_ALL) $(if $(SANITIZE),,$(RUN_STRICT)))

test-weights: deps ## Runs the tests, and writes how long each suite takes to Tests/weights.txt
	@$(build-tests)
	run_tests $(RUN_ALL) $(RUN_STRICT) --save-weights

# The folders of a part's tests: Query has QueryTests and QueryDifferentialTests.
PART_TESTS = $(notdir $(wildcard Tests/*/$(PART)*Tests))
PART_FILTER = ^($(subst $(space),|,$(strip $(PART_TESTS))))[.]
comma := ,
empty :=
space := $(empty) $(empty)

quick: deps ## Builds and runs the tests of one part only: make quick PART=Query
	@if [ -z "$(PART)" ] || [ -z "$(PART_TESTS)" ]; then
	  echo "quick: PART is the beginning of the name of a folder of tests, such as Query" >&2
	  exit 2
	fi
	export TOUCHSTONE_TESTS=$(subst $(space),$(comma),$(strip $(PART_TESTS)))
	$(build-tests)
	run_tests --filter '$(PART_FILTER)'

test-long: HUNG_AFTER := 0
test-long: deps ## Runs the tests with the long campaigns, all suites on strict engines, both sanitizers, and valgrind; PART=Query: the long tests of one part
	@export TOUCHSTONE_LONG=1
	$(build-tests)
	if [ -n "$(PART)" ]; then
	  run_tests --only '$(PART_FILTER)' $(RUN_ALL) $(RUN_STRICT_LONG)
	  exit
	fi
	if [ -n "$(FILTER)$(SANITIZE)" ]; then run_tests --filter '$(FILTER)'; exit; fi
	run_tests $(RUN_ALL) $(RUN_STRICT_LONG)
	echo "test-long: with commits of others between any two transactions"
	TOUCHSTONE_STRICT=1 TOUCHSTONE_STRICT_STRANGERS=1 run_tests --filter '$(STRANGER_SUITES)' \
	  --skip '$(STRICT_PLANS)|$(STRICT_OTHERS)|$(STRICT_LONG)'
	unset TOUCHSTONE_LONG
	$(MAKE) --no-print-directory test SANITIZE=address
	$(MAKE) --no-print-directory test SANITIZE=thread
	$(MAKE) --no-print-directory examples SANITIZE=thread
	echo "test-long: an app and the library in debug mode"
	swift build --package-path Examples/Notes --scratch-path .build/app
	timeout 600 .build/app/debug/notes selftest
	$(MAKE) --no-print-directory valgrind
	$(MAKE) --no-print-directory test-failover

simulate: deps ## Runs simulations of several processes on one database, and of a machine that fails, until one is wrong (docs/testing.md)
	@swift build $(SWIFT_FLAGS) --product whole-child
	trap 'kill $$(jobs -p) 2>/dev/null || true' EXIT
	$(SCRATCH)/release/whole-child machine search $(SIMULATION_SEED) &
	$(SCRATCH)/release/whole-child simulation search $(SIMULATION_SEED) 200 &
	wait -n

# The names of planted faults; empty is all.
FAULTS ?=

planted: deps ## Plants each fault of Tests/Whole/PlantedFaults, or of FAULTS, in a copy, and looks whether the simulation finds it
	@Tests/Whole/PlantedFaults/run $(FAULTS)

valgrind: deps ## Runs the conformance suite, and random transactions, under valgrind; installs it when it is missing
	@command -v valgrind >/dev/null || { sudo=; [ "$$(id -u)" = 0 ] || sudo=sudo; $$sudo apt-get install -y -qq valgrind; }
	swift build $(SWIFT_FLAGS) --product storage-child
	directory=$$(mktemp -d)
	trap 'rm -rf "$$directory"' EXIT
	# Its reader of debugging information doesn't know all that the compiler writes.
	strip -o "$$directory/storage-child" $(SCRATCH)/release/storage-child
	# It can't reserve the addresses that LMDB's map has by default.
	export TOUCHSTONE_LMDB_MAP_BYTES=1073741824
	key=000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f
	for engine in sqlite lmdb sqlcipher lmdb-encrypted; do
	  case $$engine in sqlite|lmdb) engine_key=- ;; *) engine_key=$$key ;; esac
	  for work in "conformance $$engine $$engine_key $$directory 1" \
	    "scripts $$engine $$engine_key $$directory/script 1 0 3 100000 all"; do
	    echo "valgrind: $$work"
	    # shellcheck disable=SC2086
	    valgrind -q --error-exitcode=9 --leak-check=no --suppressions=Tests/valgrind.supp "$$directory/storage-child" storage $$work \
	      > "$$directory/log" 2>&1 || { grep -v '^###' "$$directory/log" >&2; exit 1; }
	  done
	done

# Their packages share the objects of this one: with the same flags and the same directory nothing of it is built twice.
examples: deps ## Builds the examples and runs the self-test of the notes; with SANITIZE=thread or address only the notes
	@for example in Examples/$(if $(SANITIZE),Notes,*)/Package.swift; do
	  swift build $(SWIFT_FLAGS) $(if $(SANITIZE),,--scratch-path $(SCRATCH)) --package-path "$$(dirname "$$example")"
	done
	timeout 300 $(SCRATCH)/release/notes selftest

# The compilers that build the example in C.
C_COMPILERS ?= gcc clang
# What reports errors of the library's users and not of the library: valgrind doesn't know all that Swift does.
VALGRIND = valgrind -q --error-exitcode=9 --leak-check=full --show-leak-kinds=definite --errors-for-leak-kinds=definite --suppressions=Tests/valgrind.supp

# Children that Tests/Bindings/forks.c forks.
FORKS ?= 300

examples-c: library ## Builds the example in C with gcc and clang, and runs it, under the address sanitizer and under valgrind
	@folder=$$PWD/$(SCRATCH)/examples-c
	library=$$PWD/$(dir $(LIBRARY))
	Tests/Bindings/check-exports "$(LIBRARY)" Tests/Bindings/forks.c Fuzz/C/calls.c
	rm -rf "$$folder"
	mkdir -p "$$folder/databases"
	$(firstword $(C_COMPILERS)) -std=gnu11 -g -Wall -Wextra -Werror -pthread -I Sources/Bindings/CTouchstone \
	  -o "$$folder/forks" Tests/Bindings/forks.c -L "$$library" -ltouchstone -Wl,-rpath,"$$library"
	# A call that waits in a child waits until then.
	timeout 900 "$$folder/forks" $(FORKS) "$$folder/databases"
	for compiler in $(C_COMPILERS); do
	  if ! command -v "$$compiler" >/dev/null; then echo "examples-c: without $$compiler, which isn't installed"; continue; fi
	  for sanitizer in '' '-fsanitize=address,undefined'; do
	    # The default linker warns about each of the sanitizer's own symbols.
	    [ "$$compiler" != clang ] || sanitizer="$$sanitizer -fuse-ld=lld"
	    rm -rf "$$folder"
	    mkdir -p "$$folder/databases"
	    $$compiler -std=c11 -g -Wall -Wextra -Werror -pedantic $$sanitizer -I Sources/Bindings/CTouchstone \
	      -o "$$folder/hotels" Examples/C/hotels.c -L "$$library" -ltouchstone -Wl,-rpath,"$$library"
	    ASAN_OPTIONS=detect_leaks=0 timeout 300 "$$folder/hotels" "$$folder/databases" > "$$folder/output"
	    grep -qx closed "$$folder/output"
	  done
	done
	if ! command -v valgrind >/dev/null; then echo "examples-c: without valgrind, which isn't installed"; exit 0; fi
	# Its reader of debugging information doesn't know all that the compiler writes.
	strip -o "$$folder/$(SONAME)" "$(LIBRARY)"
	clang -std=c11 -I Sources/Bindings/CTouchstone -o "$$folder/hotels" Examples/C/hotels.c \
	  -L "$$library" -ltouchstone -Wl,-rpath,"$$folder"
	rm -rf "$$folder/databases"; mkdir "$$folder/databases"
	# It can't reserve the addresses that LMDB's map has by default.
	TOUCHSTONE_LMDB_MAP_BYTES=1073741824 timeout 900 $(VALGRIND) "$$folder/hotels" "$$folder/databases" > "$$folder/output"
	grep -qx closed "$$folder/output"

test-http: build ## Runs clients of CouchDB from PyPI, a browser, curl and h2load against `touchstone serve` on ENGINES
	@SUITES='$(SUITES)' Tests/CouchDB/HTTPClients/run $(SCRATCH)/release/touchstone $(SCRATCH)/http-clients $(ENGINES)

# Rounds of `make test-failover`.
ROUNDS ?= 2

test-failover: build ## Lets a cluster of PostgreSQL under Patroni fail while servers write to it; says so if it isn't installed
	@Tests/Whole/Failover/failover $(SCRATCH)/release/touchstone --rounds $(ROUNDS)

# RocksDB and WiredTiger, where the build has them, for lists of engines.
AND_OTHERS = $(subst $(space),,$(foreach engine,$(filter rocksdb wiredtiger,$(TOUCHSTONE_ENGINES)),$(comma)$(engine)))

bench: build ## Weighs SQLite, LMDB, SQLCipher and, where installed, RocksDB and WiredTiger, in under four minutes
	@mkdir -p results/local
	$(SCRATCH)/release/touchstone bench travel --engines sqlite,lmdb,sqlcipher$(AND_OTHERS) \
	  --work-directory $(SCRATCH) --output results/local/bench.json

bench-full: build ## Runs all suites, in under forty minutes on two cores: results/local/SUITE.json and report/
	@mkdir -p $(RESULTS)
	touchstone=$(SCRATCH)/release/touchstone
	for suite in $$("$$touchstone" bench --list | sed -n 's/^\([a-z]*\): .*/\1/p' | grep -v '^mine$$'); do
	  echo "bench-full: $$suite, from $$(date +%T)"
	  samples=$(SAMPLES)
	  case $$suite in
	    travel) options="--engines sqlite,lmdb,sqlcipher,lmdb-encrypted$(AND_OTHERS)" ;;
	    endure) options="--duration 10"; samples=1 ;;
	    scale) options="--scale-docs $(SCALE_DOCS)" ;;
	    *) options= ;;
	  esac
	  "$$touchstone" bench $$suite $$options --samples $$samples --work-directory $(SCRATCH) \
	    --output $(RESULTS)/$$suite.json > $(RESULTS)/$$suite.txt
	  files="$${files:-} $(RESULTS)/$$suite.json"
	done
	"$$touchstone" report $$files --output $(RESULTS)/report
	echo "bench-full: $(RESULTS)/report/index.html, and the tables in $(RESULTS)/*.txt"

# Modules whose types Touchstone exports. The reference shows these types as Touchstone's own.
EXPORTED_MODULES = $(shell sed -nE 's/^@_exported import [a-z]+ ([A-Za-z0-9]+)[.].*/\1/p' Sources/Facade/Touchstone/Exports.swift | sort -u)

docs: build ## Compiles the code in the pages, and builds the API reference: DOCS=DIR
	@swift docs/check-code.swift $(SCRATCH)/release
	info=$$(swiftc -print-target-info)
	value() { sed -nE "s/^ *\"$$1\": \"(.*)\",?$$/\1/p" <<<"$$info" | head -n 1; }
	tools=$$(value runtimeResourcePath)/../../bin
	if [ ! -x "$$tools/docc" ] || [ ! -x "$$tools/swift-symbolgraph-extract" ]; then
	  echo "docs: skipped the API reference: this toolchain has no docc" >&2; exit 0
	fi
	graphs=$$(mktemp -d)
	trap 'rm -rf "$$graphs"' EXIT
	maps=()
	for map in Sources/CLibraries/*/module.modulemap $(SCRATCH)/release/*.build/module.modulemap; do maps+=(-Xcc "-fmodule-map-file=$$map"); done
	# The graph of Touchstone lacks what other modules add to their types in extensions, so each module has a graph of its
	# own, and docc takes them as one module. Of Storage, Touchstone's graph shows the exported types: the others are for
	# writers of engines.
	for module in Touchstone $(filter-out Storage System,$(EXPORTED_MODULES)); do
	  "$$tools/swift-symbolgraph-extract" -module-name $$module -target "$$(value triple)" \
	    -I $(SCRATCH)/release/Modules "$${maps[@]}" -minimum-access-level public -skip-synthesized-members \
	    -experimental-allowed-reexported-modules=Storage,System -output-dir "$$graphs"
	done
	rm -f "$$graphs"/*@Swift.* "$$graphs"/*@Foundation*
	for graph in "$$graphs"/*@*; do mv "$$graph" "$${graph/@/-}"; done
	sed -i -E 's/"module":\{"name":"[A-Za-z0-9]+"/"module":{"name":"Touchstone"/' "$$graphs"/*
	"$$tools/docc" convert Sources/Facade/Touchstone/Touchstone.docc --additional-symbol-graph-dir "$$graphs" \
	  --fallback-display-name Touchstone --fallback-bundle-identifier touchstone \
	  --fallback-default-module-kind Package --warnings-as-errors --output-dir $(DOCS)
	echo "docs: to read the reference, run: python3 -m http.server -d $(DOCS)"
	echo "docs: then open http://localhost:8000/documentation/touchstone/"

lint: ## Checks the formatting of Swift and what else is cheap to check
	@paths=(Package.swift Sources Tests docs Examples)
	[ ! -d Fuzz ] || paths+=(Fuzz)
	swift format lint --strict --parallel --recursive --configuration .swift-format "$${paths[@]}"
	bash -n .ci/run
	# Trailing blanks and tabs, in what swift-format doesn't read.
	if grep -rnIE --include='*.[ch]' --include='*.cpp' --include='*.md' --exclude-dir=.build \
	  '[[:blank:]]+$$|	' .; then echo "lint: trailing blanks or tabs" >&2; exit 1; fi
	# Neither has a place where data or a user can reach it.
	if grep -rnE --include='*.swift' 'try!|fatalError\(' Sources; then
	  echo "lint: throw a typed error instead" >&2; exit 1
	fi
	# All of Foundation brings ICU's data: 34 MB for the programs, and time for each start.
	if grep -rnE --include='*.swift' '^([@a-zA-Z()_]+ )*import ([a-z]+ )?Foundation(Internationalization|Networking)?\b' Sources; then
	  echo "lint: import FoundationEssentials" >&2; exit 1
	fi
	# In a process with more than 1,024 open files, Foundation's class never learns of an end. An exit test then waits for ever too.
	if grep -rnE --include='*.swift' '\bProcess\(\)|processExitsWith' Sources Tests; then
	  echo "lint: start programs with ChildProcess" >&2; exit 1
	fi
	# A BIO keeps the pointer it is made with. That of an array without a closure may end with the call.
	if grep -rn --include='*.swift' 'BIO_new_mem_buf(' Sources Tests | grep -v 'baseAddress'; then
	  echo "lint: lend the bytes to BIO_new_mem_buf with withUnsafeBytes" >&2; exit 1
	fi
	# Every planted fault can still be planted.
	for patch in Tests/Whole/PlantedFaults/*.patch; do
	  git apply --check "$$patch" || { echo "lint: $$patch doesn't apply any more" >&2; exit 1; }
	done
	# The architecture page names every module and draws what Package.swift says.
	TOUCHSTONE_ENGINES='rocksdb wiredtiger postgres' swift docs/draw-modules.swift --check
	# The numbers of lines in docs/testing.md are right to 3 %.
	lines() { git ls-files "$$1/*.swift" "$$1/*.c" "$$1/*.h" "$$1/*.cpp" | xargs cat | wc -l; }
	said=$$(sed -nE 's/^about ([0-9,]+) lines of tests for ([0-9,]+) lines .*/\1 \2/p' docs/testing.md | tr -d ,)
	awk -v said="$$said" -v tests="$$(lines Tests)" -v sources="$$(lines Sources)" 'BEGIN {
	  split(said, n, " ")
	  if (n[1] < tests * 0.97 || n[1] > tests * 1.03 || n[2] < sources * 0.97 || n[2] > sources * 1.03) {
	    print "lint: docs/testing.md says \"" said "\": there are " tests " lines of tests for " sources > "/dev/stderr"
	    exit 1
	  }
	}'
	# Every page is linked from the index of pages.
	for page in docs/*.md; do
	  [ "$$page" = docs/README.md ] || grep -qF "($$(basename "$$page"))" docs/README.md \
	    || { echo "lint: docs/README.md doesn't link $$page" >&2; exit 1; }
	done
	# Links between the project's own pages lead somewhere.
	git ls-files '*.md' | while read -r page; do
	  { grep -oE '\]\([^)#: ]+' "$$page" || true; } | sed 's/^](//' | while read -r link; do
	    [ -e "$$(dirname "$$page")/$$link" ] || { echo "$$page: a link leads nowhere: $$link" >&2; exit 1; }
	  done
	done

fuzz: deps ## Runs each fuzz target for SECONDS (60) seconds
	@for target in fuzz-fleece fuzz-json fuzz-query fuzz-match fuzz-blip fuzz-websocket fuzz-http fuzz-forestdb; do
	  # Only this: what else uses the fuzzed module isn't linked with the sanitizer.
	  TOUCHSTONE_FUZZ=1 swift build -c release --scratch-path .build/fuzz --product "$$target"
	  corpus=.build/fuzz/corpus/$$target
	  mkdir -p "$$corpus" .build/fuzz/found
	  seeds=(); [ ! -d "Fuzz/Seeds/$$target" ] || seeds=("Fuzz/Seeds/$$target")
	  # Files of others, where they are (docs/testing.md).
	  if [ "$$target" = fuzz-forestdb ] && [ -n "$${TOUCHSTONE_DATA:-}" ]; then
	    for directory in "$$TOUCHSTONE_DATA"/cblite-1x/*forestdb*/; do [ ! -d "$$directory" ] || seeds+=("$$directory"); done
	  fi
	  echo "fuzz: $$target for $(SECONDS) s"
	  .build/fuzz/release/$$target "$$corpus" "$${seeds[@]}" -max_total_time=$(SECONDS) -timeout=10 \
	    -rss_limit_mb=2048 -print_final_stats=1 -artifact_prefix=.build/fuzz/found/$$target- \
	    2> >(grep -vE '^#[0-9]+' >&2)
	done

# Where `make fuzz-c` begins, and how many calls it makes on one thread, and again on C_THREADS. 1000000 is the long count.
C_SEED ?= 1
CALLS ?= 20000
C_THREADS ?= 4

fuzz-c: library ## Makes random calls of the C interface under the address sanitizer: C_SEED=N, CALLS=N
	@folder=$$PWD/$(SCRATCH)/fuzz-c
	rm -rf "$$folder"
	mkdir -p "$$folder/one" "$$folder/several"
	$(firstword $(C_COMPILERS)) -std=c11 -g -Wall -Wextra -Werror -fsanitize=address -pthread -I Sources/Bindings/CTouchstone \
	  -o "$$folder/calls" Fuzz/C/calls.c -L "$(dir $(LIBRARY))" -ltouchstone -Wl,-rpath,"$$PWD/$(dir $(LIBRARY))"
	# Swift keeps tags in the bits of an enum's pointers, so that the leak detector takes its globals' memory for lost.
	export ASAN_OPTIONS=detect_leaks=0
	"$$folder/calls" $(C_SEED) $(CALLS) "$$folder/one"
	"$$folder/calls" $(C_SEED) $(CALLS) "$$folder/several" $(C_THREADS)

# Where `make fuzz-queries` begins; empty is anywhere. QUERY_CASE runs one failing case again, from a file of its text.
QUERY_SEED ?=
QUERY_CASE ?=

fuzz-queries: deps ## Asks random queries on all engines until one is answered wrongly: QUERY_SEED=N, QUERY_CASE=FILE
	@swift build $(SWIFT_FLAGS) --product random-queries
	$(SCRATCH)/release/random-queries $(if $(QUERY_SEED),--seed $(QUERY_SEED)) $(if $(QUERY_CASE),--case $(QUERY_CASE))

# Where `make fuzz-storage` begins; empty is anywhere.
STORAGE_SEED ?=

fuzz-storage: deps ## Runs random transactions on all engines until one differs from a sorted map: STORAGE_SEED=N
	@swift build $(SWIFT_FLAGS) --product storage-child
	directory=$$(mktemp -d)
	trap 'rm -rf "$$directory"' EXIT
	seed=$(if $(STORAGE_SEED),$(STORAGE_SEED),$$RANDOM$$RANDOM)
	for ((first = 0; ; first += 100)); do
	  for engine in sqlite lmdb sqlcipher sqlcipher-plain lmdb-encrypted $(filter rocksdb wiredtiger,$(TOUCHSTONE_ENGINES)); do
	    echo "fuzz-storage: $$engine, seed $$seed, scripts from $$first"
	    $(SCRATCH)/release/storage-child storage fuzz $$engine - "$$directory" $$seed $$first $$((first + 100))
	  done
	done

clean: ## Removes what was built, and local results
	@rm -rf .build results/local
