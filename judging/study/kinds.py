"""The kinds of studies: which settings have which material, and which lobby its people meet in."""

from pathlib import Path
from typing import Any

from judging.study.design.settings import InterrogationSettings, JudgesSettings, OnlineSettings, read_settings
from judging.study.log.study_log import StudyLog
from judging.study.meetings.lobby import Lobby
from judging.study.meetings.lobby_by_questions import OnlineLobby
from judging.study.meetings.lobby_of_talks import TalkLobby
from judging.study.meetings.lobby_with_clock import InterrogationLobby
from judging.study.meetings.material import TalkMaterial, TestsMaterial
from judging.study.pages.material import Material
from judging.study.pages.pool import TrialPool
from judging.study.pages.stimulus_material import AskMaterial, read_stimuli
from judging.study.pages.trial_material import TrialMaterial


def material_of(folder: Path) -> Material:
    """What the study in a folder shows. Raises InputError with all that is wrong in its settings or its set."""
    settings = read_settings(folder)
    source = (folder / settings.source).resolve()
    if isinstance(settings, OnlineSettings | InterrogationSettings):
        return TestsMaterial(settings, source)
    if isinstance(settings, JudgesSettings):
        return TrialMaterial(TrialPool(source, settings), folder)
    kind = TalkMaterial if settings.task == "conversation" else AskMaterial
    return kind(settings, source, *read_stimuli(source, settings.task))


def lobby_of(material: Material, log: StudyLog) -> Lobby[Any] | None:
    """The lobby in which people meet; None for a study in which nobody meets anybody."""
    lobby: Lobby[Any] | None = None
    if isinstance(material, TalkMaterial):
        lobby = TalkLobby(log, material)
    elif isinstance(material, TestsMaterial) and isinstance(material.settings, OnlineSettings):
        lobby = OnlineLobby(log, material.settings)
    elif isinstance(material, TestsMaterial):
        lobby = InterrogationLobby(log, material.settings)
    if lobby is not None:
        lobby.records_traces = material.records_traces
    return lobby
