"""CLIP and SigLIP models."""

from models.contrastive.oracle import SHIPPED, ContrastiveOracle
from models.contrastive.vocabulary import TEMPLATES, Phrase, read
