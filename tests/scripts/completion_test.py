"""The completion scripts in real shells, and the manual pages in mandoc and groff: those that are installed."""
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

TROUPE = pathlib.Path(os.environ["TROUPE"]).resolve()

# (words, the last one unfinished) -> words that are offered, words that are not
CASES = [
    (["tra"], ["train"], ["runs"]),
    (["runs", ""], ["list", "show", "export"], ["train"]),
    (["runs", "export", "--format", ""], ["json", "csv", "mlflow", "wandb"], ["--format"]),
    (["runs", "export", "--form"], ["--format"], ["--dir"]),
    (["train", "--set", "train.lr_pol"], ["train.lr_policy="], ["train.lr="]),
    (["train", "--set", "strategy.name=eas"], ["strategy.name=easgd"], ["strategy.name=bsp"]),
    (["train", "con"], ["configs/"], ["runs/"]),
    (["runs", "show", "2026"], ["20260102-030405-a"], ["other"]),
    (["runs", "show", "--dir", "my runs", ""], ["größe b"], ["20260102-030405-a"]),
    (["plot", "--output", ""], ["configs/"], ["a.toml"]),
]

BASH = r"""
source <("$1" completion bash) || exit 1
shift
COMP_LINE=$1 COMP_POINT=${#1}; shift
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
_troupe
printf '%s\n' "${COMPREPLY[@]}"
"""

# What completion functions would show is printed.
ZSH = r"""
compdef() { :; }
source <("$1" completion zsh)
_describe() { shift 2; local -a all; all=("${(@P)1}"); local e; for e in "$all[@]"; do e=${e//\\:/$'\1'}; print -r -- ${${e%%:*}//$'\1'/:}; done; }
_files() { local p; if [[ $1 == -/ ]]; then for p in ${words[CURRENT]}*(N/); do print -r -- $p/; done; else for p in ${words[CURRENT]}*(N); do [[ -d $p ]] && p+=/; print -r -- $p; done; fi; }
compset() { :; }
words=("${@[1]}" "${@[2,-1]}") CURRENT=$#words
_troupe
"""


def quoted(word):
    return "'" + word + "'" if " " in word else word


class ShellTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        here = pathlib.Path(self.folder.name)
        for run in ("runs/20260102-030405-a", "runs/other", "my runs/größe b"):
            (here / run).mkdir(parents=True)
            (here / run / "config.toml").touch()
        (here / "configs").mkdir()
        (here / "a.toml").touch()

    def tearDown(self):
        self.folder.cleanup()

    def printed(self, *command):
        environment = {"PATH": f"{TROUPE.parent}:{os.environ['PATH']}", "HOME": self.folder.name, "LC_ALL": "C.UTF-8"}
        done = subprocess.run([str(c) for c in command], capture_output=True, text=True, cwd=self.folder.name, env=environment, stdin=subprocess.DEVNULL, timeout=120)
        self.assertEqual((done.returncode, done.stderr), (0, ""), command)
        return done.stdout.splitlines()

    def check(self, offered, cases=CASES):
        for words, expected, absent in cases:
            with self.subTest(words=words):
                found = [line.rstrip() for line in offered(words)]
                for word in expected:
                    self.assertIn(word.rstrip("/"), [f.rstrip("/") for f in found])
                for word in absent:
                    self.assertNotIn(word.rstrip("/"), [f.rstrip("/") for f in found])

    @unittest.skipUnless(shutil.which("bash"), "no bash")
    def test_bash(self):
        def offered(words):
            line = " ".join([str(TROUPE)] + [quoted(word) for word in words])
            # As readline does: words are broken at = and :.
            broken = [part for word in words for part in re.findall(r"[=:]+|[^=:]+", word) or [""]]
            last = words[-1]
            head = last[: max(last.rfind("="), last.rfind(":")) + 1]  # which readline keeps
            return [head + found for found in self.printed("bash", "-c", BASH, "bash", TROUPE, line, TROUPE, *broken)]
        # Quotes are taken off by readline only for the last word, so a folder with a blank in its name is not found.
        self.check(offered, [case for case in CASES if "my runs" not in case[0]])

    @unittest.skipUnless(shutil.which("zsh"), "no zsh")
    def test_zsh(self):
        self.check(lambda words: self.printed("zsh", "-f", "-c", ZSH, "zsh", TROUPE, *words))

    @unittest.skipUnless(shutil.which("fish"), "no fish")
    def test_fish(self):
        def offered(words):
            line = " ".join(["troupe"] + [quoted(word) for word in words])
            lines = self.printed("fish", "--no-config", "-c", f"troupe completion fish | source; complete -C {subprocess.list2cmdline([line])}")
            return [line.split("\t")[0] for line in lines]
        self.check(offered)

    def test_a_line_that_is_wrong_offers_nothing(self):
        self.assertEqual(self.printed(TROUPE, "completion", "bash", "--", "nonsense", ""), [])


class ManualTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        subprocess.run([TROUPE, "man", "--all", self.folder.name], check=True)
        self.pages = sorted(pathlib.Path(self.folder.name).rglob("*.[15]"))
        self.assertGreater(len(self.pages), 30)

    def tearDown(self):
        self.folder.cleanup()

    @unittest.skipUnless(shutil.which("mandoc"), "no mandoc")
    def test_mandoc_finds_nothing_but_the_missing_date(self):
        done = subprocess.run(["mandoc", "-T", "lint", "-W", "warning"] + self.pages, capture_output=True, text=True)
        wrong = [line for line in (done.stdout + done.stderr).splitlines() if "missing date" not in line]
        self.assertEqual(wrong, [])

    @unittest.skipUnless(shutil.which("groff"), "no groff")
    def test_groff_warns_of_nothing(self):
        for page in self.pages:
            done = subprocess.run(["groff", "-man", "-Tutf8", "-ww", "-z", page], capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stderr), (0, ""), page.name)


if __name__ == "__main__":
    unittest.main()
