#!/bin/sh
# sleep 1 is not needed
echo "no sleep 1 here"
