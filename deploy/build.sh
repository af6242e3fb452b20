#!/usr/bin/env bash
# Builds release programs whose bytes depend on the sources, the toolchain and the C compiler, not on the folder, the user or the day:
#   deploy/build.sh PACKAGE ...            in target/release
#   deploy/build.sh --twice PACKAGE ...    in two folders beside each other, from the last commit, and compares the bytes
set -euo pipefail
cd "$(dirname "$0")/.."

build() { # FOLDER PACKAGE ...: in the present folder
  local target=$1 packages=()
  shift
  for package in "$@"; do packages+=(-p "$package"); done
  # By a flag: the setting of the profile does not reach a crate that Cargo.toml gives a profile of its own.
  # Paths of the sources, of other crates, of the standard library and of what is built.
  local from=("$PWD=/pleach" "${CARGO_HOME:-$HOME/.cargo}=/cargo" "$(rustc --print sysroot)=/rust" "$target=/target") flags=-Cstrip=symbols c_flags=''
  for pair in "${from[@]}"; do
    flags+=" --remap-path-prefix=$pair"
    c_flags+=" -ffile-prefix-map=$pair"
  done
  SOURCE_DATE_EPOCH=$(git log -1 --format=%ct) RUSTFLAGS="$flags" CFLAGS="${c_flags# }" CARGO_INCREMENTAL=0 \
    CARGO_TARGET_DIR="$target" cargo build --release --locked "${packages[@]}"
}

if [ "${1:-}" != --twice ]; then
  build "${CARGO_TARGET_DIR:-$PWD/target}" "$@"
  exit
fi
shift
top=$PWD
scratch=$(mktemp -d "${TMPDIR:-/tmp}/pleach-twice.XXXXXX")
trap 'cd "$top"; rm -rf "$scratch"; git worktree prune' EXIT
for place in one a/second/place; do
  mkdir -p "$(dirname "$scratch/$place")"
  git worktree add --quiet --detach "$scratch/$place" HEAD
  (cd "$scratch/$place" && build "$scratch/$place/target" "$@")
done
cd "$scratch/one/target/release"
differ=0
for program in $(find . -maxdepth 1 -type f -executable -printf '%f\n' | sort); do
  sum=$(sha256sum <"$program") other=$(sha256sum <"$scratch/a/second/place/target/release/$program")
  if [ "$sum" = "$other" ]; then said=same; else said=other differ=1; fi
  printf '%s %10d bytes  %s  %s\n' "$said" "$(stat -c %s "$program")" "${sum%% *}" "$program"
  # Where a path stayed, the bytes hang on it.
  ! grep -qaF -e "$top" -e "$scratch" -e "${CARGO_HOME:-$HOME/.cargo}" "$program" || { echo "$program holds a path of this machine" >&2; differ=1; }
done
exit "$differ"
