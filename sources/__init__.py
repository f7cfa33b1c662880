"""Where examples come from: a folder of images, a table, a URL."""

from twothirds.sources.dataset import TEXT_LIMIT, Dataset, Example, Quarantined, Truth, picture_at
from twothirds.sources.errors import DatasetError, DatasetMissing, Unreadable, Vanished
from twothirds.sources.files.remote import RemoteFolder
from twothirds.sources.find import SHIPPED, find_rows, find_truth, name_of, shipped_names
from twothirds.sources.load import examples_in, iter_examples, load_dataset, read_metadata, vanished
from twothirds.sources.pictures.film import FilmError, animated_webp, evenly, frames_of_film, is_animation, is_film
from twothirds.sources.pictures.images import is_image, open_image, opened
from twothirds.sources.printable import printable, printable_lines, quoted
from twothirds.sources.rows import ANY, Columns, Rows
from twothirds.sources.secrets import (
    has_store_password,
    holds_secret,
    is_secret_name,
    redacted,
    secret_forms,
    secret_of,
    without_secrets,
)
from twothirds.sources.tables.frames import keep_frame
from twothirds.sources.tables.records import is_table
from twothirds.sources.truth import read_whole_truth
