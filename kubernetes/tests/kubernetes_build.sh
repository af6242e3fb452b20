#!/usr/bin/env bash
# Makes kube-apiserver, kube-scheduler, kubectl and etcd from their public Go modules, unpatched, once into a folder of the cache:
# about seven minutes of processor time and 260 MB. Needs Go (1.26, or 1.21 and later with GOTOOLCHAIN=auto, which fetches it).
#   kubernetes/tests/kubernetes_build.sh --where     prints the folder; fails where the programs are not there yet
#   kubernetes/tests/kubernetes_build.sh             builds if need be, and prints the folder
# Settings, from the environment:
#   PLEACH_KUBERNETES_BIN    a folder with programs of Kubernetes 1.27 or later: nothing is built
#   PLEACH_KUBERNETES_CACHE  where the folder is made (default: ~/.cache/pleach)
set -euo pipefail
version=1.36.3 etcd=3.6.16
folder=${PLEACH_KUBERNETES_CACHE:-$HOME/.cache/pleach}/kubernetes-$version-etcd-$etcd
folder=${PLEACH_KUBERNETES_BIN:-$folder}

is_there() {
  local name
  for name in kube-apiserver kube-scheduler kubectl etcd; do [ -x "$folder/$name" ] || return 1; done
}
if is_there; then echo "$folder"; exit 0; fi
[ "${1:-}" != --where ] || exit 1
fail() { echo "kubernetes_build: $*" >&2; exit 1; }
[ -z "${PLEACH_KUBERNETES_BIN:-}" ] || fail "PLEACH_KUBERNETES_BIN=$folder has not all of kube-apiserver, kube-scheduler, kubectl, etcd"
command -v go >/dev/null || fail 'needs Go 1.26 (go.dev/dl), or 1.21 and later with GOTOOLCHAIN=auto'

work=$(mktemp -d /tmp/pleach-kubernetes-build.XXXXXX)
trap 'rm -rf "$work"' EXIT
export GOFLAGS=-mod=mod CGO_ENABLED=0
{
  mkdir "$work/plane" "$work/etcd" "$work/bin"
  cd "$work/plane"
  # As a dependency Kubernetes needs the parts that its own go.mod takes from its folder `staging`, as they are published.
  own=$(go mod download -json "k8s.io/kubernetes@v$version" | sed -nE 's/^\s*"GoMod": "(.*)",$/\1/p')
  {
    echo 'module plane'
    grep '^go ' "$own"
    echo "require k8s.io/kubernetes v$version"
    sed -nE "s#^\s*(k8s\.io/\S+) => \./staging/src/\S+#replace \1 => \1 v0.${version#1.}#p" "$own"
  } > go.mod
  {
    printf '//go:build tools\n\npackage plane\n\nimport (\n'
    printf '\t_ "k8s.io/kubernetes/cmd/%s"\n' kube-apiserver kube-scheduler kubectl
    echo ')'
  } > tools.go
  go mod tidy
  # Without a version the API server says that it is v0.0.0.
  of=k8s.io/component-base/version
  minor=${version#1.} minor=${minor%%.*}
  flags="-s -w -X $of.gitVersion=v$version -X $of.gitMajor=1 -X $of.gitMinor=$minor"
  go build -ldflags "$flags" -o "$work/bin/" k8s.io/kubernetes/cmd/{kube-apiserver,kube-scheduler,kubectl}
  cd "$work/etcd"
  printf 'module etcd\n\n%s\n\nrequire go.etcd.io/etcd/server/v3 v%s\n' "$(grep '^go ' "$own")" "$etcd" > go.mod
  printf 'package main\n\nimport (\n\t"os"\n\n\t"go.etcd.io/etcd/server/v3/etcdmain"\n)\n\nfunc main() { etcdmain.Main(os.Args) }\n' > main.go
  go mod tidy
  go build -ldflags '-s -w' -o "$work/bin/etcd" .
  mkdir -p "$(dirname "$folder")"
  rm -rf "$folder" "$folder.part"
  cp -r "$work/bin" "$folder.part"
  mv "$folder.part" "$folder"
} >&2
is_there || fail "$folder is not whole"
echo "$folder"
