"""Load, render and hash the prompts a judge reads.

A prompt is one Jinja file with TOML front matter between two ``+++`` lines and two blocks,
``system`` (the stable part, first) and ``user``. Whatever people or apps wrote enters it only
through ``fence(label, text)``, whose boundary the writer of the text cannot know.
"""

from misslink.prompting.fence import Fence
from misslink.prompting.prompts import BUILT_IN, Prompt, Prompts, languages, prompts_folder
from misslink.prompting.rendered import Rendered

__all__ = ["BUILT_IN", "Fence", "Prompt", "Prompts", "Rendered", "languages", "prompts_folder"]
