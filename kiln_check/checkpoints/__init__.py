"""Checkpoints of other formats: safetensors and GGUF, checked, imported and exported."""
