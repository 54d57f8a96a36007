#!/usr/bin/env bash
# Real clusters on one machine: a hub (API server and controllers) and members with a node each, on
# which a real kubelet, containerd and runc run real pods.
#
#   clusters.sh install                 build and fetch the programs, if missing
#   clusters.sh run DIR COMMAND...      run COMMAND in namespaces of its own; fails if something is left
#                                       when it ends
#   clusters.sh left DIR                print which cgroups, mounts and processes of `run DIR` are left,
#                                       and fail if there are any
#   clusters.sh up DIR N                in these namespaces: start a hub and N members with data under
#                                       DIR; writes DIR/CLUSTER/kubeconfig for `hub`, `member1`, ...
#   clusters.sh start DIR CLUSTER PROGRAM    start a program of a cluster again
#   clusters.sh kill DIR CLUSTER PROGRAM     kill a program of a cluster
#   clusters.sh serve DIR N             `up`, then wait; with AVIARY_CLUSTERS_REACHABLE=1 `run` gives the
#                                       clusters an address that programs on this machine reach
#   clusters.sh down DIR                end what `run DIR` runs
#
# Needs root, Linux on x86_64 with cgroup v1, util-linux 2.38, ip, openssl, curl and Debian's apt-get,
# and go to build; without them it exits with 3. DIR must be a new folder, outside of which it writes only to the
# user's cache, and to /run while clusters run.
set -euo pipefail

SELF="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)/$(basename "${BASH_SOURCE[0]}")"
HACK="$(dirname "$SELF")"
CACHE="${XDG_CACHE_HOME:-$HOME/.cache}/aviary"
BIN="$CACHE/bin"
# Debian packages that are unpacked, never installed.
NODE="$CACHE/node"
PACKAGES=(containerd runc containernetworking-plugins libseccomp2)
IMAGES="$CACHE/images.tar"
REGISTRY=aviary.test
# Folders of a node, and where it sees them.
MOUNTED=(kubelet:/var/lib/kubelet containerd:/var/lib/containerd cni:/var/lib/cni run:/run/containerd
  pods:/var/log/pods containers:/var/log/containers)
# Locked by every `run` on this machine; it names the folders that they have made.
MADE=/run/aviary-clusters

say() { printf '%s\n' "$*" >&2; }
die() { say "clusters: $*"; exit 1; }
lacks() { say "clusters: $*"; exit 3; }

needs() {
  [ "$(uname -s)" = Linux ] || lacks "real clusters run on Linux only"
  [ "$(id -u)" = 0 ] || lacks "real clusters need root: kubelets mount volumes and create cgroups"
  local program
  for program in unshare nsenter flock ip openssl curl tar sha256sum; do
    command -v "$program" >/dev/null || lacks "there is no $program on this machine"
  done
  [[ "$(nsenter --help)" = *--wdns* ]] || lacks "real clusters need nsenter of util-linux 2.38 or later: this one has no --wdns"
  [ "$(uname -m)" = x86_64 ] || lacks "real clusters run on x86_64 only, and this machine is $(uname -m)"
  [ ! -f /sys/fs/cgroup/cgroup.controllers ] ||
    lacks "real clusters need cgroup v1, and this machine has v2: boot with systemd.unified_cgroup_hierarchy=0"
  [ -d /sys/fs/cgroup/memory ] || lacks "no cgroups are mounted at /sys/fs/cgroup"
  unshare --mount --net --pid --ipc --uts --fork true 2>/dev/null || lacks "this machine does not permit new namespaces"
}

# program NAME: prints its path.
program() {
  if [ -n "${KUBEBUILDER_ASSETS:-}" ] && [ -x "$KUBEBUILDER_ASSETS/$1" ]; then
    printf '%s' "$KUBEBUILDER_ASSETS/$1"
  else
    printf '%s' "$BIN/$1"
  fi
}

# ---- Programs -----------------------------------------------------------------------------------

install() {
  needs
  "$HACK/real-apiserver.sh" install --nodes
  # Others who install write the same files.
  exec 7>"$CACHE/.lock"
  flock 7
  fetch_node
  make_images
  exec 7>&-
}

