"""Cache, budget and ledger around any oracle."""

from models.recorded.batch import record_of, reserved_at_once
from models.recorded.claiming import LEASE_SECONDS
from models.recorded.oracle import SILENT_SECONDS, Recorded, take_over_probe

__all__ = ["LEASE_SECONDS", "SILENT_SECONDS", "Recorded", "record_of", "reserved_at_once", "take_over_probe"]
