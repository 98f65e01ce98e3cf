#!/usr/bin/env bash
# What staleness costs at 8, 32, 128 and 512 workers: every strategy trains LeNet on MNIST with real gradients in virtual time (troupe simulate --gradients)
# on configs/clusters/campus.toml, from its shipped configuration, with batch 8 per worker and five epochs in all. The samples are the same at every size, so
# that 512 workers take 73 steps each. Runs at the shipped learning rate and at some multiples of it; the best of them at 512 workers on more seeds.
# Prints accuracy, staleness and speed; draws staleness-*.svg into OUT_DIR. What limits it: a run computes its 37,500 gradients one after the other, 45 s
# and up to 5 GB each; about 100 runs. Each leaves a file in OUT_DIR; the same command goes on where it was broken off, and computes nothing that is there.
#
#   bench/staleness_at_scale.sh MNIST_DIRECTORY [OUT_DIR]   (runs/staleness-at-scale)
#                                          TROUPE: the program (default build/bin/troupe)   JOBS: runs at a time (1)   SEEDS: at 512 workers (2)
set -euo pipefail
cd "$(dirname "$0")/.."
[[ $# -ge 1 ]] || { sed -n '2,10s/^# \{0,1\}//p' "$0"; exit 2; }
out=${2:-runs/staleness-at-scale}
mkdir -p "$out"

python3 - "${TROUPE:-build/bin/troupe}" "$1" "$out" "${JOBS:-1}" "${SEEDS:-2}" <<'PY'
import json, os, re, subprocess, sys
from concurrent.futures import ThreadPoolExecutor
troupe, data, out, jobs, seeds = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]), int(sys.argv[5])

WORKERS = (8, 32, 128, 512)
DIVERGED = 70
# Rates as multiples of the shipped one, which suits batch 32 (16 where steps are pushed) and two workers. Strategies that average parameters keep the rate
# of a single worker: for a quarter of the batch a quarter of the rate. A mean of more gradients allows a larger rate. Where workers push full steps to a
# centre, N of them move it together, so rates fall as 1 / N.
AVERAGED = {8: (1, 1 / 2, 1 / 4), 32: (1, 1 / 2, 1 / 4), 128: (1, 1 / 2), 512: (1, 1 / 2)}
SUMMED = {8: (1, 1 / 4), 32: (1, 4), 128: (1, 4), 512: (1, 4)}
PUSHED = {8: (1, 1 / 4), 32: (1, 1 / 4), 128: (1, 1 / 4, 1 / 16, 1 / 64), 512: (1, 1 / 4, 1 / 16, 1 / 64, 1 / 256)}
DIVIDED = {8: (1,), 32: (1,), 128: (1, 4), 512: (1, 4)}
OUTER = {8: (1,), 32: (1,), 128: (1, 2), 512: (1, 2)}
CASES = {  # name: configuration, options, rates
    'bsp': ('bsp', (), SUMMED),
    'sync_easgd': ('sync_easgd', (), AVERAGED),
    'local_sgd': ('local_sgd', (), AVERAGED),
    'diloco': ('diloco', (), OUTER),
    'pairs': ('pairs', (), AVERAGED),
    'gossip': ('gossip', (), AVERAGED),
    'easgd': ('easgd', (), AVERAGED),
    'easgd, β = 0.9': ('easgd', ('strategy.beta=0.9',), AVERAGED),
    'eamsgd': ('eamsgd', (), AVERAGED),
    'ssp': ('ssp', (), PUSHED),
    'downpour': ('downpour', (), PUSHED),
    'downpour, aware': ('downpour', ('strategy.staleness_aware=true',), DIVIDED),
    'mixed': ('mixed', (), PUSHED),
}

# What train.lr = "auto" comes to in the shipped configurations, for their number of workers.
def shipped_rate(config):
    return {'ssp': 0.015, 'downpour': 0.015, 'mixed': 0.015, 'diloco': 0.01}.get(config, 0.05)

