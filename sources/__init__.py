"""Where examples come from: a folder of images, a table, a URL."""

from sources.dataset import TEXT_LIMIT, Dataset, Example, Quarantined, Truth, picture_at
from sources.errors import DatasetError, DatasetMissing, Unreadable, Vanished
from sources.files.remote import RemoteFolder
from sources.find import find_rows, find_truth, name_of
from sources.load import examples_in, iter_examples, load_dataset, read_metadata, vanished
from sources.pictures.film import FilmError, animated_webp, evenly, frames_of_film, is_animation, is_film
from sources.pictures.images import is_image, open_image, opened
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
from sources.tables.frames import keep_frame
from sources.tables.records import is_table
from sources.truth import read_whole_truth
