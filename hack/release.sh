#!/usr/bin/env bash
# Builds a release into dist/: static binaries, the image, the manifests, the chart, the bills of
# materials, the provenance, checksums.
#
#   dist/aviary-linux-ARCH            the binary, linked statically; ARCH is amd64 or arm64
#   dist/aviary-linux-ARCH.cdx.json   what it is built from (CycloneDX)
#   dist/aviary-image.tar             the image for these architectures (hack/image.sh)
#   dist/aviary-standalone.yaml       output of `aviary manifests` for a hub without Open Cluster Management
#   dist/aviary-ocm.yaml              the same for an Open Cluster Management hub
#   dist/aviary-chart.tgz             the Helm chart
#   dist/aviary.intoto.json           the provenance of all of them (hack/provenance.sh)
#   dist/SHA256SUMS
#
# TARGETS lists the targets; the default is the machine that this runs on:
#
#   TARGETS='x86_64-unknown-linux-gnu aarch64-unknown-linux-gnu' hack/release.sh
#
# Another architecture needs its Rust target, which is installed, and its C cross compiler, such as
# Debian's gcc-aarch64-linux-gnu. Source paths of this machine are removed from the binary. Needs cargo, a
# C linker, git and jq; installs cargo-cyclonedx into the user's cache if it is missing. IMAGE sets the
# image in the manifests.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

CARGO="${CARGO:-cargo}"
TOOLS="${XDG_CACHE_HOME:-$HOME/.cache}/aviary"
PATH="$TOOLS/bin:$PATH"

say() { printf '%s\n' "$*" >&2; }
die() { say "release: $*"; exit 1; }

host="$(rustc -vV | sed -n 's/^host: //p')"
export TARGETS="${TARGETS:-$host}"
command -v jq >/dev/null || die "jq is missing"
command -v cargo-cyclonedx >/dev/null || "$CARGO" install cargo-cyclonedx --locked --root "$TOOLS"

# architecture TARGET: the name of its architecture in images.
architecture() {
  case "$1" in
    x86_64-*-linux-gnu | x86_64-*-linux-musl) echo amd64 ;;
    aarch64-*-linux-gnu | aarch64-*-linux-musl) echo arm64 ;;
    *) die "a static binary is built for Linux on x86_64 and aarch64 only, not for $1" ;;
  esac
}

# cross TARGET: sets the compiler for another architecture.
cross() {
  local compiler="${1%%-*}-linux-gnu-gcc" name
  command -v "$compiler" >/dev/null || die "$1 needs $compiler"
  rustup target add "$1" >&2
  name="$(tr 'a-z-' 'A-Z_' <<<"$1")"
  export "CARGO_TARGET_${name}_LINKER=$compiler" "CC_${1//-/_}=$compiler"
}

rm -rf dist
mkdir dist

registry="${CARGO_HOME:-$HOME/.cargo}/registry/src"
for target in $TARGETS; do
  name="aviary-linux-$(architecture "$target")"
  [ "${target%%-*}" = "${host%%-*}" ] || cross "$target"
  say "building $name"
  # With an explicit target, build scripts and proc macros are not linked statically; static ones
  # could not be loaded.
  RUSTFLAGS="-C target-feature=+crt-static --remap-path-prefix=$PWD=aviary --remap-path-prefix=$registry=registry" \
    "$CARGO" build --profile dist --locked --package aviary --bin aviary --target "$target"
  cp "${CARGO_TARGET_DIR:-target}/$target/dist/aviary" "dist/$name"
  # A dynamic binary names its loader.
  ! readelf -l "dist/$name" | grep -q INTERP || die "dist/$name is not static"
  # cyclonedx writes one file per package; only that of the binary is needed. It contains paths of this
  # machine, which are removed.
  "$CARGO" cyclonedx --quiet --format json --target "$target" --override-filename release-bill --manifest-path crates/cli/Cargo.toml
  sed "s#$PWD/##g; s#$PWD#.#g" crates/cli/release-bill.json >"dist/$name.cdx.json"
  hack/check-bill.sh "dist/$name.cdx.json"
  find crates -name release-bill.json -delete
done

own="dist/aviary-linux-$(architecture "$host")"
[ -f "$own" ] || die "TARGETS must include the machine that this runs on, whose binary prints the manifests"
"$own" version >&2
image=()
[ -z "${IMAGE:-}" ] || image=(--image "$IMAGE")
"$own" manifests --flavor standalone "${image[@]}" >dist/aviary-standalone.yaml
"$own" manifests --flavor ocm "${image[@]}" >dist/aviary-ocm.yaml
# The CRDs are a symbolic link here, and files in the archive.
tar --dereference --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner -C deploy/helm -cf - aviary | gzip -9n >dist/aviary-chart.tgz

hack/image.sh
hack/provenance.sh
(cd dist && find . -maxdepth 1 -type f ! -name SHA256SUMS -printf '%P\n' | LC_ALL=C sort | xargs sha256sum >SHA256SUMS)
cat dist/SHA256SUMS
