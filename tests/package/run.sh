#!/usr/bin/env bash
# Installs the release build into an empty prefix and uses it from a project of its own, with both
# compilers. Fails unless that project finds, builds and runs against nothing but the prefix.
set -euo pipefail
cd "$(dirname "$0")/../.."
project=$PWD

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
prefix=$work/prefix

fail() {
  echo "package test: $1" >&2
  exit 1
}

cmake --install build/release --prefix "$prefix" >"$work/install.log" || fail "cmake --install"

[[ $("$prefix/bin/stint" version) == "stint "* ]] || fail "bin/stint is not there, or does not run"

installed=$(cd "$prefix/include" && find . -type f | sort)
expected=$(cd include && find ./stint -name '*.h' | sort)
[[ $installed == "$expected" ]] || fail "installed headers are not exactly include/stint/*.h"

# A path of this source tree in an installed file would break on every other machine.
if grep -rlF "$project" "$prefix/lib/cmake"; then
  fail "the files above name the source tree"
fi

use() {  # use COMPILER EXAMPLE [ARGUMENT]: as a project of its own
  local compiler=$1 example=$2 build=$work/$1-$2 output
  cmake -S tests/package/consumer -B "$build" -G Ninja \
    -DCMAKE_PREFIX_PATH="$prefix" \
    -DCMAKE_CXX_COMPILER="$compiler" \
    -DCONSUMER_SOURCE="$project/examples/$example.cc" >"$work/configure.log" 2>&1 ||
    { cat "$work/configure.log" >&2 && fail "$compiler: configure"; }
  cmake --build "$build" >"$work/build.log" 2>&1 ||
    { cat "$work/build.log" >&2 && fail "$compiler: build"; }
  output=$(timeout 60 "$build/consumer" "${@:3}") || fail "$compiler: the program ended with code $?"
  for word in admitted refused; do
    grep -qw "$word" <<<"$output" || fail "$compiler: no '$word' in the output: $output"
  done
  echo "$compiler: found, built and ran $example"
}

for compiler in clang++-19 g++-12; do
  use "$compiler" limit_a_loop
done
# Without a server: the outage rule counts.
use clang++-19 share_a_limit redis://127.0.0.1:1
