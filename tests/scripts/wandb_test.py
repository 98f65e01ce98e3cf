"""`troupe runs export --format wandb`, read by another implementation of the two forms: the log of LevelDB with W&B's head and zlib's CRC-32
(as wandb/sdk/internal/datastore.py reads it), and protocol buffers by hand, with the field numbers of wandb_internal.proto."""
import json
import os
import pathlib
import struct
import subprocess
import tempfile
import unittest
import zlib

TROUPE = pathlib.Path(os.environ["TROUPE"]).resolve()
BLOCK = 32768

# Of Record: field number -> name.
KINDS = {2: "history", 3: "summary", 17: "run", 18: "exit", 20: "final", 21: "header", 22: "footer"}


def records_of(data):
    assert data[:7] == struct.pack("<4sHB", b":W&B", 0xBEE1, 0), data[:7]
    at, whole, parts = 7, [], b""
    while at < len(data):
        left = BLOCK - at % BLOCK
        if left < 7:
            assert data[at : at + left] == bytes(left)
            at += left
            continue
        checksum, length, kind = struct.unpack("<IHB", data[at : at + 7])
        part = data[at + 7 : at + 7 + length]
        assert len(part) == length and length <= left - 7
        assert checksum == zlib.crc32(part, zlib.crc32(bytes([kind]))), "checksum"
        at += 7 + length
        assert (kind in (1, 2)) == (parts == b""), "fragments in order"
        parts += part
        if kind in (1, 4):
            whole.append(parts)
            parts = b""
    assert parts == b""
    return whole


def varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 0x7F) << shift
        shift += 7
        at += 1
        if not data[at - 1] & 0x80:
            return value, at


def fields(data):
    """(number, value) of a message: ints, or bytes."""
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        if key & 7 == 0:
            value, at = varint(data, at)
        else:
            assert key & 7 == 2, key
            size, at = varint(data, at)
            value = data[at : at + size]
            at += size
        yield key >> 3, value


def items(data, number):
    found = {}
    for field, value in fields(data):
        if field == number:
            item = dict(fields(value))
            found[item[1].decode()] = json.loads(item[16])
    return found


def parsed(path):
    found = []
    for count, record in enumerate(records_of(path.read_bytes())):
        values = dict(fields(record))
        assert values.pop(1) == count + 1, "records are numbered from 1 on"
        (number, value), = values.items()
        found.append((KINDS[number], value))
    return found


METRICS = [
    {"kind": "started", "t": 0, "name": "größe", "strategy": "easgd", "model": "lenet", "dataset": "glyphs", "workers": 2, "servers": 1,
     "epochs": 400, "epoch_samples": 100, "epoch_position": 0},
    *[{"kind": "epoch", "t": e, "epoch": e, "epochs": 400, "steps": 10 * e, "train": {"loss": 1 / e, "accuracy": 0.75, "images_per_s": 1000},
       "test": {"loss": 0.25, "accuracy": e / 1000, "top5": None}, "lr": 0.05, "train_s": 2.0 * e} for e in range(1, 401)],
    {"kind": "ended", "t": 900, "error": None, "steps": 4000, "samples": 40000, "wall_s": 807.5, "stopped_by": None},
]
SUMMARY = {"run": "x", "strategy": "easgd", "model": "lenet", "dataset": "glyphs", "workers": 2, "epochs": 400, "steps": 4000, "wall_s": 807.5,
           "test": {"loss": 0.25, "accuracy": 0.4, "top5": None}, "center_hash": "xxh3:00"}


class WandbTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.here = pathlib.Path(self.folder.name)
        self.write("20260102-030405-größe", METRICS, SUMMARY)

    def write(self, name, metrics, summary):
        run = self.here / "runs" / name
        run.mkdir(parents=True)
        long = "x" * 100_000  # more than three blocks
        (run / "config.toml").write_text(f'[run]\nname = "größe"\n[model]\nname = "lenet"\n[data]\nname = "glyphs"\npath = "{long}"\nbatch = [64]\n'
                                         '[train]\nlr = 0.05\n[strategy]\nname = "easgd"\ntau = 4\n')
        (run / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in metrics))
        (run / "notes.json").write_text('{"tags": ["paper"], "note": "a note"}')
        if summary:
            (run / "summary.json").write_text(json.dumps(summary) + "\n")

    def export(self, *more, code=0):
        outcome = subprocess.run([TROUPE, "runs", "export", "--dir", self.here / "runs", "--format", "wandb", *more], capture_output=True, text=True)
        self.assertEqual(outcome.returncode, code, outcome.stderr)
        return outcome

    def logs(self):
        return sorted((self.here / "out").glob("offline-run-*/run-*.wandb"))

    def test_a_run_is_whole(self):
        said = self.export("--output", self.here / "out").stdout
        self.assertIn("wandb sync", said)
        (log,) = self.logs()
        self.assertRegex(log.parent.name, r"^offline-run-20260102_030405-[0-9a-f]{16}$")
        self.assertEqual(log.name, f"run-{log.parent.name[-16:]}.wandb")
        found = parsed(log)
        kinds = [kind for kind, _ in found]
        self.assertEqual(kinds[:2] + kinds[-4:], ["header", "run", "summary", "exit", "final", "footer"])
        run = dict(fields(found[1][1]))
        self.assertEqual(run[1].decode(), log.parent.name[-16:])
        self.assertEqual(run[8].decode(), "größe")
        self.assertEqual(run[9].decode(), "a note")
        self.assertEqual(run[10].decode(), "paper")
        config = items(run[4], 1)
        self.assertEqual(config["train"], {"lr": 0.05})
        self.assertEqual(config["strategy"], {"name": "easgd", "tau": 4})
        self.assertEqual(len(config["data"]["path"]), 100_000)
        history = [items(value, 1) for kind, value in found if kind == "history"]
        self.assertEqual([row["_step"] for row in history], list(range(400)))
        for row, epoch in zip(history, range(1, 401)):
            self.assertEqual(row["epoch"], epoch)
            self.assertEqual(row["train"]["loss"], 1 / epoch)
            self.assertEqual(row["test"]["accuracy"], epoch / 1000)
            self.assertEqual(row["_runtime"], 2.0 * epoch)
        summary = items(found[-4][1], 1)
        self.assertEqual(summary["test"], {"loss": 0.25, "accuracy": 0.4})
        self.assertEqual(summary["wall_s"], 807.5)
        self.assertEqual(dict(fields(found[-3][1])), {2: 807})  # an exit code of 0 is not written

    def test_a_run_that_failed_and_one_without_an_end(self):
        ended = [*METRICS[:3], {"kind": "ended", "t": 9, "error": {"code": "diverged", "message": "it broke"}, "steps": 1, "samples": 1, "wall_s": 1, "stopped_by": None}]
        self.write("20260102-030406-failed", ended, None)
        self.export("--output", self.here / "out")
        exits = [dict(fields(value)).get(1, 0) for log in self.logs() for kind, value in parsed(log) if kind == "exit"]
        self.assertEqual(sorted(exits), [0, 1])

    def test_a_key_that_cannot_be_nested_stays_whole(self):
        config = self.here / "runs/20260102-030405-größe/config.toml"
        config.write_text(config.read_text() + '[odd]\ny = 2\n"y.z" = 3\n"a.b" = 1\n"" = 5\n')
        self.export("--output", self.here / "out")
        (log,) = self.logs()
        config = items(dict(fields(parsed(log)[1][1]))[4], 1)
        self.assertEqual(config["odd"], {"y": 2, "a": {"b": 1}})
        self.assertEqual((config["odd.y.z"], config["odd."]), (3, 5))

    def test_the_directory_is_new(self):
        self.export("--output", self.here / "out")
        self.assertIn("not empty", self.export("--output", self.here / "out", code=2).stderr)
        self.assertIn("--output", self.export(code=2).stderr)


if __name__ == "__main__":
    unittest.main()
