"""What training and export of the tagger share: text, the model, int8, checkpoints.

The model is BERT with a label for every piece of a word (BertForTokenClassification of Hugging
Face, whose names the weights have); a word has the label of its first piece. Its token type ids are
the shapes of words, see word_shape(), so that the uncased vocabulary keeps what case tells.
"""

import collections
import json
import os
import unicodedata

import numpy as np
import torch
import torch.nn.functional as F
from safetensors.torch import load_file, save_file
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers
from tokenizers import processors
from torch import nn

UPOS = ["ADJ", "ADP", "ADV", "AUX", "CCONJ", "DET", "INTJ", "NOUN", "NUM", "PART", "PRON", "PROPN",
        "PUNCT", "SCONJ", "SYM", "VERB", "X"]
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
PAD, UNK, CLS, SEP, MASK = range(5)
MAX_PIECES = 512

Sentence = collections.namedtuple("Sentence", "forms upos xpos")


# ---------------------------------------------------------------------------------------------
# Text: sentences, the shape of words, pieces
# ---------------------------------------------------------------------------------------------


def read_sentences(path):
    """Sentences of a file of `form TAB upos TAB xpos` lines; an empty line ends a sentence."""
    sentences, rows = [], []
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            line = line.rstrip("\n")
            if line:
                rows.append(line.split("\t"))
            elif rows:
                sentences.append(Sentence(*map(list, zip(*rows))))
                rows = []
    if rows:
        sentences.append(Sentence(*map(list, zip(*rows))))
    return sentences


def word_shape(word):
    """The token type id of every piece of `word`: how its original text uses case.

    Let `cased` be the code points of the word, in order, whose general category is Lu or Ll, and
    `upper` those of them whose category is Lu (title-case letters, Lt, count as neither). Then
      0: `upper` is empty (also digits, punctuation and scripts without case);
      1: `upper` is one letter, and it is the first of `cased` ("Bush", "I", "'Tis");
      2: `cased` has two letters or more, and all of them are upper ("AP", "U.S.");
      3: anything else ("iPhone", "McDonald", "eBAY").
    [CLS] and [SEP] have type 0.
    """
    cased = [c for c in map(unicodedata.category, word) if c in ("Lu", "Ll")]
    upper = cased.count("Lu")
    if upper == 0:
        return 0
    if upper == 1 and cased[0] == "Lu":
        return 1
    if upper == len(cased):
        return 2
    return 3


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


def encode(sentence_forms, pieces):
    """Ids, types and the index of every word's first piece, [CLS] and [SEP] included."""
    ids, types, first = [CLS], [0], []
    for word in sentence_forms:
        cut = pieces(word)[:MAX_PIECES - 2]
        first.append(len(ids))
        ids += cut
        types += [word_shape(word)] * len(cut)
    return ids + [SEP], types + [0], first


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


class Tagger(nn.Module):
    def __init__(self, config, num_xpos=0):
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
        self.classifier = nn.Linear(d, len(UPOS))
        # Only training has it: the finer Penn tags teach the layers more than UPOS alone.
        self.xpos = nn.Linear(d, num_xpos) if num_xpos else None

    def forward(self, ids, types, first):
        """Hidden states, [words, d], of the flat piece indices `first`; pads have id PAD."""
        e = self.bert.embeddings
        x = e.word_embeddings(ids) + e.token_type_embeddings(types)
        x = x + e.position_embeddings.weight[:ids.shape[1]]
        x = F.dropout(e.LayerNorm(x), self.p, self.training)
        mask = None
        pads = ids == PAD
        if pads.any():
            mask = torch.zeros(ids.shape, dtype=x.dtype).masked_fill_(pads, -1e9)[:, None, None]
        for layer in self.bert.encoder.layer:
            x = layer(x, mask)
        x = x.reshape(-1, x.shape[-1])[first]
        return F.dropout(x, self.p, self.training)


# ---------------------------------------------------------------------------------------------
# Tagging
# ---------------------------------------------------------------------------------------------


class Example:
    __slots__ = ("ids", "types", "first", "upos", "xpos")

    def __init__(self, ids, types, first, upos=None, xpos=None):
        self.ids, self.types, self.first, self.upos, self.xpos = ids, types, first, upos, xpos


