"""Labels of one example that are asked and answered together, many in one row."""

from store.packed.answers import (
    count_packed,
    latest_packed,
    lookup_packed,
    note_packed_uses,
    packed_members,
    packed_replies,
    packed_times,
    remove_packed_replies,
    unpack,
)
from store.packed.check import StoredAnswer, add_up_packs, packed_page
from store.packed.claims import (
    PACKED_FENCE,
    NewClaim,
    PackTerms,
    all_packed_claims,
    claim_packs,
    claimed_packed,
    group_labels,
    mark_packed,
    packed_claims_of,
    packed_owners,
    shorten_packed,
    take_out_all,
    take_out_ended,
    take_out_keys,
)
from store.packed.content import AnswerRecord
from store.packed.keys import find_packed
from store.packed.settle import Booking, prepare_packs, settle_packed
