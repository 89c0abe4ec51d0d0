#!/usr/bin/env bash
# Builds the program on Debian and puts it into a folder: build.sh FOLDER [PROFILE]. Rust must be there; a C compiler, which
# SQLite needs, is installed when it is missing.
set -euo pipefail
folder="${1:?the folder for the program}"
profile="${2:-release}"
cd "$(dirname "$0")/.."
if ! command -v cc >/dev/null; then
  apt-get update -qq
  apt-get install -y -qq --no-install-recommends gcc libc6-dev
fi
cargo build --locked --profile "$profile" --bin toolrack
# The profile dev has a folder of another name.
built="${CARGO_TARGET_DIR:-target}/${profile/#dev/debug}/toolrack"
install -D -m 0755 "$built" "$folder/toolrack"
