"""Labels that are predicted where a certificate allows it, and asked elsewhere."""

from models.predicted.classifier import Classifiers
from models.predicted.embedders import NoVectors, VectorSource, embedder_of, sentence_closeness
from models.predicted.labelling import asked_in_full, label_pool, may_predict
from models.predicted.pool import (
    LabelPool,
    PredictedLabels,
    StoredClassifiers,
    groups_of,
    log_odds,
    mean_chances,
    random_order,
)
