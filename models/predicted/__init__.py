"""Labels that are predicted where a certificate allows it, and asked elsewhere."""

from models.predicted.cheaper import log_odds, mean_chances
from models.predicted.classifier import Classifiers
from models.predicted.embedders import NoVectors, VectorSource, embedder_of
from models.predicted.groups import groups_of
from models.predicted.labelling import asked_in_full, label_pool, may_predict
from models.predicted.pool import KeptClassifiers, LabelPool, PredictedLabels, random_order
from models.predicted.sentences import sentence_closeness
