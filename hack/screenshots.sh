#!/usr/bin/env bash
# Takes the pictures in docs/images from a real demo, in a real browser. Takes about three minutes.
#
#   screenshots.sh [DIR]        all but real-clusters.png
#   screenshots.sh DIR URL      only real-clusters.png, from a dashboard: follow docs/tutorial-real.md
#                               to the end of step 4, run `aviary dashboard`, and give its URL
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

hack/install-chromium.sh
# The pictures should look the same on every machine.
if [ -z "$(fc-list Inter 2>/dev/null)" ]; then
  if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends fonts-inter fonts-jetbrains-mono >&2
  else
    echo "screenshots: the fonts Inter and JetBrains Mono are not installed: the pictures will show another font" >&2
  fi
fi
# The same profile as the tests, so that nothing is built twice.
"${CARGO:-cargo}" build --locked --profile test --workspace --bin aviary --example screenshots
target="${CARGO_TARGET_DIR:-target}/debug"
"$target/examples/screenshots" "$target/aviary" "${1:-docs/images}" ${2:+"$2"}
