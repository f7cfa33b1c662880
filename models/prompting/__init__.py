"""Prompts, and replies that are parsed without trust."""

from twothirds.models.prompting.chances import label_chances, next_word
from twothirds.models.prompting.families import chosen_answer, family_answer, named_by_words
from twothirds.models.prompting.feature_names import clean, name_fault, sounds_like_an_instruction
from twothirds.models.prompting.labels import (
    LABELS_VERSION,
    LabelForm,
    Listing,
    arranged,
    label_form,
    material_messages,
    predicates,
)
from twothirds.models.prompting.pictures import ImageUrls, most_frames, sent_sizes
from twothirds.models.prompting.prompts import REPLY_LIMIT, Brief, ImagePart, Message, SheetPart, repair_messages
from twothirds.models.prompting.replies import Reading, closed, found_in, is_refusal, json_objects, parse_labels
from twothirds.models.prompting.sheets import on_sheets, sheet_url, tokens_of
from twothirds.models.prompting.single_forms import NAMED_TOKENS, SINGLE_VERSION, SingleForm, single_form
from twothirds.models.prompting.tokens import (
    counts_tiles,
    most_picture_tokens,
    most_text_tokens,
    picture_tokens,
    text_tokens,
)
