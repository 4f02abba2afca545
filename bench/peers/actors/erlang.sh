#!/bin/sh
# erlang.sh FOLDER CASE ... - run the benchmark of Erlang with as many schedulers as the case has workers. FOLDER has the
# compiled module. A million processes need a larger table than the default.
set -eu
folder=$1
shift
case $1 in
*.p2) schedulers=2 ;;
*) schedulers=1 ;;
esac
case $1 in
idle-*) processes=2000000 ;;
*) processes=262144 ;;
esac
export ERL_CRASH_DUMP_BYTES=0
exec erl +S "$schedulers:$schedulers" +P "$processes" -noinput -kernel logger_level none \
    -pa "$folder" -s bench_actors main -extra "$@"
