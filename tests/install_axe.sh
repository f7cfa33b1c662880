#!/bin/sh
# axe-core for the tests of the review page: fetched from npm where it is missing and npm is there, else told about.
set -eu
here=$(dirname "$0")
if [ -f "$here/node_modules/axe-core/axe.min.js" ]; then
    exit 0
fi
if command -v npm >/dev/null 2>&1; then
    npm install --silent --no-save --no-audit --no-fund --prefix "$here" axe-core@4.14.0 >/dev/null 2>&1 && exit 0
fi
echo 'axe-core is missing: the review page is not searched for barriers (install npm and run tests/install_axe.sh)' >&2
