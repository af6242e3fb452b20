#!/bin/sh
# Makes the Helm chart in a folder: chart.sh FOLDER. One source: what kustomize makes of each folder here, without the namespace, and
# with Helm's values in place of what sites set. KUSTOMIZE names another command than `kubectl kustomize`.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
out=${1:?usage: chart.sh FOLDER}
# A component is added by a kustomization, which lies beside the folders.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp -R "$here/." "$work"
mkdir -p "$out/modes" "$work/with"
cp -R "$here/chart/." "$out"
make() { # FOLDER NAME
  # The namespace comes first.
  ${KUSTOMIZE:-kubectl kustomize} "$work/$1" | sed \
    -e '1,/^---$/d' \
    -e 's|image: pleach-kubernetes:.*|image: {{ .Values.image }}|' \
    -e 's|- sjf$|- {{ .Values.policy }}|' \
    -e 's|namespaces = \["\*"\]|namespaces = {{ .Values.namespaces \| toJson }}|' \
    -e 's|^\( *\)clientConfig:$|&\
\1  caBundle: {{ .Values.caBundle }}|' \
    -e 's|cidr: 192\.0\.2\.0/24|cidr: {{ .Values.controlPlane }}|' \
    > "$out/modes/$2.yaml"
}
for mode in shadow live guarded order; do
  make "$mode" "$mode"
  printf 'resources: [../%s]\ncomponents: [../forecasts]\n' "$mode" > "$work/with/kustomization.yaml"
  make with "$mode-forecasts"
done
