#!/bin/sh
# strip.sh PROGRAM FOLDER: puts the program without names and debug data into the folder, and these beside it, as
# PROGRAM.debug, where debuggers and the backtraces of panics look for them.
set -eu
name=$(basename "$1")
folder=$(cd "$2" && pwd)
cd "$(dirname "$1")"
objcopy --only-keep-debug --compress-debug-sections "$name" "$folder/$name.debug"
objcopy --strip-all --add-gnu-debuglink="$folder/$name.debug" "$name" "$folder/$name"
