"""The laboratory: a world of small Countdown problems, its language and its model.

``world`` draws the problems and their splits, ``tokenizer`` and ``model`` are the language and the
architecture, ``evaluation`` says what a checkpoint measures. ``manifest.json`` and ``checkpoints``
are written by ``companion train lab`` and never edited by hand.
"""
