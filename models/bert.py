"""What training and export of the models of BERT's kind share: pieces, the model, its start, files.

The names of the weights are Hugging Face's. Training starts from all-MiniLM-L6-v2, of which it
keeps the pieces, layers and inner units that pay most.
"""

import collections
import json
import math
import os

import torch
import torch.nn.functional as F
from safetensors.torch import load_file
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers
from tokenizers import processors
from torch import nn

from weights import write_json, write_weights

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
PAD, UNK, CLS, SEP, MASK = range(5)


# ---------------------------------------------------------------------------------------------
# Pieces
# ---------------------------------------------------------------------------------------------


def load_vocab(path):
    """The pieces of a tokenizer.json in the order of their ids."""
    with open(path, encoding="utf-8") as text:
        vocab = json.load(text)["model"]["vocab"]
    return sorted(vocab, key=vocab.get)


def build_tokenizer(vocab):
    """The WordPiece tokenizer of BERT (uncased) over `vocab`, a list of pieces."""
    tokenizer = Tokenizer(models.WordPiece({piece: i for i, piece in enumerate(vocab)},
                                           unk_token="[UNK]", continuing_subword_prefix="##",
                                           max_input_chars_per_word=100))
    tokenizer.normalizer = normalizers.BertNormalizer(clean_text=True, handle_chinese_chars=True,
                                                      strip_accents=None, lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS]:0 $A:0 [SEP]:0", pair="[CLS]:0 $A:0 [SEP]:0 $B:1 [SEP]:1",
        special_tokens=[("[CLS]", vocab.index("[CLS]")), ("[SEP]", vocab.index("[SEP]"))])
    tokenizer.decoder = decoders.WordPiece(prefix="##", cleanup=True)
    tokenizer.add_special_tokens(
        [AddedToken(piece, special=True, normalized=False) for piece in SPECIAL])
    return tokenizer


class Pieces:
    """Cuts single words into the ids of pieces, and remembers them."""

    def __init__(self, tokenizer):
        self.tokenizer = tokenizer
        self.vocab = tokenizer.get_vocab()
        self.known = {}

    def __call__(self, word):
        ids = self.known.get(word)
        if ids is None:
            ids = self.tokenizer.encode(word, add_special_tokens=False).ids or [UNK]
            self.known[word] = ids
        return ids

    def cut_short(self, word, longest):
        """The pieces of a plain word when none may be longer than `longest` characters."""
        text = word.lower()
        if not (text.isascii() and text.isalpha()):
            return self(word)
        ids, start = [], 0
        while start < len(text):
            for end in range(min(len(text), start + longest), start, -1):
                piece = ("##" if start else "") + text[start:end]
                if piece in self.vocab:
                    break
            else:
                return self(word)
            ids.append(self.vocab[piece])
            start = end
        return ids


def choose_vocab(base, texts, rows):
    """The `rows` most useful pieces of the base model's vocabulary `base` (a list) for `texts`.

    Always in: the special tokens, and every printable ASCII character alone and after "##" (in
    lower case). Then come the pieces with the highest expected frequency: how often the training
    text uses them, plus a share of how often English does, for which the place in the base
    vocabulary, ordered by frequency, stands in (about 1 / place). The weights come from how
    often the pieces of one half of the training text return in the other.
    """
    reference = build_tokenizer(base)
    counts = collections.Counter()
    for encoded in reference.encode_batch(texts, add_special_tokens=False):
        counts.update(encoded.tokens)

    def bare(piece):
        return piece[2:] if piece.startswith("##") and len(piece) > 2 else piece

    def wanted(piece):
        if piece in SPECIAL or piece.startswith("[unused"):
            return False
        return counts[piece] > 0 or all(ord(c) < 0x250 or 0x2010 <= ord(c) < 0x20d0
                                        for c in bare(piece))

    def score(place):
        piece = base[place]
        if len(bare(piece)) == 1 and ord(bare(piece)) < 128:
            return math.inf
        prior = 6000.0 / max(place, 3000)
        # A piece seen once is worth little more than its place says; seen often, its count.
        return max(counts[piece] - 0.6, 0.0) + 0.35 * prior

    places = [i for i, piece in enumerate(base) if wanted(piece)]
    places.sort(key=lambda i: (-score(i), i))
    kept = sorted(places[:rows - len(SPECIAL)])
    return SPECIAL + [base[i] for i in kept]


# ---------------------------------------------------------------------------------------------
# The model
# ---------------------------------------------------------------------------------------------


class Node(nn.Module):
    """A module with the given children, to give parameters the names that readers expect."""

    def __init__(self, /, **children):
        super().__init__()
        for name, child in children.items():
            self.add_module(name, child)


