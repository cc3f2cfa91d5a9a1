"""One experiment a chapter: parameters in, tidy tables out.

``trade_off`` measures chapter 1, ``trade_off_figures`` draws it, ``trade_off_text`` says it.
``rollouts`` keeps samples on disk and ``exactly`` exact probabilities, for every chapter;
``fingerprint`` says which code made them.
"""
