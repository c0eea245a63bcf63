#!/bin/bash
# libvcpulse.so exports what vcpulse.h declares, each under its version, and nothing else.
set -euo pipefail
nm=$1 library=$2 header=$3
exported=$("$nm" -D --defined-only "$library" | awk '{ print $3 }' | sort)
declared=$(grep -oE '\bvcpulse_[a-z_]+\(' "$header" | tr -d '(' | grep -v '_callback$' | sort -u)
wanted=$( { sed 's/$/@@VCPULSE_0.1/' <<<"$declared"; echo VCPULSE_0.1; } | sort)
[ "$(wc -l <<<"$declared")" -gt 30 ] || { echo "no declarations were found in $header"; exit 1; }
diff <(echo "$wanted") <(echo "$exported") || { echo "< declared, > exported"; exit 1; }
soname=$(readelf -d "$library" | sed -n 's/.*soname: \[\(.*\)\]/\1/p')
[ "$soname" = libvcpulse.so.0 ] || { echo "the soname is '$soname'"; exit 1; }
