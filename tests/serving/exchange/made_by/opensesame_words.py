"""Makes a log of OpenSesame without a window: python opensesame_words.py FOLDER.

It needs opensesame-core 4.1.22, installed by --no-deps, and datamatrix, python-fileinspector, python-pseudorandom,
webcolors, pyyaml, markdown, numpy, pillow, pygame and setuptools."""

import os
import sys
from pathlib import Path

os.environ["SDL_VIDEODRIVER"] = "dummy"
os.environ["SDL_AUDIODRIVER"] = "dummy"

from libopensesame.experiment import Experiment

SCRIPT = """---
API: 2.1
OpenSesame: 4.1.22
Platform: posix
---
set width 640
set height 480
set start words
set canvas_backend legacy
set title assoc

define loop words
	set order sequential
	set repeat 1
	set cycles 4
	setcycle 0 cue "table"
	setcycle 0 word "chair"
	setcycle 1 cue "dark"
	setcycle 1 word "light"
	setcycle 2 cue "deep, sea"
	setcycle 2 word "fish, blue"
	setcycle 3 cue "Müll"
	setcycle 3 word ""
	run answer

define sequence answer
	run ask always
	run logger always

define inline_script ask
	___run__
	word = var.word or None
	var.age = 31
	responses.add(response=word, response_time=3000 if word is None else 812.4)
	__end__

define logger logger
	set auto_log yes
"""
os.chdir(sys.argv[1])  # the log has the paths of its files, which then are names alone
path = Path("assoc.osexp")
path.write_text(SCRIPT, encoding="utf-8")
experiment = Experiment(string=path.name, experiment_path=path.name, logfile="opensesame-4.1.22.csv", subject_nr=7)
experiment.run()
path.unlink()
