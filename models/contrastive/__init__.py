"""CLIP and SigLIP models as oracles."""
