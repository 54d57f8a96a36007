#!/usr/bin/env bash
# check-bill.sh FILE: fails unless the file is a CycloneDX bill of materials of the binary aviary, which
# names this version of it as its root component, and the crates that it is built from. Needs jq.
set -euo pipefail

version="$(sed -n 's/^version = "\(.*\)"$/\1/p' "$(dirname "${BASH_SOURCE[0]}")/../Cargo.toml" | head -n 1)"
jq --exit-status --arg version "$version" '
  .bomFormat == "CycloneDX" and (.specVersion | type) == "string"
  and (.metadata.component | .type == "application" and .name == "aviary" and .version == $version)
  and ([.components[]?.name] | index("aviary-engine") != null and index("kube") != null)
' "$1" >/dev/null || { echo "check-bill: $1 is not the CycloneDX bill of aviary $version" >&2; exit 1; }
