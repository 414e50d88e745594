"""Workbooks, written part by part after ECMA-376."""

import zipfile
from pathlib import Path
from xml.sax.saxutils import escape

Cell = str | float | bool | None
NAMESPACE = "http://schemas.openxmlformats.org"


def cell(place: str, value: Cell) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return f'<c r="{place}" t="b"><v>{int(value)}</v></c>'
    if isinstance(value, str):
        return f'<c r="{place}" t="inlineStr"><is><t>{escape(value)}</t></is></c>'
    return f'<c r="{place}"><v>{value}</v></c>'


def write_workbook(path: Path, sheets: dict[str, list[list[Cell]]], hidden: str = "") -> None:
    """Write an .xlsx with the sheets, of which one may be hidden."""
    parts = {"[Content_Types].xml": "", "_rels/.rels": "", "xl/workbook.xml": "", "xl/_rels/workbook.xml.rels": ""}
    types = ""
    listed = ""
    links = ""
    for number, (name, rows) in enumerate(sheets.items(), start=1):
        lines = ""
        for line, row in enumerate(rows, start=1):
            cells = "".join(cell(f"{chr(65 + at)}{line}", value) for at, value in enumerate(row))
            lines += f'<row r="{line}">{cells}</row>'
        sheet = f'<worksheet xmlns="{NAMESPACE}/spreadsheetml/2006/main"><sheetData>{lines}</sheetData></worksheet>'
        parts[f"xl/worksheets/sheet{number}.xml"] = sheet
        state = ' state="hidden"' if name == hidden else ""
        listed += f'<sheet name="{name}" sheetId="{number}"{state} r:id="r{number}"/>'
        kind = f"{NAMESPACE}/officeDocument/2006/relationships/worksheet"
        links += f'<Relationship Id="r{number}" Type="{kind}" Target="worksheets/sheet{number}.xml"/>'
        what = "application/vnd.openxmlformats-officedocument.spreadsheetml.worksheet+xml"
        types += f'<Override PartName="/xl/worksheets/sheet{number}.xml" ContentType="{what}"/>'
    book = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml"
    types += f'<Override PartName="/xl/workbook.xml" ContentType="{book}"/>'
    relation = "application/vnd.openxmlformats-package.relationships+xml"
    types += f'<Default Extension="rels" ContentType="{relation}"/>'
    parts["[Content_Types].xml"] = f'<Types xmlns="{NAMESPACE}/package/2006/content-types">{types}</Types>'
    relations = f'<Relationships xmlns="{NAMESPACE}/package/2006/relationships">'
    document = f"{NAMESPACE}/officeDocument/2006/relationships/officeDocument"
    parts["_rels/.rels"] = (
        f'{relations}<Relationship Id="r1" Type="{document}" Target="xl/workbook.xml"/></Relationships>'
    )
    parts["xl/_rels/workbook.xml.rels"] = f"{relations}{links}</Relationships>"
    parts["xl/workbook.xml"] = (
        f'<workbook xmlns="{NAMESPACE}/spreadsheetml/2006/main" '
        f'xmlns:r="{NAMESPACE}/officeDocument/2006/relationships"><sheets>{listed}</sheets></workbook>'
    )
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in parts.items():
            archive.writestr(name, text)
