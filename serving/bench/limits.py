"""What limits a rate, told from how busy each part of a run was.

A part that is busy nearly all of the time is what the others wait for. Where two are, the one that stands nearer to the
end of an answer's way is named: what comes before it piles up and looks busy, too.
"""

from statistics import mean

from serving.bench.run_results import Limit, Shares

BUSY = 0.85  # a part that is busy for this share of the time has hardly a pause
CORE = 0.9  # CPU time of one process over time, from which its one interpreter has hardly a pause
CORES = 0.8  # of all cores; the rest goes to what is between the processes
UNEVEN = 0.6  # a worker that is busy for less than this part of the busiest one's time waits for it


def limit(shares: Shares, *, on_gpu: bool, calls: bool, http: bool) -> tuple[Limit, str]:
    """What limits a run of these ``shares``: a code, and a sentence with the shares that it follows from.

    ``on_gpu``: the agents run on GPUs. ``calls``: the agent batches by itself, so that its share is of calls at once.
    ``http``: the process of ``shares`` is a server.
    """
    means = {name: mean(workers) for name, workers in shares.workers.items()}
    busiest = max(means, key=lambda name: means[name])
    idlest = min(means, key=lambda name: means[name])
    workers = shares.workers[busiest]
    model = means[busiest]
    writing = shares.writing or 0.0
    if writing >= BUSY:
        return "disk", f"The disk: records were being written {_percent(writing)} of the time."
    if shares.client is not None and shares.client >= CORE and shares.process < CORE:
        return "client", f"The program that asks: it takes {_percent(shares.client)} of a core."
    if model < BUSY and shares.process >= CORE:
        if http:
            return "server", f"The server: its process takes {_percent(shares.process)} of a core."
        return "scheduler", f"The scheduler: its process takes {_percent(shares.process)} of a core."
    if means[busiest] >= BUSY and means[idlest] < UNEVEN * means[busiest]:
        told = f"{busiest} answers {_percent(means[busiest])} of the time, {idlest} only {_percent(means[idlest])}"
        return "queue", f"The queue of {busiest}: {told}. More workers of {busiest} help."
    if max(workers) >= BUSY and min(workers) < UNEVEN * max(workers):
        told = f"the busiest answers {_percent(max(workers))} of the time, the idlest {_percent(min(workers))}"
        return "queue", f"One worker's queue: of {len(workers)} workers {told}. A smaller batch size spreads the work."
    if model >= BUSY and calls:
        return "calls", f"The service: {_percent(model)} of the calls that it takes at once were under way."
    if model >= BUSY and on_gpu:
        gpus = "".join(f", GPU {number} {_percent(share)}" for number, share in enumerate(shares.gpus))
        return "device", f"The device: the agent computes {_percent(model)} of the time{gpus}. More GPUs help."
    if model >= BUSY and shares.run_cores >= CORES:
        told = f"the agent computes {_percent(model)} of the time, and takes {_percent(shares.run_cores)} of the cores"
        return "cores", f"The cores of this machine: {told}. More workers here do not help."
    if model >= BUSY:
        told = f"computes {_percent(model)} of the time, and takes {_percent(shares.run_cores)} of the cores"
        if shares.cores >= CORE:
            taken = _percent(shares.cores - shares.run_cores)
            return "device", f"The agent: it {told}; other programs take {taken}. More workers help only if it waits."
        return "device", f"The agent: it {told}. More workers help."
    if shares.preparing >= BUSY or (shares.run_cores >= CORES and shares.preparing > model):
        told = f"threads that prepare are busy {_percent(shares.preparing)} of the time, the agent {_percent(model)}"
        return "preparing", f"Preparing on the CPU: {told}."
    if shares.run_cores >= CORES:
        return "cores", f"The cores of this machine: the run takes {_percent(shares.run_cores)} of them."
    if shares.cores >= CORE:
        others = shares.cores - shares.run_cores
        return "cores", f"The cores of this machine: other programs take {_percent(others)} of them."
    told = ", ".join(
        (
            f"the agent {_percent(model)}",
            f"preparing {_percent(shares.preparing)}",
            f"writing {_percent(writing)}",
            f"the {'server' if http else 'scheduler'} {_percent(shares.process)}",
            f"cores {_percent(shares.cores)}",
        )
    )
    return "unclear", f"Nothing alone: {told} of the time."


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"
