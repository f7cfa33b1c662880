"""Labels of one example that are asked and answered together, many in one row."""

from store.packed.answers import (
    count_packed,
    latest_packed,
    lookup_packed,
    note_packed_uses,
    packed_members,
    packed_times,
    unpack,
)
from store.packed.check import add_up_packs, packed_page
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
from store.packed.keys import find_packed
from store.packed.replies import packed_replies, remove_packed_replies
from store.packed.settle import Booking, prepare_packs, settle_packed
