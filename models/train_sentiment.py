#!/usr/bin/env python3
"""Trains attend's sentiment classifier: English, positive, neutral or negative.

    python3 train_sentiment.py --data DATA --base BASE --out RUN

DATA holds train.tsv and dev.tsv: mean rating from -4 to 4, source, text, tab-separated; they are
the texts that C.J. Hutto and E. Gilbert had rated for VADER (ICWSM 2014), as published with
vaderSentiment (MIT, (c) 2016 C.J. Hutto): film and product reviews, news, tweets. BASE holds
config.json, tokenizer.json and model.safetensors of all-MiniLM-L6-v2 (Apache-2.0). Training is on
train; dev chose the epoch. export_sentiment.py makes the files for conversion and tests from RUN.

The model: the first 4 of MiniLM's 6 layers (384 wide, 12 heads), of their feed-forward networks the
896 strongest of 1,536 inner units, and the 10,800 most useful of its 30,522 pieces: 9.8 MB with
int8 matrices. bert.py has what it shares with the tagger.

- About twenty people rated a text, so a mean near a limit says little about the side of it: labels
  are soft there (soft_labels() of sentiment_model.py).
- A second head learns the rating itself, and is thrown away.
- Pieces are hidden at random and the mark at the end of a text left out, so that short and
  careless input works too.
- Dev is measured with a moving average of the weights, after int8.

The weights that ship got 75.20 % of dev's 2,371 labels right after int8, and 88.88 % of the 1,889
texts that are not neutral on the right side. They were made in two runs: `--epochs 2 --minutes 50
--looks 4`, stopped after 715 steps (72.1 and 85.8 %), and from there `--start FIRST --epochs 3
--minutes 40 --looks 3 --lr 1.5e-4 --warmup 0.03 --hide 0.04 --ema 0.995`, whose 952nd step was
kept: 16 CPU minutes in all, one thread of an AMD EPYC (family 25, model 1, AVX2) that other work
was done on. Accuracy was still rising. The clock in the schedule makes a repetition differ.
"""

import argparse
import os
import random
import sys
import time

import torch
import torch.nn.functional as F

from bert import (MASK, PAD, UNK, add_training_arguments, batches, build_tokenizer, choose_vocab,
                  load_vocab, padded, parameter_groups, save_checkpoint, start_weights)
from sentiment_model import (LABELS, MAX_PIECES, Sentiment, encode, figures, predict, read_texts,
                             soft_labels)
from weights import Mean, begin, dequantised, learning_rate, read_json, stored_bytes, take_step

HEADS = ("classifier", "rating")


def make_config(args, base, vocab_size):
    return {
        "model_type": "bert", "architectures": ["BertForSequenceClassification"],
        "vocab_size": vocab_size, "hidden_size": base["hidden_size"],
        "num_hidden_layers": args.layers, "num_attention_heads": base["num_attention_heads"],
        "intermediate_size": args.ffn or base["intermediate_size"], "hidden_act": "gelu",
        "hidden_dropout_prob": args.dropout, "attention_probs_dropout_prob": 0.0,
        "layer_norm_eps": 1e-12, "max_position_embeddings": MAX_PIECES, "type_vocab_size": 2,
        "pad_token_id": PAD, "position_embedding_type": "absolute",
        "problem_type": "single_label_classification",
        "id2label": {str(i): label for i, label in enumerate(LABELS)},
        "label2id": {label: i for i, label in enumerate(LABELS)},
        "description": "English sentiment: positive, neutral or negative. Trained on the rated "
        "texts of vaderSentiment (MIT, (c) 2016 C.J. Hutto) from all-MiniLM-L6-v2 (Apache-2.0).",
    }


def vary(ids, marks, rng, args):
    """The pieces of a text, some hidden, perhaps without the mark at its end."""
    ids = list(ids)
    if len(ids) > 4 and ids[-2] in marks and rng.random() < args.drop_final:
        del ids[-2]
    for i in range(1, len(ids) - 1):
        if rng.random() < args.hide:
            ids[i] = UNK if rng.random() < 0.5 else MASK
    return ids


def step_loss(model, ids, ratings, args):
    """The loss of the labels, and a share of the rating's."""
    hidden = model.pooled(ids)
    loss = F.cross_entropy(model.classifier(hidden), soft_labels(ratings, args.soft),
                           label_smoothing=args.smooth)
    if args.rating_weight:
        loss = loss + args.rating_weight * F.mse_loss(model.rating(hidden)[:, 0], ratings / 2)
    return loss


