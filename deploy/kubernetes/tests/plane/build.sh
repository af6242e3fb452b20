#!/usr/bin/env bash
# Makes a control plane of Kubernetes 1.36.3 from public Go modules, unpatched, once into a folder of the cache: etcd 3.6.16,
# kube-apiserver, kube-controller-manager, kube-scheduler, kubectl, and kwok 0.8.0 for nodes and pods; for the field test also
# Kueue 0.17.0. Versions and checksums stand in go.mod and go.sum of the folders beside this file: Kubernetes needs the 33 parts
# of its folder `staging` replaced by their published versions. Needs Go 1.26: about eleven minutes of processor time and 420 MB,
# with Kueue six minutes more.
#   deploy/kubernetes/tests/plane/build.sh --where     prints the folder; fails where the programs are not there yet
#   deploy/kubernetes/tests/plane/build.sh             builds if need be, and prints the folder
#   deploy/kubernetes/tests/plane/build.sh --field     the same with Kueue
# Settings, from the environment:
#   PLEACH_KUBERNETES_BIN    a folder with programs of Kubernetes 1.27 or later and kwok: nothing is built
#   PLEACH_KUBERNETES_CACHE  where the folder is made (default: ~/.cache/pleach)
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
version=1.36.3
folder=${PLEACH_KUBERNETES_BIN:-${PLEACH_KUBERNETES_CACHE:-$HOME/.cache/pleach}/kubernetes-$version}
programs=(etcd kube-apiserver kube-controller-manager kube-scheduler kubectl kwok)
[ "${1:-}" != --field ] || programs+=(kueue)

is_there() {
  local name
  for name in "${programs[@]}"; do [ -x "$folder/$name" ] || return 1; done
}
if is_there; then echo "$folder"; exit 0; fi
[ "${1:-}" != --where ] || exit 1
fail() { echo "plane/build.sh: $*" >&2; exit 1; }
[ -z "${PLEACH_KUBERNETES_BIN:-}" ] || fail "PLEACH_KUBERNETES_BIN=$folder has not all of ${programs[*]}"
command -v go >/dev/null || fail 'no Go is here: 1.26 is needed (go.dev/dl)'
# A Go that is older and may not fetch another one does not read these modules.
(cd "$here/etcd" && go list -m >/dev/null 2>&1) ||
  fail "$(go version) is too old: 1.26 is needed (go.dev/dl, or GOTOOLCHAIN=auto)"

mkdir -p "$folder"
export GOFLAGS=-mod=readonly CGO_ENABLED=0
# make MODULE PROGRAM PACKAGE [FLAGS]: one program, taken into the folder once it is whole.
make() {
  [ ! -x "$folder/$2" ] || return 0
  (cd "$here/$1" && nice -n 10 go build -p 2 -ldflags "-s -w ${4:-}" -o "$folder/$2.part" "$3")
  mv "$folder/$2.part" "$folder/$2"
}
# Without a version the API server says that it is v0.0.0.
of=k8s.io/component-base/version
minor=${version#1.} minor=${minor%%.*}
flags="-X $of.gitVersion=v$version -X $of.gitMajor=1 -X $of.gitMinor=$minor"
{
  make etcd etcd .
  for name in kube-apiserver kube-controller-manager kube-scheduler kubectl; do
    make kubernetes "$name" "k8s.io/kubernetes/cmd/$name" "$flags"
  done
  make kwok kwok sigs.k8s.io/kwok/cmd/kwok
  if [ "${1:-}" = --field ]; then
    make kueue kueue sigs.k8s.io/kueue/cmd/kueue
    # Its definitions and webhooks are in the same module.
    rm -rf "$folder/kueue-components"
    cp -r "$(cd "$here/kueue" && go list -m -f '{{.Dir}}' sigs.k8s.io/kueue)/config/components" "$folder/kueue-components"
    chmod -R u+w "$folder/kueue-components"
  fi
} >&2
is_there || fail "$folder is not whole"
echo "$folder"
