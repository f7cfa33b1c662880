#!/bin/sh
# supply/install.sh PYTHON run|dev|scale|tools: install exactly what is locked, and no file whose hash the lock does not
# name. --no-deps, because a lock holds them all; pip check says afterwards whether anything is missing. Binaries only:
# whatever is built would run, and fetch what it is built with without any hash.
set -eu
python=$1
here=$(dirname "$0")

install() {
    "$python" -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps --only-binary=:all: "$@"
}

# Asked for hashes, pip would take the registry's build for graphics cards (several GB) before any that is offered to it
# locally. So it chooses as it always does, and what it has chosen must be one of the known builds.
# A torch of the right version that is installed already, of whatever build, is left as it is.
install_torch() {
    torch=$(sed -n 's/^\(torch==[^ \\]*\).*/\1/p' "$here/torch.lock")
    "$python" -c "import importlib.metadata as m; assert m.version('torch').split('+')[0] == '${torch#torch==}'" 2>/dev/null && return
    chosen=$(mktemp -d)
    trap 'rm -rf "$chosen"' EXIT
    "$python" -m pip download --quiet --disable-pip-version-check --no-deps --only-binary=:all: --dest "$chosen" "$torch"
    install --no-index --find-links "$chosen" -r "$here/torch.lock" || {
        echo "error: this build of $torch is not in supply/torch.lock: install one that you trust with $python -m pip" >&2
        exit 1
    }
    if "$python" -c 'import importlib.metadata as m, sys; sys.exit("cuda" not in " ".join(m.requires("torch") or []))'; then
        echo 'this build of torch is for graphics cards: installing what it needs (several GB, once)'
        install -r "$here/cuda.lock"
    fi
}

install -r "$here/$2.lock"
[ "$2" != run ] || install_torch
"$python" -m pip --disable-pip-version-check check >/dev/null || "$python" -m pip --disable-pip-version-check check
