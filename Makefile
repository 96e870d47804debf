# The few commands people type. What they do is in CMakePresets.json and tools/.

JOBS ?= $(shell nproc)

.PHONY: help setup build run test bench bench-gateway bench-redis profile lint format package clean

help:
	@echo 'make setup            install the Debian packages that stint needs'
	@echo 'make build            build the release preset into build/release'
	@echo 'make run              build the program alone, and run the demo: a gateway to try with curl'
	@echo 'make test             all checks and tests, both compilers, with sanitizers'
	@echo 'make bench            run the benchmarks     [BENCH_ARGS=--benchmark_filter=...]'
	@echo 'make profile          record anew by what the release preset is optimized'
	@echo 'make lint             quick checks and clang-tidy      [SINCE=<commit>: changed files]'
	@echo 'make format           format all sources in place'
	@echo 'make package          a tarball of program and library in build/package'
	@echo 'make clean            remove build/'
	@echo
	@echo 'To develop: cmake --preset dev && cmake --build --preset dev && ctest --preset dev'

setup:
	@tools/setup.sh

# Configured each time: it takes a second, and new files in a CMakeLists.txt are never missed.
build:
	@cmake --preset release
	@cmake --build --preset release --parallel $(JOBS)

run: setup
	@cmake --preset release
	@cmake --build --preset release --parallel $(JOBS) --target stint_program
	@build/release/stint demo

test:
	@tools/test.sh

bench: build
	@while read -r bench; do "$$bench" $(BENCH_ARGS) || exit; done < build/release/benches.txt

bench-gateway: build
	@bench/gateway/run.py
	@bench/gateway/memory.py

bench-redis: build
	@bench/redis/run.py
	@bench/redis/ring.py
	@bench/redis/cluster.py
	@bench/redis/flapping.py

profile:
	@tools/profile.sh

lint:
	@tools/lint.sh $(if $(SINCE),--since $(SINCE))

format:
	@tools/lint.sh --format

package: build
	@cd build/release && cpack

clean:
	@rm -rf build
