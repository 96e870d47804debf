#!/usr/bin/env bash
# Records by what the release preset is optimized, apps/stint/stint.profdata: builds a stint that
# counts which way its code goes, uses it (bench/gateway/train.py), and keeps what was counted.
# After changes of the request's path; the file is part of the change.
set -euo pipefail
cd "$(dirname "$0")/.."

raw=build/profile/raw
cmake --preset profile
cmake --build build/profile --parallel "$(nproc)" --target stint_program
rm -rf "$raw"
LLVM_PROFILE_FILE="$PWD/$raw/%p.profraw" bench/gateway/train.py --stint build/profile/stint
llvm-profdata-19 merge --sparse -o apps/stint/stint.profdata "$raw"/*.profraw
ls -l apps/stint/stint.profdata
