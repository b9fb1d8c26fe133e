"""Times attend beside its peers, in turns, on the same token ids.

    peers.py --driver build/release/bench/peer_driver --model minilm.attend --folder build/peers
             --sentences en_ewt.dev.text.tsv --json out.json

Every engine, setting and number of threads is a process of its own (engines.py, peer_driver), so
that no library's threads or settings are another's. Every case is run in rounds; in a round every
engine has a turn of a few runs, of which the first three are not counted, with a pause between the
turns, so that no engine's threads still spin in another's time and a machine that changes its speed
changes it for all. An engine's figure is the median of all runs, the best of its numbers of threads
and settings; attend's is that of the most threads asked for. Prints Markdown tables, one a
precision. Where lengths differ, peers get padding and a mask (CTranslate2: lists); attend gets the
ids.
"""

import argparse
import datetime
import importlib.metadata
import json
import pathlib
import platform
import statistics
import subprocess
import sys
import time

import numpy

from engines import ENGINES

HERE = pathlib.Path(__file__).parent
PRECISIONS = ("f32", "bf16", "int8")
# The largest difference from attend's f32 that is still the same computation, as a part of the
# largest number: beyond it a time means nothing.
MAY_DIFFER = {"f32": 1e-3, "bf16": 0.15, "int8": 0.4}


class Engine:
    """A co-process. `kind` is what its settings have in common: "openvino f32"."""

    def __init__(self, kind, precision, threads, setting, command):
        self.kind, self.precision, self.threads, self.setting = kind, precision, threads, setting
        self.name = f"{kind}, {threads} thread{'s' if threads > 1 else ''}" + (
            f", {setting}" if setting else "")
        self.batches = 0
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL, text=True)
        self.refusal = self.read()
        self.ready = self.refusal == "ready"

    def read(self):
        return self.process.stdout.readline().strip() or "error: ended"

    def ask(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        answer = self.read()
        if answer.startswith("error"):
            sys.exit(f"{self.name}: {answer}")
        return answer

    def prepare(self, sequences):
        self.batches += 1
        numbers = [len(sequences), *map(len, sequences), *(i for s in sequences for i in s)]
        self.ask(f"batch b{self.batches} " + " ".join(map(str, numbers)))
        return f"b{self.batches}"

    def run(self, batch):
        return int(self.ask(f"run {batch}")) / 1e9

    def hidden(self, batch):
        return numpy.array(self.ask(f"hidden {batch}").split(), dtype=numpy.float32)

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def make_engines(options):
    engines = []

    def add(*arguments):
        engine = Engine(*arguments)
        if engine.ready:
            engines.append(engine)
        else:
            print(f"left out: {engine.name}: {engine.refusal}")
            engine.close()

    for precision in options.precision:
        command = [options.driver, options.model, str(max(options.threads)), precision]
        add(f"attend {precision}", precision, max(options.threads), "",
            command + ([options.isa] if options.isa else []))
    for name in ENGINES:
        library, precision, *setting = name.split("-")
        if precision not in options.precision or options.engines and library not in options.engines:
            continue
        for threads in options.threads:
            add(f"{library} {precision}", precision, threads, " ".join(setting),
                [sys.executable, str(HERE / "engines.py"), name, options.folder, str(threads)])
    return engines


def read_sentences(options):
    from tokenizers import Tokenizer
    tokenizer = Tokenizer.from_file(f"{options.folder}/minilm/tokenizer.json")
    tokenizer.no_padding()
    tokenizer.enable_truncation(max_length=512)
    lines = pathlib.Path(options.sentences).read_text(encoding="utf-8").rstrip("\n").split("\n")
    return [e.ids for e in tokenizer.encode_batch([line.split("\t")[0] for line in lines])]


def in_batches(sequences, size=32):
    return [sequences[i:i + size] for i in range(0, len(sequences), size)]


def make_cases(options):
    """(name, list of batches): a run of a case runs all of its batches."""
    random = numpy.random.default_rng(1)

    def ids(length):
        return [101, *random.integers(1996, 29000, length - 2).tolist(), 102]

    cases = [(f"1 x {length}", [[ids(length)]]) for length in (8, 16, 32, 64, 128, 256, 512)]
    cases.append(("8 x 128", [[ids(128) for _ in range(8)]]))
    if options.sentences:
        sentences = read_sentences(options)
        cases.append(("sentences, 32 as they come", in_batches(sentences)))
        cases.append(("sentences, 32 by length", in_batches(sorted(sentences, key=len))))
    return [case for case in cases if not options.case or options.case in case[0]]


def time_case(engines, batches, options):
    """Seconds of every run, by engine."""
    prepared = [[engine.prepare(batch) for batch in batches] for engine in engines]

    def once(k):
        return sum(engines[k].run(batch) for batch in prepared[k])

    # Warms up, and tells how long a run takes: the first ever touches memory for the first time.
    first = [min(once(k) for _ in range(3 if len(batches) == 1 else 1)) for k in range(len(engines))]
    seconds = [[] for _ in engines]
    # A case that takes long is one of many batches: its sum is steady, and its rounds are few.
    rounds = options.rounds if len(batches) == 1 else options.long_rounds
    for _ in range(rounds):
        for k in range(len(engines)):
            # A pool that spins between calls does so for up to half a second: "pause" is slow here.
            time.sleep(options.pause)
            for _ in range(3 if first[k] < 1 else 0):
                once(k)
            for _ in range(max(1, min(40, int(0.1 / first[k])))):
                seconds[k].append(once(k))
    return seconds


def check_equal(engines, batch):
    """All engines must compute the same thing, or their times mean nothing."""
    values = [engine.hidden(engine.prepare(batch)) for engine in engines]
    largest = float(numpy.abs(values[0]).max())
    for engine, value in zip(engines, values):
        difference = float(numpy.abs(value - values[0]).max()) / largest
        print(f"{engine.name}: differs by {difference:.1e} of the largest number")
        if not difference < MAY_DIFFER[engine.precision]:
            sys.exit(f"{engine.name} does not compute what {engines[0].name} computes")


def cpu_name():
    facts = {}
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        key, _, value = line.partition(":")
        facts.setdefault(key.strip(), value.strip())
    if "model name" not in facts:
        return platform.processor()
    return f"{facts['model name']} (family {facts['cpu family']}, model {facts['model']})"


def versions():
    found = {}
    for package in ("onnxruntime", "openvino", "ctranslate2", "torch", "transformers"):
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            pass
    return found


def best_of(row, kind):
    """(seconds, name) of the fastest setting of a kind."""
    return min((e["median_s"], name) for name, e in row["engines"].items() if e["kind"] == kind)


def print_tables(results, engines):
    for precision in PRECISIONS:
        kinds = list(dict.fromkeys(e.kind for e in engines if e.precision == precision))
        if not kinds:
            continue
        print(f"\n{precision}; ms a run, or for sentences tokens/s; the best number of threads and "
              "setting of each\n")
        print("| case | " + " | ".join(kinds) + " | best peer / attend |")
        print("|---|" + "---:|" * (len(kinds) + 1))
        for row in results:
            best = [best_of(row, kind)[0] for kind in kinds]
            if row["batches"] > 1:
                cells = [f"{row['tokens'] / seconds:,.0f}" for seconds in best]
            else:
                cells = [f"{seconds * 1e3:.3f}" for seconds in best]
            has_both = kinds[0] == f"attend {precision}" and len(best) > 1
            ratio = f"{min(best[1:]) / best[0]:.2f}" if has_both else ""
            print(f"| {row['case']} | " + " | ".join(cells) + f" | {ratio} |")
    print("", flush=True)


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--driver", required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--folder", required=True, help="with onnx, ctranslate2, minilm")
    parser.add_argument("--sentences", help="one sentence a line, before the first tab")
    parser.add_argument("--threads", type=int, nargs="+", default=[2, 1])
    parser.add_argument("--precision", nargs="+", default=list(PRECISIONS), choices=PRECISIONS)
    parser.add_argument("--engines", nargs="+", help="only these libraries beside attend")
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--long-rounds", type=int, default=3, help="rounds of the sentences")
    parser.add_argument("--pause", type=float, default=0.5, help="seconds between turns")
    parser.add_argument("--isa", help="limits attend's instruction set")
    parser.add_argument("--case", help="only the cases whose name contains this")
    parser.add_argument("--json", help="where the figures go")
    return parser.parse_args()


