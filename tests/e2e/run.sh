#!/usr/bin/env bash
# End-to-end tests: the real binary, driven by real clients. Arguments go to pytest:
#   tests/e2e/run.sh -x test_streams.py -k byte_by_byte
#   STINT   the binary under test (default: build/release/stint)
# The tools of the tests live in build/e2e-venv, made anew when requirements.txt changes.
set -euo pipefail
[[ -z ${STINT:-} ]] || STINT=$(realpath -- "$STINT")
cd "$(dirname "$0")/../.."

STINT=${STINT:-$PWD/build/release/stint}
if [[ ! -x $STINT ]]; then
  echo "$STINT is not there: build it (make build), or name another with STINT=..." >&2
  exit 1
fi
export STINT

venv=build/e2e-venv
wanted=tests/e2e/requirements.txt
if ! cmp -s "$wanted" "$venv/installed.txt"; then
  echo "installing the tools of the end-to-end tests into $venv"
  rm -rf "$venv"
  /usr/bin/python3 -m venv "$venv"
  "$venv/bin/pip" install --quiet --disable-pip-version-check -r "$wanted"
  cp "$wanted" "$venv/installed.txt"
fi

export PYTHONDONTWRITEBYTECODE=1
pytest=$(realpath "$venv/bin/pytest")
cd tests/e2e
exec "$pytest" "$@"
