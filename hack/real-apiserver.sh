#!/usr/bin/env bash
# Builds and runs a real kube-apiserver, to run the tests of the embedded hub against the real
# thing.
#
#   real-apiserver.sh install [--nodes]     build etcd, kube-apiserver and kube-controller-manager, if missing;
#                                           with --nodes also kube-scheduler, kubelet and a workload
#   real-apiserver.sh start DIR [--controllers]
#                                           run them on loopback with data under DIR; writes DIR/kubeconfig
#   real-apiserver.sh token DIR NAMESPACE ACCOUNT
#                                           print a kubeconfig with a token of a ServiceAccount
#   real-apiserver.sh stop DIR              end the processes that `start DIR` started
#
# Programs in the folder KUBEBUILDER_ASSETS are used if they exist. The others are built once, from
# the pinned modules in tools/, and kept in the user's cache. Without --controllers there is no
# garbage collection, no deletion of namespaces and no aggregation of roles: then run the
# conformance suite with AVIARY_CONFORMANCE_WITHOUT=controllers. TLS and RBAC are enabled. Needs
# openssl, curl, and go to build; without go it exits with 3.
set -euo pipefail

TOOLS="$(cd "$(dirname "${BASH_SOURCE[0]}")/../tools" && pwd)"
CACHE="${XDG_CACHE_HOME:-$HOME/.cache}/aviary"
BIN="$CACHE/bin"

say() { printf '%s\n' "$*" >&2; }
die() { say "real-apiserver: $*"; exit 1; }

# version FOLDER MODULE: the version that a module in tools/ pins.
version() { sed -n "s#^\(require\|\)[[:space:]]*$2 v\([^ ]*\).*#\2#p" "$TOOLS/$1/go.mod" | head -n 1; }

KUBERNETES="$(version kubernetes k8s.io/kubernetes)"
ETCD="$(version etcd go.etcd.io/etcd/server/v3)"

# program NAME: prints its path.
program() {
  if [ -n "${KUBEBUILDER_ASSETS:-}" ] && [ -x "$KUBEBUILDER_ASSETS/$1" ]; then
    printf '%s' "$KUBEBUILDER_ASSETS/$1"
  else
    printf '%s' "$BIN/$1"
  fi
}

# built PROGRAM VERSION
built() { [ -x "$BIN/$1" ] && [ "$(cat "$BIN/$1.version" 2>/dev/null)" = "$2" ]; }

# build FOLDER VERSION PACKAGE PROGRAM: builds a program that is missing or has another version,
# under a temporary name first.
build() {
  local folder="$1" version="$2" package="$3" program="$4"
  [ "$(program "$program")" = "$BIN/$program" ] || return 0
  ! built "$program" "$version" || return 0
  command -v go >/dev/null || { say "real-apiserver: there is no Go toolchain to build $program with, and KUBEBUILDER_ASSETS names none"; exit 3; }
  mkdir -p "$BIN"
  # Others who build it write the same files. Without flock, as on macOS, one must not build twice.
  if command -v flock >/dev/null; then
    exec 7>"$BIN/.lock"
    flock --nonblock 7 || { say "waiting for another build"; flock 7; }
    ! built "$program" "$version" || { exec 7>&-; return 0; }
  fi
  # /version reports the values that are linked in.
  local at=k8s.io/component-base/version minor="${KUBERNETES%.*}"
  local flags="-s -w -X $at.gitVersion=v$KUBERNETES -X $at.gitMajor=1 -X $at.gitMinor=${minor#1.}"
  say "building $program $version (some minutes)"
  (cd "$TOOLS/$folder" && nice -n 19 go build -mod=readonly -trimpath -ldflags "$flags" -o "$BIN/.$program.new" "$package" 7>&-)
  mv "$BIN/.$program.new" "$BIN/$program"
  printf '%s\n' "$version" >"$BIN/$program.version"
  exec 7>&-
}

