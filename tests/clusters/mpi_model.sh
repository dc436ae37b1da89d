#!/usr/bin/env bash
# One model over the processes of mpirun, by a program that is built with VKFORMER_MPI.
#
#   mpi_model.sh PROGRAM MODEL OTHER_MODEL    of generating families; 77: mpirun is not installed
set -euo pipefail

command -v mpirun >/dev/null || { echo "skipped: mpirun is not installed; apt-get install openmpi-bin"; exit 77; }
program=$(readlink -f "$1")
model=$(readlink -f "$2")
other=$(readlink -f "$3")
folder=$(mktemp -d)
trap 'pkill -9 -f "$folder/" || true; rm -rf "$folder"' EXIT
cd "$folder"
fail() { echo "failed: $*"; exit 1; }
options=(--oversubscribe)
[ "$(id -u)" != 0 ] || options+=(--allow-run-as-root)
ranks() { # ranks COUNT COMMAND...
  local count=$1
  shift
  timeout 300 mpirun "${options[@]}" -n "$count" "$@"
}

for i in $(seq 6); do echo "to be number $i"; done >lines.txt
declare -A runs=(
  [greedy]="--max-new-tokens 12 --temperature 0"
  [beams]="--max-new-tokens 12 --beams 3 --temperature 0"
  [sampled]="--max-new-tokens 12 --seed 7"
)
for kind in "${!runs[@]}"; do
  read -ra extra <<<"${runs[$kind]}"
  "$program" generate "$model" --input lines.txt --output alone.jsonl "${extra[@]}" --quiet
  for count in 1 2 4; do
    ranks "$count" "$program" generate "$model" --input lines.txt --output "out.jsonl" "${extra[@]}" 2>log.txt ||
      { cat log.txt; fail "$kind on $count processes"; }
    cmp alone.jsonl out.jsonl || fail "$kind on $count processes gives other texts"
    rm out.jsonl
    echo "$kind, $count processes: the texts of one"
  done
done

# Layers that are divided give the same texts, and each process has its part of them. Scores differ by the order of sums.
same_texts() { cmp <(sed -E 's/"score":[^,}]*//' "$1") <(sed -E 's/"score":[^,}]*//' "$2"); }
for kind in greedy beams; do
  read -ra extra <<<"${runs[$kind]}"
  rm -f alone.jsonl
  "$program" generate "$model" --input lines.txt --output alone.jsonl "${extra[@]}" --quiet
  ranks 2 "$program" generate "$model" --input lines.txt --output out.jsonl "${extra[@]}" --split tensors 2>log.txt ||
    { cat log.txt; fail "$kind with divided layers"; }
  same_texts alone.jsonl out.jsonl || fail "$kind with divided layers gives other texts"
  grep -q 'has part 2 of 2 of every layer' log.txt || { cat log.txt; fail "no plan of divided layers"; }
  rm out.jsonl
  echo "$kind, layers divided by 2 processes: the texts of one"
done

# A long prompt is read in parts, which all processes work on at the same time.
echo "To be, or not to be, that is the question: whether it is nobler in the mind to suffer" >long.txt
"$program" generate "$model" --input long.txt --output long.jsonl --max-new-tokens 12 --temperature 0 --quiet
for count in 2 4; do
  for part in 7 64 0; do
    ranks "$count" "$program" generate "$model" --input long.txt --output out.jsonl --max-new-tokens 12 --temperature 0 \
      --prompt-part "$part" --quiet 2>log.txt || { cat log.txt; fail "parts of $part tokens on $count processes"; }
    same_texts long.jsonl out.jsonl || fail "parts of $part tokens on $count processes give another text"
    rm out.jsonl
  done
  echo "parts of a prompt, $count processes: the text of one"
done

# An estimate chooses one of the two, and the plan says what the other would take.
read -ra extra <<<"${runs[greedy]}"
ranks 2 "$program" generate "$model" --input lines.txt --output out.jsonl "${extra[@]}" --split fastest 2>log.txt ||
  { cat log.txt; fail "the faster of two splits"; }
rm -f alone.jsonl
"$program" generate "$model" --input lines.txt --output alone.jsonl "${extra[@]}" --quiet
same_texts alone.jsonl out.jsonl || fail "the faster of two splits gives other texts"
grep -q 'estimated for a split by' log.txt || { cat log.txt; fail "no estimate of the other split"; }
rm out.jsonl
grep 'estimated' log.txt

# Every process has a part of the weights, where shares say so.
ranks 2 "$program" generate "$model" "once" --max-new-tokens 2 --shares 1,1 >out.txt 2>log.txt
[ "$(grep -c 'bytes of weights' log.txt)" = 2 ] || { cat log.txt; fail "no plan of two processes"; }
[ "$(wc -l <out.txt)" -le 2 ] || fail "several processes printed"
grep -o '[0-9]* bytes of weights' log.txt

# The input of the first process is that of all.
"$program" generate "$model" --max-new-tokens 5 --seed 3 --quiet <lines.txt >alone.txt
ranks 3 "$program" generate "$model" --max-new-tokens 5 --seed 3 --quiet <lines.txt >out.txt
cmp alone.txt out.txt || fail "stdin did not reach all processes"
echo "stdin: the texts of one"

# What cannot be is refused, by name, and ends all processes.
code=0
timeout 120 mpirun "${options[@]}" -n 1 "$program" generate "$model" once --shares 1,1 : \
  -n 1 "$program" generate "$other" once --shares 1,1 >out.txt 2>log.txt || code=$?
[ "$code" != 0 ] && [ "$code" != 124 ] || fail "two models were not refused (exit code $code)"
grep -q 'process 0' log.txt || { cat log.txt; fail "two models: no sentence"; }
grep -m1 'vkformer' log.txt
code=0
ranks 2 "$program" generate "$model" once --device 99 >out.txt 2>log.txt || code=$?
[ "$code" != 0 ] && [ "$code" != 124 ] || fail "a device that is not there was not refused (exit code $code)"
grep -m1 'no usable Vulkan device' log.txt
code=0
ranks 2 "$program" generate "$model" --input lines.txt --output out.jsonl --resume >out.txt 2>log.txt || code=$?
grep -q -- '--resume' log.txt || { cat log.txt; fail "--resume was not refused"; }

# A process that is killed ends all, within seconds.
for i in $(seq 2000); do echo "to be or not to be, that is question $i"; done >many.txt
ranks 3 "$program" generate "$model" --input "$folder/many.txt" --output out.jsonl --max-new-tokens 40 --shares 1,1,1 \
  >log.txt 2>&1 &
job=$!
for _ in $(seq 600); do
  [ ! -s out.jsonl ] || break
  kill -0 "$job" 2>/dev/null || { cat log.txt; fail "the job ended before a process was killed"; }
  sleep 0.1
done
victim=
for process in $(pgrep -x vkformer); do
  if grep -qz "$folder/many.txt" "/proc/$process/cmdline"; then victim=$process; fi
done
[ -n "$victim" ] || fail "no process to kill"
begin=$(date +%s)
kill -9 "$victim"
code=0
wait "$job" || code=$?
[ "$code" != 0 ] || fail "a job whose process was killed says success"
[ $(($(date +%s) - begin)) -le 20 ] || fail "the job took $(($(date +%s) - begin)) s to end"
grep -q 'rank' log.txt || { cat log.txt; fail "no sentence names the process"; }
for process in $(pgrep -x vkformer); do
  if grep -qz "$folder/many.txt" "/proc/$process/cmdline"; then fail "process $process is left"; fi
done
echo "a process killed: all end, and a sentence names it"
