#!/bin/sh
# erlang.sh FOLDER CASE OPTION - the cases between two nodes of Erlang, with one scheduler each. FOLDER has the compiled module. There is no
# EPMD: both use the port of the one that listens.
set -eu
folder=$1
shift
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
export ERL_CRASH_DUMP_BYTES=0
common="+S 1:1 -noinput -kernel logger_level none -start_epmd false -erl_epmd_port $port -setcookie bench -hidden -pa $folder"
# shellcheck disable=SC2086  # words
erl $common -kernel inet_dist_use_interface '{127,0,0,1}' -sname other@localhost -s bench_cluster serve &
other=$!
trap 'kill $other 2>/dev/null || true' EXIT
# shellcheck disable=SC2086
erl $common -sname ours@localhost -dist_listen false -s bench_cluster main -extra "$@"
