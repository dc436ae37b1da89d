#!/usr/bin/env bash
# One model on devices of two drivers in one process.
#
#   two_drivers.sh PROGRAM MODEL    of a generating family; 77: there are no two drivers
set -euo pipefail

program=$1
model=$2
read -ra names <<<"$(tools/drivers names | tr '\n' ' ')"
[ "${#names[@]}" -ge 2 ] || { echo "skipped: one driver is here; \`tools/drivers get\` brings more"; exit 77; }
files_of() { tools/drivers run "$1" env | sed -n 's/^VK_DRIVER_FILES=//p'; }
for other in "${names[@]:1}"; do
  # Each driver with its own variables; only what says where drivers are is put together.
  export VK_DRIVER_FILES="$(files_of "${names[0]}"):$(files_of "$other")"
  count=$("$program" devices --json | grep -o '"index":' | wc -l)
  if [ "$count" -lt 2 ]; then echo "$other: it does not load beside ${names[0]}"; continue; fi
  alone=$("$program" generate "$model" "to be" --max-new-tokens 20 --temperature 0 --device 0 --quiet)
  for devices in 0,1 1,0; do
    found=$("$program" generate "$model" "to be" --max-new-tokens 20 --temperature 0 --devices "$devices" --quiet)
    [ "$found" = "$alone" ] || { echo "$other, devices $devices: [$found] in place of [$alone]"; exit 1; }
  done
  echo "${names[0]} beside $other: the text of one device"
done
