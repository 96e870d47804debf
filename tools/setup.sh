#!/usr/bin/env bash
# Installs what building and testing stint needs, on Debian 12. Silent when everything is there.
set -euo pipefail

packages=(
  g++ cmake ninja-build pkg-config make ccache mold
  clang-19 lld-19 clang-tidy-19 clang-format-19 libclang-rt-19-dev llvm-19
  libboost1.81-dev libssl-dev libxxhash-dev
  zlib1g-dev libbrotli-dev libgoogle-perftools-dev
  libyaml-cpp-dev libspdlog-dev prometheus-cpp-dev libcli11-dev libboost-json1.81-dev
  libgtest-dev libgmock-dev libbenchmark-dev librapidcheck-dev
  libhiredis-dev redis-server redis-sentinel redis-tools faketime lua5.1 lua-check
  python3 python3-venv python3-pytest nginx wrk curl
)

missing_packages() {
  local installed=""
  if command -v dpkg-query >/dev/null; then
    # dpkg-query fails when it knows nothing of one of them; what it prints counts.
    installed=$(dpkg-query -W -f='${Package} ${db:Status-Status}\n' "${packages[@]}" 2>/dev/null ||
      true)
  fi
  local package
  for package in "${packages[@]}"; do
    grep -qxF "$package installed" <<<"$installed" || echo "$package"
  done
}

fail() {
  echo "setup: $1" >&2
  echo "setup: missing: ${missing[*]}" >&2
  exit 1
}

mapfile -t missing < <(missing_packages)
((${#missing[@]} == 0)) && exit 0

# In a subshell, because os-release sets variables of its own.
system=$(. "${STINT_OS_RELEASE:-/etc/os-release}" 2>/dev/null && echo "${ID:-} ${VERSION_ID:-}" ||
  true)
if [[ $system != "debian 12" ]]; then
  fail "installs packages on Debian 12 only (this is '${system:-unknown}'); install them yourself"
fi

as_root=()
if ((EUID != 0)); then
  # Without a terminal sudo must not ask for a password.
  if command -v sudo >/dev/null && { [[ -t 0 ]] || sudo -n true 2>/dev/null; }; then
    as_root=(sudo)
  else
    fail "needs root, or sudo, to install packages"
  fi
fi

echo "setup: installing ${missing[*]}"
if dpkg-query -W -f='${db:Status-Status}' libboost1.74-dev 2>/dev/null | grep -qx installed; then
  echo "setup: Boost 1.81 replaces the development files of Boost 1.74 (Debian has room for one)"
fi
apt=(env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=120)
"${as_root[@]}" "${apt[@]}" update
"${as_root[@]}" "${apt[@]}" install -y --no-install-recommends "${missing[@]}" >/dev/null

mapfile -t missing < <(missing_packages)
((${#missing[@]} == 0)) || fail "apt-get ended without an error, but some are still missing"
echo "setup: done"
