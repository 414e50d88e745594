"""What judges are asked about themselves, with the answers that they may choose, in order."""

from collections.abc import Mapping, Sequence

OPTIONS: Mapping[str, Sequence[str]] = {
    "age": ("<18", "18-20", "21-25", "26-30", "31-35", "36-40", "41-45", "46-50", ">50"),
    "gender": ("female", "male", "non_binary"),
    "education": ("middle school", "high school", "bachelor", "master", "pg"),
    "native_language": ("yes", "no"),
    "ai_experience": ("none", "user", "expert"),
    "engaging": tuple(map(str, range(11))),
    "difficult": tuple(map(str, range(11))),
}
"""As on the 2022 and 2025 papers' forms, and ages below 18 and above 50; ``country`` and ``comments`` are text."""
