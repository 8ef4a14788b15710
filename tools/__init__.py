"""What a maintainer runs."""
