"""What becomes of chats by published chat templates? Each template becomes that of a tiny tokenizer, which is opened as
any checkpoint is, and its prompts stand beside those of transformers' own ``apply_chat_template``.

The templates are those of the source package of llama-cpp-python 0.3.36 (``models/templates`` of its llama.cpp), which
pip downloads unless ``--archive`` names it, and ``*.jinja`` files of folders. Nothing of them is kept.

A cell is right, or refused in a sentence, or WRONG: then the exit code is 1. A column is a function of a template.

    python scripts/check_templates.py more-templates/ --archive llama_cpp_python-0.3.36.tar.gz --out templates.tsv
"""

import argparse
import datetime
import re
import subprocess
import sys
import tarfile
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal
from unittest import mock

from transformers.utils import chat_template_utils, logging

from agents.errors import AnswerError, UnavailableError
from agents.language.engines.chat_template import ChatTemplate
from agents.language.engines.text_request import ChatMessage, GeneratedText, Sampling
from agents.language.engines.transformers import TransformersEngine

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.helpers import tiny_language

PACKAGE = "llama-cpp-python==0.3.36"
INSIDE = "/models/templates/"
FIXED = datetime.datetime(2024, 7, 26)
OTHER_DAY = datetime.datetime(2031, 3, 5)
# Marks in angle brackets are special tokens; those that look as tags in a text are only where every tokenizer has them.
SPECIAL = re.compile(r"<[|\uff5c][^<>\s'\"{}]{1,40}?[|\uff5c]>|\[/?[A-Z][A-Z_]{1,30}\]|\]~[!b]?[!b]?\[|\[e~\[")
TAGS = re.compile(r"</?(?:s|bos|eos|pad|unk|start_of_turn|end_of_turn|turn\|)>|<\|turn>")

SYSTEM = ChatMessage("system", "You are Ann, a gardener of 40, and answer in a few words.")
USER = ChatMessage("user", "What do you grow?")
ANSWER = ChatMessage("assistant", "Tomatoes, mostly.")
OPENING = ChatMessage("user", "(the chat begins)")
# Words that stand in marks of models, in replies that have no marks.
ORDINARY = (
    "analysis",
    "My final answer is tomatoes.",
    "begin",
    "thought",
    "final",
    "The mark `<think>` begins one.",
    "In XML I write <answer>42</answer>.",
    "The assistant said so.",
    "Here are my reasons: none.",
    "user",
    "to=user is an option of it.",
    "all",
    "A response message.",
)
State = Literal["right", "refused", "WRONG"]


@dataclass(frozen=True, slots=True)
class Cell:
    """What a column says of a template."""

    state: State
    text: str


@dataclass(slots=True)
class Case:
    """A template, ``engine`` with its tokenizer, or why it was not opened."""

    name: str
    source: str
    engine: TransformersEngine | None = None
    refusal: str = ""
    notes: dict[str, Any] = field(default_factory=dict)

    @property
    def template(self) -> ChatTemplate:
        assert self.engine is not None
        return self.engine.chat_template

    def published(self, chat: Sequence[ChatMessage], **variables: Any) -> str | None:
        """The prompt of transformers, or None where the template refuses the chat."""
        messages = [{"role": message.role, "content": message.text} for message in chat]
        try:
            return str(
                self.tokenizer().apply_chat_template(
                    messages, chat_template=self.source, add_generation_prompt=True, tokenize=False, **variables
                )
            )
        except Exception:  # whatever the program in a template raises
            return None

    def tokenizer(self) -> Any:
        return self.notes["tokenizer"]

    def documented(self) -> Mapping[str, Any]:
        """The variables that every prompt is made with, and the template's own switch."""
        fixed = {"date_string": FIXED.strftime("%d %b %Y"), "strftime_now": FIXED.strftime}
        return {"enable_thinking": False, "thinking": False, **fixed, **self.template.switches(False)}


# columns


def opened(case: Case) -> Cell:
    """A template that transformers renders for a plain question must not be refused."""
    if case.engine is not None:
        return Cell("right", "opened")
    return Cell("WRONG" if case.published([USER]) is not None else "refused", case.refusal)


def chat(*messages: ChatMessage) -> Callable[[Case], Cell]:
    """Whether the chat's prompt is the published one, with the system text in it."""

    def column(case: Case) -> Cell:
        try:
            text = case.template.prompt(messages)
        except AnswerError as error:
            published = case.published(messages)
            is_ours = published is not None and _has_system(messages, published) and _has_all(messages, published)
            return Cell("WRONG" if is_ours else "refused", str(error))
        if not _has_system(messages, text):
            return Cell("WRONG", "the system text is lost")
        as_user = _with_system_as_user(messages)
        published = case.published(messages)
        if published is not None and _has_system(messages, published):
            as_user = messages  # there is no need for anything else
        if text == case.published(as_user):
            return Cell("right", "as published" if as_user == messages else "system text is the user's")
        if text != case.published(as_user, **case.documented()):
            return Cell("WRONG", f"unlike the published prompt: {text[-200:]!r}")
        changed = "as published but for the date or reasoning"
        return Cell("right", changed if as_user == messages else f"system text is the user's; {changed}")

    return column


