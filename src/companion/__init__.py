"""An executable companion to "Locked at the Entrance, Open Inside" (arXiv 2608.29188).

The library is thin: :mod:`companion.countdown` is the enumerable world, :mod:`companion.policies`
samples and scores it, :mod:`companion.measures` holds the formulas, :mod:`companion.training`
makes the laboratory's checkpoints, and :mod:`companion.experiments` has one module a chapter.

Importing the package imports none of the heavy libraries.
"""

__version__ = "0.1.0"
