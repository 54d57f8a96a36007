#!/usr/bin/env bash
# Runs on a real API server: the conformance suite, the shipped manifests (manifests, chart,
# overlays, policies, a canary rollout), the end-to-end tests with managers under their own
# ServiceAccount, and then a comparison of their roles with their requests.
#
# Needs kubectl and what hack/real-apiserver.sh needs; exits with 3 if there is neither a server nor
# a Go toolchain to build one. Uses helm from AVIARY_HELM, from the path, or built from tools/helm.
# On failure it prints the folder of the logs. With --install it only builds what is missing.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

CARGO="${CARGO:-cargo}"
BIN="${XDG_CACHE_HOME:-$HOME/.cache}/aviary/bin"

say() { printf '\n-- %s\n' "$*"; }

hack/real-apiserver.sh install

find_helm() {
  [ -z "${AVIARY_HELM:-}" ] || { printf '%s' "$AVIARY_HELM"; return; }
  command -v helm 2>/dev/null && return
  if [ ! -x "$BIN/helm" ]; then
    command -v go >/dev/null || { echo "test-kubernetes: there is no helm, and no Go toolchain to build it with" >&2; return 3; }
    echo "building helm (some minutes)" >&2
    (cd tools/helm && nice -n 19 go build -mod=readonly -trimpath -ldflags '-s -w' -o "$BIN/.helm.new" helm.sh/helm/v3/cmd/helm) >&2
    mv "$BIN/.helm.new" "$BIN/helm"
  fi
  printf '%s' "$BIN/helm"
}
AVIARY_HELM="$(find_helm)"
export AVIARY_HELM
[ "${1:-}" != --install ] || exit 0
hack/install-kubectl.sh
KUBECTL="${AVIARY_KUBECTL:-kubectl}"

DIR="$(mktemp -d)"
finish() {
  local code=$?
  hack/real-apiserver.sh stop "$DIR"
  if [ $code -eq 0 ]; then rm -rf "$DIR"; else say "failed: the server's logs are in $DIR"; fi
}
trap finish EXIT

hack/real-apiserver.sh start "$DIR" --controllers
export AVIARY_KUBERNETES="$DIR"
kubectl() { command "$KUBECTL" --kubeconfig "$DIR/kubeconfig" "$@"; }

say "conformance: what the embedded hub's suite says, of this server"
AVIARY_CONFORMANCE_KUBECONFIG="$DIR/kubeconfig" "$CARGO" test --locked --workspace --test conformance

say "what is shipped"
"$CARGO" test --locked --workspace --test kubernetes -- --skip rights::

say "end to end, with managers under their own account"
# Suites define their own kinds of config. The manager may read them by a role, as in
# docs/install.md.
kubectl apply -f - <<'YAML'
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: aviary-config-kinds-suites
  labels:
    addon.open-cluster-management.io/aggregate-to-config-kinds: "true"
rules:
- apiGroups: [proxy.open-cluster-management.io]
  resources: [managedproxyconfigurations, badconfigs]
  verbs: [list, watch]
- apiGroups: [submarineraddon.open-cluster-management.io]
  resources: [submarinerconfigs]
  verbs: [list, watch]
YAML
# The suites also store objects that the policies reject, as if they were older than the policies.
kubectl delete validatingadmissionpolicybindings aviary-instance-configs aviary-manager-term
hack/real-apiserver.sh token "$DIR" open-cluster-management aviary-manager >"$DIR/manager.kubeconfig"
AVIARY_E2E_KUBECONFIG="$DIR/kubeconfig" AVIARY_E2E_MANAGER_KUBECONFIG="$DIR/manager.kubeconfig" \
  "$CARGO" test --locked --workspace --test e2e

say "the roles, and what was asked for"
"$CARGO" test --locked --workspace --test kubernetes -- rights::