# What containerd, runc and the CNI plugins of this Debian are.
fetch_node() {
  [ -x "$NODE/usr/bin/containerd" ] && [ -x "$NODE/usr/sbin/runc" ] && return 0
  command -v apt-get >/dev/null || lacks "there is no apt-get to fetch containerd with"
  say "fetching ${PACKAGES[*]}"
  local new="$CACHE/.node.new" package
  rm -rf "$new"
  mkdir -p "$new/archives"
  (cd "$new/archives" && { apt-get download "${PACKAGES[@]}" || { apt-get update && apt-get download "${PACKAGES[@]}"; }; }) >"$CACHE/apt.log" 2>&1 ||
    lacks "containerd cannot be fetched; see $CACHE/apt.log"
  for package in "$new"/archives/*.deb; do dpkg -x "$package" "$new"; done
  rm -rf "$NODE" "$new/archives"
  mv "$new" "$NODE"
}

# image FOLDER NAME ENTRYPOINT...: adds an image of the one program to an archive that is being made.
image() {
  local folder="$1" name="$2" layer config entry
  shift 2
  entry="$(printf '"%s",' "$@")"
  layer="$(sha256sum "$folder/layer.tar" | cut -d' ' -f1)"
  printf '{"architecture":"amd64","os":"linux","config":{"Entrypoint":[%s]},"rootfs":{"type":"layers","diff_ids":["sha256:%s"]}}' \
    "${entry%,}" "$layer" >"$folder/config"
  config="$(sha256sum "$folder/config" | cut -d' ' -f1).json"
  mv "$folder/config" "$folder/$config"
  printf '{"Config":"%s","RepoTags":["%s"],"Layers":["layer.tar"]}\n' "$config" "$REGISTRY/$name" >>"$folder/entries"
}

# Images are made, not pulled: no registry is reached from inside.
make_images() {
  [ "$IMAGES" -nt "$BIN/workload" ] && return 0
  local folder
  folder="$(mktemp -d)"
  mkdir "$folder/root"
  cp "$BIN/workload" "$folder/root/workload"
  tar -C "$folder/root" --sort=name --owner=0 --group=0 --mtime=@0 -cf "$folder/layer.tar" workload
  rm -r "$folder/root"
  image "$folder" pause:1 /workload pause
  for version in v1 v2 v3; do image "$folder" "workload:$version" /workload; done
  { printf '['; paste -sd, "$folder/entries" | tr -d '\n'; printf ']'; } >"$folder/manifest.json"
  rm "$folder/entries"
  tar -C "$folder" -cf "$IMAGES.new" .
  mv "$IMAGES.new" "$IMAGES"
  rm -r "$folder"
}

# ---- Namespaces ---------------------------------------------------------------------------------

run() {
  local dir="$1" code=0 place
  shift
  needs
  # A node mounts its own folders over these, and makes those that are missing.
  share_made
  for place in "${MOUNTED[@]}"; do
    [ -d "${place#*:}" ] || printf '%s\n' "${place#*:}" >&8
  done
  mkdir -p "$dir"
  dir="$(cd "$dir" && pwd)"
  # Clusters may run inside the namespaces of others, whose processes have the same numbers.
  printf '%s-%s\n' "${AVIARY_LANE:-aviary}" "$$" >"$dir/cgroup"
  # Namespaces do not outlive this process, even if it is killed.
  local bound=()
  ! setpriv --pdeathsig KILL true 2>/dev/null || bound=(setpriv --pdeathsig KILL)
  # Descriptor 9 is the network of this machine.
  AVIARY_LANE="$(cat "$dir/cgroup")" "${bound[@]}" unshare --mount --net --pid --ipc --uts --fork --kill-child --mount-proc \
    "$SELF" inside "$dir" "$@" 8>&- 9</proc/self/ns/net &
  local child=$!
  printf '%s\n' "$$" >"$dir/pid"
  trap 'kill -KILL "$child" 2>/dev/null || true' TERM INT HUP
  wait "$child" || code=$?
  trap - TERM INT HUP
  # A signal ends `wait` before the child has ended.
  wait "$child" 2>/dev/null || true
  remove_cgroups "$(cat "$dir/cgroup")"
  remove_made
  rm -f "$dir/pid"
  left "$dir" || { [ "$code" -ne 0 ] || code=1; }
  return "$code"
}

share_made() {
  while :; do
    exec 8>>"$MADE"
    flock --shared 8
    # Another `run` may have removed the file since it was opened.
    [ ! /proc/self/fd/8 -ef "$MADE" ] || return 0
  done
}

# Removing a folder detaches what is mounted over it in the namespaces of others, so only the last
# `run` does.
remove_made() {
  local place
  if flock --exclusive --nonblock 8; then
    while read -r place; do rmdir "$place" 2>/dev/null || true; done <"$MADE"
    rm -f "$MADE"
  fi
  exec 8>&-
}

# cgroups_of NAME: prints those of these clusters, and of clusters inside them.
cgroups_of() { find /sys/fs/cgroup -maxdepth 2 -type d \( -name "$1" -o -name "$1-*" \); }

# The processes have ended; the kernel may need a moment to notice.
remove_cgroups() {
  local folders
  for _ in $(seq 50); do
    folders="$(cgroups_of "$1")"
    [ -n "$folders" ] || return 0
    # shellcheck disable=SC2086 # the names have no spaces
    find $folders -depth -type d -exec rmdir {} + 2>/dev/null || true
    sleep 0.1
  done
}

left() {
  local dir name found deadline=$((SECONDS + 3))
  dir="$(cd "$1" && pwd)"
  name="$(cat "$dir/cgroup")"
  while found="$(left_of "$name" "$dir")" && [ -n "$found" ]; do
    [ "$SECONDS" -lt "$deadline" ] || break
    sleep 0.2
  done
  [ -n "$found" ] || return 0
  say "clusters: left behind by $name:"
  say "$found"
  return 1
}

left_of() {
  local process
  cgroups_of "$1" | sed 's/^/  cgroup /'
  { grep -E " $2/|/$1[/ -]" /proc/self/mountinfo || true; } | sed 's/^/  mount /'
  for process in /proc/[0-9]*; do
    if grep -qzE "^AVIARY_LANE=$1(-|\$)" "$process/environ" || grep -qE "/$1([/-]|\$)" "$process/cgroup"; then
      printf '  process %s %s\n' "${process#/proc/}" "$(tr '\0' ' ' <"$process/cmdline")"
    fi
  done 2>/dev/null
}

inside() {
  DIR="$1"
  shift
  ip link set lo up
  echo 1 >/proc/sys/net/ipv4/ip_forward
  ADDRESS=127.0.0.1
  if [ "${AVIARY_CLUSTERS_REACHABLE:-}" = 1 ]; then
    link_to_machine
  fi
  printf '%s\n' "$ADDRESS" >"$DIR/address"
  exec 9<&-
  # Not exec: the first process of a namespace must reap orphans.
  local code=0
  "$@" || code=$?
  return "$code"
}

# Links this network to the one of this machine, under a name and a subnet that nobody uses there.
link_to_machine() {
  local outside=(nsenter --net=/proc/self/fd/9 ip) start=$((RANDOM % 250)) number third taken failed=
  for number in $(seq 250); do
    third=$(((start + number) % 250 + 1))
    taken="$("${outside[@]}" -4 route show root "10.213.$third.0/24")"
    [ -z "$taken" ] || continue
    ! failed="$(ip link add eth0 type veth peer name "aviary$third" netns /proc/self/fd/9 2>&1)" || break
  done
  ip addr add "10.213.$third.2/24" dev eth0 2>/dev/null || die "no link to this machine can be made: ${failed:-all subnets are in use}"
  ip link set eth0 up
  "${outside[@]}" addr add "10.213.$third.1/24" dev "aviary$third"
  "${outside[@]}" link set "aviary$third" up
  ADDRESS="10.213.$third.2"
}

# ---- Clusters -----------------------------------------------------------------------------------

# background CLUSTER PROGRAM COMMAND...: starts a program, with a log and a pid file.
background() {
  local at="$DIR/$1/$2"
  shift 2
  setsid nohup "$@" >>"$at.log" 2>&1 </dev/null &
  printf '%s\n' $! >"$at.pid"
}

alive() { [ -f "$DIR/$1/$2.pid" ] && kill -0 "$(cat "$DIR/$1/$2.pid")" 2>/dev/null; }

# until SECONDS WHAT COMMAND...
until_is() {
  local deadline=$((SECONDS + $1)) what="$2"
  shift 2
  until "$@" >/dev/null 2>&1; do
    [ $SECONDS -lt $deadline ] || die "waited in vain: $what; the logs are in ${DIR:-the folder}"
    sleep 0.2
  done
}

number_of() { case "$1" in hub) echo 0 ;; *) echo "${1#member}" ;; esac; }
node_address() { printf '10.200.%s.1' "$(number_of "$1")"; }
port_of() { printf '%s' $((16440 + $(number_of "$1"))); }

# Secrets of a cluster: an authority, a certificate for its API server, a key for tokens of service
# accounts, and tokens for its administrator and its node.
secrets() {
  local at="$DIR/$1" ec=(-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 3650)
  mkdir -p "$at"
  [ -f "$at/kubeconfig" ] && return 0
  openssl req -x509 "${ec[@]}" -subj "/CN=$1" -keyout "$at/ca.key" -out "$at/ca.crt" 2>/dev/null
  openssl req -x509 "${ec[@]}" -subj "/O=system:masters/CN=kube-apiserver" -CA "$at/ca.crt" -CAkey "$at/ca.key" \
    -addext "basicConstraints=critical,CA:FALSE" -addext "extendedKeyUsage=serverAuth,clientAuth" \
    -addext "subjectAltName=DNS:localhost,DNS:kubernetes.default.svc,IP:127.0.0.1,IP:10.96.0.1,IP:$(node_address "$1"),IP:$(cat "$DIR/address")" \
    -keyout "$at/server.key" -out "$at/server.crt" 2>/dev/null
  openssl genrsa -out "$at/sa.key" 2048 2>/dev/null
  local admin node
  admin="$(openssl rand -hex 32)" node="$(openssl rand -hex 32)"
  printf '%s,admin,admin,system:masters\n%s,system:node:%s,node,system:nodes\n' "$admin" "$node" "$1" >"$at/tokens.csv"
  kubeconfig "$1" "$(cat "$DIR/address")" admin "$admin" >"$at/kubeconfig"
  kubeconfig "$1" 127.0.0.1 node "$node" >"$at/node.kubeconfig"
}

kubeconfig() {
  cat <<YAML
apiVersion: v1
kind: Config
current-context: $1
contexts: [{name: $1, context: {cluster: $1, user: $3}}]
clusters:
- name: $1
  cluster: {server: "https://$2:$(port_of "$1")", certificate-authority-data: $(base64 -w0 <"$DIR/$1/ca.crt")}
users: [{name: $3, user: {token: $4}}]
YAML
}

etcd_port=16379
start_etcd() {
  mkdir -p "$DIR/etcd"
  background etcd etcd "$(program etcd)" --name lane --data-dir "$DIR/etcd/data" --log-level warn --unsafe-no-fsync \
    --listen-client-urls "http://127.0.0.1:$etcd_port" --advertise-client-urls "http://127.0.0.1:$etcd_port" \
    --listen-peer-urls "http://127.0.0.1:$((etcd_port + 1))" --initial-advertise-peer-urls "http://127.0.0.1:$((etcd_port + 1))" \
    --initial-cluster "lane=http://127.0.0.1:$((etcd_port + 1))"
  until_is 60 "etcd is ready" curl -fs "http://127.0.0.1:$etcd_port/health"
}

start_kube-apiserver() {
  local at="$DIR/$1"
  background "$1" kube-apiserver env GOGC=50 "$(program kube-apiserver)" --etcd-servers "http://127.0.0.1:$etcd_port" --etcd-prefix "/$1" \
    --bind-address 0.0.0.0 --secure-port "$(port_of "$1")" --advertise-address "$(cat "$DIR/address")" --endpoint-reconciler-type none \
    --tls-cert-file "$at/server.crt" --tls-private-key-file "$at/server.key" --cert-dir "$at" \
    --kubelet-client-certificate "$at/server.crt" --kubelet-client-key "$at/server.key" --kubelet-preferred-address-types InternalIP \
    --service-cluster-ip-range 10.96.0.0/16 --authorization-mode Node,RBAC --token-auth-file "$at/tokens.csv" \
    --service-account-issuer https://kubernetes.default.svc \
    --service-account-key-file "$at/sa.key" --service-account-signing-key-file "$at/sa.key" \
    --enable-admission-plugins NodeRestriction,OwnerReferencesPermissionEnforcement
}

# The intervals are short, so that a dead node is noticed within seconds.
start_kube-controller-manager() {
  local at="$DIR/$1" controllers='*'
  [ "$1" != hub ] || controllers=garbage-collector-controller,namespace-controller,clusterrole-aggregation-controller,validatingadmissionpolicy-status-controller,serviceaccount-controller,root-ca-certificate-publisher-controller
  background "$1" kube-controller-manager env GOGC=50 "$(program kube-controller-manager)" --kubeconfig "$at/kubeconfig" \
    --authentication-kubeconfig "$at/kubeconfig" --authorization-kubeconfig "$at/kubeconfig" \
    --leader-elect=false --secure-port 0 --cert-dir "$at" --controllers "$controllers" \
    --root-ca-file "$at/ca.crt" --service-account-private-key-file "$at/sa.key" \
    --node-monitor-period 1s --node-monitor-grace-period 10s
}

start_kube-scheduler() {
  local at="$DIR/$1"
  background "$1" kube-scheduler env GOGC=50 "$(program kube-scheduler)" --kubeconfig "$at/kubeconfig" --authentication-kubeconfig "$at/kubeconfig" \
    --authorization-kubeconfig "$at/kubeconfig" --leader-elect=false --secure-port 0 --cert-dir "$at"
}

# A node's own view of the machine: folders of its own under the usual paths.
start_containerd() {
  local at="$DIR/$1/node" number
  number="$(number_of "$1")"
  mkdir -p "$at"/{kubelet,containerd,cni,pods,containers,run,net.d,plugins}
  ip link show "member$number" >/dev/null 2>&1 || {
    ip link add "member$number" type bridge
    ip addr add "$(node_address "$1")/24" dev "member$number"
    ip link set "member$number" up
  }
  cat >"$at/net.d/10-member.conflist" <<JSON
{"cniVersion": "0.4.0", "name": "member", "plugins": [
  {"type": "bridge", "bridge": "member$number", "isGateway": true, "hairpinMode": true,
   "ipam": {"type": "host-local", "ranges": [[{"subnet": "10.200.$number.0/24", "rangeStart": "10.200.$number.10", "gateway": "$(node_address "$1")"}]],
            "routes": [{"dst": "0.0.0.0/0"}]}}]}
JSON
  local cri='plugins."io.containerd.grpc.v1.cri"'
  cat >"$at/containerd.toml" <<TOML
version = 2
root = "/var/lib/containerd"
state = "/run/containerd"
disabled_plugins = ["io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.zfs", "io.containerd.snapshotter.v1.btrfs"]
[grpc]
address = "/run/containerd/containerd.sock"
[$cri]
sandbox_image = "$REGISTRY/pause:1"
restrict_oom_score_adj = true
stream_server_address = "127.0.0.1"
stream_server_port = "0"
[$cri.containerd]
snapshotter = "overlayfs"
[$cri.containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
[$cri.containerd.runtimes.runc.options]
BinaryName = "$NODE/usr/sbin/runc"
SystemdCgroup = false
[$cri.cni]
bin_dir = "$NODE/usr/lib/cni"
conf_dir = "$at/net.d"
TOML
  cgroups "$1"
  background "$1" containerd unshare --mount --propagation private "$SELF" containerd "$DIR" "$1"
}

cgroups() {
  local hierarchy path name
  name="$(cat "$DIR/cgroup")"
  for hierarchy in /sys/fs/cgroup/*/; do
    [ -w "$hierarchy/cgroup.procs" ] || continue
    path="$hierarchy$name"
    mkdir -p "$path/$1"
    [ ! -f "$path/cpuset.cpus" ] || for path in "$hierarchy$name" "$hierarchy$name/$1"; do
      cat "$hierarchy/cpuset.cpus" >"$path/cpuset.cpus"
      cat "$hierarchy/cpuset.mems" >"$path/cpuset.mems"
    done
  done
}

