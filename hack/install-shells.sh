#!/usr/bin/env bash
# Installs zsh and fish for the tests of the completion scripts. Does nothing if both are on the path.
# Installs Debian's packages if run as root; otherwise it exits with 3.
set -euo pipefail

say() { printf '%s\n' "$*" >&2; }
if command -v zsh >/dev/null && command -v fish >/dev/null; then
  exit 0
fi
by_hand="install zsh and fish by hand"
command -v apt-get >/dev/null || { say "install-shells: there is no apt-get: $by_hand"; exit 3; }
[ "$(id -u)" = 0 ] || { say "install-shells: only root can install them: $by_hand"; exit 3; }
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
apt-get install -y -qq --no-install-recommends zsh fish >&2
command -v zsh >/dev/null && command -v fish >/dev/null
