"""OpenAI and compatible servers."""

from twothirds.models.openai.abilities import Remembered
from twothirds.models.openai.config import OpenAIConfig
from twothirds.models.openai.oracle import OpenAIOracle
