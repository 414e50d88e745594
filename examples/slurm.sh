#!/bin/bash
# A run on nodes with GPUs; the same command again resumes it:
#
#   sbatch examples/slurm.sh SET RUN AGENTS [OPTION…]                one node
#   sbatch --nodes=8 examples/slurm.sh SET RUN AGENTS [OPTION…]      eight nodes, under a Ray of this job's own
#
# Options before the script replace those below: sbatch --partition=P --account=A --cpus-per-task=64 examples/slurm.sh …
#
# Ten minutes before the time limit the run ends in order, and the job goes back to the queue. VENV is the environment
# (.venv). LOCAL is a folder on each node's own disk (/tmp), of at most 8 characters: the paths of sockets are short.
#SBATCH --nodes=1 --ntasks-per-node=1 --gpus-per-node=8 --cpus-per-task=96 --mem=0 --exclusive
#SBATCH --time=24:00:00 --signal=B:USR1@600 --requeue
#SBATCH --output=turinglike-%j.log --open-mode=append
set -euo pipefail
set_file=$1 run=$2 agents=$3
shift 3
# shellcheck source=/dev/null
source "${VENV:-.venv}/bin/activate"
# Since version 22.05 srun gives a step one core, unless it is told this.
if [ -n "${SLURM_CPUS_PER_TASK:-}" ]; then export SRUN_CPUS_PER_TASK=$SLURM_CPUS_PER_TASK; fi
export HF_HUB_OFFLINE=1 # the weights were fetched on a node with a network: turinglike fetch
export TMPDIR="${LOCAL:-/tmp}/tl$SLURM_JOB_ID"
srun mkdir -p "$TMPDIR"

trap 'jobs -p | xargs -r kill; wait; srun --overlap rm -rf "$TMPDIR"' EXIT

await_gpus() { # NUMBER: for at most ten minutes
    local try
    for try in {1..120}; do
        if ray status --address "$address" 2>/dev/null | grep -q "/$1.0 GPU"; then return; fi
        sleep 5
    done
    echo "Ray has no $1 GPUs after $try tries" >&2
    exit 1
}

if [ "$SLURM_NNODES" -gt 1 ]; then
    gpus=${SLURM_GPUS_ON_NODE:-8}
    others=$((SLURM_NNODES - 1))
    head=$SLURMD_NODENAME # where this script runs
    address=$head:6379
    RAY_AUTH_TOKEN=$(openssl rand -hex 32)
    export RAY_AUTH_MODE=token RAY_AUTH_TOKEN RAY_USAGE_STATS_ENABLED=0
    srun --nodes=1 --ntasks=1 -w "$head" \
        ray start --head --port=6379 --num-gpus="$gpus" --include-dashboard=false --temp-dir="$TMPDIR/ray" --block &
    await_gpus "$gpus"
    srun --nodes="$others" --ntasks="$others" --exclude="$head" \
        ray start --address="$address" --num-gpus="$gpus" --block &
    await_gpus $((gpus * SLURM_NNODES))
    set -- --address "$address" "$@"
fi

srun --overlap --nodes=1 --ntasks=1 -w "$SLURMD_NODENAME" \
    turinglike generate "$set_file" --agents "$agents" --out "$run" "$@" &
step=$!
limit=far code=0
trap 'limit=near; kill -TERM "$step"' USR1
wait "$step" || code=$?
if [ "$limit" = near ]; then
    code=0
    wait "$step" || code=$? # the signal ended the first wait
    if [ "$code" -eq 143 ]; then scontrol requeue "$SLURM_JOB_ID"; fi
fi
exit "$code"