def _squeezed(text: str) -> str:
    return "".join(text.split())


def _has_system(messages: Sequence[ChatMessage], text: str) -> bool:
    return messages[0].role != "system" or _squeezed(messages[0].text) in _squeezed(text)


def _has_all(messages: Sequence[ChatMessage], text: str) -> bool:
    """Whether all messages stand in ``text``, in their order."""
    for message in messages:
        _, found, text = text.partition(message.text)
        if not found:
            return False
    return True


def _with_system_as_user(messages: Sequence[ChatMessage]) -> Sequence[ChatMessage]:
    system, *rest = messages
    text = system.text
    if rest and rest[0].role == "user":
        text = f"{text}\n\n{rest.pop(0).text}"
    return [ChatMessage("user", text), *rest]


def date(case: Case) -> Cell:
    """The prompts of two days."""

    class OtherDay(datetime.datetime):
        @classmethod
        def now(cls, tz: Any = None) -> Any:
            return OTHER_DAY

    chats = [(USER,), (SYSTEM, USER)]
    today = [_prompt(case, each) for each in chats]
    case.template.prompt.cache_clear()
    with mock.patch.object(chat_template_utils, "datetime", OtherDay):
        later = [_prompt(case, each) for each in chats]
        asks = "2031" in "".join(filter(None, (case.published(each) for each in chats)))
    if today != later:
        return Cell("WRONG", "the prompt changes with the day")
    return Cell("right", "the time, which is fixed" if asks else "a date" if case.template.takes_a_date else "none")


def _prompt(case: Case, messages: tuple[ChatMessage, ...]) -> str | None:
    try:
        return case.template.prompt(messages)
    except AnswerError:
        return None


def added(case: Case) -> Cell:
    """What the template writes beside a message."""
    return Cell("right", case.template.adds() or "nothing is known")


def end_of_turn(case: Case) -> Cell:
    """What it writes behind an assistant's text, before the next message."""
    text = _prompt(case, (USER, ANSWER, USER))
    if text is None or ANSWER.text not in text:
        return Cell("refused", "a chat with an answer")
    return Cell("right", repr(text.rpartition(ANSWER.text)[2].partition(USER.text)[0][:60]))


def reasoning(case: Case) -> Cell:
    """How the reply begins, without and with reasoning."""
    ends = []
    for thinks in (False, True):
        try:
            text = case.template.prompt((USER,), thinks=thinks)
        except AnswerError as error:
            return Cell("refused", str(error))
        switches = ", ".join(f"{name}={value!r}" for name, value in case.template.switches(thinks).items())
        ends.append(f"{text.rpartition(USER.text)[2][-50:]!r}" + (f" by {switches}" if switches else ""))
    return Cell("right", f"off {ends[0]}, on {ends[1]}")


def reply(*texts: str, thought: str = "") -> Callable[[Case], Cell]:
    """Whether of a reply in the template's own form, and of the next turn behind it, exactly the answer is taken."""

    def column(case: Case) -> Cell:
        for text in texts:
            written = _written(case, text, thought)
            if written is None:
                return Cell("right", "the template shows no thoughts" if thought else "the template shows no answers")
            prompt, behind = written
            try:
                said = _said(case, prompt, behind)
            except AnswerError as error:
                return Cell("WRONG", f"{behind!r} fails: {error}")
            if said.text.strip() != text or (said.reasoning or "") != thought:
                return Cell("WRONG", f"{behind!r} gives {said.text!r} and the thought {said.reasoning!r}")
        return Cell("right", f"{len(texts)} of {len(texts)}")

    return column


def _written(case: Case, text: str, thought: str) -> tuple[str, str] | None:
    """A prompt, and what the template writes behind it for a reply and the next question; None if it shows none."""
    answer = {"role": "assistant", "content": text}
    if thought:
        answer |= dict.fromkeys(("reasoning_content", "reasoning", "thinking", "thoughts"), thought)
    question = {"role": "user", "content": USER.text}
    # Some templates show the thoughts of the last turn alone.
    for messages in ([question, answer, {"role": "user", "content": "And now?"}], [question, answer]):
        try:
            whole = case.template.written(messages, False, True)
        except Exception:  # whatever the program in a template raises
            return None
        if text not in whole or thought not in whole:
            continue
        apart = whole.rpartition if len(messages) == 2 else whole.partition
        _, _, behind = apart(USER.text)
        for thinks in (True, False):
            prompt = case.template.prompt((USER,), thinks=thinks)
            _, _, header = prompt.partition(USER.text)
            if behind.startswith(header.rstrip()):
                return prompt, behind[len(header.rstrip()) :]
        # The prompt opens a thought on a line of its own, which the history does not show.
        start = header.rstrip().rfind("\n") + 1
        if start and behind.startswith(header[:start]):
            cut = prompt.partition(USER.text)[0] + USER.text + header[:start]
            return prompt if thought else cut, behind[start:]
    return None


