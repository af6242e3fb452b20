#!/bin/sh
# Makes the Helm chart in a folder: chart.sh FOLDER. One source: what kustomize makes of each folder here, without the namespace, and
# with Helm's values in place of what sites set. KUSTOMIZE names another command than `kubectl kustomize`.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
out=${1:?usage: chart.sh FOLDER}
mkdir -p "$out/modes"
cp -R "$here/chart/." "$out"
for mode in shadow live guarded order; do
  # The namespace comes first.
  ${KUSTOMIZE:-kubectl kustomize} "$here/$mode" | sed \
    -e '1,/^---$/d' \
    -e 's|image: pleach-kubernetes:.*|image: {{ .Values.image }}|' \
    -e 's|- sjf$|- {{ .Values.policy }}|' \
    -e 's|namespaces = \["\*"\]|namespaces = {{ .Values.namespaces \| toJson }}|' \
    -e 's|^\( *\)clientConfig:$|&\
\1  caBundle: {{ .Values.caBundle }}|' \
    -e 's|cidr: 192\.0\.2\.0/24|cidr: {{ .Values.controlPlane }}|' \
    > "$out/modes/$mode.yaml"
done
