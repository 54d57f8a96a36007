#!/usr/bin/env bash
# Runs the stories on real clusters: a hub and three members with kubelets and pods, in namespaces
# of their own (hack/clusters.sh). Then runs docs/tutorial-real.md.
#
# Needs kubectl and what hack/clusters.sh needs; exits with 3 if something is missing. On failure,
# also after LIMIT, it prints the end of each log, and their folder. It also fails if cgroups, mounts
# or processes of the clusters are left when it ends. With --install it only builds what is missing.
# Other arguments go to the test program, such as the name of a story.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

CARGO="${CARGO:-cargo}"
MEMBERS=3
# In GiB: 4 for these clusters, and 3 for those that the tutorial starts among them.
MEMORY=7
# The test program takes eleven to twelve minutes on two busy cores. CI starts this script until
# minute 65, and is aborted after 90.
LIMIT=20m

hack/clusters.sh install
free="$(($(sed -n 's/^MemAvailable: *\([0-9]*\) kB/\1/p' /proc/meminfo) / 1048576))"
if [ "$free" -lt "$MEMORY" ]; then
  echo "test-clusters: $free GiB of memory are free; the clusters need $MEMORY" >&2
  exit 3
fi
hack/install-kubectl.sh
[ "${1:-}" != --install ] || exit 0

# There is no network inside, so everything is built before.
"$CARGO" test --locked --workspace --test clusters --no-run
"$CARGO" build --locked --profile test --workspace --bin aviary --example work-agent
target="$(cd "${CARGO_TARGET_DIR:-target}" && pwd)"
export AVIARY_WORK_AGENT="$target/debug/examples/work-agent"

DIR="$(mktemp -d)"
export AVIARY_CLUSTERS="$DIR"
finish() {
  local code=$?
  if [ $code -eq 0 ]; then
    rm -rf "$DIR"
    return
  fi
  find "$DIR" -maxdepth 2 -name '*.log' -exec tail -n 20 {} + >&2
  [ $code -ne 124 ] || echo "the stories have not ended after $LIMIT" >&2
  echo "failed: the logs are in $DIR" >&2
}
trap finish EXIT

stories() {
  local start=$SECONDS
  hack/clusters.sh up "$AVIARY_CLUSTERS" "$MEMBERS"
  echo "$MEMBERS members with a node each are ready after $((SECONDS - start)) s"
  timeout --kill-after 30s "$LIMIT" "$CARGO" test --offline --locked --workspace --test clusters -- --test-threads 20 "$@"
}
export -f stories
export CARGO MEMBERS LIMIT
hack/clusters.sh run "$DIR" bash -euo pipefail -c 'stories "$@"' stories "$@"
