#!/usr/bin/env bash
# Makes what a release hands out, and tries each piece from what it handed out: deploy/release.sh VERSION OUT [PART ...]
#
# PARTs, all by default: programs, packages, root, sbom, chart, crates, wheel, site. Programs are made by deploy/build.sh. What a machine
# lacks the program for is named at the end as not made; what is made and cannot be tried here is named as untested. Run it at a tag, on
# the oldest distribution that is to be served: a program needs at least the C library that it was built with, and the end says which.
set -euo pipefail
cd "$(dirname "$0")/.."
version=${1:?usage: deploy/release.sh VERSION OUT [PART ...]}
out=$(mkdir -p "${2:?usage: deploy/release.sh VERSION OUT [PART ...]}" && cd "$2" && pwd)
shift 2
parts=("$@")
[ ${#parts[@]} -gt 0 ] || parts=(programs packages root sbom chart crates wheel site)

stated=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
[ "$version" = "$stated" ] || { echo "VERSION = $version: Cargo.toml says $stated; change one of them" >&2; exit 2; }
architecture=$(uname -m)
export SOURCE_DATE_EPOCH
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
release=${CARGO_TARGET_DIR:-$PWD/target}/release
work=$(mktemp -d "${TMPDIR:-/tmp}/pleach-release.XXXXXX")
trap 'rm -rf "$work"' EXIT
notes=()
not_made() { notes+=("not made: $1"); }
untested() { notes+=("untested: $1"); }
ok() { printf 'ok: %s\n' "$1"; }
# Archives with the same bytes for the same files.
archive() { tar --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner -C "$1" -c . | gzip -n9 >"$2"; }

# A program without what the user has set, in an empty home, answers and compares two rules.
try_program() { # PROGRAM
  local home
  home=$(mktemp -d "$work/home.XXXX")
  (cd "$home" && env -i HOME="$home" PATH=/usr/bin:/bin "$1" evaluate --workload philly-like --num-jobs 50 --policy fifo,sjf --seeds 2 --quiet --json r.json)
  [ -s "$home/r.json" ]
}

make_programs() {
  deploy/build.sh pleach-cli pleach-daemon pleach-kubernetes
  local folder=$work/pleach-$version
  mkdir -p "$folder/bin" "$folder/share/doc/pleach"
  cp "$release"/pleach "$release"/pleach-scheduler "$release"/pleach-kubernetes "$folder/bin"
  "$folder/bin/pleach" --generate "$folder/share" >/dev/null
  mkdir -p "$folder/share/man" && mv "$folder/share/man1" "$folder/share/man/man1"
  cp README.md CHANGELOG.md SECURITY.md LICENSE-MIT LICENSE-APACHE CITATION.cff "$folder/share/doc/pleach"
  archive "$folder" "$out/pleach-$version-$architecture-linux.tar.gz"
  # From the archive, elsewhere.
  mkdir -p "$work/unpacked" && tar -xzf "$out/pleach-$version-$architecture-linux.tar.gz" -C "$work/unpacked"
  try_program "$work/unpacked/bin/pleach"
  for program in pleach pleach-scheduler pleach-kubernetes; do "$work/unpacked/bin/$program" --version | grep -qF "$version"; done
  man --local-file --warnings "$work/unpacked/share/man/man1/pleach.1" >/dev/null 2>"$work/man" && [ ! -s "$work/man" ] ||
    { command -v man >/dev/null && { cat "$work/man" >&2; exit 1; }; untested 'manual pages: man is not here'; }
  bash -n "$work/unpacked/share/completions/pleach.bash"
  ok "programs: $(du -h "$out/pleach-$version-$architecture-linux.tar.gz" | cut -f1), glibc $(objdump -T "$release"/pleach | grep -o 'GLIBC_[0-9.]*' | sort -uV | tail -n 1) or later"
}

make_packages() {
  command -v dpkg-deb >/dev/null || { not_made 'packages: dpkg-deb is not here'; return; }
  [ -x "$release/pleach" ] || { not_made 'packages: the part programs comes before them'; return; }
  local folder=$work/deb name=pleach_${version}_$(dpkg --print-architecture).deb
  mkdir -p "$folder/DEBIAN" "$folder/usr/bin" "$folder/usr/share/doc/pleach" "$folder/usr/share/bash-completion/completions"
  install -m 755 "$release/pleach" "$folder/usr/bin"
  "$release/pleach" --generate "$work/manual" >/dev/null
  mkdir -p "$folder/usr/share/man" "$folder/usr/share/zsh/vendor-completions" "$folder/usr/share/fish/vendor_completions.d"
  cp -R "$work/manual/man1" "$folder/usr/share/man/man1" && gzip -n9 "$folder"/usr/share/man/man1/*
  cp "$work/manual/completions/pleach.bash" "$folder/usr/share/bash-completion/completions/pleach"
  cp "$work/manual/completions/_pleach" "$folder/usr/share/zsh/vendor-completions"
  cp "$work/manual/completions/pleach.fish" "$folder/usr/share/fish/vendor_completions.d"
  cp LICENSE-MIT "$folder/usr/share/doc/pleach/copyright"
  cat >"$folder/DEBIAN/control" <<END
Package: pleach
Version: $version
Architecture: $(dpkg --print-architecture)
Maintainer: The Pleach authors
Section: science
Priority: optional
Installed-Size: $(du -k -s "$folder/usr" | cut -f1)
Depends: libc6 (>= $(objdump -T "$release/pleach" | grep -o 'GLIBC_[0-9.]*' | sort -uV | tail -n 1 | cut -d_ -f2)), libgcc-s1
Description: Learns schedulers for shared GPU clusters, as decision trees
 Simulates, trains, compares and distils schedulers. The daemon for Slurm is the package pleach-daemon.
END
  find "$folder" -newermt "@$SOURCE_DATE_EPOCH" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
  dpkg-deb --root-owner-group --build "$folder" "$out/$name" >/dev/null
  mkdir "$work/installed" && dpkg-deb -x "$out/$name" "$work/installed"
  try_program "$work/installed/usr/bin/pleach"
  if [ "$(id -u)" = 0 ] && dpkg --dry-run -i "$out/$name" >/dev/null 2>&1; then :; else untested "$name: dpkg was not asked whether it would install"; fi
  ok "packages: $name, $(du -h "$out/$name" | cut -f1)"
  # The daemon's package has an account, a unit and settings: cargo-deb makes it from its manifest, and a test installs it.
  if command -v cargo-deb >/dev/null; then
    cargo deb --no-build -p pleach-daemon -o "$out/pleach-daemon_${version}_$(dpkg --print-architecture).deb"
    untested 'pleach-daemon.deb: deploy/daemon/tests/package_slurm.sh installs it beside a Slurm'
  else
    not_made 'pleach-daemon.deb: cargo install cargo-deb --locked'
  fi
}

# What an image of the controller holds, without an engine for images: it, the forecaster, the libraries that they load, an account.
make_root() {
  [ -x "$release/pleach-kubernetes" ] && [ -x "$release/pleach" ] || { not_made 'root: the part programs comes before it'; return; }
  local folder=$work/root library
  mkdir -p "$folder/usr/local/bin" "$folder/etc" "$folder/tmp"
  install -m 755 "$release"/pleach{,-kubernetes} "$folder/usr/local/bin"
  ldd "$release"/pleach{,-kubernetes} | grep -o '/[^ ]*' | while read -r library; do
    mkdir -p "$folder$(dirname "$library")" && cp -L "$library" "$folder$library"
  done
  printf 'root:x:0:0:root:/:/sbin/nologin\nnonroot:x:65532:65532:nonroot:/:/sbin/nologin\n' >"$folder/etc/passwd"
  archive "$folder" "$out/pleach-kubernetes-$version-$architecture-root.tar.gz"
  # With an engine: podman import --change 'USER 65532:65532' --change 'ENTRYPOINT ["/usr/local/bin/pleach-kubernetes"]' ...-root.tar.gz
  mkdir "$work/root-unpacked" && tar -xzf "$out/pleach-kubernetes-$version-$architecture-root.tar.gz" -C "$work/root-unpacked"
  if [ "$(id -u)" = 0 ]; then
    for program in pleach pleach-kubernetes; do
      chroot --userspec=65532:65532 "$work/root-unpacked" "/usr/local/bin/$program" --version | grep -qF "$version"
    done
    ok "root: $(du -h "$out/pleach-kubernetes-$version-$architecture-root.tar.gz" | cut -f1), both answer as uid 65532 with nothing else there"
  else
    untested 'root: only root changes the root'
  fi
  untested 'an image by an engine: deploy/kubernetes/tests/image_kubernetes.sh builds and asks one'
}

make_sbom() {
  for package in pleach-cli pleach-daemon pleach-kubernetes; do
    deploy/sbom.py "$package" >"$out/$package-$version.cdx.json"
  done
  python3 - "$out"/*.cdx.json <<'END'
import json, sys
for path in sys.argv[1:]:
    with open(path) as file:
        bom = json.load(file)
    refs = {own["bom-ref"] for own in bom["components"]} | {bom["metadata"]["component"]["bom-ref"]}
    assert all(refs >= set(own["dependsOn"]) | {own["ref"]} for own in bom["dependencies"]), path
    assert all("licenses" in own for own in bom["components"]), path
    print(f"ok: sbom: {path.rsplit('/')[-1]}, {len(bom['components'])} crates")
END
}

make_chart() {
  if [ -z "${KUSTOMIZE:-}" ] && ! command -v kubectl >/dev/null; then
    local kustomize=${PLEACH_KUBERNETES_CACHE:-$HOME/.cache/pleach}/kustomize-5.0.3/kustomize
    [ -x "$kustomize" ] || { not_made 'chart: neither kubectl nor kustomize is here (./check.sh makes one)'; return; }
    export KUSTOMIZE="$kustomize build"
  fi
  KUSTOMIZE=${KUSTOMIZE:-} deploy/kubernetes/deploy/chart.sh "$work/chart/pleach"
  sed -i "s/^version: .*/version: $version/; s/^appVersion: .*/appVersion: \"$version\"/" "$work/chart/pleach/Chart.yaml"
  archive "$work/chart" "$out/pleach-chart-$version.tgz"
  if command -v helm >/dev/null; then
    helm template test "$out/pleach-chart-$version.tgz" >/dev/null && ok 'chart: helm renders it'
  else
    untested 'chart: helm is not here; a test renders it by rules of its own'
  fi
}

# Crates in the order in which they have to be published, which is Cargo's; nothing is sent.
make_crates() {
  local excluded=(--exclude pleach-tests --exclude pleach-conventions --exclude pleach-python --exclude pleach-own)
  local verify=(--no-verify)
  [ "${PLEACH_RELEASE_VERIFY:-0}" = 1 ] && verify=() || untested 'crates: each was packed and not compiled (PLEACH_RELEASE_VERIFY=1 compiles them)'
  cargo package --workspace "${excluded[@]}" "${verify[@]}" --locked --quiet --allow-dirty
  mkdir -p "$out/crates"
  cp "${CARGO_TARGET_DIR:-target}"/package/*-"$version".crate "$out/crates"
  # Each behind those that it needs: `cargo publish -p` in this order; `cargo publish --dry-run` asks the registry besides.
  cargo metadata --format-version 1 --no-deps --locked | python3 -c '
import graphlib, json, sys
own = {package["name"]: package for package in json.load(sys.stdin)["packages"] if package["publish"] != []}
needs = {name: {of["name"] for of in package["dependencies"] if of["kind"] != "dev"} & set(own) for name, package in own.items()}
order = graphlib.TopologicalSorter({name: sorted(needs[name]) for name in sorted(needs)}).static_order()
print("\n".join(name for name in order))' >"$out/crates/ORDER"
  ok "crates: $(find "$out/crates" -name '*.crate' | wc -l) packed, $(wc -l <"$out/crates/ORDER") in order"
}

make_wheel() {
  local maturin
  maturin=$(command -v maturin || true)
  [ -n "$maturin" ] || maturin=$PWD/target/python-venv/bin/maturin
  [ -x "$maturin" ] || { not_made 'wheel: pip install maturin'; return; }
  # A wheel for other distributions needs an old C library, or zig in the place of a linker.
  local compatibility=(--compatibility linux)
  python3 -c 'import ziglang' 2>/dev/null && compatibility=(--zig --compatibility manylinux_2_28)
  (cd python && "$maturin" build --release --locked "${compatibility[@]}" -o "$out")
  [ "${compatibility[0]}" = --zig ] || untested 'wheel: for this machine alone (pip install ziglang makes manylinux_2_28)'
  python3 -m venv "$work/venv" && "$work/venv/bin/pip" install -q "$out"/pleach-"$version"-*.whl
  (cd "$work" && venv/bin/python -c 'import gymnasium, pleach; e = gymnasium.make("Pleach/PhillyGang-v1"); e.reset(seed=1); print(e.step(0)[1])')
  ok 'wheel: installed, and an environment takes a step'
}

make_site() {
  command -v mdbook >/dev/null || { not_made 'site: cargo install mdbook --locked'; return; }
  tests/conventions/site.sh && archive target/site "$out/pleach-site-$version.tar.gz"
  ok 'site'
}

[ -z "$(git status --porcelain)" ] || untested 'all of it: the tree has changes that no commit has'
for part in "${parts[@]}"; do
  case $part in
    programs | packages | root | sbom | chart | crates | wheel | site) "make_$part" ;;
    *) echo "PART = $part: allowed are programs, packages, root, sbom, chart, crates, wheel, site" >&2; exit 2 ;;
  esac
done
(cd "$out" && find . -type f ! -name SHA256SUMS -printf '%P\n' | sort | xargs -r sha256sum >SHA256SUMS)
printf '\n%s\n' "$out:" && (cd "$out" && find . -type f -printf '%10s %P\n' | sort -k2)
printf '%s\n' "${notes[@]:-all made and tried}"
echo 'to sign: gpg --armor --detach-sign SHA256SUMS; to check: gpg --verify SHA256SUMS.asc && sha256sum -c SHA256SUMS'
