"""What the project's own algorithms save, as ratios measured in one run: ``make bench``."""
