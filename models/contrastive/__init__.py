"""CLIP and SigLIP models."""

from twothirds.models.contrastive.domain import Domain
from twothirds.models.contrastive.embeddings import Embedder, Encoder, Pixels, batches, explained, opened_pictures
from twothirds.models.contrastive.onnx_tower import TowerEmbedder, find_tower, is_tower
from twothirds.models.contrastive.oracle import SHIPPED, ContrastiveOracle
from twothirds.models.contrastive.vector_file import VectorFile, Vectors, find_stored
from twothirds.models.contrastive.vocabulary import TEMPLATES, Phrase, read
