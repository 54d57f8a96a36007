#!/usr/bin/env bash
# Installs a Lua interpreter for the test of docs/argocd-health.lua. Does nothing if AVIARY_LUA is
# set, or if lua5.3 is on the path. Installs Debian's package lua5.3 if run as root; otherwise it exits
# with 3.
set -euo pipefail

say() { printf '%s\n' "$*" >&2; }
lua="${AVIARY_LUA:-lua5.3}"
if command -v "$lua" >/dev/null; then
  exit 0
fi
by_hand="install Lua by hand, or set AVIARY_LUA to the path of an interpreter"
[ -z "${AVIARY_LUA:-}" ] || { say "install-lua: AVIARY_LUA is $AVIARY_LUA, and that cannot be run"; exit 1; }
command -v apt-get >/dev/null || { say "install-lua: there is no apt-get: $by_hand"; exit 3; }
[ "$(id -u)" = 0 ] || { say "install-lua: only root can install it: $by_hand"; exit 3; }
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
apt-get install -y -qq --no-install-recommends lua5.3 >&2
command -v lua5.3 >/dev/null
