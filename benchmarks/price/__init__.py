"""What labels cost: by a server that counts tokens as OpenAI does, and by the price tables."""
