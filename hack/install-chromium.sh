#!/usr/bin/env bash
# Installs what the dashboard's browser tests need: chromium, chromedriver, and a font. Does nothing
# if they are on the path, or if AVIARY_CHROMIUM and AVIARY_CHROMEDRIVER are set.
#
# Installs Debian's packages if run as root. Otherwise it exits with 3.
set -euo pipefail

say() { printf '%s\n' "$*" >&2; }
die() { say "install-chromium: $*"; exit 1; }
# Exit code 3: this machine cannot install it.
lacks() { say "install-chromium: $*"; exit 3; }

browser="${AVIARY_CHROMIUM:-chromium}"
driver="${AVIARY_CHROMEDRIVER:-chromedriver}"
[ -z "${AVIARY_CHROMIUM:-}" ] || command -v "$browser" >/dev/null || die "AVIARY_CHROMIUM is $browser, and that cannot be run"
[ -z "${AVIARY_CHROMEDRIVER:-}" ] || command -v "$driver" >/dev/null || die "AVIARY_CHROMEDRIVER is $driver, and that cannot be run"

wanted=()
command -v "$browser" >/dev/null || wanted+=(chromium)
command -v "$driver" >/dev/null || wanted+=(chromium-driver)
# Without fontconfig there is no font either, as far as a browser is concerned.
if ! command -v fc-list >/dev/null || [ -z "$(fc-list 2>/dev/null | head -n 1)" ]; then
  wanted+=(fontconfig fonts-dejavu-core)
fi
[ "${#wanted[@]}" -gt 0 ] || exit 0

by_hand="install ${wanted[*]} by hand, or set AVIARY_CHROMIUM and AVIARY_CHROMEDRIVER to the paths of a browser and its driver"
command -v apt-get >/dev/null || lacks "the tests of the dashboard need ${wanted[*]}, and there is no apt-get: $by_hand"
[ "$(id -u)" = 0 ] || lacks "the tests of the dashboard need ${wanted[*]}, and only root can install them: run 'sudo hack/install-chromium.sh', or $by_hand"

say "installing a browser for the tests (Debian's packages ${wanted[*]})"
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq || die "apt-get update failed: $by_hand"
apt-get install -y -qq --no-install-recommends "${wanted[@]}" >&2 || die "${wanted[*]} cannot be installed: $by_hand"
for program in "$browser" "$driver"; do
  command -v "$program" >/dev/null || die "the packages are installed, but there is no $program on the path $PATH"
done
