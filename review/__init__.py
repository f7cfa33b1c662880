"""The page on which people answer: rendered on the server, usable without JavaScript, whole in itself."""

from review.access import LINK, PUBLIC, SECRET, SESSION, TASK, Gate, Signer, Visit, Visiting, for_role
from review.app import create_app
from review.config import ReviewConfig
from review.media import BrowserPictures, Size
