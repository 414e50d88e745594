"""The words that the page of scores explains: those that it has, and no others."""

from __future__ import annotations

from judging.scores.conclusions import OPEN
from judging.scores.methods import CORRECTION_IN_WORDS
from judging.scores.score_tables import ScoreTables
from judging.statistics.verdict_table import PEOPLE

INTERVAL = (
    "contains the true value in 19 of 20 such studies, with other stimuli and, where there are several, with other "
    "judges and participants"
)


def words_of_result(tables: ScoreTables) -> dict[str, str]:
    """The words of the first tab, each with its meaning."""
    rows = [row for conclusions in tables.conclusions.values() for row in conclusions]
    words = {}
    if rows:
        low = 0.5 - tables.bounds
        high = 0.5 + tables.bounds
        words["detectability"] = (
            "the mean of two shares: people's answers that were judged human, and the agent's answers that were judged "
            "machine. 0.5 is chance, and 1 means that every verdict was right"
        )
        words["passes"] = (
            f"the whole 90 % interval of detectability lies between {low:.3g} and {high:.3g}; of several agents, also "
            "after Holm's correction. “Not significant” is not enough"
        )
        words["95 % interval"] = INTERVAL
    if any(row.judge == PEOPLE for row in rows):
        words["people"] = "all judges who are people, together; each counts once, however many verdicts they gave"
    if any(row.outcome == OPEN for row in rows):
        words["undecided"] = (
            "the agent may pass or not: the interval is too wide to decide, or decides only without Holm's correction"
        )
    if tables.tells:
        words["tell"] = (
            "a property of answers by which a judge tells an agent from people: without it in people's and the agent's "
            "answers, detectability falls. That no fall is shown does not prove that there is none"
        )
        words["after Holm"] = "with Holm's correction for all agents and properties that this judge was tested with"
    if any(row.times is not None for row in tables.needed):
        words["would decide"] = (
            "in 4 of 5 studies of that size, if the true detectability is the one found here, and each judge gives as "
            "many verdicts as those of today"
        )
    return words


def words_of_details(tables: ScoreTables) -> dict[str, str]:
    """The words of the tables and tests, each with its meaning."""
    words = {}
    tests = [rows for kinds in tables.tests.values() for rows in kinds.values() if rows]
    if tables.scores:
        words["p(H|H)"] = "the share of people's answers that were judged human"
        words["p(M|M)"] = "the share of an agent's answers that were judged machine"
        words["detectability"] = (
            "the mean of the two, so that as many answers of people as of the agent count: 0.5 is chance"
        )
        words["d', criterion"] = (
            "how far apart people's and machines' answers are for a judge, and how much a judge leans to “human”; with "
            f"{CORRECTION_IN_WORDS[tables.dprime_correction]}; by it a judge that always says “human” has a d' other "
            "than 0 where people's and machines' answers are not as many"
        )
    if any(score.judge == PEOPLE for score in tables.scores):
        words["mean of judges"] = (
            "detectability with each judge counted once, however many verdicts; the first tab, sentences and tests "
            "have it"
        )
    if tables.scores or tables.pairs is not None or tables.populations:
        words["95 % interval"] = INTERVAL
    if tests or tables.populations:
        words["p, holm, family"] = (
            "how probable such a difference is by chance alone; holm corrects it for a family of tests"
        )
    if any(row.is_cue for row in tables.ledger):
        words["cue"] = (
            "a judge that goes by a single outward sign; what a classifier has above it, it has read in the answer"
        )
    if tables.tells:
        words["alone, last"] = (
            "a property was taken away while all others stay, or when all others are gone already; what goes together "
            "with another shows itself last"
        )
    if tables.tells_changed:
        words["d before, d after"] = (
            "by how many standard deviations an agent's answers have more of a property than people's, as drawn and in "
            "the version"
        )
    if tables.contamination or tables.contamination_pairs:
        words["foreign"] = (
            "not written by the participant in the field: pasted, dropped or copied from elsewhere, from a language "
            "model or not"
        )
    if tables.rankings:
        words["margin, confidence"] = "how sure a classifier is by its own measure, and how sure a judge said it is"
        words["AUC"] = (
            "the area under the ROC curve: the probability that of two verdicts the right one is ranked higher; 0.5 is "
            "chance"
        )
        words["stated, calibration error"] = (
            "the mean probability of being right that the judge states, and how far such probabilities are from the "
            "truth"
        )
    return words
