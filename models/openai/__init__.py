"""OpenAI and compatible servers."""

from twothirds.models.openai.config import OpenAIConfig
from twothirds.models.openai.oracle import OpenAIOracle
from twothirds.models.openai.probe import Remembered
