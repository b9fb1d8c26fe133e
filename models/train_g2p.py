#!/usr/bin/env python3
"""Trains attend's spelling-to-sounds model: English words to ARPAbet, with stress.

    python3 train_g2p.py --data DATA --out RUN

DATA holds train.tsv and dev.tsv: a word, a tab, its pronunciations separated by " | ", from the CMU
Pronouncing Dictionary ((c) 1993-2015 Carnegie Mellon University, BSD-style licence). Training is on
train, from random weights; dev was looked at to choose the sizes. export_g2p.py makes the files for
conversion and tests from RUN, and measures all of dev with beam search.

What makes it learn within minutes:

- A second loss, CTC (two frames a letter) on the encoder's output through a matrix that is thrown
  away: the encoder learns which letters sound how before the decoder knows where to look.
- Heads of self-attention begin with a look at one neighbour each: the tables of the relative
  positions are not random at first.
- Momentum made orthogonal (Muon) for matrices, AdamW for the rest.
- One of the listed pronunciations at random each time, and a moving average of the weights.

The weights that ship have, with beam search after int8, 31.89 % of dev's 12,441 words and 8.36 % of
the sounds wrong (27.02 and 6.40 % without stress). They were made in 8.8 epochs, 4,810 steps, 26
CPU minutes of one thread of an AMD EPYC (family 25, model 1, AVX2) that other work was done on: the
first half epoch with `--minutes 98 --batch 2560 --muon-lr 0.02 --lr 3e-3`, then, resumed, with
`--minutes 97` and the defaults, from minute 54 on with `--minutes 92`. Errors were still falling
as the rate did: after 1 epoch greedy search had 48 % of 1,000 words wrong, after 2 epochs 42, after
4 epochs 36, at the end 30. The clock in the schedule makes a repetition differ.
"""

import argparse
import collections
import os
import random
import sys
import time

import torch
import torch.nn.functional as F
from safetensors.torch import load_file
from torch import nn

import g2p_model as gm
from weights import Mean, begin, write_json, write_weights


def make_config(args, vocab):
    return {
        "model_type": "t5", "architectures": ["T5ForConditionalGeneration"],
        "vocab_size": len(vocab), "d_model": args.width, "d_kv": args.width // args.heads,
        "d_ff": args.ffn, "num_layers": args.layers, "num_decoder_layers": args.decoder_layers,
        "num_heads": args.heads, "relative_attention_num_buckets": 32,
        "relative_attention_max_distance": 32, "dropout_rate": args.dropout,
        "layer_norm_epsilon": 1e-6, "feed_forward_proj": "relu", "is_encoder_decoder": True,
        "tie_word_embeddings": False, "pad_token_id": gm.PAD, "eos_token_id": gm.EOS,
        "decoder_start_token_id": gm.PAD, "use_cache": True,
    }


# ---------------------------------------------------------------------------------------------
# Batches
# ---------------------------------------------------------------------------------------------


