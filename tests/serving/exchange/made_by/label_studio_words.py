"""Makes Label Studio's exports with its own converter: python label_studio_words.py FOLDER.

It needs label-studio-sdk 2.1.2, installed by --no-deps, and PyJWT, appdirs, charset-normalizer, certifi, defusedxml,
idna, ijson, lxml, nltk, numpy, pandas, pillow, python-dateutil, regex, requests, six, ujson and urllib3.

The list of tasks is written by hand as Label Studio's server exports it (JSON), and comes into FOLDER, too. The
converter makes JSON_MIN and CSV of it."""

import json
import shutil
import sys
import tempfile
from pathlib import Path

from label_studio_sdk.converter import Converter

VIEW = """<View><Text name="shown" value="$cue"/><TextArea name="word" toName="shown"/></View>"""
WORDS = {"table": ["chair", 'he said "leg"'], "deep, sea": ["fish, blue", "whale"], "Müll": [None, "rubbish"]}


def annotation(number: int, judge: int, word: str | None) -> dict[str, object]:
    result = []
    if word is not None:
        value = {"text": [word]}
        result.append({"id": f"r{number}", "type": "textarea", "from_name": "word", "to_name": "shown", "value": value})
    times = dict.fromkeys(("created_at", "updated_at"), "2026-11-29T08:00:00Z")
    about = {"was_cancelled": word is None, "ground_truth": False, "lead_time": 31.5 + number, **times}
    return {"id": number, "completed_by": judge, "result": result, **about}


tasks = []
number = 0
for task_id, (cue, words) in enumerate(WORDS.items(), start=1):
    annotations = []
    for judge, word in enumerate(words, start=1):
        number += 1
        annotations.append(annotation(number, judge, word))
    tasks.append({"id": task_id, "data": {"cue": cue}, "annotations": annotations, "predictions": [], "project": 1})
folder = Path(sys.argv[1])
whole = folder / "label-studio-json.json"
whole.write_text(json.dumps(tasks, ensure_ascii=False, indent=1), encoding="utf-8")
work = Path(tempfile.mkdtemp())
converter = Converter(VIEW, project_dir=str(work), download_resources=False)
converter.convert_to_csv(str(whole), str(work / "csv"), is_dir=False, sep=",", header=True)
converter.convert_to_json_min(str(whole), str(work / "min"), is_dir=False)
shutil.copy(work / "csv" / "result.csv", folder / "label-studio-sdk-2.1.2.csv")
shutil.copy(work / "min" / "result.json", folder / "label-studio-sdk-2.1.2-min.json")
shutil.rmtree(work)
