#!/usr/bin/env bash
# Writes dist/aviary-image.tar: one image for every architecture in dist/ (an OCI archive).
#
#   hack/release.sh && skopeo copy --all oci-archive:dist/aviary-image.tar docker://my.example/aviary:0.1.0
#
# The image contains the static binary and nothing else, so no container runtime is needed to build it,
# and equal binaries give equal bytes. Needs jq and GNU tar. The argument is another folder than dist.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

dist="$(realpath "${1:-dist}")"
die() { printf 'image: %s\n' "$*" >&2; exit 1; }
command -v jq >/dev/null || die "jq is missing"

version="$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)"
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/image/blobs/sha256"

# keep FILE: stores a blob; prints its digest and size as JSON.
keep() {
  local digest
  digest="$(sha256sum "$1" | cut -d ' ' -f 1)"
  mv "$1" "$work/image/blobs/sha256/$digest"
  jq -cn --arg digest "sha256:$digest" --argjson size "$(stat -c %s "$work/image/blobs/sha256/$digest")" '{digest: $digest, size: $size}'
}

manifests='[]'
for architecture in amd64 arm64; do
  binary="$dist/aviary-linux-$architecture"
  [ -f "$binary" ] || continue
  mkdir "$work/$architecture"
  cp "$binary" "$work/$architecture/aviary"
  tar --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner --mode=0755 --format=ustar -C "$work/$architecture" -cf "$work/layer.tar" aviary
  diff_id="sha256:$(sha256sum "$work/layer.tar" | cut -d ' ' -f 1)"
  gzip -9n <"$work/layer.tar" >"$work/layer"
  layer="$(keep "$work/layer")"
  # The user is that of the Deployment. No file belongs to it.
  jq -cn --arg architecture "$architecture" --arg diff_id "$diff_id" --arg version "$version" '{
    architecture: $architecture, os: "linux",
    config: {User: "65532:65532", Entrypoint: ["/aviary"], Labels: {"org.opencontainers.image.title": "aviary", "org.opencontainers.image.version": $version}},
    rootfs: {type: "layers", diff_ids: [$diff_id]},
    history: [{created_by: "hack/image.sh"}]
  }' >"$work/config"
  config="$(keep "$work/config")"
  jq -cn --argjson config "$config" --argjson layer "$layer" '{
    schemaVersion: 2, mediaType: "application/vnd.oci.image.manifest.v1+json",
    config: ({mediaType: "application/vnd.oci.image.config.v1+json"} + $config),
    layers: [{mediaType: "application/vnd.oci.image.layer.v1.tar+gzip"} + $layer]
  }' >"$work/manifest"
  manifest="$(keep "$work/manifest")"
  manifests="$(jq -c --argjson manifest "$manifest" --arg architecture "$architecture" \
    '. + [{mediaType: "application/vnd.oci.image.manifest.v1+json"} + $manifest + {platform: {architecture: $architecture, os: "linux"}}]' <<<"$manifests")"
done

[ "$manifests" != '[]' ] || die "$dist has no aviary-linux-*: run hack/release.sh"

index() { jq -cn --argjson manifests "$1" '{schemaVersion: 2, mediaType: "application/vnd.oci.image.index.v1+json", manifests: $manifests}'; }
index "$manifests" >"$work/index"
all="$(keep "$work/index")"
index "$(jq -c --arg version "$version" '[{mediaType: "application/vnd.oci.image.index.v1+json"} + . + {annotations: {"org.opencontainers.image.ref.name": $version}}]' <<<"$all")" >"$work/image/index.json"
printf '{"imageLayoutVersion":"1.0.0"}' >"$work/image/oci-layout"
tar --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner --format=ustar -C "$work/image" -cf "$dist/aviary-image.tar" oci-layout index.json blobs
printf '%s\n' "$all" | jq -r '"image \(.digest)"'
