"""Labels that are predicted where a certificate allows it, and asked elsewhere."""

from twothirds.models.predicted.cells import groups_of, leanings, random_order
from twothirds.models.predicted.classifier import Classifiers
from twothirds.models.predicted.embedders import NoVectors, VectorSource, embedder_of
from twothirds.models.predicted.labelling import (
    Cells,
    LabelPool,
    PredictedLabels,
    Rows,
    StoredClassifiers,
    Table,
    asked_in_full,
    label_pool,
    may_predict,
)
