"""Makes oTree's table of an app with its own bots: python otree_words.py FOLDER, with otree 6.0.15 and requests."""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

SETTINGS = """
SESSION_CONFIGS = [dict(name="words", app_sequence=["words"], num_demo_participants=2)]
SESSION_CONFIG_DEFAULTS = dict(real_world_currency_per_point=1.00, participation_fee=0.00)
PARTICIPANT_FIELDS = []
SESSION_FIELDS = []
LANGUAGE_CODE = "en"
SECRET_KEY = "none"
ADMIN_USERNAME = "admin"
ADMIN_PASSWORD = "none"
"""
APP = """
from otree.api import *

CUES = ["table", "deep, sea", "Müll"]


class C(BaseConstants):
    NAME_IN_URL = "words"
    PLAYERS_PER_GROUP = None
    NUM_ROUNDS = 3


class Subsession(BaseSubsession):
    pass


class Group(BaseGroup):
    pass


class Player(BasePlayer):
    cue = models.StringField()
    word = models.StringField(blank=True)
    rt = models.IntegerField(blank=True)
    age = models.IntegerField()


def creating_session(subsession):
    for player in subsession.get_players():
        player.cue = CUES[player.round_number - 1]


class Ask(Page):
    form_model = "player"
    form_fields = ["word", "rt", "age"]


page_sequence = [Ask]
"""
TESTS = """
from otree.api import *
from . import Ask

SAID = {1: ["chair", "fish, blue", ""], 2: ['he said "leg"', "whale", "rubbish"]}


class PlayerBot(Bot):
    def play_round(self):
        word = SAID[self.player.id_in_group][self.player.round_number - 1]
        answer = {"word": word, "age": 30 + self.player.id_in_group}
        if word:
            answer["rt"] = 800 + self.player.round_number
        yield Ask, answer
"""
TEMPLATE = (
    "{{ block title }}{{ player.cue }}{{ endblock }}{{ block content }}{{ formfields }}{{ next_button }}{{ endblock }}"
)

project = Path(tempfile.mkdtemp())
(project / "words").mkdir()
(project / "_static").mkdir()
(project / "_templates").mkdir()
(project / "settings.py").write_text(SETTINGS, encoding="utf-8")
(project / "words" / "__init__.py").write_text(APP, encoding="utf-8")
(project / "words" / "tests.py").write_text(TESTS, encoding="utf-8")
(project / "words" / "Ask.html").write_text(TEMPLATE, encoding="utf-8")
otree = Path(sys.executable).with_name("otree")
subprocess.run([otree, "test", "words", "2", "--export=made"], cwd=project, check=True)
folder = Path(sys.argv[1])
for path in sorted((project / "made").iterdir()):
    print(path.name)
    if path.name.startswith("words"):
        shutil.copy(path, folder / "otree-6.0.15.csv")
    if path.name.startswith("all_apps"):
        shutil.copy(path, folder / "otree-6.0.15-wide.csv")
shutil.rmtree(project)
