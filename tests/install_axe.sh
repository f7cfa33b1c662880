#!/bin/sh
# axe-core for the tests of the review page: fetched by npm where it is missing, and used only if its hash is this one.
set -eu
wanted=20c09fe157a8a34a30e241aaa1fcdade657734f08ab379ecfbeb7d45cc46e878
there=$(dirname "$0")/node_modules/axe-core

is_wanted() {
    [ "$(sha256sum "$1" 2>/dev/null | cut -d ' ' -f 1)" = "$wanted" ]
}

if is_wanted "$there/axe.min.js"; then
    exit 0
fi
rm -f "$there/axe.min.js"
if command -v npm >/dev/null 2>&1; then
    fetched=$(mktemp -d)
    trap 'rm -rf "$fetched"' EXIT
    # npm pack runs nothing of the package, and of its files only the one with the hash is kept
    if (cd "$fetched" && npm pack --silent axe-core@4.14.0 && tar -xzf axe-core-4.14.0.tgz package/axe.min.js) >/dev/null 2>&1; then
        if is_wanted "$fetched/package/axe.min.js"; then
            mkdir -p "$there"
            mv "$fetched/package/axe.min.js" "$there/axe.min.js"
            exit 0
        fi
        echo 'error: the axe-core that npm fetched is not the one that tests/install_axe.sh names: it was not installed' >&2
        exit 1
    fi
fi
echo 'axe-core is missing: the review page is not searched for barriers (install npm and run tests/install_axe.sh)' >&2