def norm(config):
    return nn.LayerNorm(config["hidden_size"], eps=config["layer_norm_eps"])


class Layer(nn.Module):
    def __init__(self, config):
        super().__init__()
        d, f = config["hidden_size"], config["intermediate_size"]
        self.heads = config["num_attention_heads"]
        self.p = config["hidden_dropout_prob"]
        self.attention = Node(
            self=Node(query=nn.Linear(d, d), key=nn.Linear(d, d), value=nn.Linear(d, d)),
            output=Node(dense=nn.Linear(d, d), LayerNorm=norm(config)))
        self.intermediate = Node(dense=nn.Linear(d, f))
        self.output = Node(dense=nn.Linear(f, d), LayerNorm=norm(config))

    def forward(self, x, mask):
        b, t, d = x.shape
        me = getattr(self.attention, "self")
        q, k, v = (lin(x).view(b, t, self.heads, d // self.heads).transpose(1, 2)
                   for lin in (me.query, me.key, me.value))
        mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        out = self.attention.output
        y = out.dense(mixed.transpose(1, 2).reshape(b, t, d))
        x = out.LayerNorm(x + F.dropout(y, self.p, self.training))
        y = self.output.dense(F.gelu(self.intermediate.dense(x)))
        return self.output.LayerNorm(x + F.dropout(y, self.p, self.training))


class Body(nn.Module):
    """The layers below the head: give it a head by adding members."""

    def __init__(self, config):
        super().__init__()
        d = config["hidden_size"]
        self.config = config
        self.p = config["hidden_dropout_prob"]
        self.bert = Node(
            embeddings=Node(
                word_embeddings=nn.Embedding(config["vocab_size"], d),
                position_embeddings=nn.Embedding(config["max_position_embeddings"], d),
                token_type_embeddings=nn.Embedding(config["type_vocab_size"], d),
                LayerNorm=norm(config)),
            encoder=Node(layer=nn.ModuleList(
                Layer(config) for _ in range(config["num_hidden_layers"]))))

    def hidden(self, ids, types):
        """Hidden states, [batch, pieces, d]; pads have id PAD, `types` None means 0."""
        e = self.bert.embeddings
        table = e.token_type_embeddings
        x = e.word_embeddings(ids) + (table.weight[0] if types is None else table(types))
        x = x + e.position_embeddings.weight[:ids.shape[1]]
        x = F.dropout(e.LayerNorm(x), self.p, self.training)
        mask = None
        pads = ids == PAD
        if pads.any():
            mask = torch.zeros(ids.shape, dtype=x.dtype).masked_fill_(pads, -1e9)[:, None, None]
        for layer in self.bert.encoder.layer:
            x = layer(x, mask)
        return x


def padded(rows):
    """[batch, longest] of the lists `rows`, the rest PAD."""
    width = max(map(len, rows))
    return torch.tensor([row + [PAD] * (width - len(row)) for row in rows])


def batches(lengths, size, rng=None):
    """Batches of places in `lengths`: about `size` pieces, pads included, of similar lengths."""
    jitter = (lambda: rng.uniform(0, 3)) if rng else (lambda: 0)
    order = sorted(range(len(lengths)), key=lambda i: lengths[i] + jitter())
    out, batch, width = [], [], 0
    for i in order:
        longest = max(width, lengths[i])
        if batch and longest * (len(batch) + 1) > size:
            out.append(batch)
            batch, longest = [], lengths[i]
        batch.append(i)
        width = longest
    out.append(batch)
    if rng:
        rng.shuffle(out)
    return out


# ---------------------------------------------------------------------------------------------
# The start and the steps
# ---------------------------------------------------------------------------------------------


def start_weights(model, base_folder, base_vocab, vocab, seed, start=None):
    """Fills `model` from the base model: kept rows and positions, first layers, strongest units.

    With `start`, the folder of a checkpoint, what that holds comes from there instead. What neither
    has begins with small random numbers.
    """
    base = load_file(os.path.join(base_folder, "model.safetensors"))
    base = {name.removeprefix("bert."): tensor for name, tensor in base.items()}
    place = {piece: i for i, piece in enumerate(base_vocab)}
    if start:
        earlier = load_file(os.path.join(start, "weights.safetensors"))
        earlier = {name.removeprefix("bert."): tensor for name, tensor in earlier.items()}
        trained = earlier.pop("embeddings.word_embeddings.weight")
        pieces = load_vocab(os.path.join(start, "tokenizer.json"))
        base["embeddings.word_embeddings.weight"][[place[p] for p in pieces]] = trained
        base.update(earlier)
    rows = torch.tensor([place[piece] for piece in vocab])
    noise = torch.Generator().manual_seed(seed)
    state = model.state_dict()
    for name, target in state.items():
        source = base.get(name.removeprefix("bert."))
        if source is None:
            source = (torch.randn(target.shape, generator=noise) * 0.02 if target.dim() == 2
                      else torch.zeros(target.shape))
        elif "word_embeddings" in name:
            source = source[rows]
        elif "token_type" in name and not start:
            source = source[:1].repeat(target.shape[0], 1)
            source[1:] += torch.randn(source[1:].shape, generator=noise) * 0.01
        elif "position_embeddings" in name:
            source = source[:target.shape[0]]
        elif ".intermediate." in name or name.endswith(".output.dense.weight"):
            source = strongest_units(base, name.removeprefix("bert."), model.config)
        target.copy_(source)
    model.load_state_dict(state)


def strongest_units(base, name, config):
    """The tensor with only as many inner units of the feed-forward network as `config` wants."""
    tensor = base[name]
    if ".attention." in name:
        return tensor
    layer = name[:name.index(".", len("encoder.layer."))]
    inner = base[layer + ".intermediate.dense.weight"]
    outer = base[layer + ".output.dense.weight"]
    strength = inner.norm(dim=1) * outer.norm(dim=0)
    kept = strength.topk(config["intermediate_size"]).indices.sort().values
    return tensor[:, kept] if name.endswith(".output.dense.weight") else tensor[kept]


def parameter_groups(model, heads, args):
    """Fresh parameters, those of `heads` and types, learn faster; biases and norms do not decay."""
    groups = collections.defaultdict(list)
    for name, p in model.named_parameters():
        fresh = name.startswith(heads) or "token_type" in name
        groups[(args.lr_head if fresh else args.lr, 0.01 if p.dim() == 2 else 0.0)].append(p)
    return [{"params": ps, "lr": lr, "peak": lr, "weight_decay": decay}
            for (lr, decay), ps in groups.items()]


def add_training_arguments(p, **defaults):
    """The arguments that the fine-tunings share; `defaults` are those in which they differ."""
    p.add_argument("--base", required=True, help="folder of all-MiniLM-L6-v2's files")
    p.add_argument("--out", required=True, help="folder for the checkpoint and the log")
    p.add_argument("--start", help="a checkpoint to start from, instead of the base alone")
    p.add_argument("--layers", type=int, default=4)
    p.add_argument("--ffn", type=int, help="inner units per layer; 0: as the base")
    p.add_argument("--rows", type=int, help="vocabulary; 0: all of the base's")
    p.add_argument("--epochs", type=int)
    p.add_argument("--minutes", type=float, default=0,
                   help="end by then, the learning rate following the clock; 0: no limit")
    p.add_argument("--batch", type=int, help="pieces per batch, pads included")
    p.add_argument("--lr", type=float)
    p.add_argument("--lr-head", type=float, default=1e-3)
    p.add_argument("--warmup", type=float, default=0.06, help="share of the steps")
    p.add_argument("--dropout", type=float, default=0.1)
    p.add_argument("--clip", type=float, default=2.0, help="longest gradient")
    p.add_argument("--smooth", type=float)
    p.add_argument("--ema", type=float, default=0.998)
    p.add_argument("--threads", type=int)
    p.add_argument("--seed", type=int, default=1)
    p.set_defaults(**defaults)


# ---------------------------------------------------------------------------------------------
# Files
# ---------------------------------------------------------------------------------------------


def save_checkpoint(folder, config, state, tokenizer, best):
    """What start_weights() and load_checkpoint() read; `best` goes into best.json."""
    os.makedirs(folder, exist_ok=True)
    write_weights(os.path.join(folder, "weights.safetensors"), state)
    tokenizer.save(os.path.join(folder, "tokenizer.json"), pretty=False)
    write_json(os.path.join(folder, "config.json"), config)
    write_json(os.path.join(folder, "best.json"), best)


def write_folder(folder, config, state, tokenizer):
    """The folder that attend converts and Hugging Face reads."""
    os.makedirs(folder, exist_ok=True)
    write_weights(os.path.join(folder, "model.safetensors"), state)
    tokenizer.save(os.path.join(folder, "tokenizer.json"), pretty=False)
    write_json(os.path.join(folder, "config.json"), config)
    tokenizer_config = {"tokenizer_class": "BertTokenizer", "do_lower_case": True,
                        "tokenize_chinese_chars": True, "strip_accents": None,
                        "unk_token": "[UNK]", "sep_token": "[SEP]", "pad_token": "[PAD]",
                        "cls_token": "[CLS]", "mask_token": "[MASK]",
                        "model_max_length": config["max_position_embeddings"]}
    write_json(os.path.join(folder, "tokenizer_config.json"), tokenizer_config)
