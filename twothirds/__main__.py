"""`python -m twothirds` is the command `twothirds`."""

from twothirds.flows.cli.app import run

if __name__ == "__main__":
    run()
