#!/usr/bin/env bash
# Runs on a real API server what can run on one: the conformance suite, what is shipped (manifests, chart, overlays, policies, the canary story), the
# end-to-end suites with managers under their own ServiceAccount, and then compares their roles with what they asked for.
#
# Needs kubectl, and what hack/real-apiserver.sh needs; exits with 3 where there is no server and no Go toolchain to build one with. Helm is taken
# from AVIARY_HELM, from the path, or built from tools/helm. Logs are in the folder that is named where it fails. With --install it only builds
# what is missing.
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
# Suites define kinds of config of their own. A manager is let to read them as docs/install.md says.
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
# They also store what the policies refuse, as from before there were policies.
kubectl delete validatingadmissionpolicybindings aviary-instance-configs aviary-manager-term
hack/real-apiserver.sh token "$DIR" open-cluster-management aviary-manager >"$DIR/manager.kubeconfig"
AVIARY_E2E_KUBECONFIG="$DIR/kubeconfig" AVIARY_E2E_MANAGER_KUBECONFIG="$DIR/manager.kubeconfig" \
  "$CARGO" test --locked --workspace --test e2e

say "the roles, and what was asked for"
"$CARGO" test --locked --workspace --test kubernetes -- rights::