def file_of(case, workers, factor, seed):
    return f"{out}/{re.sub('[^a-z0-9_]+', '-', case)}_{workers}_x{factor:g}_seed{seed}.json"

def run(job):
    case, workers, factor, seed = job
    config, options, _ = CASES[case]
    settings = [f'data.path="{data}"', 'data.batch=8', 'run.epochs=5', f'run.seed={seed}', f'train.lr={shipped_rate(config) * factor:.9g}', 'cluster.servers=8', *options]
    command = [troupe, 'simulate', f'configs/mnist-{config}.toml', '--cluster', 'configs/clusters/campus.toml', '--workers', str(workers), '--gradients', '--json',
               *(word for setting in settings for word in ('--set', setting))]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode not in (0, DIVERGED):
        raise SystemExit(f'{" ".join(command)}\nexit code {done.returncode}: {done.stderr}')
    summary = json.loads(done.stdout) if done.returncode == 0 else None
    path = file_of(*job)
    with open(path + '.part', 'w') as file:
        json.dump({'exit': done.returncode, 'said': done.stderr.strip(), 'summary': summary}, file)
    os.rename(path + '.part', path)
    said = f"{100 * summary['test']['accuracy']:.2f} %" if summary else done.stderr.strip()
    print(f'{case}, {workers} workers, rate x {factor:g}, seed {seed}: {said}', file=sys.stderr, flush=True)

def run_all(wanted):
    missing = [job for job in wanted if not os.path.exists(file_of(*job))]
    if missing:
        print(f'{len(missing)} of {len(wanted)} runs to do', file=sys.stderr, flush=True)
    with ThreadPoolExecutor(jobs) as pool:
        for _ in pool.map(run, missing):
            pass

def summary_of(*job):
    with open(file_of(*job)) as file:
        return json.load(file)['summary']

def error(summary):  # %; guessing is 90
    return 100 * (1 - summary['test']['accuracy']) if summary else float('inf')

def best(case, workers):
    return min(CASES[case][2][workers], key=lambda factor: error(summary_of(case, workers, factor, 1)))

run_all([(case, workers, factor, 1) for workers in WORKERS for case in CASES for factor in CASES[case][2][workers]])
run_all([(case, WORKERS[-1], best(case, WORKERS[-1]), seed) for case in CASES for seed in range(2, seeds + 1)])

# The tables.
def factor_name(factor):
    return f'{factor:g}' if factor >= 1 else f'1/{1 / factor:g}'

def accuracy(case, workers, factor, seed=1):
    summary = summary_of(case, workers, factor, seed)
    return f"{100 * summary['test']['accuracy']:.2f}" if summary else 'diverged'

def at_best(tell):
    def cell(case, workers):
        summary = summary_of(case, workers, best(case, workers), 1)
        return tell(summary) if summary else '-'
    return cell

def table(title, cell):
    print(f'\n{title}\n{"":17s}' + ''.join(f'{workers:>18d}' for workers in WORKERS))
    for case in CASES:
        print(f'{case:17s}' + ''.join(f'{cell(case, workers):>18s}' for workers in WORKERS))

table('test accuracy, %, at the shipped learning rate; columns: workers', lambda case, workers: accuracy(case, workers, 1))
table('test accuracy, %, at the best rate of those tried (multiple of the shipped one)',
      lambda case, workers: f'{accuracy(case, workers, best(case, workers))} ({factor_name(best(case, workers))})')
table('versions of the centre that an update missed, mean (greatest), at that rate',
      at_best(lambda s: f"{s['exchange']['staleness_mean']:.1f} ({s['exchange']['staleness_max']})"))
table('virtual seconds of training (share of the speed of as many workers that never exchange anything)',
      at_best(lambda s: f"{s['simulated']['train_s']:.2f} ({s['simulated']['efficiency']:.2f})"))
print('\ntest accuracy, %, at each rate tried')
for case in CASES:
    for workers in WORKERS:
        print(f'{case:17s}{workers:4d}   ' + ''.join(f'{factor_name(f):>6s}: {accuracy(case, workers, f):8s}' for f in CASES[case][2][workers]))
