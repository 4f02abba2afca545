#!/bin/sh
# erlang.sh FOLDER CASE ... - run the benchmark of Erlang with one scheduler. FOLDER has the compiled module. Many idle processes
# need a larger table than the default.
set -eu
folder=$1
shift
export ERL_CRASH_DUMP_BYTES=0
exec erl +S 1:1 +P 2000000 -noinput -kernel logger_level none -pa "$folder" -s bench_gc main -extra "$@"
