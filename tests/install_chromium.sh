#!/bin/sh
# Debian's Chromium for the tests of pages: installed in CI, where the machine is thrown away; elsewhere told about.
set -eu
if command -v chromium >/dev/null 2>&1 || command -v google-chrome >/dev/null 2>&1; then
    exit 0
fi
if [ -n "${CI:-}" ] && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    echo 'installing Chromium for the tests of pages (a minute, once)'
    apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium >/dev/null && exit 0
fi
echo 'Chromium is missing: the tests of pages are skipped (to run them: apt-get install chromium, as root)' >&2
