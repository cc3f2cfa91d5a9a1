"""``python -m companion`` does what ``companion`` does."""

from companion.cli import app

app()
