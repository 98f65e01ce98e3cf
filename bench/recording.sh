#!/usr/bin/env bash
# What writing a run down costs, in images/s of training:
#   journal    mlp, two easgd workers, tau = 1: with run.journal = "all" beside "off". Every step is two events of the worker's half, two of the
#              exchange's end and one of the server's; bytes and a checksum each, on the recorder's thread.
#   recorder   lenet, two easgd workers, tau = 1: metrics, journal and a live terminal beside --quiet and no journal.
# Rounds alternate; the median ratio counts.
#
#   bench/recording.sh MNIST_DIRECTORY [ROUNDS]        TROUPE: the program (default build/bin/troupe)
set -euo pipefail
cd "$(dirname "$0")/.."
[[ $# -ge 1 ]] || { sed -n '2,8s/^# \{0,1\}//p' "$0"; exit 2; }
troupe=${TROUPE:-build/bin/troupe}
runs=$(mktemp -d)
trap 'rm -rf "$runs"' EXIT

python3 - "$troupe" "$1" "$runs" "${2:-7}" <<'PY'
import glob, json, os, pty, statistics, subprocess, sys
troupe, data, runs, rounds = sys.argv[1:]

def train(model, epochs, live, journal):
    before = set(glob.glob(runs + '/*'))
    command = [troupe, 'train', 'configs/mnist-easgd.toml', '--set', f'data.path="{data}"', '--set', f'run.dir="{runs}"', '--set', 'run.checkpoint_every="never"',
               '--set', f'model.name={model}', '--set', f'run.epochs={epochs}', '--set', 'strategy.tau=1', '--set', 'data.batch=64', '--set', 'train.lr=0.01',
               '--set', f'run.journal={journal}', '--set', 'data.test_samples=100']
    if live:
        os.environ['TERM'] = 'xterm-256color'
        pid, terminal = pty.fork()
        if pid == 0: os.execv(troupe, command)
        try:
            while os.read(terminal, 65536): pass
        except OSError: pass
        _, status = os.waitpid(pid, 0)
        assert status == 0, status
    else:
        subprocess.run(command + ['--quiet'], check=True)
    (run,) = set(glob.glob(runs + '/*')) - before
    return json.load(open(run + '/summary.json'))['train']['images_per_s']

for name, model, epochs, live in (('journal', 'mlp', 12, False), ('recorder', 'lenet', 3, True)):
    ratios = []
    for _ in range(int(rounds)):
        without = train(model, epochs, False, 'off')
        with_it = train(model, epochs, live, 'all')
        ratios.append(with_it / without)
        print(f'{name:9s} {model}  without {without:9.0f} images/s  with {with_it:9.0f}  cost {100 * (1 - ratios[-1]):5.1f} %', flush=True)
    print(f'{name:9s} median cost {100 * (1 - statistics.median(ratios)):.1f} %')
PY