containerd() {
  DIR="$1"
  local at="$DIR/$2/node" pair
  mount --make-rshared /
  for pair in "${MOUNTED[@]}"; do
    mkdir -p "${pair#*:}"
    mount --bind "$at/${pair%%:*}" "${pair#*:}"
  done
  export PATH="$NODE/usr/bin:$NODE/usr/sbin:$PATH" LD_LIBRARY_PATH="$NODE/usr/lib/x86_64-linux-gnu"
  exec "$NODE/usr/bin/containerd" --config "$at/containerd.toml"
}

# in_node CLUSTER COMMAND...: runs a command with the node's view of the machine.
in_node() {
  local pid
  pid="$(cat "$DIR/$1/containerd.pid")"
  shift
  nsenter --mount="/proc/$pid/ns/mnt" --wdns=/ "$@"
}

ctr() {
  local cluster="$1"
  shift
  in_node "$cluster" "$NODE/usr/bin/ctr" --address /run/containerd/containerd.sock --namespace k8s.io "$@"
}

start_kubelet() {
  local at="$DIR/$1/node" pid
  cat >"$at/kubelet.yaml" <<YAML
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
address: $(node_address "$1")
authentication: {anonymous: {enabled: false}, webhook: {enabled: true}, x509: {clientCAFile: $DIR/$1/ca.crt}}
authorization: {mode: Webhook}
containerRuntimeEndpoint: unix:///run/containerd/containerd.sock
cgroupDriver: cgroupfs
cgroupRoot: /$(cat "$DIR/cgroup")/$1
failCgroupV1: false
failSwapOn: false
makeIPTablesUtilChains: false
resolvConf: ""
healthzPort: 0
readOnlyPort: 0
imageGCHighThresholdPercent: 100
evictionHard: {memory.available: 100Mi, nodefs.available: 1%, imagefs.available: 1%, nodefs.inodesFree: 1%, imagefs.inodesFree: 1%}
volumePluginDir: $at/plugins
nodeStatusUpdateFrequency: 2s
nodeLeaseDurationSeconds: 10
syncFrequency: 10s
YAML
  pid="$(cat "$DIR/$1/containerd.pid")"
  background "$1" kubelet nsenter --mount="/proc/$pid/ns/mnt" --wdns=/ env GOGC=50 "PATH=$NODE/usr/bin:$NODE/usr/sbin:$PATH" \
    "$(program kubelet)" --config "$at/kubelet.yaml" --kubeconfig "$DIR/$1/node.kubeconfig" --hostname-override "$1" \
    --node-ip "$(node_address "$1")" --cert-dir "$at/certificates" --v 1
}

