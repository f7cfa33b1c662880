"""The page on which people answer: rendered on the server, usable without JavaScript, whole in itself."""

from twothirds.studio.review.access import (
    LINK,
    PUBLIC,
    SECRET,
    TASK,
    Authenticator,
    Pages,
    RequestContext,
    Signer,
    Visitor,
    for_role,
)
from twothirds.studio.review.admin_pages import overview_of
from twothirds.studio.review.app import create_app
from twothirds.studio.review.config import ReviewConfig
from twothirds.studio.review.media import BrowserPictures, Size, StaticFiles, film_kind
