#!/usr/bin/env bash
# Makes kube-apiserver, kube-scheduler and kubectl from the distribution's source package (Debian 12: 1.20.2), with the scheduling
# gates of 1.27 put in, once into a folder of the cache; about eight minutes of processor time. Needs root, for the packages.
#   kubernetes/tests/kubernetes_build.sh --where     prints the folder; fails where the programs are not there yet
#   kubernetes/tests/kubernetes_build.sh             builds if need be, and prints the folder
# Settings, from the environment:
#   PLEACH_KUBERNETES_BIN    a folder with programs of Kubernetes 1.27 or later: nothing is built
#   PLEACH_KUBERNETES_CACHE  where the folder is made (default: ~/.cache/pleach)
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
gates=$here/real/gates-1.20.2.sh
# A version, and what is put into it: other gates are another folder.
folder=${PLEACH_KUBERNETES_CACHE:-$HOME/.cache/pleach}/kubernetes-1.20.2-$(sha256sum "$gates" | cut -c1-12)
folder=${PLEACH_KUBERNETES_BIN:-$folder}

is_there() {
  local name
  for name in kube-apiserver kube-scheduler kubectl etcd; do [ -x "$folder/$name" ] || return 1; done
}
if is_there; then echo "$folder"; exit 0; fi
[ "${1:-}" != --where ] || exit 1
fail() { echo "kubernetes_build: $*" >&2; exit 1; }
[ -z "${PLEACH_KUBERNETES_BIN:-}" ] || fail "PLEACH_KUBERNETES_BIN=$folder has not all of kube-apiserver, kube-scheduler, kubectl, etcd"
[ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || fail 'needs root and apt-get (Debian 12)'

work=$(mktemp -d /tmp/pleach-kubernetes-build.XXXXXX)
trap 'chmod -R u+w "$work" 2>/dev/null; rm -rf "$work"' EXIT
{
  timeout 300 apt-get -q update
  timeout 600 apt-get -qy install --no-install-recommends golang-1.19-go rsync jq dpkg-dev make gcc libc6-dev
  # The list of sources stays out of the machine's own.
  mkdir -p "$work"/{sources,lists/partial,cache/archives/partial}
  for list in /etc/apt/sources.list /etc/apt/sources.list.d/*; do
    case $list in *.list | *.sources) [ ! -f "$list" ] || sed -E 's/^Types:.*/Types: deb-src/; s/^deb /deb-src /' "$list" \
      > "$work/sources/$(basename "$list")" ;; esac
  done
  printf '%s\n' 'Dir::Etc::sourcelist "/dev/null";' "Dir::Etc::sourceparts \"$work/sources\";" "Dir::State::lists \"$work/lists\";" \
    "Dir::Cache \"$work/cache\";" 'APT::Sandbox::User "root";' > "$work/apt.conf"
  cd "$work"
  # Lists without sources are none of our errors.
  APT_CONFIG=$work/apt.conf timeout 300 apt-get -q update || true
  APT_CONFIG=$work/apt.conf timeout 300 apt-get -q source --download-only kubernetes
  # Taken out of its package: installed, it would be started as a service.
  timeout 300 apt-get -q -o APT::Sandbox::User=root download etcd-server
  dpkg -x etcd-server_*.deb etcd
  mkdir tree && tar xzf kubernetes_*really1.20.2.orig.tar.gz -C tree --strip-components 1
  cd tree
  "$gates"
  mkdir -p .go/src/k8s.io && ln -s ../../.. .go/src/k8s.io/kubernetes
  printf 'KUBE_GIT_%s\n' COMMIT=gates TREE_STATE=clean VERSION=v1.20.2+gates MAJOR=1 MINOR=20 > "$work/version"
  # Everything that it needs is in its own folder `vendor`.
  env HOME="$work" GOPATH="$PWD/.go" GOCACHE="$work/go" GOFLAGS=-mod=vendor GOPROXY=off CGO_ENABLED=0 \
    PATH="/usr/lib/go-1.19/bin:$PATH" KUBE_GIT_VERSION_FILE="$work/version" make WHAT='cmd/kube-apiserver cmd/kube-scheduler cmd/kubectl'
  mkdir -p "$folder.part"
  cp _output/bin/{kube-apiserver,kube-scheduler,kubectl} ../etcd/usr/bin/etcd "$folder.part/"
  rm -rf "$folder"
  mv "$folder.part" "$folder"
} >&2
is_there || fail "$folder is not whole"
echo "$folder"
