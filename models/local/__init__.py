"""Vision-language models on this machine, by transformers."""

from twothirds.models.local.files import ModelFiles, find_model, pretrained
from twothirds.models.local.oracle import LocalVlmConfig, LocalVlmOracle
