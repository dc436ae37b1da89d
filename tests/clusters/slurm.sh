#!/usr/bin/env bash
# Data jobs under Slurm: a controller, a node with four GPUs that are not there, and munge, all of this
# test alone. The scripts of samples/clusters run as they are. One is an array, of whose tasks one is killed and queued
# again. The other is one job of several tasks.
#
#   slurm.sh PROGRAM MODEL     77: Slurm or munge is not installed, or this is not root
set -euo pipefail

for needed in slurmctld slurmd munged sbatch; do
  PATH=$PATH:/usr/sbin command -v "$needed" >/dev/null ||
    { echo "skipped: $needed is not installed; apt-get install slurmctld slurmd slurm-client munge"; exit 77; }
done
[ "$(id -u)" = 0 ] || { echo "skipped: Slurm's daemons need root here"; exit 77; }
PATH=$PATH:/usr/sbin
program=$(readlink -f "$1")
model=$(readlink -f "$2")
samples=$(readlink -f "$(dirname "$0")/../../samples/clusters")
folder=$(mktemp -d)
daemons=()
finish() {
  for daemon in "${daemons[@]}"; do kill "$daemon" 2>/dev/null || true; done
  sleep 1
  for daemon in "${daemons[@]}"; do kill -9 "$daemon" 2>/dev/null || true; done
  rm -rf "$folder"
}
trap finish EXIT
chmod 755 "$folder"
cd "$folder"
mkdir state spool run
chmod 700 run
dd if=/dev/urandom of=run/key bs=1024 count=1 status=none
chmod 600 run/key
munged --foreground --force --key-file "$folder/run/key" --socket "$folder/munge.socket" \
  --pid-file "$folder/run/pid" --seed-file "$folder/run/seed" --log-file "$folder/run/log" >munged.log 2>&1 &
daemons+=($!)

host=$(hostname -s)
cat >slurm.conf <<CONF
ClusterName=test
SlurmctldHost=$host(127.0.0.1)
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket=$folder/munge.socket
CredType=cred/munge
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd.pid
SlurmctldLogFile=$folder/slurmctld.log
SlurmdLogFile=$folder/slurmd.log
SlurmctldPort=26817
SlurmdPort=26818
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
GresTypes=gpu
JobRequeue=1
ReturnToService=2
MinJobAge=300
NodeName=$host NodeAddr=127.0.0.1 CPUs=4 Boards=1 SocketsPerBoard=4 CoresPerSocket=1 ThreadsPerCore=1 RealMemory=1000 Gres=gpu:4 State=UNKNOWN
PartitionName=all Nodes=$host Default=YES MaxTime=INFINITE State=UP OverSubscribe=NO
SlurmdParameters=config_overrides
CONF
touch gpu{0..3}
echo "NodeName=$host Name=gpu File=$folder/gpu[0-3]" >gres.conf
export SLURM_CONF=$folder/slurm.conf
slurmctld -D >slurmctld.out 2>&1 &
daemons+=($!)
slurmd -D >slurmd.out 2>&1 &
daemons+=($!)
for _ in $(seq 100); do
  if sinfo -h -o %T 2>/dev/null | grep -qx idle; then break; fi
  sleep 0.2
done
sinfo -h -o %T | grep -qx idle || { tail -n 20 slurmctld.log slurmd.log ./*.out; echo "Slurm did not start"; exit 1; }

for i in $(seq 4000); do printf '{"text":"text number %d","id":%d}\n' "$i" "$i"; done >in.jsonl
"$program" embed "$model" --input in.jsonl --output alone.jsonl --batch 1 --quiet
export VKFORMER=$program
arguments=(embed "$model" --input "$folder/in.jsonl" --batch 1 --shared-window 4 --quiet --output)

# until_gone JOB: all tasks have ended.
until_gone() {
  for _ in $(seq 600); do
    [ -n "$(squeue -h -j "$1" 2>/dev/null)" ] || return 0
    sleep 0.3
  done
  squeue
  return 1
}

job=$(sbatch --parsable --array=0-3 "$samples/data_job.slurm" "${arguments[@]}" "$folder/array.jsonl")
until [ -s array.jsonl ]; do sleep 0.1; done
# As a node that goes takes its tasks with it: killed, and queued again.
scontrol requeue "${job}_1"
victim=
for process in $(pgrep -x vkformer); do
  if grep -qz "$folder/array.jsonl" "/proc/$process/cmdline"; then victim=$process; fi
done
[ -n "$victim" ] || { echo "the job ended before one of its processes was killed"; exit 1; }
kill -9 "$victim"
until_gone "$job"
cmp alone.jsonl array.jsonl || { cat vkformer-*; exit 1; }
echo "an array of 4 tasks under Slurm, one queued again and one killed: the output is whole"

job=$(sbatch --parsable --ntasks=3 "$samples/data_job_tasks.slurm" "${arguments[@]}" "$folder/tasks.jsonl")
until_gone "$job"
cmp alone.jsonl tasks.jsonl || { cat vkformer-*; exit 1; }
echo "one job of 3 tasks under Slurm: the output is whole"
