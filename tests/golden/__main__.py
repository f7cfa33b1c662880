"""`python -m tests.golden --write [CASE …]` records the results of cases, or of all of them.

The tests run as ever, with this module as a plugin: its presence makes them record what they find."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import pytest

WRITER = "tests.golden.__main__"
TEST = f"{Path(__file__).parent / 'test_golden.py'}::test_nothing_has_changed"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.golden", description=__doc__)
    parser.add_argument("--write", action="store_true", required=True, help="record results")
    parser.add_argument("cases", metavar="CASE", nargs="*", help="names of cases (default: all)")
    tests = [f"{TEST}[{name}]" for name in parser.parse_args().cases] or [TEST]
    return int(pytest.main([*tests, "-p", "no:cacheprovider", "-p", WRITER]))


if __name__ == "__main__":
    sys.exit(main())
