#!/bin/sh
# Runs a script on the Node.js that Millrace uses: `sh scripts/node.sh scripts/test.mjs`. `exec` leaves one process, so
# signals and the exit code are the script's own.
node=$(exec node "$(dirname "$0")/runtime.mjs") || exit
# glibc would otherwise keep freed memory of large bodies, in pieces that later bodies do not fit into
MALLOC_MMAP_THRESHOLD_=${MALLOC_MMAP_THRESHOLD_:-16777216}
MALLOC_TRIM_THRESHOLD_=${MALLOC_TRIM_THRESHOLD_:-33554432}
export MALLOC_MMAP_THRESHOLD_ MALLOC_TRIM_THRESHOLD_
[ -n "$node" ] || exec node "$@"
# npm, vitest and workers must find the same Node.js
PATH="$(dirname "$node"):$PATH"
export PATH
exec "$node" "$@"
