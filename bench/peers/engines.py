"""The peers, each in a process of its own, with the protocol of bench/peer_driver.cc.

    engines.py ENGINE FOLDER THREADS

ENGINE is a name of ENGINES; FOLDER has onnx/, ctranslate2/ and minilm/. The first answer is "ready",
or "error: ..." where this machine or version cannot run the engine. Each command is a line:

    batch NAME B L1 ... LB ID ...   keeps a batch under NAME             -> ok
    run NAME                        runs it once                         -> nanoseconds
    hidden NAME                     runs it once                         -> its hidden states

A new peer is one class with `prepare(sequences)`, `run(batch)` and `hidden(batch)` (the hidden states
of all real tokens, [T, D]), and a line in ENGINES. Preparing is not timed.
"""

import pathlib
import sys
import time

import numpy


def padded(sequences):
    """[B, longest] ids, mask and types as int64."""
    shape = (len(sequences), max(map(len, sequences)))
    ids, mask = numpy.zeros(shape, numpy.int64), numpy.zeros(shape, numpy.int64)
    for row, sequence in enumerate(sequences):
        ids[row, :len(sequence)] = sequence
        mask[row, :len(sequence)] = 1
    return {"input_ids": ids, "attention_mask": mask, "token_type_ids": numpy.zeros(shape, numpy.int64)}


def unpadded(rows, sequences):
    return numpy.concatenate([row[:len(s)] for row, s in zip(rows, sequences)])


class OnnxRuntime:
    def __init__(self, folder, threads, graph):
        import onnxruntime
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
        self.session = onnxruntime.InferenceSession(str(folder / "onnx" / graph), options,
                                                    providers=["CPUExecutionProvider"])
        self.inputs = {given.name for given in self.session.get_inputs()}

    def prepare(self, sequences):
        feed = {name: a for name, a in padded(sequences).items() if name in self.inputs}
        return feed, sequences

    def run(self, batch):
        return self.session.run(None, batch[0])[0]

    def hidden(self, batch):
        return unpadded(self.run(batch), batch[1])


class OpenVino:
    def __init__(self, folder, threads, precision):
        import openvino
        core = openvino.Core()
        if precision == "bf16" and "BF16" not in core.get_property("CPU", "OPTIMIZATION_CAPABILITIES"):
            raise RuntimeError("this CPU has no BF16 for OpenVINO")
        model = core.compile_model(str(folder / "onnx" / "plain.onnx"), "CPU", {
            "PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": precision,
            "INFERENCE_NUM_THREADS": threads})
        self.request = model.create_infer_request()
        self.names = {name for given in model.inputs for name in given.names}

    def prepare(self, sequences):
        feed = {name: a for name, a in padded(sequences).items() if name in self.names}
        return feed, sequences

    def run(self, batch):
        return self.request.infer(batch[0], share_inputs=True, share_outputs=True)[0]

    def hidden(self, batch):
        return unpadded(self.run(batch), batch[1])


class CTranslate2:
    def __init__(self, folder, threads, compute_type):
        import ctranslate2
        if compute_type not in ctranslate2.get_supported_compute_types("cpu"):
            raise RuntimeError(f"ctranslate2 has no {compute_type} here")
        self.encoder = ctranslate2.Encoder(str(folder / "ctranslate2"), device="cpu",
                                           compute_type=compute_type, intra_threads=threads,
                                           inter_threads=1)

    def prepare(self, sequences):
        return [list(map(int, s)) for s in sequences]  # it pads, or not, for itself

    def run(self, batch):
        return self.encoder.forward_batch(batch).last_hidden_state

    def hidden(self, batch):
        return unpadded(numpy.array(self.run(batch)), batch)


class PyTorch:
    def __init__(self, folder, threads, precision):
        import torch
        from export_onnx import load
        torch.set_num_threads(threads)
        self.torch = torch
        self.model = load(folder / "minilm", sdpa=True)[1]
        self.type = {"f32": torch.float32, "bf16": torch.bfloat16}[precision]
        self.model = self.model.to(self.type)

    def prepare(self, sequences):
        feed = padded(sequences)
        mask = self.torch.tensor(feed["attention_mask"])
        mask = None if bool(mask.all()) else mask  # an all-ones mask would only cost time
        return [self.torch.tensor(feed["input_ids"]), mask,
                self.torch.tensor(feed["token_type_ids"])], sequences

    def run(self, batch):
        with self.torch.inference_mode():
            return self.model(*batch[0])

    def hidden(self, batch):
        return unpadded(self.run(batch).float().numpy(), batch[1])


ENGINES = {  # name: class, and what it is told
    "onnxruntime-f32": (OnnxRuntime, "plain.onnx"),
    "onnxruntime-f32-fused": (OnnxRuntime, "fused.onnx"),
    "onnxruntime-int8-fused": (OnnxRuntime, "int8.onnx"),
    "openvino-f32": (OpenVino, "f32"),
    "openvino-bf16": (OpenVino, "bf16"),
    "ctranslate2-f32": (CTranslate2, "float32"),
    "ctranslate2-int8": (CTranslate2, "int8_float32"),
    "torch-f32": (PyTorch, "f32"),
    "torch-bf16": (PyTorch, "bf16"),
}


def answer(engine, batches, line):
    words = line.split()
    if words[0] == "batch":
        numbers = list(map(int, words[2:]))
        lengths, ids = numbers[1:1 + numbers[0]], iter(numbers[1 + numbers[0]:])
        batches[words[1]] = engine.prepare([[next(ids) for _ in range(n)] for n in lengths])
        return "ok"
    batch = batches[words[1]]
    if words[0] == "hidden":
        return " ".join(map(repr, engine.hidden(batch).ravel().tolist()))
    start = time.perf_counter_ns()
    engine.run(batch)
    return str(time.perf_counter_ns() - start)


def main():
    name, folder, threads = sys.argv[1], pathlib.Path(sys.argv[2]), int(sys.argv[3])
    kind, told = ENGINES[name]
    try:
        engine = kind(folder, threads, told)
    except Exception as error:  # whatever a library raises: its first line says why
        print("error: " + (str(error).splitlines() or [repr(error)])[0], flush=True)
        return
    print("ready", flush=True)
    batches = {}
    for line in sys.stdin:
        print(answer(engine, batches, line), flush=True)


if __name__ == "__main__":
    main()
