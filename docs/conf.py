"""The manual: Sphinx with MyST pages; tables and the command line's page are made from the code by generate.py."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import generate

from astride import __version__

project = "astride"
author = "the astride authors"
copyright = "the astride authors, Apache-2.0"
version = release = __version__

extensions = ["myst_parser"]
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3
exclude_patterns = ["_build", "_generated"]
html_theme = "furo"
html_title = f"astride {version}"
html_show_sourcelink = False


def setup(app: object) -> None:
    """Write what is made from the code before Sphinx reads the pages."""
    generate.write(Path(__file__).parent / "_generated")
