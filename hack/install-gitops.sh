#!/usr/bin/env bash
# Builds tools/gitops once, into the user's cache, and prints its path. Exits with 3 if there is no Go
# toolchain, or if the modules that it pins cannot be downloaded.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../tools/gitops"

BIN="${XDG_CACHE_HOME:-$HOME/.cache}/aviary/bin"

lacks() { printf 'install-gitops: %s\n' "$*" >&2; exit 3; }

program="$BIN/gitops-$(cat go.mod go.sum main.go | sha256sum | cut -c1-16)"
if [ ! -x "$program" ]; then
  command -v go >/dev/null || lacks "there is no Go toolchain to build tools/gitops with"
  go mod download >&2 || lacks "the modules of tools/gitops cannot be downloaded"
  mkdir -p "$BIN"
  new="$(mktemp "$BIN/.gitops.XXXXXX")"
  trap 'rm -f "$new"' EXIT
  go build -mod=readonly -trimpath -ldflags '-s -w' -o "$new" . >&2
  mv "$new" "$program"
fi
printf '%s\n' "$program"
