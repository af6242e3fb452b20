#!/usr/bin/env bash
# Builds the image of the controller by deploy/kubernetes/deploy/Containerfile, where an engine is (docker, podman or buildah that answers),
# and asks the program in it for its version as the account of the manifests. Elsewhere it says that it is skipped.
#   deploy/kubernetes/tests/image_kubernetes.sh [TAG]
set -euo pipefail
top=$(cd "$(dirname "$0")/../../.." && pwd)
tag=${1:-pleach-kubernetes:test}
engine=
for name in podman docker; do
  if command -v "$name" > /dev/null && timeout 20 "$name" info > /dev/null 2>&1; then engine=$name; break; fi
done
[ -n "$engine" ] || { echo 'image_kubernetes: skipped, no podman or docker answers here'; exit 0; }
"$engine" build -f "$top/deploy/kubernetes/deploy/Containerfile" -t "$tag" "$top"
[ "$("$engine" inspect --format '{{.Config.User}}' "$tag")" = 65532:65532 ] || { echo 'the image is root'"'"'s' >&2; exit 1; }
"$engine" run --rm --read-only --cap-drop ALL "$tag" --version
