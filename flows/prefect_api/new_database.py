"""Make the database with which Prefect servers of ours begin: `python -m twothirds.flows.prefect_api.new_database`.

The set-up does so once, for it takes several seconds; a server then copies it (server_program.py)."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from twothirds.flows.prefect_api.server_program import prepared_database


def make_database(file: Path) -> None:
    """As the first start of Prefect's server makes it, by the settings that it has without any of the user's."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=file.parent) as home:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")}
        environment |= {"PREFECT_HOME": home, "DO_NOT_TRACK": "1", "PREFECT_SERVER_ANALYTICS_ENABLED": "false"}
        upgrade = [sys.executable, "-m", "prefect", "server", "database", "upgrade", "--yes"]
        subprocess.run(upgrade, env=environment, cwd=home, check=True, stdout=subprocess.DEVNULL)
        (Path(home) / "prefect.db").replace(file)


if __name__ == "__main__":
    make_database(prepared_database())
