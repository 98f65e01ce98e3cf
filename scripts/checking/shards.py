#!/usr/bin/env python3
"""Usage: shards.py N NAME PROGRAM [ARGUMENT …]

Runs a GoogleTest program as N processes side by side, each with its part of the tests, and prints what they printed, one behind the other. Results
are in NAME-1.json … of this folder. Fails if one of them failed.
"""
import os
import subprocess
import sys


def main():
    shards, name, command = int(sys.argv[1]), sys.argv[2], sys.argv[3:]
    children = []
    for shard in range(shards):
        environment = dict(os.environ, GTEST_TOTAL_SHARDS=str(shards), GTEST_SHARD_INDEX=str(shard), GTEST_OUTPUT="json:{}-{}.json".format(name, shard + 1))
        log = open("{}-{}.log".format(name, shard + 1), "w+b")
        children.append((subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, env=environment), log))
    failed = False
    for child, log in children:
        failed |= child.wait() != 0
        log.seek(0)
        sys.stdout.buffer.write(log.read())
        if child.returncode < 0:
            sys.stdout.buffer.write("a process ended by signal {}\n".format(-child.returncode).encode())
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
