"""Words of WhatsApp's exports and of phones' clocks, in the languages that are known. Data alone.

All are in small letters, without dots, spaces or unseen marks where they are words of a clock. Halves of the day and
what stands beside a time are those of Unicode's CLDR.
"""

from __future__ import annotations

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
