#!/usr/bin/env bash
# Passes every test of the project, cheapest first. Needs only Rust.
set -euo pipefail
cd "$(dirname "$0")"

step() { printf '\n== %s\n' "$*"; "$@"; }

step cargo fmt --all --check
step cargo clippy --workspace --all-targets --locked -- -D warnings
step cargo check -p pleach-env --no-default-features --locked
step cargo test --workspace --locked
RUSTDOCFLAGS="-D warnings" step cargo doc --workspace --no-deps --locked
printf '\nall checks passed\n'
