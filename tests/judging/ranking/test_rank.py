"""Judges and agents on a common scale: against numerical quadrature, drawn truths, and the counts of the verdicts."""

from __future__ import annotations

import csv
import json
import math
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import simulate_ranking
from scipy.special import log_ndtr, logsumexp, ndtr, ndtri

from judging.ranking import model as rank_model
from judging.ranking import posterior
from judging.ranking.model import TRIES, fit
from judging.ranking.posterior import AGENTS, SPREADS, PosteriorDensity
from judging.study.results.stopping import decide, detectability_by_judge
from serving.cli import main

OF_JUDGES = 0.5
OF_SKILLS = 1.2
OF_AGENTS = 0.7
OF_TASTES = 0.8
NO_SPREAD = 1e-4


def fixed_spreads(monkeypatch: pytest.MonkeyPatch, **spreads: float) -> None:
    """Every spread is known: those of ``spreads``, and nearly none of the others."""
    every = dict.fromkeys([*SPREADS, AGENTS], NO_SPREAD) | spreads
    monkeypatch.setattr(posterior, "LOG_MEDIANS", np.log([*every.values()]))
    monkeypatch.setattr(posterior, "LOG_SPREAD", 1e-5)


def test_the_posterior_is_that_of_numerical_quadrature(monkeypatch: pytest.MonkeyPatch) -> None:
    """How studies differ would matter much, but there is one."""
    said = np.array([(3, 9), (7, 12), (2, 6), (8, 14), (5, 11)])  # machine, of 15 answers: a person's, the agent's
    answers = (("human", "human:p"), ("machine", "alpha"))
    rows = []
    for judge, (column, (truth, agent)) in product(range(len(said)), enumerate(answers)):
        machines = said[judge, column]
        rows += [(f"human:{judge}", truth, agent, "machine")] * machines
        rows += [(f"human:{judge}", truth, agent, "human")] * (15 - machines)
    verdicts = pd.DataFrame(rows, columns=["judge", "truth", "agent", "verdict"])
    verdicts = verdicts.assign(judge_kind="human", folder="V", stimulus="s", trial=verdicts["agent"])
    of_studies = {"studies.bias": 1.0, "studies.skill": 1.0}
    fixed_spreads(monkeypatch, **{"judges.bias": OF_JUDGES, AGENTS: OF_AGENTS}, **of_studies)
    result = fit(verdicts)
    assert result.convergence["is_converged"]

    intercept = np.linspace(-3, 3, 121)[:, None]
    dprime = np.linspace(-3, 4, 141)[None, :]
    nodes, weights = np.polynomial.hermite_e.hermegauss(30)
    log_density = -(intercept**2) / 2 - dprime**2 / (2 * (1 + OF_AGENTS**2))  # the mean of agents is N(0, 1)
    for of_judge in said:
        probits = [intercept[..., None] + OF_JUDGES * nodes, (intercept + dprime)[..., None] + OF_JUDGES * nodes]
        each = sum(
            number * log_ndtr(z) + (15 - number) * log_ndtr(-z) for number, z in zip(of_judge, probits, strict=True)
        )
        log_density = log_density + logsumexp(each, b=weights, axis=-1)
    density = np.exp(log_density - log_density.max())
    density /= density.sum()
    humanness = -dprime / math.hypot(1, OF_JUDGES)
    expected = float((density * humanness).sum())
    deviation = math.sqrt(float((density * (humanness - expected) ** 2).sum()))
    error = deviation / math.sqrt(result.convergence["ess"])
    assert result.draws["humanness"].mean() == pytest.approx(expected, abs=4 * error)
    assert result.draws["humanness"].std() == pytest.approx(deviation, rel=0.1)


