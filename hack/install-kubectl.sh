#!/usr/bin/env bash
# Installs kubectl for the tests. Does nothing if AVIARY_KUBECTL is set, or if kubectl is on the
# path.
#
# Installs Debian's package kubernetes-client if run as root. Otherwise it exits with 3. Any kubectl
# from 1.20 on works.
set -euo pipefail

say() { printf '%s\n' "$*" >&2; }
die() { say "install-kubectl: $*"; exit 1; }
# Exit code 3: this machine cannot install it.
lacks() { say "install-kubectl: $*"; exit 3; }

kubectl="${AVIARY_KUBECTL:-kubectl}"
if command -v "$kubectl" >/dev/null; then
  exit 0
fi
[ -z "${AVIARY_KUBECTL:-}" ] || die "AVIARY_KUBECTL is $AVIARY_KUBECTL, and that cannot be run"

by_hand="install it by hand (https://kubernetes.io/docs/tasks/tools), or set AVIARY_KUBECTL to the path of one"
command -v apt-get >/dev/null || lacks "there is no kubectl, and no apt-get to install it with: $by_hand"
[ "$(id -u)" = 0 ] || lacks "there is no kubectl, and only root can install it: run 'sudo hack/install-kubectl.sh', or $by_hand"

say "installing kubectl (Debian's package kubernetes-client)"
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq || die "apt-get update failed: $by_hand"
apt-get install -y -qq --no-install-recommends kubernetes-client >&2 || die "the package kubernetes-client cannot be installed: $by_hand"
command -v kubectl >/dev/null || die "the package is installed, but there is no kubectl on the path $PATH"
