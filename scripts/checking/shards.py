#!/usr/bin/env python3
"""Usage: shards.py N NAME PROGRAM [ARGUMENT …]

Runs a GoogleTest program as N processes side by side, each with its part of the tests, and prints what they printed: first those that passed, then those that
failed, last those that crashed or were ended, because gpu-check keeps the last lines. Results are in NAME-1.json … of this folder, what was printed in
NAME-1.log …. Fails if one of them failed, or ended without its results.
"""
import os
import signal
import subprocess
import sys


def main():
    shards, name, command = int(sys.argv[1]), sys.argv[2], sys.argv[3:]
    signal.signal(signal.SIGTERM, lambda *_: None)  # gpu-check sends it to the processes as well, when they take too long: what they printed is still to be told
    children = []
    for shard in range(1, shards + 1):
        results, log = ("{}-{}.{}".format(name, shard, kind) for kind in ("json", "log"))
        environment = dict(os.environ, GTEST_TOTAL_SHARDS=str(shards), GTEST_SHARD_INDEX=str(shard - 1), GTEST_OUTPUT="json:" + results)
        with open(log, "wb") as output:
            children.append((subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, env=environment), results, log))
    passed, failed, crashed = [], [], []
    for child, results, log in children:
        code = child.wait()
        end = "a process ended by signal {}\n".format(-code) if code < 0 else "" if os.path.exists(results) else "a process ended without its results\n"
        (crashed if end else failed if code else passed).append((log, end))
    for log, end in passed + failed + crashed:
        with open(log, "rb") as output:
            sys.stdout.buffer.write(output.read() + end.encode())
    return int(bool(failed or crashed))


if __name__ == "__main__":
    sys.exit(main())
