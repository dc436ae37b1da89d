#!/usr/bin/env bash
# A data job under mpirun, by samples/clusters/data_job_mpi: 4 processes, one of which is killed.
#
#   mpi.sh PROGRAM MODEL     77: mpirun is not installed
set -euo pipefail

command -v mpirun >/dev/null || { echo "skipped: mpirun is not installed; apt-get install openmpi-bin"; exit 77; }
program=$(readlink -f "$1")
model=$(readlink -f "$2")
samples=$(readlink -f "$(dirname "$0")/../../samples/clusters")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
for i in $(seq 4000); do printf '{"text":"text number %d","id":%d}\n' "$i" "$i"; done >in.jsonl
"$program" embed "$model" --input in.jsonl --output alone.jsonl --batch 1 --quiet

export VKFORMER=$program VKFORMER_DEVICE=${VKFORMER_DEVICE:-best}
export MPIRUN_ARGUMENTS="--oversubscribe"
[ "$(id -u)" != 0 ] || MPIRUN_ARGUMENTS+=" --allow-run-as-root"
"$samples/data_job_mpi" "$samples/hosts" 4 embed "$model" --input "$PWD/in.jsonl" \
  --output "$PWD/out.jsonl" --batch 1 --shared-window 4 --quiet >log.txt 2>&1 &
job=$!
until [ -s out.jsonl ]; do
  sleep 0.05
  kill -0 "$job" 2>/dev/null || { cat log.txt; echo "mpirun ended too early"; exit 1; }
done
victim=
for process in $(pgrep -x vkformer); do
  if grep -qz "$PWD/out.jsonl" "/proc/$process/cmdline"; then victim=$process; fi
done
[ -n "$victim" ] || { echo "the job ended before one of its processes was killed"; exit 1; }
kill -9 "$victim"
wait "$job" || { cat log.txt; echo "mpirun failed"; exit 1; }
cmp alone.jsonl out.jsonl
echo "4 processes under mpirun, one killed: the output is whole"