def test_what_was_integrated_out_is_that_of_numerical_quadrature(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of each taste there is one verdict: 26 of 40 judges recognise the agent, 15 take a person for a machine."""
    answers = (("human", "human:p", 15), ("machine", "alpha", 26))
    rows = []
    for judge, (truth, agent, machines) in product(range(40), answers):
        rows.append((f"human:{judge}", truth, agent, "machine" if judge < machines else "human"))
    verdicts = pd.DataFrame(rows, columns=["judge", "truth", "agent", "verdict"])
    verdicts = verdicts.assign(judge_kind="human", folder="V", stimulus="s", trial=verdicts["agent"])
    fixed_spreads(monkeypatch, **{"tastes.taste": OF_TASTES, AGENTS: OF_AGENTS})
    result = fit(verdicts)
    assert result.convergence["is_converged"]

    intercept = np.linspace(-2.5, 2, 121)[:, None]
    dprime = np.linspace(-2.5, 4, 141)[None, :]
    nodes, weights = np.polynomial.hermite_e.hermegauss(40)
    machine = (intercept + dprime)[..., None] + OF_TASTES * nodes
    weights = weights / weights.sum()
    says_machine = (ndtr(machine) * weights).sum(axis=-1)
    log_density = -(intercept**2) / 2 - dprime**2 / (2 * (1 + OF_AGENTS**2))
    log_density = log_density + 15 * log_ndtr(intercept) + 25 * log_ndtr(-intercept)
    log_density = log_density + 26 * np.log(says_machine) + 14 * np.log(1 - says_machine)
    density = np.exp(log_density - log_density.max())
    density /= density.sum()
    again = (ndtr(machine) ** 2 * weights).sum(axis=-1) / says_machine  # right once more, by who was right
    after_all = (ndtr(machine) * ndtr(-machine) * weights).sum(axis=-1) / (1 - says_machine)  # and by who was not
    humanness = intercept - (intercept + dprime) / math.hypot(1, OF_TASTES)
    cases = (
        (humanness, result.draws["humanness"][:, 0]),
        ((26 * again + 14 * after_all) / 40, result.draws["right"][:, 1]),
    )
    for values, draws in cases:
        expected = float((density * values).sum())
        error = draws.std() / math.sqrt(result.convergence["ess"])
        assert draws.mean() == pytest.approx(expected, abs=4 * error)
    expected = float((density * humanness).sum())
    deviation = math.sqrt(float((density * (humanness - expected) ** 2).sum()))
    assert result.draws["humanness"].std() == pytest.approx(deviation, rel=0.1)


def test_a_judge_of_uneven_trials_is_that_of_numerical_quadrature(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a person's answer each judge gives 3 verdicts, of the agent's 15; judges differ by bias and skill."""
    said = np.array([(1, 9), (2, 14), (0, 4), (1, 13), (3, 11)])  # machine, of the person's answer and of the agent's
    shown = (3, 15)
    answers = (("human", "human:p"), ("machine", "alpha"))
    rows = []
    for judge, (column, (truth, agent)) in product(range(len(said)), enumerate(answers)):
        machines = said[judge, column]
        rows += [(f"human:{judge}", truth, agent, "machine")] * machines
        rows += [(f"human:{judge}", truth, agent, "human")] * (shown[column] - machines)
    verdicts = pd.DataFrame(rows, columns=["judge", "truth", "agent", "verdict"])
    verdicts = verdicts.assign(judge_kind="human", folder="V", stimulus="s", trial=verdicts["agent"])
    fixed_spreads(monkeypatch, **{"judges.bias": OF_JUDGES, "judges.skill": OF_SKILLS, AGENTS: OF_AGENTS})
    result = fit(verdicts)
    assert result.convergence["is_converged"]

    intercept = np.linspace(-3, 3, 41)[:, None, None, None]
    dprime = np.linspace(-3, 4, 51)[None, :, None, None]
    nodes, weights = np.polynomial.hermite_e.hermegauss(14)
    weights = weights[:, None] * weights
    bias = OF_JUDGES * nodes[:, None]
    half = OF_SKILLS * nodes[None, :] / 2
    human = intercept + bias - half
    machine = intercept + dprime + bias + half
    log_density = -(intercept**2) / 2 - dprime**2 / (2 * (1 + OF_AGENTS**2))
    of_judges = []
    for of_human, of_machine in said:
        each = of_human * log_ndtr(human) + (shown[0] - of_human) * log_ndtr(-human)
        each = each + of_machine * log_ndtr(machine) + (shown[1] - of_machine) * log_ndtr(-machine)
        of_judges.append(each)
        log_density = log_density + logsumexp(each, b=weights, axis=(2, 3), keepdims=True)
    density = np.exp(log_density - log_density.max())
    density /= density.sum()
    of_first = weights * np.exp(of_judges[0] - of_judges[0].max(axis=(2, 3), keepdims=True))
    of_first /= of_first.sum(axis=(2, 3), keepdims=True)
    humanness = -dprime / math.sqrt(1 + OF_JUDGES**2 + OF_SKILLS**2 / 4)
    draws = result.draws
    cases = (
        (humanness, draws["humanness"][:, 0]),
        ((of_first * human).sum(axis=(2, 3), keepdims=True), -draws["criterion"][:, 0] - draws["skill"][:, 0] / 2),
    )
    for values, of_draws in cases:
        error = of_draws.std() / math.sqrt(result.convergence["ess"])
        assert of_draws.mean() == pytest.approx(float((density * values).sum()), abs=4 * error)
    expected = float((density * humanness).sum())
    deviation = math.sqrt(float((density * (humanness - expected) ** 2).sum()))
    assert draws["humanness"].std() == pytest.approx(deviation, rel=0.1)


@pytest.mark.parametrize("is_even", [True, False])
def test_the_gradient_is_that_of_differences(is_even: bool) -> None:
    """Of two studies with machines among the judges; some trials stand twice, and some effects have one verdict.

    If it is not even, there are a few verdicts on people's answers only."""
    verdicts, _ = simulate_ranking.drawn(0)
    verdicts = pd.concat([verdicts[verdicts["folder"] != "2"], verdicts[:60]], ignore_index=True)
    if not is_even:
        verdicts = verdicts[(verdicts["truth"] == "machine") | (verdicts.index % 7 == 0)].reset_index(drop=True)
    names, levels = rank_model._levels(verdicts)
    is_other = (verdicts["judge_kind"] != "human").to_numpy()
    density = PosteriorDensity(names, levels, (verdicts["verdict"] == "machine").to_numpy(), is_other)
    chance = np.random.default_rng(0)
    position = chance.normal(0, 0.4, density.size)
    _, gradient = density.log_density(position)
    for _ in range(20):
        direction = chance.normal(size=density.size)
        direction[15:] *= chance.random(density.size - 15) < 0.1
        step = 1e-5 * direction
        change = density.log_density(position + step)[0] - density.log_density(position - step)[0]
        assert change / 2e-5 == pytest.approx(gradient @ direction, rel=1e-6, abs=1e-5)


def test_draws_are_the_same_each_time() -> None:
    verdicts, _ = simulate_ranking.drawn(0)
    first, second = (fit(verdicts, ((20, 0.8),), chains=2) for _ in range(2))
    for name, draws in first.draws.items():
        assert np.array_equal(draws, second.draws[name])


def test_drawn_verdicts_have_the_humanness_that_they_should() -> None:
    rates = []
    for seed in range(150):
        verdicts, humanness = simulate_ranking.drawn(seed, simulate_ranking.TRUE | {"agents": 1e-9})
        verdicts = verdicts[verdicts["judge_kind"] == "human"]
        says_machine = verdicts["verdict"] == "machine"
        rates.append([says_machine[verdicts["truth"] == truth].mean() for truth in ("human", "machine")])
    human, machine = ndtri(np.mean(rates, axis=0))
    assert human - machine == pytest.approx(humanness["new"], abs=0.06)


def test_agents_decided_at_any_time_are_seldom_wrong() -> None:
    """Looked at after each of 300 judges, whose mean is at the bound: at most 5 % pass, of 200 studies 10 and three
    standard errors; halfway within the bounds most pass, far outside all fail."""
    decisions = {}
    for middle in (0.5, 0.6, 0.75):
        studies = [np.random.default_rng(seed).binomial(20, middle, 300) / 20 for seed in range(200)]
        decisions[middle] = [decide(units.tolist(), 0.1) for units in studies]
    assert sum(decision == "passes" for decision, _ in decisions[0.6]) < 20
    assert sum(decision == "passes" for decision, _ in decisions[0.5]) > 190
    assert {decision for decision, _ in decisions[0.75]} == {"fails"}
    decision, number = decisions[0.5][0]
    first = (np.random.default_rng(0).binomial(20, 0.5, 300) / 20).tolist()
    assert decide(first[: number - 1], 0.1) == ("open", number - 1)
    assert decide(first[:number], 0.1) == (decision, number)  # what comes later changes nothing


def test_judges_of_a_decision_come_in_the_order_of_the_rows() -> None:
    rows = [
        {"judge": judge, "truth": truth, "agent": agent, "correct": correct}
        for judge, truth, agent, correct in (
            ("first", "machine", "a", True),
            ("second", "human", "human:p", True),
            ("second", "machine", "a", False),
            ("second", "machine", "b", False),
            ("first", "human", "human:p", True),
            ("without people", "machine", "a", True),
        )
    ]
    assert detectability_by_judge(rows, "a") == [1.0, 0.5]
    assert detectability_by_judge(rows, "b") == [0.5]


def write_verdicts(path: Path, agents: dict[str, float], seed: int, judges: int = 6, who: str = "j") -> None:
    """Verdicts as `turinglike import` makes them of a table: of ``judges`` on 12 stimuli of a person and ``agents``,
    whose d' are known."""
    chance = np.random.default_rng(seed)
    lines = ["judge,stimulus,truth,agent,verdict"]
    for judge in range(judges):
        lean = chance.normal(0, 0.4)
        for at, (agent, dprime) in enumerate([("", 0.0), *agents.items()]):
            for clip in range(12):
                is_machine = lean + dprime - 0.4 + chance.normal() > 0
                truth, name = ("machine", f"{agent}{clip}") if at else ("human", f"person{clip}")
                lines.append(f"{who}{judge},{name},{truth},{agent},{'machine' if is_machine else 'human'}")
    path.with_suffix(".csv").write_text("\n".join(lines))
    assert main(["import", str(path.with_suffix(".csv")), "--task", "judgement", "--out", str(path)]) == 0


def rows_of(path: Path) -> dict[str, dict[str, str]]:
    with path.open(newline="") as file:
        return {row.get("agent") or row["judge"]: row for row in csv.DictReader(file)}


@pytest.mark.slow
def test_agents_are_ranked_and_another_joins(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write_verdicts(tmp_path / "V", {"alike": 0.0, "told": 1.8}, 0)
    assert main(["rank", str(tmp_path / "V"), "--out", str(tmp_path / "R")]) == 0
    printed = capsys.readouterr().out
    assert "R-hat 1.00" in printed
    assert "divergent" in printed
    assert "These intervals hold for judges, stimuli and participants like these" in printed
    assert "With several folders" not in printed
    old = json.loads((tmp_path / "R" / "ranking.json").read_bytes())
    assert old["form"] == "turinglike.ranking/1"
    assert old["convergence"]["elsewhere"]["is_converged"]
    rows = rows_of(tmp_path / "R" / "agents.csv")
    assert list(rows) == ["people", "alike", "told"]
    for agent, dprime in (("alike", 0.0), ("told", 1.8)):
        assert float(rows[agent]["humanness_low"]) < -dprime / math.hypot(1, 0.4) < float(rows[agent]["humanness_high"])
    verdicts = pd.read_csv(tmp_path / "V.csv")
    for agent, row in rows.items():  # the marginal table
        part = verdicts[verdicts["agent"].isna() if agent == "people" else verdicts["agent"] == agent]
        assert float(row["right"]) == pytest.approx((part["verdict"] == part["truth"]).mean())
        assert float(row["predicted_low"]) <= float(row["right"]) <= float(row["predicted_high"])
        assert float(row["predicted"]) == pytest.approx(float(row["right"]), abs=0.06)
    assert {"told", "human:j0"} <= set((tmp_path / "R" / "ranking.svg").read_text().replace("<", ">").split(">"))

    again = ["rank", str(tmp_path / "V"), "--prior", str(tmp_path / "R")]
    assert main(again) == 2
    assert "has all these verdicts already" in capsys.readouterr().err
    write_verdicts(tmp_path / "again", {"alike": 0.0, "told": 1.8}, 9)  # other verdicts of the same select nothing
    assert main(["rank", str(tmp_path / "again"), "--prior", str(tmp_path / "R")]) == 2
    write_verdicts(tmp_path / "W", {"new": 1.0}, 1, judges=3, who="k")
    assert main(["rank", str(tmp_path / "W"), "--prior", str(tmp_path / "R"), "--out", str(tmp_path / "S")]) == 0
    after = rows_of(tmp_path / "S" / "agents.csv")
    assert set(after) == {"people", "alike", "new", "told"}
    for agent in ("alike", "told"):  # no new verdicts, so hardly another place
        width = float(rows[agent]["humanness_high"]) - float(rows[agent]["humanness_low"])
        assert abs(float(after[agent]["humanness"]) - float(rows[agent]["humanness"])) < width / 4
        assert after[agent]["verdicts"] == rows[agent]["verdicts"]
    assert float(after["new"]["humanness_low"]) < -1 / math.hypot(1, 0.4) < float(after["new"]["humanness_high"])
    capsys.readouterr()
    assert main(["rank", str(tmp_path / "V"), str(tmp_path / "W"), "--out", str(tmp_path / "T")]) == 0
    assert "With several folders they also hold for other studies like these" in capsys.readouterr().out
    write_verdicts(tmp_path / "grown", {"alike": 0.0, "told": 1.8}, 0, judges=8)  # what is known counts once
    capsys.readouterr()
    assert main(["rank", str(tmp_path / "grown"), "--prior", str(tmp_path / "R"), "--out", str(tmp_path / "R2")]) == 0
    assert "it has 216 of the 288 given now" in capsys.readouterr().out
    assert main(["rank", str(tmp_path / "grown"), "--out", str(tmp_path / "R2")]) == 2  # before it is fitted
    for agent, row in rows_of(tmp_path / "T" / "agents.csv").items():  # the prior is the earlier verdicts
        assert agent == "people" or float(row["humanness"]) == pytest.approx(float(after[agent]["humanness"]), abs=0.1)
    both = pd.read_csv(tmp_path / "S" / "verdicts.csv")
    both.assign(asked="word_association").to_csv(tmp_path / "R" / "verdicts.csv", index=False)
    monkeypatch.setattr(rank_model, "fit", lambda of: fit(of, TRIES if of["asked"][0] != "elsewhere" else [(5, 0.8)]))
    assert main(["rank", str(tmp_path / "W"), "--prior", str(tmp_path / "R"), "--out", str(tmp_path / "U")]) == 1
    assert "stimuli of others has no numbers" in capsys.readouterr().out
    with (tmp_path / "U" / "agents.csv").open(newline="") as file:
        assert {row["asked"] for row in csv.DictReader(file)} == {"word_association"}
    assert len(both) == 6 * 36 + 3 * 24
    assert set(both["folder"]) == {"before: V", "W"}


def test_without_convergence_there_is_no_figure(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write_verdicts(tmp_path / "V", {"alike": 0.0}, 0, judges=2)
    monkeypatch.setattr(rank_model, "fit", partial(fit, tries=((5, 0.8),)))
    capsys.readouterr()
    assert main(["rank", str(tmp_path / "V"), "--out", str(tmp_path / "R")]) == 1
    printed = capsys.readouterr().out
    assert "did not converge" in printed
    assert "alike" not in printed
    assert not (tmp_path / "R").exists()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda table: table[table["truth"] == "machine"], "a ranking needs two judges, and answers from people"),
        (lambda table: table[table["truth"] == "human"], "a ranking needs two judges, and answers from people"),
        (lambda table: table[table["judge"] == "j0"], "a ranking needs two judges"),
    ],
)
def test_what_cannot_be_ranked(change: Any, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_verdicts(tmp_path / "V", {"alike": 0.0}, 0, judges=2)
    change(pd.read_csv(tmp_path / "V.csv")).to_csv(tmp_path / "part.csv", index=False)
    assert main(["import", str(tmp_path / "part.csv"), "--task", "judgement", "--out", str(tmp_path / "W")]) == 0
    assert main(["rank", str(tmp_path / "W")]) == 2
    printed = capsys.readouterr()
    assert message in " ".join(printed.out.split())
    assert "nothing can be ranked" in printed.err


def test_the_extra_and_the_prior_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    columns = "asked,folder,judge,judge_kind,trial,stimulus,truth,agent,verdict"
    for name, table, message in (
        ("none", None, "cannot be read"),
        ("empty", "", "is not the table of verdicts that"),
        ("other", "judge,verdict\nj,human\n", "is not the table of verdicts that"),
        ("damaged", f"{columns}\nword_association,V,j,human,1,s,machine,a,hum", "is not the table of verdicts that"),
    ):
        (tmp_path / name).mkdir()
        if table is not None:
            (tmp_path / name / "verdicts.csv").write_text(table)
        assert main(["rank", str(tmp_path), "--prior", str(tmp_path / name)]) == 2
        assert message in " ".join(capsys.readouterr().err.split())
    monkeypatch.setattr("judging.ranking.common_scale.is_installed", lambda name: name != "nutpie")
    assert main(["rank", str(tmp_path)]) == 2
    assert "pip install 'turinglike[rank]'" in " ".join(capsys.readouterr().err.split())
