"""Builds the wheel beside the clone, which stays as it is: see pyproject.toml."""

import tempfile

from setuptools import setup

with tempfile.TemporaryDirectory(prefix="twothirds-build-") as folder:
    setup(options={"build": {"build_base": folder}, "egg_info": {"egg_base": folder}})
