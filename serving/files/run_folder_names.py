"""The names of what a run folder keeps for itself: no export, import or report may write there."""

FOLDERS = ("records", "turns")
OWN = ("run.json", "stimuli.jsonl", "stimuli.index", "stimuli.new", "asked.jsonl", "lock", "import.json", *FOLDERS)
