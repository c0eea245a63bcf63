#!/bin/sh
# The labelled set in the repository is what make_labelled_set writes.
# usage: regenerated_test.sh MAKE_LABELLED_SET FOLDER
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$1" "$folder"
diff -r -q --exclude=README.md "$2" "$folder"