def main():
    options = parse_options()
    report = {"cpu": cpu_name(), "date": datetime.datetime.now().isoformat(timespec="seconds"),
              "versions": versions(), "results": []}
    print(f"CPU: {report['cpu']}; " + ", ".join(f"{k} {v}" for k, v in report["versions"].items()))
    engines = make_engines(options)
    check_equal(engines, [[101, 1045, 2387, 1037, 2387, 102], [101, 7592, 102]])
    for name, batches in make_cases(options):
        seconds = time_case(engines, batches, options)
        row = {"case": name, "batches": len(batches),
               "tokens": sum(len(s) for batch in batches for s in batch), "engines": {}}
        for engine, times in zip(engines, seconds):
            row["engines"][engine.name] = {
                "kind": engine.kind, "precision": engine.precision, "threads": engine.threads,
                "median_s": statistics.median(times), "fastest_s": min(times), "runs": len(times)}
        report["results"].append(row)
        print(f"{name}: " + "; ".join(f"{n} {e['median_s'] * 1e3:.3f} ms"
                                      for n, e in row["engines"].items()), flush=True)
        if options.json:
            pathlib.Path(options.json).write_text(json.dumps(report, indent=1) + "\n")
    print_tables(report["results"], engines)
    for engine in engines:
        engine.close()


if __name__ == "__main__":
    main()
