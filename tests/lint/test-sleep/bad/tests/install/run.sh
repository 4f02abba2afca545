#!/bin/sh
# run it
start & sleep 1
if true; then
    sleep 0.5
fi
