#!/bin/sh
# The pure core must stay pure: no symbol of Asio, OpenSSL, protobuf or abseil, no clock, no file.
# Usage: core_links_test.sh NM LIBVCPULSE_CORE
set -eu
symbols=$("$1" --demangle --undefined-only "$2")
count=$(printf '%s\n' "$symbols" | grep -c . || true)
if [ "$count" -lt 1 ]; then
  echo "no undefined symbol at all was listed: $1 did not read $2"
  exit 1
fi
if printf '%s\n' "$symbols" |
    grep -E 'boost::|SSL_|google::protobuf|absl::|clock_gettime|chrono::|fopen|[^_a-z]open(64)?$|fstream'; then
  echo "vcpulse_core uses what its README comment forbids (see above)"
  exit 1
fi
echo "$count undefined symbols, none forbidden"
