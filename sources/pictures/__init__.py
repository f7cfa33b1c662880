"""Pictures and films: what is accepted, what each may cost, and how one is opened."""

from sources.pictures.film import FilmError, animated_webp, evenly, frames_of_film, is_animation, is_film
from sources.pictures.images import AUDIO, is_audio, is_image, open_image, opened, problem_of