def train(model, tokenizer, texts, dev, args, log):
    """Trains, and saves the epoch with the best sum of both figures on dev."""
    rng = random.Random(args.seed)
    ids, dev_ids = encode(tokenizer, [t.text for t in texts]), encode(tokenizer,
                                                                      [t.text for t in dev])
    ratings = torch.tensor([t.rating for t in texts])
    marks = {tokenizer.token_to_id(mark) for mark in ".!?"}
    optimizer = torch.optim.AdamW(parameter_groups(model, HEADS, args), betas=(0.9, 0.98),
                                  fused=True)
    mean = Mean(model, args.ema)
    best, step, total, rate, start = (0.0, 0.0), 0, None, 1.0, time.time()
    for epoch in range(1, args.epochs + 1):
        varied = [vary(row, marks, rng, args) for row in ids]
        plan = batches([len(row) for row in varied], args.batch, rng)
        total = total or len(plan) * args.epochs
        losses, looks = [], [len(plan) * (i + 1) // args.looks for i in range(args.looks)]
        for at, batch in enumerate(plan, 1):
            model.train()
            rate = learning_rate(step, total, start, args)
            if rate > 0:
                for group in optimizer.param_groups:
                    group["lr"] = group["peak"] * rate
                loss = step_loss(model, padded([varied[i] for i in batch]), ratings[batch], args)
                take_step(loss, optimizer, model.parameters(), args.clip, mean)
                step += 1
                losses.append(loss.item())
            if rate > 0 and at not in looks:
                continue
            state = mean.state(without=("rating",))
            copy = Sentiment(model.config)
            copy.load_state_dict(dequantised(state))
            found = figures(predict(copy, dev_ids), dev)
            log(f"epoch {epoch} steps {step} loss {sum(losses) / max(1, len(losses)):.4f} dev int8 "
                f"labels {found[0]:.2f} sides {found[1]:.2f} "
                f"minutes {(time.time() - start) / 60:.1f} cpu {time.process_time() / 60:.1f}")
            losses = []
            if sum(found) > sum(best):
                best = found
                save_checkpoint(args.out, model.config, state, tokenizer,
                                {"labels": found[0], "sides": found[1], "epoch": epoch})
            if rate == 0.0:
                return best
    return best


def parse_args():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--data", required=True, help="folder of train.tsv and dev.tsv")
    add_training_arguments(p, ffn=896, rows=10800, epochs=5, batch=900, lr=1.2e-4, smooth=0.02,
                           threads=1)
    p.add_argument("--looks", type=int, default=2, help="measurements on dev an epoch")
    p.add_argument("--soft", type=float, default=0.2, help="width of the labels' limits")
    p.add_argument("--rating-weight", type=float, default=1.0)
    p.add_argument("--drop-final", type=float, default=0.15, help="texts without last mark")
    p.add_argument("--hide", type=float, default=0.08, help="pieces hidden")
    return p.parse_args()


def main():
    args = parse_args()
    log = begin(args)
    texts = read_texts(os.path.join(args.data, "train.tsv"))
    dev = read_texts(os.path.join(args.data, "dev.tsv"))
    base_vocab = load_vocab(os.path.join(args.base, "tokenizer.json"))
    vocab = choose_vocab(base_vocab, [t.text for t in texts], args.rows or len(base_vocab))
    config = make_config(args, read_json(os.path.join(args.base, "config.json")), len(vocab))
    model = Sentiment(config, rating=True)
    start_weights(model, args.base, base_vocab, vocab, args.seed, args.start)
    kept = {n: p for n, p in model.state_dict().items() if not n.startswith("rating")}
    shown = {k: v for k, v in vars(args).items() if k not in ("data", "base", "out", "start")}
    log(f"arguments {shown} started from {'a checkpoint' if args.start else 'the base'}")
    log(f"vocabulary {len(vocab)} weights {stored_bytes(kept) / 1e6:.3f} MB as int8")
    best = train(model, build_tokenizer(vocab), texts, dev, args, log)
    log(f"best on dev after int8: labels {best[0]:.2f} sides {best[1]:.2f}")


if __name__ == "__main__":
    sys.exit(main())
