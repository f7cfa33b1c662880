"""The page on which people answer: rendered on the server, usable without JavaScript, whole in itself."""

from review.access import LINK, SECRET, TASK, Signer
from review.app import create_app
from review.config import ReviewConfig