print(f'\ntest accuracy, %, of seeds 1 to {seeds}: {WORKERS[-1]} workers, the best rate')
for case in CASES:
    print(f'{case:17s}' + ''.join(f'{accuracy(case, WORKERS[-1], best(case, WORKERS[-1]), seed):>10s}' for seed in range(1, seeds + 1)))

# The figures: as `troupe plot` draws (experiment/plot/figure.cpp), which has no logarithmic axis upwards and no two panels.
COLOURS = ('#0072B2', '#E69F00', '#009E73', '#D55E00', '#CC79A7', '#56B4E9', '#000000')
POINTS = (7, 5, 9, 11, 13, 4, 6)
TOGETHER = ('bsp', 'sync_easgd', 'local_sgd', 'diloco', 'pairs')
APART = ('easgd', 'easgd, β = 0.9', 'eamsgd', 'gossip', 'ssp', 'mixed', 'downpour', 'downpour, aware')
STALE = ('ssp', 'downpour', 'easgd', 'mixed')  # eamsgd is as easgd, the variants as their strategies

def style(cases, case):  # a variant: its strategy's colour, broken
    strategies = list(dict.fromkeys(other.split(',')[0] for other in cases))
    k = strategies.index(case.split(',')[0])
    return f"lw 2.5 lc rgb '{COLOURS[k]}' pt {POINTS[k]} ps 1.1" + (' dt (6,4)' if ',' in case else '')

def figure(name, panels, label, settings, extra=()):
    lines = ["set terminal svg noenhanced size 1100,600 font 'DejaVu Sans,15' background 'white'",
             f"set output '{out}/{name}.svg'", 'set encoding utf8', 'set border 3 lw 1 lc rgb "#606060"', 'set tics nomirror out textcolor rgb "#303030"',
             'set grid lw 1 lc rgb "#d8d8d8"', "set xlabel 'workers'", 'set logscale x', f"set xtics ({', '.join(map(str, WORKERS))})",
             f'set xrange [{WORKERS[0] / 1.2}:{WORKERS[-1] * 1.2}]', 'set key center bottom horizontal maxcols 2 Left reverse samplen 3', *settings,
             'set bmargin at screen 0.29', 'set multiplot layout 1,2']
    for panel, (title, cases, value) in enumerate(panels):
        plots = []
        for k, case in enumerate(cases):
            points = [(workers, summary_of(case, workers, best(case, workers), 1)) for workers in WORKERS]
            lines += [f'$of_{panel}_{k} << EOD', *(f'{workers} {value(summary):.6g}' for workers, summary in points if summary), 'EOD']
            plots.append(f"$of_{panel}_{k} with linespoints {style(cases, case)} title '{case}'")
        lines += [f"set title '{title}'", f"set ylabel '{'' if panel else label}'", f'set key at screen {0.28 + 0.5 * panel}, screen 0.012',
                  'plot ' + ', '.join([*plots, *extra])]
    with open(f'{out}/{name}.gp', 'w') as file:
        file.write('\n'.join([*lines, 'unset multiplot', '']))
    subprocess.run(['gnuplot', f'{out}/{name}.gp'], check=True)

def together_and_apart(value):
    return [('they meet at every step or period', TOGETHER, value), ('each at its own pace', APART, value)]

figure('scale-error', together_and_apart(error), 'test error [%]', ['set logscale y', 'set yrange [0.5:20]', 'set ytics (0.5, 1, 2, 5, 10, 20)'])
figure('scale-efficiency', together_and_apart(lambda s: s['simulated']['efficiency']), 'share of the ideal speed', ['set yrange [0:1]'])
figure('scale-staleness', [(f'{word} staleness of an update', STALE, lambda s, key=key: s['exchange'][key]) for word, key in
                           (('mean', 'staleness_mean'), ('greatest', 'staleness_max'))], 'versions of the centre', ['set logscale y', 'set yrange [2:5000]'],
       ["x - 1 lw 2 lc rgb '#808080' dt (2,4) title 'workers - 1'"])
PY
