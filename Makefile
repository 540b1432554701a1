# On a new machine with Python >= 3.11 and a C++20 compiler, `make demo` and `make test` need no set-up:
# each creates .venv, compiles the C++ core and installs kernelmill into it.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
BUILD_INPUTS := pyproject.toml CMakeLists.txt $(wildcard cmake/*) \
	$(shell find native bindings -name '*.cpp' -o -name '*.hpp')
NATIVE_SOURCES := $(shell find native bindings -name '*.cpp' -o -name '*.hpp')
CMAKE := $(BIN)/cmake
# Each process starts with half of the tests, in order; the first to finish takes over some of the rest.
PYTEST := $(BIN)/python -m pytest -n 2 --dist worksteal
CHECKED := -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_FLAGS_DEBUG="-O1 -g1"
NATIVE_TESTS := -G Ninja -DKERNELMILL_PYTHON=OFF -DKERNELMILL_TESTS=ON -DKERNELMILL_EMULATED_512=ON

# Each of the processes of a test run would compile all modules and tests again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo check test python-test test-pythons lint style types format bench native-test sanitize \
	cross fuzz fuzz-native fuzz-bindings faults reproduce clean

demo: $(VENV)/installed
	$(BIN)/kernelmill demo --out build/demo

# Some tests of every layer, for the time while a change is being written: under a minute.
check: lint
	$(PYTEST) -m representative tests

# Everything that a change must pass, at once where it can be: some tests wait most of their time.
test: style
	$(MAKE) --no-print-directory -j3 types native-test python-test

python-test: $(VENV)/installed
	$(PYTEST) --durations=25

# The representative tests with the installed wheel, on each of these versions that is installed.
# PYTHONS may also hold paths of interpreters.
PYTHONS ?= 3.11 3.12 3.13 3.14
test-pythons: $(VENV)/installed
	$(BIN)/python tools/test_pythons.py $(PYTHONS)

lint: style types

style: $(VENV)/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/clang-format --dry-run --Werror $(NATIVE_SOURCES)

types: $(VENV)/installed
	$(BIN)/mypy

format: $(VENV)/installed
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/clang-format -i $(NATIVE_SOURCES)

bench: $(VENV)/installed
	$(BIN)/python -m benchmarks

# The papers' tables and figures at reduced sizes, in minutes. `make reproduce QUICK=` takes hours.
QUICK ?= --quick
reproduce: $(VENV)/installed
	$(BIN)/python -m reproduce all $(QUICK)

# With the kernels of the extension module, compiled by the installation, beside the emulated ones.
native-test: $(VENV)/installed
	$(CMAKE) -S . -B build/native $(NATIVE_TESTS) \
		-DKERNELMILL_KERNELS_FROM=$(abspath $(dir $(firstword $(wildcard build/*/_native.*))))
	$(CMAKE) --build build/native
	build/native/native/tests/native_tests

# The native tests with memory and undefined-behaviour checks, then with data-race checks.
sanitize: $(VENV)/installed
	$(CMAKE) -S . -B build/asan $(NATIVE_TESTS) $(CHECKED) \
		-DCMAKE_CXX_FLAGS="-fsanitize=address,undefined -fno-sanitize-recover=all"
	$(CMAKE) --build build/asan
	build/asan/native/tests/native_tests
	$(CMAKE) -S . -B build/tsan $(NATIVE_TESTS) $(CHECKED) -DKERNELMILL_EMULATED_512=OFF \
		-DCMAKE_CXX_FLAGS="-fsanitize=thread"
	$(CMAKE) --build build/tsan
	TSAN_OPTIONS="halt_on_error=1 die_after_fork=0" build/tsan/native/tests/native_tests threads

# Mutated tables, model files and checkpoints: N of each kind, from SEED.
N ?= 1000
SEED ?= 0
fuzz: $(VENV)/installed
	$(BIN)/python -m fuzzing --count $(N) --seed $(SEED)

# The parser of svmlight files under libFuzzer, ASan and UBSan.
CLANG ?= clang++
fuzz-native:
	@command -v $(CLANG) > /dev/null || { echo "skipped: $(CLANG) is not installed"; exit 0; }; \
	mkdir -p build/fuzzing/svmlight && \
	$(CLANG) -std=c++20 -O1 -g -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all \
		-Inative/include -Inative/core fuzzing/native/fuzz_svmlight.cc native/core/svmlight.cpp \
		-o build/fuzzing/fuzz_svmlight && \
	build/fuzzing/fuzz_svmlight -runs=$(N)000 -seed=1$(SEED) -max_len=400 build/fuzzing/svmlight

# The arrays that Python passes to the C++ core, with an extension module under ASan.
fuzz-bindings: $(VENV)/installed
	sh tools/fuzz_bindings.sh $(BIN)/python $(N) $(SEED)

# Killed processes, full disks, clocks that jump, little memory.
faults: $(VENV)/installed
	$(BIN)/python -m fuzzing.faults --count $(N_FAULTS) --seed $(SEED)
N_FAULTS ?= 40

# The C++ core for AArch64, and its tests in an emulator if there is one.
cross: $(VENV)/installed
	sh tools/cross_aarch64.sh $(CMAKE)

$(VENV)/installed: $(BUILD_INPUTS)
	@$(PYTHON) tools/check_prerequisites.py
	@echo "Setting up .venv and compiling the C++ core: a few minutes the first time."
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1'
	$(BIN)/python -m pip install --quiet --group build --group test --group lint
	$(BIN)/python -m pip install --quiet --no-build-isolation --editable .
	touch $@

clean:
	rm -rf build dist $(VENV)
