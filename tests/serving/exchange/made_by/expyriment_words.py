"""Makes a data file of Expyriment without a window: python expyriment_words.py FOLDER, with expyriment 1.0.1."""

import os
import shutil
import sys
import tempfile
from pathlib import Path

os.environ["SDL_VIDEODRIVER"] = "dummy"
os.environ["SDL_AUDIODRIVER"] = "dummy"

import expyriment

folder = Path(tempfile.mkdtemp())
expyriment.control.defaults.opengl = 0
expyriment.control.defaults.event_logging = 0
expyriment.control.defaults.window_mode = True
expyriment.io.defaults.datafile_directory = str(folder)
expyriment.io.defaults.eventfile_directory = str(folder)
experiment = expyriment.design.Experiment(name="assoc")
experiment.add_data_variable_names(["condition", "cue", "response", "rt"])
experiment.add_experiment_info("A word for each cue")
expyriment.control.initialise(experiment)
expyriment.control.start(experiment, subject_id=7, skip_ready_screen=True)
experiment.data.add_subject_info("age = 31")
experiment.data.add(["near", "table", "chair", 734])
experiment.data.add(["near", "dark", 'he said "night"', 1250])
experiment.data.add(["far", "deep, sea", 'fish, "blue"', 901])
experiment.data.add(["far", "Müll", None, None])
expyriment.control.end(goodbye_delay=0)
[path] = folder.glob("*.xpd")
shutil.copy(path, Path(sys.argv[1]) / "expyriment-1.0.1.xpd")
shutil.rmtree(folder)
