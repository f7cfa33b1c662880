"""Files, here and elsewhere: their locations, and which hosts may be asked for them."""

from sources.files.location import (
    MAX_FILE_BYTES,
    TOO_LARGE,
    absolute,
    child,
    file_name,
    file_system,
    fingerprint,
    is_url,
    member_location,
    member_of,
    open_binary,
    parent,
    reason_of,
)
from sources.files.private_hosts import PrivateAddress, home_of, options_for_rows
from sources.files.remote import RemoteFolder
