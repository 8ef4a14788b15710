"""How tools store quantized weights."""