def make_batches(words, ids, rng, size):
    """Letters, begun and wanted sounds of batches of words of one length, about `size` tokens."""
    groups = collections.defaultdict(list)
    for w in words:
        sounds = [ids[s] for s in rng.choice(w.sounds)]
        groups[len(w.spelling)].append((len(sounds) + rng.uniform(0, 1.5), rng.random(), w.spelling,
                                        sounds))
    out = []
    for length, group in groups.items():
        group.sort()
        number = max(1, size // (length + 1))
        parts = max(1, round(len(group) / number))
        for p in range(parts):
            chosen = group[p * len(group) // parts:(p + 1) * len(group) // parts]
            width = max(len(sounds) for *_, sounds in chosen) + 1
            letters = torch.tensor([[ids[c] for c in s] + [gm.EOS] for _, _, s, _ in chosen])
            wanted = torch.tensor([t + [gm.EOS] + [gm.PAD] * (width - 1 - len(t))
                                   for *_, t in chosen])
            lengths = torch.tensor([len(t) for *_, t in chosen])
            out.append((letters, wanted, lengths))
    rng.shuffle(out)
    return out


def step_loss(model, ctc, batch, args):
    """The mean loss of a sound, and a share of CTC's (see the head of this file)."""
    letters, wanted, lengths = batch
    memory = model.encode(letters)
    begun = F.pad(wanted[:, :-1], (1, 0), value=gm.PAD)
    logits = model.decode(begun, memory).flatten(0, 1)
    loss = F.cross_entropy(logits, wanted.flatten(), ignore_index=gm.PAD,
                           label_smoothing=args.smooth)
    plain = loss.item()
    if args.ctc:
        b, t, _ = memory.shape
        frames = ctc(memory).view(b, 2 * t, -1).log_softmax(-1).transpose(0, 1)
        aligned = F.ctc_loss(frames, wanted, torch.full((b,), 2 * t), lengths, blank=gm.PAD,
                             reduction="sum", zero_infinity=True)
        loss = loss + args.ctc * aligned / (lengths.sum() + b)
    return loss, plain


# ---------------------------------------------------------------------------------------------
# The optimiser
# ---------------------------------------------------------------------------------------------


def orthogonal(x, rounds):
    """About U V^T of every matrix U S V^T of [n, rows, columns], rows <= columns."""
    x = x / (x.norm(dim=(1, 2), keepdim=True) * 1.01 + 1e-12)
    for a, b, c in ROUNDS[:rounds]:
        gram = torch.bmm(x, x.transpose(1, 2))
        factor = torch.baddbmm(gram, gram, gram, beta=b, alpha=c)
        x = torch.baddbmm(x, factor, x, beta=a)
    return x


# Coefficients of the rounds: each is the polynomial that takes what the last one left closest to 1
# (Amsel et al., The Polar Express, arXiv 2505.16932).
ROUNDS = [(8.2872, -23.5959, 17.3004), (4.1071, -2.9478, 0.5448), (3.9487, -2.9089, 0.5518),
          (3.3184, -2.4885, 0.5100), (2.3007, -1.6689, 0.4188)]


class Muon:
    """Momentum whose matrices are made orthogonal; matrices of one shape are done together."""

    def __init__(self, parameters, unit, momentum, decay, rounds):
        self.unit, self.momentum, self.decay, self.rounds = unit, momentum, decay, rounds
        self.parameters = list(parameters)
        self.memory = [torch.zeros_like(p) for p in self.parameters]

    @torch.no_grad()
    def step(self, rate):
        groups = collections.defaultdict(list)
        torch._foreach_lerp_(self.memory, [p.grad for p in self.parameters], 1 - self.momentum)
        for p, m in zip(self.parameters, self.memory):
            update = torch.lerp(p.grad, m, self.momentum)
            parts = [update]
            # Fused projections are separate matrices.
            if p.shape[0] > p.shape[1] and p.shape[1] == self.unit and p.fused > 1:
                parts = update.split(p.shape[0] // p.fused)
            for k, part in enumerate(parts):
                tall = part.shape[0] > part.shape[1]
                part = part.T if tall else part
                first = k * part.shape[0] if len(parts) > 1 else 0
                groups[part.shape].append((p, first, tall, part))
        if self.decay:
            torch._foreach_mul_(self.parameters, 1 - rate * self.decay)
        for (rows, columns), members in groups.items():
            done = orthogonal(torch.stack([part for *_, part in members]), self.rounds)
            for (p, first, tall, _), update in zip(members, done):
                if tall:
                    p.add_(update.T, alpha=-rate * (columns / rows) ** 0.5)
                else:
                    p[first:first + rows].add_(update, alpha=-rate)


def parameters_of(model, ctc):
    """The matrices, for Muon, and the rest, for AdamW."""
    for name, p in model.named_parameters():
        p.fused = 3 if name.endswith(".qkv") else 2 if name.endswith(".cross_kv") else 1
    matrices = [p for n, p in model.named_parameters()
                if p.dim() == 2 and n not in ("shared", "lm_head") and not n.endswith("bias")]
    chosen = {id(p) for p in matrices}
    rest = [p for p in model.parameters() if id(p) not in chosen] + list(ctc.parameters())
    return matrices, rest


class Run:
    """What a training can be stopped and resumed with."""

    def __init__(self, model, ctc, args):
        self.model, self.ctc, self.args = model, ctc, args
        matrices, rest = parameters_of(model, ctc)
        self.muon = Muon(matrices, args.width, args.momentum, args.decay, args.rounds)
        self.adam = torch.optim.AdamW(rest, betas=(0.9, 0.98), weight_decay=0.0, fused=True)
        self.mean = Mean(model, args.ema)
        self.step, self.epoch, self.start = 0, 0.0, time.time()
        self.path = os.path.join(args.out, "state.pt")

    def minutes(self):
        return (time.time() - self.start) / 60

    def done(self):
        """How much of the training is over, 0 to 1."""
        by_epoch = self.epoch / self.args.epochs if self.args.epochs else 0
        return max(self.minutes() / self.args.minutes, by_epoch)

    def save(self):
        torch.save({"model": self.model.state_dict(), "ctc": self.ctc.state_dict(),
                    "adam": self.adam.state_dict(), "muon": self.muon.memory,
                    "mean": self.mean.values, "step": self.step, "epoch": self.epoch,
                    "minutes": self.minutes()}, self.path + ".new")
        os.replace(self.path + ".new", self.path)

    def load(self):
        state = torch.load(self.path)
        self.model.load_state_dict(state["model"])
        self.ctc.load_state_dict(state["ctc"])
        self.adam.load_state_dict(state["adam"])
        self.muon.memory, self.mean.values = state["muon"], state["mean"]
        self.step, self.epoch, self.mean.calls = state["step"], state["epoch"], state["step"]
        self.start = time.time() - 60 * state["minutes"]

    def advance(self, batch):
        """One step; gives the loss of a sound."""
        args = self.args
        self.model.train()
        fall = (1 - self.done()) / (1 - args.hold)
        rate = min(1.0, (self.step + 1) / args.warmup) * min(1.0, max(fall, 0.01))
        loss, plain = step_loss(self.model, self.ctc, batch, args)
        loss.backward()
        for group in self.adam.param_groups:
            group["lr"] = args.lr * rate
        self.adam.step()
        self.muon.step(args.muon_lr * rate)
        self.model.zero_grad(set_to_none=True)
        self.ctc.zero_grad(set_to_none=True)
        self.mean.update()
        self.step += 1
        return plain


def measure(run, dev, vocab):
    """Saves the moving average, and says what greedy search with it gives on the words `dev`."""
    model = gm.Speller(run.model.config)
    model.load_state_dict(run.mean.state())
    save_model(run.args.out, model.config, model.state_dict(), vocab)
    found = gm.greedy(model, [w.spelling for w in dev], vocab)
    stressed, plain = gm.errors(found, dev), gm.errors(found, dev, gm.without_stress)
    return (f"words and sounds wrong {stressed[0]:.1f} {stressed[1]:.2f} "
            f"without stress {plain[0]:.1f} {plain[1]:.2f}")


def train(run, words, dev, vocab, log):
    rng = random.Random(run.args.seed + run.step)
    ids = {piece: i for i, piece in enumerate(vocab)}
    few = dev[::max(1, len(dev) // run.args.dev_words)][:run.args.dev_words]
    saved, losses = time.time(), []

    def report():
        log(f"epoch {run.epoch:.2f} step {run.step} loss {sum(losses) / max(1, len(losses)):.4f} "
            f"{measure(run, few, vocab)} done {run.done():.3f} minutes {run.minutes():.1f} "
            f"cpu {time.process_time() / 60:.1f}")
        run.save()
        losses.clear()

    while run.done() < 1:
        plan = make_batches(words, ids, rng, run.args.batch)
        for batch in plan:
            if run.done() >= 1:
                break
            losses.append(run.advance(batch))
            run.epoch += 1 / len(plan)
            if time.time() - saved > 60 * run.args.save_minutes:
                report()
                saved = time.time()
    report()


def save_model(folder, config, state, vocab):
    write_weights(os.path.join(folder, "model.safetensors"), gm.to_hugging_face(state, config))
    write_json(os.path.join(folder, "config.json"), config)
    write_json(os.path.join(folder, "vocab.json"), vocab, None)


def parse_args():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--data", required=True, help="folder of train.tsv and dev.tsv")
    p.add_argument("--out", required=True)
    p.add_argument("--start", help="a folder that training left, to start from its weights")
    p.add_argument("--resume", action="store_true", help="go on where --out's state stopped")
    p.add_argument("--width", type=int, default=128)
    p.add_argument("--heads", type=int, default=4)
    p.add_argument("--ffn", type=int, default=512)
    p.add_argument("--layers", type=int, default=5)
    p.add_argument("--decoder-layers", type=int, default=1)
    p.add_argument("--minutes", type=float, default=100, help="the schedule ends then")
    p.add_argument("--epochs", type=float, default=0, help="or then, if that is earlier; 0: no")
    p.add_argument("--batch", type=int, default=1536, help="letters per batch")
    p.add_argument("--lr", type=float, default=2.5e-3)
    p.add_argument("--muon-lr", type=float, default=0.017)
    p.add_argument("--momentum", type=float, default=0.95)
    p.add_argument("--decay", type=float, default=0.05)
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--warmup", type=int, default=150, help="steps")
    p.add_argument("--hold", type=float, default=0.2, help="share of the time at the full rate")
    p.add_argument("--dropout", type=float, default=0.05)
    p.add_argument("--smooth", type=float, default=0.05)
    p.add_argument("--ctc", type=float, default=0.3)
    p.add_argument("--ema", type=float, default=0.998)
    p.add_argument("--dev-words", type=int, default=1000)
    p.add_argument("--save-minutes", type=float, default=5)
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--seed", type=int, default=1)
    return p.parse_args()


def main():
    args = parse_args()
    log = begin(args)
    words = gm.read_words(os.path.join(args.data, "train.tsv"))
    dev = gm.read_words(os.path.join(args.data, "dev.tsv"))
    vocab = gm.make_vocab(words)
    model = gm.Speller(make_config(args, vocab))
    if args.start:
        model.load_state_dict(gm.from_hugging_face(
            load_file(os.path.join(args.start, "model.safetensors")), model.config))
    ctc = nn.Linear(args.width, 2 * len(vocab))
    shown = {k: v for k, v in vars(args).items() if k not in ("data", "out", "start")}
    log(f"arguments {shown} parameters {sum(p.numel() for p in model.parameters())}")
    run = Run(model, ctc, args)
    if args.resume and os.path.exists(run.path):
        run.load()
        log(f"resumed at epoch {run.epoch:.2f}, step {run.step}, minute {run.minutes():.1f}")
    train(run, words, dev, vocab, log)


if __name__ == "__main__":
    sys.exit(main())
