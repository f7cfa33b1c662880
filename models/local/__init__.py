"""Vision-language models on this machine, by transformers."""

from models.local.files import ModelFiles, find_model, pretrained
from models.local.oracle import LocalVlmConfig, LocalVlmOracle
