#!/usr/bin/env bash
# Writes dist/aviary.intoto.json: what the files of a release were built from, and how (in-toto statement
# with SLSA provenance v1). It is not signed: sign it with the key of whoever publishes the release.
#
#   cosign attest-blob --statement dist/aviary.intoto.json --key cosign.key --bundle dist/aviary.sigstore.json dist/aviary-image.tar
#
# BUILDER_ID names the machine or service that built it, SOURCE_URI the repository. Needs jq and git. The
# argument is another folder than dist.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

dist="$(realpath "${1:-dist}")"
die() { printf 'provenance: %s\n' "$*" >&2; exit 1; }
command -v jq >/dev/null || die "jq is missing"

commit="$(git rev-parse HEAD)"
# A release is built from what is committed. Otherwise the statement says so.
changed=false
[ -z "$(git status --porcelain --untracked-files=no)" ] || changed=true

subjects="$(cd "$dist" && find . -maxdepth 1 -type f ! -name aviary.intoto.json ! -name SHA256SUMS -printf '%P\n' | LC_ALL=C sort |
  xargs -r sha256sum | jq -Rcn '[inputs | capture("^(?<digest>[0-9a-f]{64})  (?<name>.+)$") | {name, digest: {sha256: .digest}}]')"
[ "$subjects" != '[]' ] || die "$dist is empty: run hack/release.sh"

jq -n --argjson subjects "$subjects" --arg commit "$commit" --argjson changed "$changed" \
  --arg lock "$(sha256sum Cargo.lock | cut -d ' ' -f 1)" --arg rustc "$(rustc -V)" \
  --arg targets "${TARGETS:-$(rustc -vV | sed -n 's/^host: //p')}" --arg image "${IMAGE:-}" \
  --arg builder "${BUILDER_ID:-urn:aviary:built-by-hand}" --arg source "${SOURCE_URI:-git+aviary}" \
  --arg finished "$(date -u +%Y-%m-%dT%H:%M:%SZ)" '{
  _type: "https://in-toto.io/Statement/v1",
  subject: $subjects,
  predicateType: "https://slsa.dev/provenance/v1",
  predicate: {
    buildDefinition: {
      buildType: "urn:aviary:hack/release.sh:v1",
      externalParameters: {targets: ($targets | split(" ")), image: $image},
      internalParameters: {uncommittedChanges: $changed},
      resolvedDependencies: [
        {uri: $source, digest: {gitCommit: $commit}},
        {name: "Cargo.lock", digest: {sha256: $lock}},
        {name: "rustc", annotations: {version: $rustc}}
      ]
    },
    runDetails: {builder: {id: $builder}, metadata: {finishedOn: $finished}}
  }
}' >"$dist/aviary.intoto.json"
