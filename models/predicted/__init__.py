"""Labels that are predicted where a certificate allows it, and asked elsewhere."""

from models.predicted.cells import groups_of, leanings, random_order
from models.predicted.classifier import Classifiers
from models.predicted.embedders import NoVectors, VectorSource, embedder_of
from models.predicted.labelling import (
    Ask,
    Cells,
    LabelPool,
    PredictedLabels,
    StoredClassifiers,
    Table,
    asked_in_full,
    label_pool,
    may_predict,
)
