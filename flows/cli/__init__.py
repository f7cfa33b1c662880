"""The command line: one module for each group of commands, imported only when one of them runs."""

from flows.cli.errors import explain, log_line, usage_error
from flows.cli.signals import Interruption
from flows.cli.terminal import PlainConsole, PlainHelp, print_traceback