def batches(examples, size, rng=None):
    """Batches of about `size` pieces, pads included, of examples of about the same length."""
    jitter = (lambda: rng.uniform(0, 3)) if rng else (lambda: 0)
    order = sorted(range(len(examples)), key=lambda i: len(examples[i].ids) + jitter())
    out, batch, width = [], [], 0
    for i in order:
        longest = max(width, len(examples[i].ids))
        if batch and longest * (len(batch) + 1) > size:
            out.append(batch)
            batch, longest = [], len(examples[i].ids)
        batch.append(i)
        width = longest
    out.append(batch)
    if rng:
        rng.shuffle(out)
    return out


def collate(examples):
    """Padded ids and types, [batch, pieces], and the flat indices of the words' first pieces."""
    width = max(len(e.ids) for e in examples)
    ids = torch.full((len(examples), width), PAD)
    types = torch.zeros_like(ids)
    first = []
    for row, e in enumerate(examples):
        ids[row, :len(e.ids)] = torch.tensor(e.ids)
        types[row, :len(e.ids)] = torch.tensor(e.types)
        first += [row * width + f for f in e.first]
    return ids, types, torch.tensor(first)


@torch.no_grad()
def predict(model, examples):
    """The logits, [words, labels], of every example, none longer than MAX_PIECES."""
    model.eval()
    out = [None] * len(examples)
    for batch in batches(examples, 2048):
        chosen = [examples[i] for i in batch]
        ids, types, first = collate(chosen)
        logits = model.classifier(model(ids, types, first))
        for i, part in zip(batch, logits.split([len(e.first) for e in chosen])):
            out[i] = part
    return out


def split_long(forms, pieces):
    """Ranges of words that fit the model; all but sentences of over 510 pieces give one."""
    begin, used = 0, 0
    for i, word in enumerate(forms):
        n = min(len(pieces(word)), MAX_PIECES - 2)
        if used + n > MAX_PIECES - 2 and i > begin:
            yield begin, i
            begin, used = i, 0
        used += n
    yield begin, len(forms)


def plain_examples(sentences, pieces):
    """Examples without variation, for predict(), and the number of them for each sentence."""
    examples, owners = [], []
    for i, s in enumerate(sentences):
        for begin, end in split_long(s.forms, pieces):
            ids, types, first = encode(s.forms[begin:end], pieces)
            examples.append(Example(ids, types, first))
            owners.append(i)
    return examples, owners


def tag(model, sentences, pieces):
    """For every sentence the logits of its words, [words, labels]."""
    examples, owners = plain_examples(sentences, pieces)
    parts = collections.defaultdict(list)
    for owner, logits in zip(owners, predict(model, examples)):
        parts[owner].append(logits)
    return [torch.cat(parts[i]) for i in range(len(sentences))]


def accuracy(logits, sentences):
    """The share of words whose likeliest tag is the treebank's."""
    right = total = 0
    for part, s in zip(logits, sentences):
        gold = torch.tensor([UPOS.index(t) for t in s.upos])
        right += (part.argmax(-1) == gold).sum().item()
        total += len(gold)
    return right / total


# ---------------------------------------------------------------------------------------------
# int8 and files
# ---------------------------------------------------------------------------------------------


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


def stored_bytes(state):
    """The size of `state` with int8 matrices: an f32 scale per row, all else f32."""
    return sum(t.numel() + 4 * t.shape[0] if t.dim() == 2 else 4 * t.numel()
               for t in state.values())


def save_checkpoint(folder, config, state, tokenizer, best):
    os.makedirs(folder, exist_ok=True)
    fresh = os.path.join(folder, "weights.new")
    save_file({name: t.contiguous() for name, t in state.items()}, fresh)
    os.replace(fresh, os.path.join(folder, "weights.safetensors"))
    tokenizer.save(os.path.join(folder, "tokenizer.json"), pretty=False)
    with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as out:
        json.dump(config, out, indent=2)
    with open(os.path.join(folder, "best.json"), "w", encoding="utf-8") as out:
        json.dump({"int8": best[0], "epoch": best[1]}, out)


def load_checkpoint(folder):
    """The model and the tokenizer's Pieces that save_checkpoint() left."""
    with open(os.path.join(folder, "config.json"), encoding="utf-8") as text:
        config = json.load(text)
    model = Tagger(config)
    model.load_state_dict(load_file(os.path.join(folder, "weights.safetensors")))
    tokenizer = Tokenizer.from_file(os.path.join(folder, "tokenizer.json"))
    return model.eval(), Pieces(tokenizer)
