"""OpenAI and compatible servers."""

from models.openai.config import OpenAIConfig
from models.openai.oracle import OpenAIOracle
from models.openai.probe import Remembered
