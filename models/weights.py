"""What all training here shares: int8 weights as attend's converter makes them, and the clock.
"""

import json
import os
import time

import numpy as np
import torch
from safetensors.torch import save_file


def quantise(weight):
    """Symmetric int8 per row: q and scale, by the rule that attend's converter uses."""
    weight = weight.numpy()
    scale = (np.abs(weight).max(axis=1) / np.float32(127)).astype(np.float32)
    safe = np.where(scale > 0, scale, np.float32(1))
    q = np.clip(np.rint(weight / safe[:, None]), -127, 127).astype(np.int8)
    return q, scale


def dequantised(state):
    """`state` with every matrix replaced by what its int8 form stands for."""
    out = {}
    for name, tensor in state.items():
        if tensor.dim() == 2:
            q, scale = quantise(tensor)
            tensor = torch.from_numpy(q.astype(np.float32) * scale[:, None])
        out[name] = tensor.contiguous()
    return out


def check_quantised(state):
    """The largest difference of scales in units of the last place; q must not differ at all."""
    worst = 0.0
    for name, tensor in state.items():
        if tensor.dim() != 2:
            continue
        q, scale = quantise(tensor)
        for_dequantised = torch.from_numpy(q.astype(np.float32) * scale[:, None])
        q2, scale2 = quantise(for_dequantised)
        if not np.array_equal(q, q2):
            raise SystemExit(f"{name}: quantising again gives another q")
        worst = max(worst, float((np.abs(scale2 - scale) / np.spacing(scale)).max()))
    return worst


def stored_bytes(state):
    """The size of `state` with int8 matrices: an f32 scale per row, all else f32."""
    return sum(t.numel() + 4 * t.shape[0] if t.dim() == 2 else 4 * t.numel()
               for t in state.values())


def write_weights(path, state):
    """`state` as a safetensors file that is whole whenever it is there."""
    save_file({name: t.contiguous() for name, t in state.items()}, path + ".new",
              metadata={"format": "pt"})
    os.replace(path + ".new", path)


def write_json(path, value, indent=2):
    with open(path, "w", encoding="utf-8") as out:
        json.dump(value, out, indent=indent)
        out.write("\n")


def read_json(path):
    with open(path, encoding="utf-8") as text:
        return json.load(text)


def make_log(folder):
    """A function that prints a line and adds it to log.txt of `folder`, which it makes."""
    os.makedirs(folder, exist_ok=True)

    def log(line):
        print(line, flush=True)
        with open(os.path.join(folder, "log.txt"), "a", encoding="utf-8") as out:
            out.write(line + "\n")

    return log


class Mean:
    """A moving average of a model's weights, brought up to date at every fourth call."""

    EVERY = 4

    def __init__(self, model, decay):
        self.names = [name for name, _ in model.named_parameters()]
        self.live = [p.detach() for p in model.parameters()]
        self.values = [p.clone() for p in self.live]
        self.decay, self.calls = decay, 0

    def update(self):
        self.calls += 1
        if self.calls % self.EVERY == 0:
            decay = min(self.decay, (1 + self.calls) / (10 + self.calls)) ** self.EVERY
            torch._foreach_lerp_(self.values, self.live, 1 - decay)

    def state(self, without=()):
        """Copies of the average by name, but of those that begin with one of `without`."""
        return {n: v.clone() for n, v in zip(self.names, self.values)
                if not n.startswith(tuple(without))}


def learning_rate(step, total, start, args):
    """The share of the peak rate at `step`; 0 when training is to end.

    It rises over the warm-up and falls in a straight line with the steps or, if that is further on,
    with the clock.
    """
    done = step / total
    if args.minutes:
        done = max(done, (time.time() - start) / 60 / args.minutes)
    if done >= 1:
        return 0.0
    return min(1.0, (step + 1) / (args.warmup * total)) * max(0.01, 1 - done)


def clip(parameters, longest):
    """Shortens the gradient to `longest`; leaves the memory alone when it is shorter."""
    grads = [p.grad for p in parameters if p.grad is not None]
    length = torch.nn.utils.get_total_norm(grads).item()
    if length > longest:
        torch._foreach_mul_(grads, longest / length)


def take_step(loss, optimizer, parameters, longest, mean):
    """One step down the gradient of `loss`, shortened to `longest`; `mean` follows."""
    loss.backward()
    clip(parameters, longest)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    mean.update()


def begin(args):
    """Threads and seed as the arguments have them, and the log of the folder --out."""
    torch.set_num_threads(args.threads)
    torch.manual_seed(args.seed)
    return make_log(args.out)
