#!/usr/bin/env bash
# Everything that must hold before a change is merged: `make test`. Stops at the first failure.
# The last line sums up the tests of all CTest runs: "N passed, M failed".
set -euo pipefail
cd "$(dirname "$0")/.."

jobs=$(nproc)
passed=0
failed=0
step="nothing"

heading() {
  step=$1
  printf '\n==== %s (%d s)\n' "$step" "$SECONDS"
}

finish() {
  local code=$?
  ((code == 0)) || printf '\nFAILED: %s\n' "$step"
  printf '\n%d passed, %d failed\n' "$passed" "$failed"
  exit "$code"
}
trap finish EXIT

attribute() {  # attribute NAME FILE: a number in the head of a JUnit file
  sed -n "0,/ $1=\"/s/.*[[:space:]]$1=\"\([0-9]*\)\".*/\1/p" "$2"
}

run_preset() {  # run_preset NAME
  local results=build/$1/ctest.xml code=0
  heading "build: $1"
  cmake --preset "$1" >"build/$1.configure.log" 2>&1 || { cat "build/$1.configure.log"; return 1; }
  cmake --build --preset "$1" --parallel "$jobs"

  heading "test: $1"
  rm -f "$results"
  ctest --preset "$1" --output-on-failure --parallel "$jobs" --no-tests=error |
    sed -u '/^ *Start *[0-9]*: /d' || code=$?
  [[ -f $results ]] || return 1

  local all bad skipped
  all=$(attribute tests "$results")
  skipped=$(($(attribute skipped "$results") + $(attribute disabled "$results")))
  bad=$(attribute failures "$results")
  passed=$((passed + all - bad - skipped))
  failed=$((failed + bad))
  if ((skipped > 0)); then
    echo "$skipped tests were skipped or disabled; a skipped test counts as a failed run"
    failed=$((failed + skipped))
    return 1
  fi
  return "$code"
}

mkdir -p build

heading "packages"
tools/setup.sh

heading "quick checks: layers, awaits, style, format, tests of the tools"
tools/lint.sh --quick

for preset in release gcc asan-ubsan tsan; do
  run_preset "$preset"
done

heading "end to end: the real binary, driven by real clients"
STINT=build/release/stint tests/e2e/run.sh

heading "package: install, find_package, build and run with both compilers"
tests/package/run.sh
