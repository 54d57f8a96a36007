#!/usr/bin/env bash
# Builds and runs a real kube-apiserver, so that the conformance suite can be checked against the truth.
#
#   real-apiserver.sh install               build etcd, kube-apiserver and kube-controller-manager, if missing
#   real-apiserver.sh start DIR [--controllers]
#                                           run them on loopback with data under DIR; writes DIR/kubeconfig
#   real-apiserver.sh stop DIR              end the processes that `start DIR` started
#
# Without --controllers nothing collects garbage or empties namespaces: run the suite with
# AVIARY_CONFORMANCE_WITHOUT=controllers then. Needs go, openssl and curl.
set -euo pipefail

KUBERNETES=1.35.4
ETCD=3.6.16
CACHE="${XDG_CACHE_HOME:-$HOME/.cache}/aviary"
BIN="$CACHE/bin"

say() { printf '%s\n' "$*" >&2; }
die() { say "real-apiserver: $*"; exit 1; }

# k8s.io/kubernetes replaces its staging modules by folders that its module archive does not hold;
# the same modules are published as k8s.io/NAME v0.MINOR.PATCH.
write_kubernetes_module() {
  local gomod
  gomod="$(go mod download -json "k8s.io/kubernetes@v$KUBERNETES" | sed -n 's/.*"GoMod": "\(.*\)",/\1/p')"
  [ -n "$gomod" ] || die "cannot download k8s.io/kubernetes v$KUBERNETES"
  {
    printf 'module aviary.test/kubernetes\n\ngo 1.25.0\n\nrequire k8s.io/kubernetes v%s\n\nreplace (\n' "$KUBERNETES"
    sed -n "s#^\t\(k8s.io/[a-z-]*\) => ./staging.*#\t\1 => \1 v0.${KUBERNETES#1.}#p" "$gomod"
    printf ')\n'
  } >go.mod
  write_main kube-apiserver NewAPIServerCommand
  write_main kube-controller-manager NewControllerManagerCommand
}

write_main() {
  mkdir -p "$1"
  cat >"$1/main.go" <<GO
package main

import (
	"os"

	"k8s.io/component-base/cli"
	"k8s.io/kubernetes/cmd/$1/app"
)

func main() { os.Exit(cli.Run(app.$2())) }
GO
}

write_etcd_module() {
  printf 'module aviary.test/etcd\n\ngo 1.25.0\n\nrequire go.etcd.io/etcd/server/v3 v%s\n' "$ETCD" >go.mod
  mkdir -p etcd
  cat >etcd/main.go <<'GO'
package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
)

func main() { etcdmain.Main(os.Args) }
GO
}

# build MODULE VERSION PROGRAM...: builds what is missing or of another version, each to a temporary name first.
build() {
  local module="$1" version="$2" missing=() program
  shift 2
  for program in "$@"; do
    [ -x "$BIN/$program" ] && [ "$(cat "$BIN/$program.version" 2>/dev/null)" = "$version" ] || missing+=("$program")
  done
  [ ${#missing[@]} -gt 0 ] || return 0
  mkdir -p "$BIN" "$CACHE/src/$module"
  cd "$CACHE/src/$module"
  "write_${module}_module"
  go mod tidy
  # /version tells what was linked in.
  local at=k8s.io/component-base/version minor="${KUBERNETES%.*}"
  local flags="-s -w -X $at.gitVersion=v$KUBERNETES -X $at.gitMajor=1 -X $at.gitMinor=${minor#1.}"
  for program in "${missing[@]}"; do
    say "building $program (some minutes)"
    nice -n 19 go build -trimpath -ldflags "$flags" -o "$BIN/.$program.new" "./$program"
    mv "$BIN/.$program.new" "$BIN/$program"
    printf '%s\n' "$version" >"$BIN/$program.version"
  done
}

install() {
  (build etcd "$ETCD" etcd)
  (build kubernetes "$KUBERNETES" kube-apiserver kube-controller-manager)
}

free_port() {
  local port
  while :; do
    port=$((20000 + RANDOM % 12000))
    (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null || { printf '%s' "$port"; return; }
  done
}

# run NAME PROGRAM ARGS...: in the background, with a log and a pid file in $DIR.
run() {
  local name="$1"
  shift
  nohup "$@" >"$DIR/$name.log" 2>&1 </dev/null &
  printf '%s\n' $! >"$DIR/$name.pid"
}

alive() { [ -f "$DIR/$1.pid" ] && kill -0 "$(cat "$DIR/$1.pid")" 2>/dev/null; }

start() {
  DIR="$1"
  [ -x "$BIN/etcd" ] && [ -x "$BIN/kube-apiserver" ] || die "run '$0 install' first"
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

  run etcd "$BIN/etcd" --name real --data-dir "$DIR/etcd" --log-level warn \
    --listen-client-urls "http://127.0.0.1:$client" --advertise-client-urls "http://127.0.0.1:$client" \
    --listen-peer-urls "http://127.0.0.1:$peer" --initial-advertise-peer-urls "http://127.0.0.1:$peer" \
    --initial-cluster "real=http://127.0.0.1:$peer" --unsafe-no-fsync
  run kube-apiserver "$BIN/kube-apiserver" --etcd-servers "http://127.0.0.1:$client" \
    --bind-address 127.0.0.1 --secure-port "$port" --cert-dir "$DIR/certs" \
    --advertise-address 127.0.0.1 --endpoint-reconciler-type none \
    --service-cluster-ip-range 10.96.0.0/16 --authorization-mode RBAC --token-auth-file "$DIR/tokens.csv" \
    --service-account-issuer https://kubernetes.default.svc \
    --service-account-key-file "$DIR/sa.key" --service-account-signing-key-file "$DIR/sa.key" \
    --disable-admission-plugins ServiceAccount

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
    run kube-controller-manager "$BIN/kube-controller-manager" --kubeconfig "$DIR/kubeconfig" \
      --authentication-kubeconfig "$DIR/kubeconfig" --authorization-kubeconfig "$DIR/kubeconfig" \
      --leader-elect=false --secure-port 0 --cert-dir "$DIR/certs" \
      --controllers garbage-collector-controller,namespace-controller
  fi
  say "ready: $DIR/kubeconfig"
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
  install) install ;;
  start) [ $# -ge 2 ] || die "start DIR [--controllers]"; start "$2" "${3:-}" ;;
  stop) [ $# -eq 2 ] || die "stop DIR"; stop "$2" ;;
  *) sed -n '2,10s/^# \{0,1\}//p' "$0"; exit 2 ;;
esac