install() {
  build etcd "$ETCD" . etcd
  build kubernetes "$KUBERNETES" ./kube-apiserver kube-apiserver
  build kubernetes "$KUBERNETES" ./kube-controller-manager kube-controller-manager
  [ "${1:-}" = --nodes ] || return 0
  build kubernetes "$KUBERNETES" ./kube-scheduler kube-scheduler
  build kubernetes "$KUBERNETES" ./kubelet kubelet
  CGO_ENABLED=0 build workload "$(sha256sum "$TOOLS/workload/main.go" | cut -c1-16)" . workload
}

free_port() {
  local port
  while :; do
    port=$((20000 + RANDOM % 12000))
    (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null || { printf '%s' "$port"; return; }
  done
}

# run NAME PROGRAM ARGS...: starts a program in the background, with a log and a pid file in $DIR.
run() {
  local name="$1"
  shift
  nohup "$@" >"$DIR/$name.log" 2>&1 </dev/null &
  printf '%s\n' $! >"$DIR/$name.pid"
}

alive() { [ -f "$DIR/$1.pid" ] && kill -0 "$(cat "$DIR/$1.pid")" 2>/dev/null; }

start() {
  DIR="$1"
  local etcd apiserver
  etcd="$(program etcd)" apiserver="$(program kube-apiserver)"
  [ -x "$etcd" ] && [ -x "$apiserver" ] || die "run '$0 install' first"
  mkdir -p "$DIR"
  DIR="$(cd "$DIR" && pwd)"
  alive kube-apiserver && die "already running in $DIR"
  chmod 700 "$DIR"
  umask 077
  local client peer port token
  client="$(free_port)" peer="$(free_port)" port="$(free_port)"
  token="$(openssl rand -hex 32)"
  [ -f "$DIR/sa.key" ] || openssl genrsa -out "$DIR/sa.key" 2048 2>/dev/null
  printf '%s,admin,admin,system:masters\n' "$token" >"$DIR/tokens.csv"
  # The CA of client certificates: csrsigning-controller signs with it.
  [ -f "$DIR/client-ca.crt" ] || openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=clients \
    -keyout "$DIR/client-ca.key" -out "$DIR/client-ca.crt" 2>/dev/null

  # Records the requests of service accounts, and the role that allowed them.
  cat >"$DIR/audit-policy.yaml" <<YAML
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- {level: Metadata, userGroups: ["system:serviceaccounts"]}
- {level: None}
YAML

  run etcd "$etcd" --name real --data-dir "$DIR/etcd" --log-level warn \
    --listen-client-urls "http://127.0.0.1:$client" --advertise-client-urls "http://127.0.0.1:$client" \
    --listen-peer-urls "http://127.0.0.1:$peer" --initial-advertise-peer-urls "http://127.0.0.1:$peer" \
    --initial-cluster "real=http://127.0.0.1:$peer" --unsafe-no-fsync
  run kube-apiserver "$apiserver" --etcd-servers "http://127.0.0.1:$client" \
    --bind-address 127.0.0.1 --secure-port "$port" --cert-dir "$DIR/certs" \
    --advertise-address 127.0.0.1 --endpoint-reconciler-type none \
    --service-cluster-ip-range 10.96.0.0/16 --authorization-mode RBAC --token-auth-file "$DIR/tokens.csv" \
    --client-ca-file "$DIR/client-ca.crt" \
    --service-account-issuer https://kubernetes.default.svc \
    --service-account-key-file "$DIR/sa.key" --service-account-signing-key-file "$DIR/sa.key" \
    --enable-admission-plugins OwnerReferencesPermissionEnforcement \
    --audit-policy-file "$DIR/audit-policy.yaml" --audit-log-path "$DIR/audit.log" --audit-log-maxsize 4000

  local deadline=$((SECONDS + 120))
  until curl -fsk --max-time 5 -H "Authorization: Bearer $token" "https://127.0.0.1:$port/readyz" >/dev/null 2>&1; do
    alive etcd || die "etcd ended; see $DIR/etcd.log"
    alive kube-apiserver || die "kube-apiserver ended; see $DIR/kube-apiserver.log"
    [ $SECONDS -lt $deadline ] || die "not ready after 120 s; see $DIR/kube-apiserver.log"
    sleep 0.5
  done
  cat >"$DIR/kubeconfig" <<YAML
apiVersion: v1
kind: Config
current-context: real
contexts: [{name: real, context: {cluster: real, user: admin}}]
clusters:
- name: real
  cluster: {server: "https://127.0.0.1:$port", certificate-authority-data: $(base64 -w0 <"$DIR/certs/apiserver.crt")}
users: [{name: admin, user: {token: $token}}]
YAML
  if [ "${2:-}" = --controllers ]; then
    local controllers
    controllers="$(program kube-controller-manager)"
    [ -x "$controllers" ] || die "run '$0 install' first"
    run kube-controller-manager "$controllers" --kubeconfig "$DIR/kubeconfig" \
      --authentication-kubeconfig "$DIR/kubeconfig" --authorization-kubeconfig "$DIR/kubeconfig" \
      --leader-elect=false --secure-port 0 --cert-dir "$DIR/certs" \
      --cluster-signing-cert-file "$DIR/client-ca.crt" --cluster-signing-key-file "$DIR/client-ca.key" \
      --controllers garbage-collector-controller,namespace-controller,clusterrole-aggregation-controller,validatingadmissionpolicy-status-controller,certificatesigningrequest-signing-controller
  fi
  say "ready: $DIR/kubeconfig"
}

# The account must exist. The token is valid for eight hours.
token() {
  DIR="$(cd "$1" && pwd)"
  local server admin answer
  server="$(sed -n 's/.*server: "\([^"]*\)".*/\1/p' "$DIR/kubeconfig")"
  admin="$(sed -n 's/.*user: {token: \([0-9a-f]*\)}.*/\1/p' "$DIR/kubeconfig")"
  answer="$(curl -fsS --cacert "$DIR/certs/apiserver.crt" -H "Authorization: Bearer $admin" -H 'Content-Type: application/json' \
    -d '{"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest","spec":{"expirationSeconds":28800}}' \
    "$server/api/v1/namespaces/$2/serviceaccounts/$3/token")" || die "there is no token for $2/$3"
  answer="$(printf '%s' "$answer" | tr -d '\n' | sed -n 's/.*"token": *"\([^"]*\)".*/\1/p')"
  [ -n "$answer" ] || die "the answer for $2/$3 has no token"
  sed -e "s/user: {token: [0-9a-f]*}/user: {token: $answer}/" -e "s/admin/$3/g" "$DIR/kubeconfig"
}

stop() {
  DIR="$(cd "$1" && pwd)"
  local name pid
  for name in kube-controller-manager kube-apiserver etcd; do
    alive "$name" || { rm -f "$DIR/$name.pid"; continue; }
    pid="$(cat "$DIR/$name.pid")"
    kill "$pid"
    for _ in $(seq 100); do kill -0 "$pid" 2>/dev/null || break; sleep 0.1; done
    kill -0 "$pid" 2>/dev/null && kill -9 "$pid"
    rm -f "$DIR/$name.pid"
  done
}

case "${1:-}" in
  install) install "${2:-}" ;;
  start) [ $# -ge 2 ] || die "start DIR [--controllers]"; start "$2" "${3:-}" ;;
  token) [ $# -eq 4 ] || die "token DIR NAMESPACE ACCOUNT"; token "$2" "$3" "$4" ;;
  stop) [ $# -eq 2 ] || die "stop DIR"; stop "$2" ;;
  *) sed -n '2,15s/^# \{0,1\}//p' "$0"; exit 2 ;;
esac
