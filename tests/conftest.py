from collections.abc import Callable
from typing import Any

import pytest


@pytest.fixture
def shown() -> Callable[..., list[dict[str, Any]]]:
    """Call a function as a notebook cell would; returns the MIME bundles that it displayed."""
    from IPython.core.interactiveshell import InteractiveShell
    from IPython.utils.capture import capture_output

    InteractiveShell.instance()

    def call(function: Callable[..., object], *args: Any, **kwargs: Any) -> list[dict[str, Any]]:
        with capture_output() as captured:
            function(*args, **kwargs)
        return [output.data for output in captured.outputs]

    return call
