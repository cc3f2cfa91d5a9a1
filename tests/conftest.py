import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from IPython.utils.capture import RichOutput

# A busy machine makes no test fail: how long an example takes is tested where it matters.
settings.register_profile("companion", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("companion")


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[RichOutput]]:
    """Call a function as a notebook cell would; returns what it displayed."""
    from IPython.core.interactiveshell import InteractiveShell
    from IPython.utils.capture import capture_output

    # IPython puts itself in the place of __main__, which starting a process needs.
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])
    InteractiveShell.instance()

    def call(function: Callable[..., object], *args: Any, **kwargs: Any) -> list[RichOutput]:
        with capture_output() as captured:
            function(*args, **kwargs)
        return list(captured.outputs)

    return call


@pytest.fixture(scope="session")
def small_chapter() -> Any:
    """A chapter that runs in seconds; its notebook is made by ``small_project``."""
    from companion.chapters import Chapter
    from companion.parameters import ChapterParameters

    return Chapter("small", 1, "A small chapter", ChapterParameters)


@pytest.fixture(scope="session")
def small_project(small_chapter: Any) -> Callable[..., Path]:
    """Make a project with one short chapter, whose last code cells are the ones given."""
    import nbformat
    from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

    from companion.chapters import KERNEL
    from companion.parameters import parameters_cell

    check = (
        "from companion.parameters import ChapterParameters\n\n"
        "parameters = ChapterParameters.from_notebook(globals())"
    )
    config = (
        "title: A small book\n"
        "only_build_toc_files: true\n"
        'execute: {execute_notebooks: "off"}\n'
        "sphinx: {config: {nb_output_stderr: remove}}\n"
    )
    contents = "format: jb-book\nroot: book/welcome\nchapters:\n- file: book/chapters/01-small\n"

    def make(folder: Path, *cells: str, welcome: str = "") -> Path:
        defaults = new_code_cell(parameters_cell(small_chapter.parameters))
        defaults.metadata.tags = ["parameters"]
        heading = new_markdown_cell(f"# {small_chapter.title}")
        code = [new_code_cell(cell) for cell in (check, *cells)]
        notebook = new_notebook(cells=[heading, defaults, *code], metadata={"kernelspec": KERNEL})
        for name in ("notebooks", "book"):
            (folder / name).mkdir(parents=True, exist_ok=True)
        nbformat.write(notebook, small_chapter.notebook(folder))
        (folder / "_config.yml").write_text(config, encoding="utf-8")
        (folder / "_toc.yml").write_text(contents, encoding="utf-8")
        (folder / "book/welcome.md").write_text(f"# Welcome\n\n{welcome}\n", encoding="utf-8")
        return folder

    return make


@pytest.fixture(scope="session")
def tiny_llama() -> Callable[..., Any]:
    """Make a random Llama with a small vocabulary, far from uniform: every token matters."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    def make(vocabulary: int = 11, *, seed: int = 0, **changes: Any) -> Any:
        settings = {
            "hidden_size": 32,
            "intermediate_size": 48,
            "num_hidden_layers": 2,
            "num_attention_heads": 2,
            "num_key_value_heads": 2,
            "head_dim": 16,
            "max_position_embeddings": 24,
            "initializer_range": 0.3,
            "tie_word_embeddings": True,
            "pad_token_id": 0,
            "eos_token_id": 1,
            "bos_token_id": None,
        }
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            config = LlamaConfig(vocab_size=vocabulary, **settings | changes)
            return LlamaForCausalLM(config).float().eval()

    return make


@pytest.fixture(scope="session")
def bigram_llama(tiny_llama: Callable[..., Any]) -> Callable[..., Any]:
    """Make a Llama whose next-token probabilities are a table's row of the last token.

    Its layers add nothing, its embedding is the identity, and the table stands in its head.
    """
    import numpy as np
    import torch

    def make(table: Any, **changes: Any) -> Any:
        logits = torch.tensor(np.log(np.maximum(table, 1e-300)), dtype=torch.float32)
        size = len(logits)
        shape = {"hidden_size": size, "num_attention_heads": 1, "num_key_value_heads": 1}
        untied = {"num_hidden_layers": 1, "tie_word_embeddings": False, "rms_norm_eps": 1e-12}
        model = tiny_llama(size, **shape | untied | changes)
        with torch.no_grad():
            for layer in model.model.layers:
                layer.self_attn.o_proj.weight.zero_()
                layer.mlp.down_proj.weight.zero_()
            model.model.embed_tokens.weight.copy_(torch.eye(size))
            # The last norm makes of a unit vector one of length sqrt(size).
            model.lm_head.weight.copy_(logits.T / size**0.5)
        return model

    return make
