#!/usr/bin/env bash
# The checks that need no build (--quick), and clang-tidy on top of them.
#
#   tools/lint.sh --quick       seconds: layers, awaits, style, format, tests of the tools
#   tools/lint.sh               the same, then clang-tidy on every source
#   tools/lint.sh --since REF   the same, then clang-tidy on the .cc files that differ from REF
#                               (headers are read through them)
#   tools/lint.sh --format      formats all sources in place
set -euo pipefail
cd "$(dirname "$0")/.."

folders=(include src apps tests bench examples)
python=/usr/bin/python3
[[ -x $python ]] || python=python3

sources() {  # sources EXTENSION...
  local folder extension
  for folder in "${folders[@]}"; do
    [[ -d $folder ]] || continue
    for extension in "$@"; do
      find "$folder" -type f -name "*.$extension"
    done
  done | sort
}

changed_since() {  # changed_since REF: sources that differ from REF, untracked ones included
  { git diff --name-only --diff-filter=d "$1" && git ls-files --others --exclude-standard; } |
    sort -u | comm -12 - <(sources cc)
}

quick() {
  "$python" -B tools/check_layers.py
  "$python" -B tools/check_awaits.py
  "$python" -B tools/check_style.py
  sources h cc | xargs -r clang-format-19 --dry-run --Werror
  # Their dots and counts are noise unless something fails.
  local log
  log=$(lua 2>&1) || { echo "$log" >&2; return 1; }
  log=$("$python" -B -m unittest discover -s tools/tests 2>&1) || { echo "$log" >&2; return 1; }
}

# The scripts as Redis runs them: each with the prelude in front.
lua() {
  local folder=src/store/redis/lua script before
  for script in "$folder"/*.lua; do
    case $script in
      */prelude.lua | */logs.lua) continue ;;
      */look.lua | */take.lua) before=("$folder/logs.lua") ;;
      *) before=() ;;
    esac
    cat "$folder/prelude.lua" "${before[@]}" "$script" | luacheck --std lua51 --read-globals redis KEYS ARGV struct \
      --max-line-length 120 --ignore 211/ttl_ms --filename "$script" -q - || return 1
  done
  luacheck --std lua51 --read-globals redis KEYS ARGV -q bench/redis/*.lua
}

tidy() {  # tidy < list of sources
  cmake --preset release >/dev/null
  # Only what the build compiles: a file outside the database would be read with wrong flags.
  local known
  known=$(sed -n 's|^ *"file": "'"$PWD"'/\(.*\)",\{0,1\}$|\1|p' build/release/compile_commands.json |
    sort -u)
  comm -12 - <(echo "$known") |
    xargs -r -P "$(nproc)" -n 4 clang-tidy-19 -p build/release --quiet --warnings-as-errors='*' \
      2> >(grep -vE '^[0-9]+ warnings? generated|Processing file ' >&2)
}

case "${1:-}" in
  --quick) quick ;;
  --since) quick; changed_since "${2:?--since needs a commit}" | tidy ;;
  --format) sources h cc | xargs -r clang-format-19 -i ;;
  "") quick; sources cc | tidy ;;
  *) echo "usage: tools/lint.sh [--quick | --since REF | --format]" >&2 && exit 2 ;;
esac
