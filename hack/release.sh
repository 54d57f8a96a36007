#!/usr/bin/env bash
# Builds a release into dist/: the static binary, the manifests, the chart, its bill of materials,
# checksums.
#
#   dist/aviary                   the binary, linked statically, for the machine that this runs on
#   dist/aviary.cdx.json          what it is built from (CycloneDX)
#   dist/aviary-standalone.yaml   output of `aviary manifests` for a hub without Open Cluster Management
#   dist/aviary-ocm.yaml          the same for an Open Cluster Management hub
#   dist/aviary-chart.tgz         the Helm chart
#   dist/SHA256SUMS
#
# Source paths of this machine are removed from the binary. Needs cargo and a C linker; installs
# cargo-cyclonedx into the user's cache if it is missing. IMAGE sets the image in the manifests.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

CARGO="${CARGO:-cargo}"
TOOLS="${XDG_CACHE_HOME:-$HOME/.cache}/aviary"
PATH="$TOOLS/bin:$PATH"

say() { printf '%s\n' "$*" >&2; }
die() { say "release: $*"; exit 1; }

host="$(rustc -vV | sed -n 's/^host: //p')"
case "$host" in
  *-linux-gnu | *-linux-musl) ;;
  *) die "a static binary is built on Linux only, and this is $host" ;;
esac
command -v cargo-cyclonedx >/dev/null || "$CARGO" install cargo-cyclonedx --locked --root "$TOOLS"

rm -rf dist
mkdir dist

say "building the binary for $host"
# With an explicit target, build scripts and proc macros are not linked statically; static ones
# could not be loaded.
registry="${CARGO_HOME:-$HOME/.cargo}/registry/src"
RUSTFLAGS="-C target-feature=+crt-static --remap-path-prefix=$PWD=aviary --remap-path-prefix=$registry=registry" \
  "$CARGO" build --release --locked --package aviary --bin aviary --target "$host"
cp "${CARGO_TARGET_DIR:-target}/$host/release/aviary" dist/aviary

linked="$(ldd dist/aviary 2>&1 || true)"
case "$linked" in
  *'statically linked'* | *'not a dynamic executable'*) ;;
  *) die "the binary is not static: $linked" ;;
esac
dist/aviary version >&2

say "writing the bill of materials"
# cyclonedx writes one file per package; only that of the binary is needed.
"$CARGO" cyclonedx --quiet --format json --target "$host" --override-filename release-bill --manifest-path crates/cli/Cargo.toml
# It contains paths of this machine, which are removed.
sed "s#$PWD/##g; s#$PWD#.#g" crates/cli/release-bill.json >dist/aviary.cdx.json
find crates -name release-bill.json -delete

image=()
[ -z "${IMAGE:-}" ] || image=(--image "$IMAGE")
dist/aviary manifests --flavor standalone "${image[@]}" >dist/aviary-standalone.yaml
dist/aviary manifests --flavor ocm "${image[@]}" >dist/aviary-ocm.yaml
# The CRDs are a symbolic link here, and files in the archive.
tar --dereference --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner -C deploy/helm -czf dist/aviary-chart.tgz aviary

(cd dist && sha256sum aviary aviary.cdx.json aviary-standalone.yaml aviary-ocm.yaml aviary-chart.tgz >SHA256SUMS)
cat dist/SHA256SUMS
