"""CLIP and SigLIP models."""

from models.contrastive.domain import Domain
from models.contrastive.embeddings import Embedder, Encoder, Pixels, batches, explained, opened_pictures
from models.contrastive.onnx_tower import TowerEmbedder, find_tower, is_tower
from models.contrastive.oracle import SHIPPED, ContrastiveOracle
from models.contrastive.vector_file import VectorFile, Vectors, find_stored
from models.contrastive.vocabulary import TEMPLATES, Phrase, read
