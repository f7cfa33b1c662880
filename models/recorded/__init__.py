"""Cache, budget and ledger around any oracle."""

from models.recorded.batch import LEASE_SECONDS, record_of, reserved_at_once
from models.recorded.oracle import SILENT_SECONDS, Recorded, take_over_probe

__all__ = ["LEASE_SECONDS", "SILENT_SECONDS", "Recorded", "record_of", "reserved_at_once", "take_over_probe"]
