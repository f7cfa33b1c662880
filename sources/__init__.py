"""Where examples come from: a folder of images, a table, a URL."""

from sources.dataset import TEXT_LIMIT, Dataset, Example, Quarantined, Truth, picture_at
from sources.errors import DatasetError, DatasetMissing, Unreadable, Vanished
from sources.files import RemoteFolder
from sources.find import find_rows, find_truth, name_of
from sources.load import examples_in, iter_examples, load_dataset, read_metadata, vanished
from sources.pictures import (
    FilmError,
    animated_webp,
    evenly,
    frames_of_film,
    is_animation,
    is_film,
    is_image,
    open_image,
    opened,
)
from sources.printable import printable, printable_lines, quoted
from sources.rows import ANY, Columns, Rows
from sources.secrets import (
    has_store_password,
    holds_secret,
    is_secret_name,
    redacted,
    secret_forms,
    secret_of,
    without_secrets,
)
from sources.tables import is_table, keep_frame
from sources.truth import read_whole_truth
