#!/usr/bin/env bash
# The Kubernetes manifests of samples/clusters against the schemas of the npm package kubernetes-models.
#
#   kubernetes.sh FOLDER     FOLDER is where the package goes; 77: npm or the package is not there
set -euo pipefail

command -v npm >/dev/null || { echo "skipped: npm is not installed"; exit 77; }
here=$(readlink -f "$(dirname "$0")")
mkdir -p "$1"
folder=$(readlink -f "$1")
[ -d "$folder/node_modules/kubernetes-models" ] || (
  cd "$folder"
  echo '{"private":true}' >package.json
  npm install --silent --no-audit --no-fund kubernetes-models@5.1.0 js-yaml@4 >npm.log 2>&1
) || { echo "skipped: npm could not install kubernetes-models; see $folder/npm.log"; exit 77; }
node "$here/check_kubernetes.mjs" "$folder" "$here"/../../samples/clusters/*.yaml
