#!/usr/bin/env bash
# One model over two processes in two network namespaces, whose link is fast, then slow, then lossy: the plan changes,
# the texts do not.
#
#   slow_link.sh PROGRAM MODEL    PROGRAM is built with VKFORMER_MPI; 77: what it needs is not here
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")

skip() { echo "skipped: $*"; exit 77; }
command -v mpirun >/dev/null || skip "mpirun is not installed; apt-get install openmpi-bin"
command -v ip >/dev/null || skip "ip is not installed; apt-get install iproute2"
[ "$(id -u)" = 0 ] || skip "network namespaces need root"
[ -c /dev/net/tun ] || skip "/dev/net/tun is not here"
program=$(readlink -f "$1")
model=$(readlink -f "$2")
folder=$(mktemp -d)
first=vkf-first-$$ second=vkf-second-$$
relay=
end_link() {
  [ -z "$relay" ] || kill "$relay" 2>/dev/null || true
  relay=
  ip netns del "$first" 2>/dev/null || true
  ip netns del "$second" 2>/dev/null || true
}
trap 'pkill -9 -f "$folder/" || true; end_link; rm -rf "$folder"' EXIT
cd "$folder"
fail() { echo "failed: $*"; exit 1; }

# What mpirun calls in place of ssh: HOST and a command. The second host is the second namespace.
cat >agent <<EOF
#!/bin/sh
shift
exec ip netns exec $second sh -c "\$*"
EOF
chmod +x agent
for i in $(seq 4); do echo "to be number $i"; done >lines.txt
extra=(--max-new-tokens 12 --temperature 0)
"$program" generate "$model" --input lines.txt --output alone.jsonl "${extra[@]}" --quiet

over_link() { # over_link NAME [OPTION...]: the texts over a link that relay.py makes with these options
  local name=$1
  shift
  ip netns add "$first" && ip netns add "$second" || skip "network namespaces cannot be made here"
  mkfifo link
  "$here/relay.py" "$first" "$second" "$@" >link &
  relay=$!
  read -r _ <link || fail "the link of $name did not come up"
  rm link
  timeout 600 ip netns exec "$first" mpirun --allow-run-as-root --mca plm_rsh_agent "$folder/agent" \
    --mca oob_tcp_if_include vkf0 --mca btl self,tcp --mca btl_tcp_if_include vkf0 \
    -n 2 --host 10.77.0.1,10.77.0.2 "$program" generate "$model" --input lines.txt --output out.jsonl "${extra[@]}" \
    2>log.txt || { cat log.txt; fail "$name"; }
  cmp alone.jsonl out.jsonl || fail "$name gives other texts"
  rm out.jsonl
  end_link
  grep -o 'a message to the next takes .*' log.txt | head -n 1 | sed "s/^/$name: /"
}

over_link "a fast link"
! grep -q 'has no part' log.txt || { cat log.txt; fail "a fast link leaves a process without a part"; }
over_link "a link of 20 ms" --delay 20
grep -q 'has no part' log.txt || { cat log.txt; fail "a slow link does not change the plan"; }
over_link "a link of 1 ms that loses 1 of 100 packets" --delay 1 --loss 0.01
echo "slow_link: the texts of one process over each link, and a slow one changes the plan"
