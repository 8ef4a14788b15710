"""What the bench consists of: its files, its measurements, its tables."""
