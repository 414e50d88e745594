"""Makes a wide table of PsychoPy without a window: python psychopy_words.py FOLDER, with psychopy 2026.2.5 installed by
--no-deps, and with numpy, scipy, pandas, openpyxl, packaging, pyyaml, requests, json_tricks, psutil and arrow."""

import os
import sys
import tempfile
from pathlib import Path

os.environ["HOME"] = tempfile.mkdtemp()  # PsychoPy writes its preferences there

from psychopy import data

PRACTICE = [("practice", "ok", 0.512)]
TRIALS = [("table", "chair", 0.734), ("deep, sea", 'fish, "blue"', 1.25), ("Müll", None, None)]

experiment = data.ExperimentHandler(
    name="assoc",
    version="",
    extraInfo={"participant": "007", "session": "001", "age": "31", "sex": "f"},
    runtimeInfo=None,
    savePickle=False,
    saveWideText=False,
)
for name, rows in (("practice", PRACTICE), ("trials", TRIALS)):
    loop = data.TrialHandler(
        trialList=[{"cue": cue, "condition": "near"} for cue, _, _ in rows], nReps=1, method="sequential", name=name
    )
    experiment.addLoop(loop)
    for (_, word, time), _trial in zip(rows, loop, strict=True):
        loop.addData("textbox.text", word or "")
        loop.addData("key_resp.keys", None if time is None else "return")
        if time is not None:
            loop.addData("key_resp.rt", time)
        experiment.nextEntry()
experiment.addData("debrief.text", "done")
experiment.nextEntry()
experiment.saveAsWideText(str(Path(sys.argv[1]) / "psychopy-2026.2.5.csv"), delim=",")
experiment.abort()