def _said(case: Case, prompt: str, behind: str) -> GeneratedText:
    engine = case.engine
    assert engine is not None
    encode = case.tokenizer().encode
    begun = engine._begun(encode(prompt, add_special_tokens=False))
    tokens = encode(behind, add_special_tokens=False)
    ends = engine._end_tokens(None)
    end = next((at for at, token in enumerate(tokens) if token in ends), len(tokens))
    return engine._generated(tokens[:end], begun, Sampling(max_tokens=1000), 1, is_full=False)


COLUMNS: Mapping[str, Callable[[Case], Cell]] = {
    "user": chat(USER),
    "system, user": chat(SYSTEM, USER),
    "later": chat(SYSTEM, USER, ANSWER, USER),
    "system alone": chat(SYSTEM),
    "agent first": chat(SYSTEM, ANSWER, USER),
    "agent first, later": chat(SYSTEM, ANSWER, USER, ANSWER, USER),
    "opening": chat(SYSTEM, OPENING),
    "opening, later": chat(SYSTEM, OPENING, ANSWER, USER),
    "two users": chat(SYSTEM, USER, USER),
    "date": date,
    "added": added,
    "end of turn": end_of_turn,
    "reasoning": reasoning,
    "reply": reply(ANSWER.text),
    "thought and reply": reply(ANSWER.text, thought="Hm, she asks what I grow."),
    "ordinary replies": reply(*ORDINARY),
}


# templates


def templates(archive: Path | None, folders: Sequence[Path]) -> Iterator[tuple[str, str]]:
    """Names and sources. Raises SystemExit."""
    files = []
    for folder in folders:
        found = sorted(folder.rglob("*.jinja"))
        if not found:
            raise SystemExit(f"{folder} holds no *.jinja")
        files += found
    with tempfile.TemporaryDirectory() as made:
        if archive is None:
            command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
            subprocess.run([*command, "--no-binary", "llama-cpp-python", PACKAGE, "--dest", made], check=True)
            archive = next(Path(made).glob("*.tar.gz"))
        with tarfile.open(archive) as package:
            for member in package:
                if INSIDE in member.name and member.name.endswith(".jinja"):
                    file = package.extractfile(member)
                    assert file is not None
                    yield Path(member.name).stem, file.read().decode()
    for path in files:
        yield path.stem, path.read_text(encoding="utf-8")


def marks(source: str) -> list[str]:
    """The special tokens that a template names."""
    return sorted({*SPECIAL.findall(source), *TAGS.findall(source)})


def opened_case(name: str, source: str, folder: Path) -> Case:
    tokenizer = tiny_language.byte_tokenizer(folder, "<s>", "</s>", bos="<s>", eos="</s>", template=source)
    tokenizer.add_special_tokens({"additional_special_tokens": marks(source)})
    tokenizer.save_pretrained(folder)
    (folder / "config.json").write_text('{"model_type": "llama", "max_position_embeddings": 100000}')
    case = Case(name, source, notes={"tokenizer": tokenizer})
    engine = TransformersEngine(folder)
    try:
        engine.open(chat=True)
        case.engine = engine
    except UnavailableError as error:
        case.refusal = str(error).removeprefix(f"{folder}: ")
    return case


def row(case: Case) -> dict[str, Cell]:
    cells = {"opened": opened(case)}
    if case.engine is not None:
        cells |= {name: column(case) for name, column in COLUMNS.items()}
    return cells


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", type=Path, help="folders of *.jinja beside the package's templates")
    parser.add_argument("--archive", type=Path, help=f"the source package of {PACKAGE}, already downloaded")
    parser.add_argument("--out", type=Path, help="a table, a line a template, with tabs")
    options = parser.parse_args()
    logging.set_verbosity_error()
    lines = ["\t".join(["template", "opened", *COLUMNS])]
    states: dict[str, Counter[str]] = {name: Counter() for name in ("opened", *COLUMNS)}
    wrong = []
    count = 0
    for name, source in templates(options.archive, options.folders):
        count += 1
        with tempfile.TemporaryDirectory() as folder:
            cells = row(opened_case(name, source, Path(folder)))
        for column, cell in cells.items():
            states[column][cell.state] += 1
            if cell.state == "WRONG":
                wrong.append(f"{name}: {column}: {cell.text}")
        written = (f"{cell.state}: {' '.join(cell.text.split())}" for cell in cells.values())
        lines.append("\t".join([name, *written]))
    if options.out is not None:
        options.out.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(f"{count} templates")
    for column, counted in states.items():
        print(f"{column:20}" + "".join(f"{counted[state]:5} {state}" for state in ("right", "refused", "WRONG")))
    print("\n".join(wrong) or "nothing is wrong")
    return 1 if wrong or not count else 0


if __name__ == "__main__":
    sys.exit(main())
