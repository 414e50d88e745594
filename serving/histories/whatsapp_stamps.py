"""What stands before each message of WhatsApp's export: its date and its time, as the phone's language writes them. ::

    31/12/23, 21:05 - Ann: on my way
    [31.12.23, 21:05:12] Ann: on my way
    2023년 12월 31일 오후 9:05, Ann : on my way

Numbers may be of any script; years are of the Gregorian or the Buddhist calendar. What cannot be read for sure is a
problem of its line: nothing is guessed.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache, lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Literal

from agents.errors import InputError, Problem
from serving.histories.chat import UNSEEN

Order = Literal["dmy", "mdy", "ymd"]

FIRST_YEAR = 2009  # of WhatsApp
BUDDHIST = 543
_PLAIN_HOURS = (0, 24)

# No part repeats without a limit, so that a line takes a time that its length does not change.
_U = rf"[{UNSEEN}]{{0,4}}"
_S = rf"[\s{UNSEEN}]{{0,4}}"
_WORDS = r"[^\d\[\]<>@/\n–—-]{%s,24}?"
_MARKS = rf"(?P<mark>[./年년-]){_S}(?P<b>\d{{1,2}}){_S}(?:(?P=mark)|月|월)"
_DATE = rf"(?P<a>\d{{1,4}}){_S}{_MARKS}{_S}(?P<c>\d{{1,4}}){_U}[.日일]?"
_TIME = r"(?P<hour>\d{1,2})\s?[:.٫h]\s?(?P<minute>\d\d)(?:[:.٫](?P<second>\d\d))?(?!\d)"
_END = rf"{_S}(?P<end>\]|\s{_U}[-–—]|:|,){_U}\s(?P<rest>.*)"
_DATE_FIRST = re.compile(rf"{_U}(?P<bracket>\[)?{_U}{_DATE}(?P<gap>{_WORDS % 1}){_TIME}(?P<after>{_WORDS % 0}){_END}")
_TIME_FIRST = re.compile(rf"{_U}(?P<bracket>\[)?{_U}{_TIME}(?P<gap>{_WORDS % 1}){_DATE}(?P<after>{_WORDS % 0}){_END}")


@dataclass(frozen=True, slots=True)
class Stamp:
    """A date and time as they are written, the words beside them, and the ``rest`` of the line. ``form`` is the same
    in all lines that stamp phone writes."""

    date: tuple[str, str, str]
    mark: str
    clock: tuple[int, int, int]
    words: tuple[str, ...]
    form: tuple[object, ...]
    rest: str


def read_stamp(line: str) -> Stamp | None:
    """The stamp that a line begins with, if it does."""
    head = _DATE_FIRST.match(line) or _TIME_FIRST.match(line)
    if head is None:
        return None
    end = head["end"].strip(f"{UNSEEN} \u00a0\u202f")
    date_first = head.start("a") < head.start("hour")
    if (head["bracket"] is not None) != (end == "]") or (end == "," and not (head["mark"] in ".년" and date_first)):
        return None
    gap, after = (_known_or_apart(head[part]) for part in ("gap", "after"))
    return Stamp(
        (head["a"], head["b"], head["c"]),
        head["mark"],
        (int(head["hour"]), int(head["minute"]), int(head["second"] or 0)),
        (*gap, *after),
        (end, head["mark"], date_first, bool(gap), bool(after)),
        head["rest"],
    )


def usual_form(stamps: Sequence[Stamp]) -> tuple[object, ...]:
    """The form that most of them have: what has another is a quotation in a message."""
    return Counter(stamp.form for stamp in stamps).most_common(1)[0][0]


def times(stamps: Sequence[tuple[int, Stamp]], path: Path, order: Order | None) -> dict[int, datetime | str]:
    """By line, the time of each stamp, or what is wrong with it.

    Without an ``order`` it is what all dates of the file say. Raises InputError if they do not.
    """
    # A word that stands beside an hour from 13 on does not say which half of the day it is.
    plain = {word for _, stamp in stamps if stamp.clock[0] > 12 for word in stamp.words}
    order = order or _order(stamps, path)
    read: dict[int, datetime | str] = {}
    for line, stamp in stamps:
        try:
            read[line] = datetime(*_date(stamp, order), _hour(stamp, plain), *stamp.clock[1:])
        except ValueError as error:
            known = isinstance(error, _Unreadable)
            read[line] = str(error) if known else "has a date or time that there is not"
    return read


class _Unreadable(ValueError):
    """What is wrong with a stamp, for its reader."""


def _date(stamp: Stamp, order: Order) -> tuple[int, int, int]:
    """Year, month and day. Raises ValueError."""
    a, b, c = map(int, stamp.date)
    latest = datetime.now().year + 1
    if order == "ymd" or len(stamp.date[0]) > 2:
        year, month, day, digits = a, b, c, len(stamp.date[0])
    else:
        year, (day, month), digits = c, (a, b) if order == "dmy" else (b, a), len(stamp.date[2])
    for shift in (0, -BUDDHIST):
        century = 0 if digits > 2 else 2500 if shift else 2000
        full = century + year + shift
        if FIRST_YEAR <= full <= latest:
            datetime(full, month, day)
            return full, month, day
    raise _Unreadable(f"has the year {year}, which is none of WhatsApp's in the Gregorian or the Buddhist calendar")


def _hour(stamp: Stamp, plain: set[str]) -> int:
    """The hour of the day, by the words beside it. Raises ValueError."""
    hour = stamp.clock[0]
    spans = {_span(word) for word in stamp.words if _span(word) is not None}
    unknown = [word for word in stamp.words if _span(word) is None and word not in plain]
    if unknown:
        raise _Unreadable(f'has "{unknown[0]}" beside its time: which half of the day it means is not known')
    spans.discard(_PLAIN_HOURS)
    if not spans:
        return hour
    [(first, end), *more] = [span for span in spans if span is not None]
    hours = [value for value in (hour % 12, hour % 12 + 12) if first <= value < end]
    if more or hour > 12 or len(hours) != 1:
        raise ValueError("no such hour")
    return hours[0]


def _order(stamps: Sequence[tuple[int, Stamp]], path: Path) -> Order:
    """In which order days, months and years stand, by all dates that do not begin with four digits. Raises
    InputError if they do not say."""
    dates = [(line, stamp) for line, stamp in stamps if len(stamp.date[0]) < 3]
    if not dates:
        return "ymd"
    orders: tuple[Order, ...] = ("dmy", "ymd") if dates[0][1].mark == "." else ("dmy", "mdy", "ymd")
    back, bad = dict[Order, int](), dict[Order, list[tuple[int, str]]]()
    for order in orders:
        days, wrong = [], []
        for line, stamp in dates:
            try:
                days.append(_date(stamp, order))
            except ValueError as error:
                known = isinstance(error, _Unreadable)
                wrong.append((line, str(error) if known else "has a date that there is not"))
        if wrong:
            bad[order] = wrong
        else:
            back[order] = sum(second < first for first, second in pairwise(days))  # steps back in time
    if not back:
        if len(orders) == 2:
            return "dmy"
        nearest = min(bad.values(), key=len)
        problems = [Problem(str(path), line, None, why) for line, why in nearest]
        raise InputError(
            f"{path}: its dates fit none of day/month, month/day and year/month/day; say which they are with --dates",
            problems,
        )
    fewest = [order for order, steps in back.items() if steps == min(back.values())]
    if fewest[1:] == ["ymd"]:  # two digits of a year seldom stand first
        fewest.pop()
    if len(fewest) != 1:
        raise InputError(f"{path}: its dates fit both day/month and month/day; say which they are with --dates")
    return fewest[0]


@lru_cache(1000)
def _known_or_apart(text: str) -> tuple[str, ...]:
    """The words in ``text`` without dots and spaces: as one where that is known, each alone where not."""
    whole = _compact(text)
    if not whole or _span(whole) is not None:
        return (whole,) if whole else ()
    return tuple(word for part in re.split(r"[\s,،]", text) if (word := _compact(part)))


def _compact(text: str) -> str:
    return "".join(
        letter
        for letter in unicodedata.normalize("NFC", text).casefold()
        if letter not in UNSEEN and not letter.isspace() and letter not in ".,،'’\u200c"
    )


def _span(word: str) -> tuple[int, int] | None:
    return _spans().get(word)


@cache
def _spans() -> dict[str, tuple[int, int]]:
    """The hours that each known word can mean."""
    rows = [*HOURS.items(), (_PLAIN_HOURS, BESIDE)]
    return {_compact(word): span for span, row in rows for word in row.split()}


HOURS: dict[tuple[int, int], str] = {
    (0, 12): """
        am vm vorm dop dopoledne fm fh ap pg sa öö to gh yb pd eparadites prp priešpiet priekšp priekšpusdienā de
        délelőtt goöň prepodne prijepodne πμ чо пробяд проб дп апн претпл преподне пријеподне үө тң таңкы то կա
        לפנהצ לפנה״צ לפנה"צ ص صباحا صباحًا قظ قبلازظهر غم بن پێشنیوەڕۆ 上午 午前 오전 ก่อนเที่ยง ກ່ອນທ່ຽງ နံနက် ព្រឹក
        पूर्वाह्न मपू পূর্বাহ্ণ முற்பகல் ਪੂਦੁ પૂર્વાહ્ન ಪೂರ್ವಾಹ್ನ පෙව ጥዋት
    """,
    (12, 24): """
        pm nm nachm odp odpoledne em eh ip ptg ch ös tk gd yh md epasdites pop popiet pēcp pēcpusdienā du délután
        gosoň popodne poslijepodne μμ слоб пп апд попл поподне послијеподне үх тк կհ אחהצ אחה״צ אחה"צ م مساء مساءً
        بظ بعدازظهر غو دن 下午 午後 오후 หลังเที่ยง ຫຼັງທ່ຽງ ညနေ ល្ងាច अपराह्न मउ অপরাহ্ণ பிற்பகல் ਬਾਦੁ અપરાહ્ન ಅಪರಾಹ್ನ පව
        ከሰዓት
    """,
    (0, 6): "凌晨 半夜 深夜 새벽",
    (4, 12): "清晨 早上 早晨 아침",
    (10, 16): "中午",
    (17, 24): "傍晚 晚上 晚間 저녁",
}
"""Words beside an hour from 1 to 12 (or 0 to 11), by the hours of the day that they can mean: from, and up to."""

BESIDE = """
    à às alas ales um uhr u o godz ob om at kl klo kell plkst val στις ώρα в во у г р ч сағ في الساعة ساعت ב בשעה
    lúc pukul jam เวลา น พศ be h hs hrs
