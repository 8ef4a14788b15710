"""The formats of files that checkpoints are stored in, each read by its header."""