start() { "start_$2" "$1"; }

kill_program() {
  local at="$DIR/$1/$2.pid" pid
  pid="$(cat "$at")"
  kill -KILL "$pid" 2>/dev/null || true
  while kill -0 "$pid" 2>/dev/null && ! grep -q '^State:.*Z' "/proc/$pid/status" 2>/dev/null; do sleep 0.05; done
  rm -f "$at"
}

ready() {
  local token
  token="$(cut -d, -f1 "$DIR/$1/tokens.csv" | head -n 1)"
  curl -fs --max-time 5 --cacert "$DIR/$1/ca.crt" -H "Authorization: Bearer $token" "https://127.0.0.1:$(port_of "$1")$2"
}

node_ready() { ready "$1" "/api/v1/nodes/$1" | tr -d ' \n' | grep -q '"type":"Ready","status":"True"\|"status":"True"[^}]*"type":"Ready"'; }

cluster() {
  secrets "$1"
  start "$1" kube-apiserver
  [ "$1" = hub ] || start "$1" containerd
  until_is 180 "the API server of $1 is ready" ready "$1" /readyz
  start "$1" kube-controller-manager
  [ "$1" != hub ] || return 0
  start "$1" kube-scheduler
  until_is 60 "containerd of $1 is ready" ctr "$1" version
  ctr "$1" images import "$IMAGES" >/dev/null
  start "$1" kubelet
  until_is 180 "the node of $1 is ready" node_ready "$1"
}