"""
"""Words that stand beside a date or a time and say nothing of its half."""

OMITTED = """
media omitted|medien ausgeschlossen|multimedia omitido|archivo omitido|archivos omitidos|médias omis|médias omises
media omessi|media omesso|mídia oculta|mídia omitida|arquivo de mídia oculto|ficheiro não revelado|ficheiro omitido
multimédia omitido|media weggelaten|media utelämnad|media uteladt|medier utelatt|mediet er utelatt|mediefil udeladt
medier udeladt|media jätetty pois|media jätettiin pois|pominięto multimedia|multimedia pominięto|média vynechána
média vynechány|média kihagyva|hiányzó média|fișier media omis|media omisă|без медиафайлов|файл пропущен
медіа пропущено|медіа опущено|медия е пропусната|medya dahil edilmedi|medya atlandı|παραλείφθηκαν πολυμέσα
παράλειψη πολυμέσων|تم استبعاد الوسائط|تم حذف الوسائط|رسانه حذف شد|פריטי המדיה לא נכללו|המדיה לא נכללה|מדיה הושמטה
media tidak disertakan|media dikeluarkan|media diabaikan|file phương tiện bị bỏ qua|tệp phương tiện bị bỏ qua
bỏ qua tệp phương tiện|メディアは含まれていません|メディアなし|미디어 파일을 제외|미디어 제외됨|사진/동영상 제외
省略多媒體檔案|多媒體檔案已略去|忽略多媒体文件|省略媒体文件|媒体文件已省略|多媒体文件已省略|已略去多媒體檔案
मीडिया शामिल नहीं है|मीडिया हटाया गया|ไม่รวมสื่อ|video note omitted|video message omitted
view once voice message omitted
"""
EDITED = """
this message was edited|diese nachricht wurde bearbeitet|se editó este mensaje|este mensaje fue editado
ce message a été modifié|questo messaggio è stato modificato|mensagem editada|esta mensagem foi editada
dit bericht is bewerkt|dit bericht werd bewerkt|det här meddelandet redigerades|denne meldingen ble redigert
denne besked blev redigeret|tätä viestiä muokattiin|viestiä muokattiin|ta wiadomość została zmieniona
wiadomość edytowana|ta wiadomość została edytowana|tato zpráva byla upravena|ez az üzenet módosítva lett
acest mesaj a fost editat|данное сообщение изменено|сообщение изменено|це повідомлення змінено|bu mesaj düzenlendi
αυτό το μήνυμα υποβλήθηκε σε επεξεργασία|تم تعديل هذه الرسالة|این پیام ویرایش شد|הודעה זו נערכה
pesan ini telah diedit|pesan ini diedit|mesej ini telah diedit|tin nhắn này đã được chỉnh sửa
このメッセージは編集されました|메시지가 수정되었습니다|此訊息已編輯|此消息已编辑|यह मैसेज एडिट किया गया है
ข้อความนี้ถูกแก้ไข
"""
ATTACHED = """
file attached|datei angehängt|archivo adjunto|fichier joint|file allegato|arquivo anexado|ficheiro anexado
bestand bijgevoegd|bifogad fil|fil vedlagt|fil vedhæftet|liitetiedosto|tiedosto liitetty|plik załączony
załączono plik|soubor připojen|přiložený soubor|fájl csatolva|csatolt fájl|fișier atașat|файл добавлен
файл прикреплен|файл прикреплён|файл додано|dosya ekli|συνημμένο αρχείο|ملف مرفق|الملف مرفق|پیوست فایل|קובץ מצורף
file terlampir|fail dilampirkan|tệp đính kèm|đính kèm tệp|添付ファイル|파일 첨부|파일 첨부됨|檔案已附加|附檔
文件附件|附件文件|फ़ाइल जुड़ी है|ไฟล์ที่แนบมา
"""
DELETED = """
this message was deleted|you deleted this message|this message has been deleted|message deleted
diese nachricht wurde gelöscht|du hast diese nachricht gelöscht|se eliminó este mensaje|eliminaste este mensaje
este mensaje fue eliminado|has eliminado este mensaje|ce message a été supprimé|vous avez supprimé ce message
tu as supprimé ce message|questo messaggio è stato eliminato|hai eliminato questo messaggio|mensagem apagada
você apagou esta mensagem|apagou esta mensagem|esta mensagem foi apagada|essa mensagem foi apagada
esta mensagem foi eliminada|eliminou esta mensagem|dit bericht is verwijderd|dit bericht werd verwijderd
je hebt dit bericht verwijderd|u hebt dit bericht verwijderd|det här meddelandet raderades|meddelandet raderades
det här meddelandet har raderats|du raderade det här meddelandet|denne meldingen ble slettet|meldingen ble slettet
du slettet denne meldingen|denne besked blev slettet|denne besked er slettet|du slettede denne besked
tämä viesti poistettiin|poistit tämän viestin|ta wiadomość została usunięta|wiadomość została usunięta
usunięto tę wiadomość|usunąłeś tę wiadomość|usunięto wiadomość|tato zpráva byla smazána|tato zpráva byla odstraněna
smazali jste tuto zprávu|odstranili jste tuto zprávu|táto správa bola odstránená|odstránili ste túto správu
ez az üzenet törölve lett|ezt az üzenetet törölték|törölted ezt az üzenetet|törölte ezt az üzenetet
acest mesaj a fost șters|ați șters acest mesaj|ai șters acest mesaj|данное сообщение удалено
вы удалили данное сообщение|это сообщение удалено|это сообщение было удалено|вы удалили это сообщение
це повідомлення видалено|сообщение удалено|це повідомлення було видалено|ви видалили це повідомлення
това съобщение беше изтрито|изтрихте това съобщение|ova poruka je izbrisana|izbrisali ste ovu poruku
ова порука је избрисана|избрисали сте ову поруку|bu mesaj silindi|bu mesajı sildiniz|αυτό το μήνυμα διαγράφηκε
διαγράψατε αυτό το μήνυμα|تم حذف هذه الرسالة|لقد حذفت هذه الرسالة|حذفت هذه الرسالة|این پیام حذف شد
شما این پیام را حذف کردید|הודעה זו נמחקה|מחקת הודעה זו|מחקת את ההודעה הזו|pesan ini telah dihapus|pesan ini dihapus
anda telah menghapus pesan ini|anda menghapus pesan ini|mesej ini telah dipadam|mesej ini telah dipadamkan
anda telah memadamkan mesej ini|tin nhắn này đã bị xóa|bạn đã xóa tin nhắn này|このメッセージは削除されました
このメッセージを削除しました|メッセージは削除されました|삭제된 메시지입니다|이 메시지를 삭제했습니다
메시지를 삭제했습니다|此訊息已刪除|您已刪除此訊息|這則訊息已刪除|你已刪除此訊息|此消息已删除|您删除了此消息
你删除了此消息|您已删除此消息|此消息已被删除|यह मैसेज मिटा दिया गया|यह संदेश हटा दिया गया था
यह मैसेज डिलीट कर दिया गया है|आपने यह मैसेज डिलीट किया है|आपने यह मैसेज मिटा दिया|ข้อความนี้ถูกลบ|ข้อความนี้ถูกลบแล้ว
คุณลบข้อความนี้แล้ว|คุณลบข้อความนี้
"""
REMOVAL = """
deleted gelöscht eliminó eliminado eliminaste supprimé eliminato apagada apagou eliminada verwijderd raderades
raderats slettet slettede poistettiin poistit usunięta usunięto smazána odstraněna odstránená törölve törölték
șters удалено удалили видалено изтрито izbrisana silindi sildiniz διαγράφηκε حذف نمحقة נמחקה dihapus dipadam xóa
削除 삭제 刪除 删除
"""
"""Words of a short message that may be the notice of a deleted message or picture."""

ENCRYPTED = """
end-to-end+encrypt|end-to-end+versleut|end-to-end+enkrip|ende-zu-ende+verschl|extremo a extremo+cifrad
extremo a extremo+xifra|bout en bout+chiffr|ponta a ponta+cript|ponta a ponta+encript|end-to-end+crittograf
сквозн+шифр|наскрізн+шифр|от край до край+шифр|uçtan uca+şifre|totalsträcks+krypter|ende-til-ende+krypter
päästä päähän+sala|end-to-end+szyfrow|koncov+šifr|végpont+titkos|end-to-end+cript|άκρο+κρυπτογρ|طرفين+مشفر
سرتاسر+رمز|קצה+מוצפנ|hujung+sulit|đầu cuối+mã hóa|エンドツーエンド+暗号|종단간+암호|端到端+加密|端對端+加密
ต้นทาง+เข้ารหัส|एंड-टू-एंड+एन्क्रिप्ट
"""
"""What the notice has that stands first in a chat: two parts of words."""
