"""Files that earlier versions wrote: models still load and answer as they did, checkpoints say what to do.

The files in `old_files/` were written by the version before rooms (0.1.0, November 2026) on a table of 160 rows.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import corank as cr

FILES = Path(__file__).parent / "old_files"
ANSWERS = json.loads((FILES / "answers.json").read_text())


@pytest.mark.parametrize("name", ANSWERS)
def test_an_old_model_answers_as_it_did(name):
    model = cr.load(FILES / f"{name}.corank")
    then = ANSWERS[name]
    now = model.recommend(k=3, exclude_seen=False)
    # Scores, not ranks: rounding of another processor may swap items that are equal to the last digit.
    scores = model.predict(np.repeat(model.users_.ids, 3), model.items_.ids[np.array(then["items"]).ravel()])
    np.testing.assert_allclose(scores.reshape(-1, 3), then["scores"], rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(now.scores, then["scores"], rtol=1e-3, atol=1e-4)
    assert len(model.recommend(histories=[[101, 105]], k=3)[0]) == 3


@pytest.mark.parametrize("path", sorted(FILES.glob("*.checkpoint")), ids=lambda p: p.stem)
def test_an_old_checkpoint_says_what_to_do(path, tmp_path):
    copy = tmp_path / path.name
    copy.write_bytes(path.read_bytes())
    data = cr.from_arrays(user=[0, 0, 1, 1], item=[0, 1, 1, 2], value=[1, 2, 2, 1])
    with pytest.raises(cr.ModelFileError, match="finish it with that version, or remove it"):
        cr.find(path.stem)(epochs=2, dim=4).fit(data, checkpoint=copy)
    assert copy.exists()