up() {
  DIR="$1"
  local number jobs=() job
  umask 022
  [ -f "$DIR/address" ] || die "use '$0 run' first"
  start_etcd
  for number in hub $(seq "$2"); do
    [ "$number" = hub ] || number="member$number"
    cluster "$number" &
    jobs+=($!)
  done
  for job in "${jobs[@]}"; do wait "$job" || die "not all clusters are ready; the logs are in $DIR"; done
  touch "$DIR/ready"
}

down() {
  local pid=none
  [ ! -f "$1/pid" ] || pid="$(cat "$1/pid")"
  # The number may belong to another process by now.
  if tr '\0' ' ' 2>/dev/null <"/proc/$pid/cmdline" | grep -q 'clusters\.sh run '; then
    kill -TERM "$pid" || die "the clusters in $1 cannot be stopped: only root can"
    until_is 60 "the end of the clusters" gone "$pid"
  fi
  # If `run` was killed, it has not removed these.
  [ ! -f "$1/cgroup" ] || remove_cgroups "$(cat "$1/cgroup")"
  share_made
  remove_made
}

gone() { ! kill -0 "$1" 2>/dev/null || grep -q '^State:.*Z' "/proc/$1/status"; }

serve() {
  up "$1" "$2"
  sleep infinity
}

[ $# -ge 1 ] || { sed -n '2,/^set /s/^# \{0,1\}//p' "$SELF"; exit 2; }
verb="$1"
shift
case "$verb" in
  install | needs) "$verb" ;;
  left | run | inside | containerd | up | serve | down) "$verb" "$@" ;;
  start) DIR="$1" && start "$2" "$3" ;;
  kill) DIR="$1" && kill_program "$2" "$3" ;;
  ctr) DIR="$1" && shift && ctr "$@" ;;
  *) die "there is no command $verb" ;;
esac
