// Tagger: n -> n, a label for every word. A word is encoded on its own and keeps exactly one label,
// the one at its first piece, however many pieces it has.
#include <algorithm>
#include <limits>
#include <utility>

#include "attend/text.h"
#include "engine/model.h"
#include "engine/pipeline.h"
#include "engine/text/guard.h"
#include "engine/text/letter_case.h"
#include "engine/text/utf8.h"
#include "engine/text/words.h"

namespace attend {
namespace {

constexpr size_t kMaxTextBytes = size_t{64} << 20;

// One text on its way to the model: its words and their pieces, end to end.
struct Pieces {
  std::vector<int32_t> ids;
  std::vector<int32_t> shapes;        // [words], type ids
  std::vector<size_t> offsets = {0};  // [words + 1], into ids

  size_t words() const { return shapes.size(); }
  size_t length(size_t word) const { return offsets[word + 1] - offsets[word]; }
};

// Words [first, last) of a text, read by the model as one sequence.
struct Window {
  size_t text;
  size_t first;
  size_t last;
};

// The windows of one text, each of at most `capacity` pieces (no word has more). A window shares up
// to a quarter of its pieces with the one before it, so that a word near a border is also seen with
// words on both of its sides: of the pieces that the model takes, at least an eighth on each.
void CutWindows(const Pieces& pieces, size_t text, size_t capacity, std::vector<Window>* windows) {
  size_t first = 0;
  while (first < pieces.words()) {
    size_t last = first;
    size_t taken = 0;
    while (last < pieces.words() && taken + pieces.length(last) <= capacity) {
      taken += pieces.length(last++);
    }
    windows->push_back({text, first, last});
    if (last == pieces.words()) return;
    // The next window must have room for the word that did not fit here, or nothing would be won.
    const size_t overlap = std::min(capacity / 4, capacity - pieces.length(last));
    size_t next = last;
    size_t shared = 0;
    while (next > first + 1 && shared + pieces.length(next - 1) <= overlap) {
      shared += pieces.length(--next);
    }
    first = next;
  }
}

// How many pieces the model sees on the poorer side of `word` in `window`; where the text itself
// ends there is nothing more to see, and that side does not count.
size_t Context(const Pieces& pieces, const Window& window, size_t word) {
  constexpr size_t kUnlimited = std::numeric_limits<size_t>::max();
  const size_t left =
      window.first == 0 ? kUnlimited : pieces.offsets[word] - pieces.offsets[window.first];
  const size_t right = window.last == pieces.words()
                           ? kUnlimited
                           : pieces.offsets[window.last] - pieces.offsets[word + 1];
  return std::min(left, right);
}

Status CheckText(std::string_view text) {
  if (text.size() > kMaxTextBytes) {
    return Status(ErrorCode::kCapacity,
                  "the text has " + std::to_string(text.size()) + " bytes; expected at most " +
                      std::to_string(kMaxTextBytes),
                  "text", "give it in parts");
  }
  const size_t invalid = FindInvalidUtf8(text);
  if (invalid == kValidUtf8) return {};
  return Status(ErrorCode::kInvalidArgument, "the text is not valid UTF-8",
                "byte " + std::to_string(invalid), "convert it to UTF-8 first");
}

}  // namespace

struct ATTEND_LOCAL Tagger::Impl {
  PipelineRunner runner;
  PipelineOptions options;

  // Encodes `words`, which lie in `text`, and fills all of `tags` but labels and scores.
  Status Prepare(std::string_view text, std::span<const WordSpan> spans, Pieces* pieces,
                 Tags* tags);
  Result<std::vector<Tags>> TagTexts(std::span<const std::string_view> texts);
  Result<std::vector<Tags>> TagCutTexts(std::span<const std::vector<std::string_view>> texts);
  Result<Encoding> EncodeText(std::string_view text);
  // Labels the words of all texts.
  Status Run(std::span<const Pieces> texts, std::span<Tags> tags);
  void AddSequence(const Pieces& pieces, const Window& window, SequenceList* list);
  size_t capacity() const {
    const Tokenizer& tokenizer = runner.tokenizer();
    return static_cast<size_t>(runner.max_length() - (tokenizer.bos_id() >= 0 ? 1 : 0) -
                               (tokenizer.eos_id() >= 0 ? 1 : 0));
  }

  std::vector<int32_t> ids = {}, types = {};  // of one sequence, reused
};

Status Tagger::Impl::Prepare(std::string_view text, std::span<const WordSpan> spans, Pieces* pieces,
                             Tags* tags) {
  const EncodeScope scope(options.session.trace, runner.telemetry().encode_ns());
  const bool shapes = runner.model().data().config.word_shape_types;
  const size_t longest = capacity();
  tags->words.reserve(spans.size());
  std::vector<TextRange> ranges;
  ranges.reserve(spans.size());
  for (const WordSpan& span : spans) {
    const std::string_view word = text.substr(span.begin, span.end - span.begin);
    ATTEND_RETURN_IF_ERROR(runner.tokenizer().EncodeWord(word, &pieces->ids));
    // A word that no window could hold is known by its first pieces.
    if (pieces->ids.size() - pieces->offsets.back() > longest) {
      pieces->ids.resize(pieces->offsets.back() + longest);
    }
    pieces->offsets.push_back(pieces->ids.size());
    pieces->shapes.push_back(shapes ? WordShape(word) : 0);
    tags->words.emplace_back().text = word;
    ranges.push_back({span.begin, span.end});
  }
  ConvertOffsets(text, options.offset_unit, ranges.data(), ranges.size());
  for (size_t i = 0; i < ranges.size(); ++i) tags->words[i].range = ranges[i];
  return {};
}

void Tagger::Impl::AddSequence(const Pieces& pieces, const Window& window, SequenceList* list) {
  const Tokenizer& tokenizer = runner.tokenizer();
  ids.clear();
  types.clear();
  if (tokenizer.bos_id() >= 0) {
    ids.push_back(tokenizer.bos_id());
    types.push_back(0);
  }
  for (size_t word = window.first; word < window.last; ++word) {
    types.insert(types.end(), pieces.length(word), pieces.shapes[word]);
  }
  ids.insert(ids.end(), pieces.ids.begin() + static_cast<ptrdiff_t>(pieces.offsets[window.first]),
             pieces.ids.begin() + static_cast<ptrdiff_t>(pieces.offsets[window.last]));
  if (tokenizer.eos_id() >= 0) {
    ids.push_back(tokenizer.eos_id());
    types.push_back(0);
  }
  list->Add(ids, types);
}

Status Tagger::Impl::Run(std::span<const Pieces> texts, std::span<Tags> tags) {
  SequenceList list;
  std::vector<Window> windows;
  std::vector<std::vector<size_t>> owners(texts.size());  // the window that labels each word
  for (size_t text = 0; text < texts.size(); ++text) {
    const Pieces& pieces = texts[text];
    const size_t begin = windows.size();
    CutWindows(pieces, text, capacity(), &windows);
    tags[text].windowed = windows.size() - begin > 1;
    owners[text].assign(pieces.words(), begin);
    for (size_t i = begin; i < windows.size(); ++i) {
      AddSequence(pieces, windows[i], &list);
      for (size_t word = windows[i].first; word < windows[i].last; ++word) {
        size_t& owner = owners[text][word];
        const bool seen = word < windows[owner].last && word >= windows[owner].first;
        if (!seen || Context(pieces, windows[i], word) > Context(pieces, windows[owner], word)) {
          owner = i;
        }
      }
    }
  }
  const ModelInfo& info = runner.model().info();
  const size_t front = runner.tokenizer().bos_id() >= 0 ? 1 : 0;
  return runner.Run(list, [&](size_t i, const Output& output) {
    const Window& window = windows[i];
    const Pieces& pieces = texts[window.text];
    const size_t classes = info.labels.size();
    for (size_t word = window.first; word < window.last; ++word) {
      if (owners[window.text][word] != i) continue;
      const size_t row = front + pieces.offsets[word] - pieces.offsets[window.first];
      const Best best = BestLabel(output.logits.subspan(row * classes, classes));
      tags[window.text].words[word].label = info.labels[best.index];
      tags[window.text].words[word].score = best.probability;
    }
  });
}

Result<std::vector<Tags>> Tagger::Impl::TagTexts(std::span<const std::string_view> texts) {
  runner.telemetry().Begin();
  std::vector<Tags> tags(texts.size());
  std::vector<Pieces> pieces(texts.size());
  std::vector<WordSpan> spans;
  for (size_t i = 0; i < texts.size(); ++i) {
    Status status = CheckText(texts[i]);
    if (status.ok()) {
      spans.clear();
      CutWords(texts[i], &spans);
      status = Prepare(texts[i], spans, &pieces[i], &tags[i]);
    }
    if (!status.ok()) return AtText(status, i, texts.size());
  }
  ATTEND_RETURN_IF_ERROR(Run(pieces, tags));
  return tags;
}

Result<std::vector<Tags>> Tagger::Impl::TagCutTexts(
    std::span<const std::vector<std::string_view>> texts) {
  runner.telemetry().Begin();
  std::vector<Tags> tags(texts.size());
  std::vector<Pieces> pieces(texts.size());
  std::vector<WordSpan> spans;
  std::string joined;
  for (size_t i = 0; i < texts.size(); ++i) {
    size_t bytes = 0;
    for (std::string_view word : texts[i]) bytes += word.size() + 1;
    joined.clear();
    spans.clear();
    if (bytes <= kMaxTextBytes) {
      for (std::string_view word : texts[i]) {
        if (!spans.empty()) joined += ' ';
        const uint32_t begin = static_cast<uint32_t>(joined.size());
        joined += word;
        spans.push_back({begin, static_cast<uint32_t>(joined.size())});
      }
    } else {
      joined.resize(bytes);  // for the message of CheckText
    }
    Status status = CheckText(joined);
    if (status.ok()) status = Prepare(joined, spans, &pieces[i], &tags[i]);
    if (!status.ok()) return AtText(status, i, texts.size());
  }
  ATTEND_RETURN_IF_ERROR(Run(pieces, tags));
  return tags;
}

Result<Encoding> Tagger::Impl::EncodeText(std::string_view text) {
  runner.telemetry().Begin();
  ATTEND_RETURN_IF_ERROR(CheckText(text));
  std::vector<WordSpan> spans;
  CutWords(text, &spans);
  Pieces pieces;
  Tags tags;
  ATTEND_RETURN_IF_ERROR(Prepare(text, spans, &pieces, &tags));
  if (pieces.ids.size() > capacity()) {
    return Status(ErrorCode::kCapacity,
                  "the text has " + std::to_string(pieces.ids.size()) +
                      " tokens; the model takes at most " + std::to_string(capacity()) +
                      " at a time",
                  "text", "give it in parts");
  }
  SequenceList list;
  AddSequence(pieces, {0, 0, pieces.words()}, &list);
  Encoding encoding;
  encoding.ids = ids;
  encoding.type_ids = types;
  const bool front = runner.tokenizer().bos_id() >= 0;
  encoding.offsets.resize(encoding.ids.size());
  encoding.sequence_ids.assign(encoding.ids.size(), -1);
  for (size_t word = 0; word < pieces.words(); ++word) {
    for (size_t i = pieces.offsets[word]; i < pieces.offsets[word + 1]; ++i) {
      encoding.offsets[i + (front ? 1 : 0)] = tags.words[word].range;
      encoding.sequence_ids[i + (front ? 1 : 0)] = 0;
    }
  }
  for (const int32_t id : encoding.ids) {
    encoding.tokens.emplace_back(runner.tokenizer().TokenText(id));
  }
  return encoding;
}

Tagger::Tagger(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Tagger::Tagger(Tagger&&) noexcept = default;
Tagger& Tagger::operator=(Tagger&&) noexcept = default;
Tagger::~Tagger() = default;

Result<Tagger> Tagger::Load(const std::string& path, const PipelineOptions& options) {
  return LoadPipeline<Tagger>(path, options);
}

Result<Tagger> Tagger::Create(const Model& model, const PipelineOptions& options) {
  return WithoutExceptions("Tagger", [&]() -> Result<Tagger> {
    Result<PipelineRunner> runner =
        PipelineRunner::Create(model, options, Task::kTokens, "a tagger");
    if (!runner.ok()) return runner.status();
    auto impl = std::make_unique<Impl>(Impl{*std::move(runner), options});
    return Tagger(std::move(impl));
  });
}

Result<Tags> Tagger::Tag(std::string_view text) {
  return OnlyAnswer(TagBatch(std::span(&text, 1)));
}

Result<std::vector<Tags>> Tagger::TagBatch(std::span<const std::string_view> texts) {
  if (impl_ == nullptr) return MovedFrom("Tagger");
  return WithoutExceptions("Tagger", [&] { return impl_->TagTexts(texts); });
}

Result<Tags> Tagger::TagWords(std::span<const std::string_view> words) {
  return WithoutExceptions("Tagger", [&] {
    const std::vector<std::string_view> text(words.begin(), words.end());
    return OnlyAnswer(TagWordsBatch(std::span(&text, 1)));
  });
}

Result<std::vector<Tags>> Tagger::TagWordsBatch(
    std::span<const std::vector<std::string_view>> texts) {
  if (impl_ == nullptr) return MovedFrom("Tagger");
  return WithoutExceptions("Tagger", [&] { return impl_->TagCutTexts(texts); });
}

Result<Encoding> Tagger::Encode(std::string_view text) {
  if (impl_ == nullptr) return MovedFrom("Tagger");
  return WithoutExceptions("Tagger", [&] { return impl_->EncodeText(text); });
}

const Model& Tagger::model() const { return impl_->runner.model(); }
const Telemetry* Tagger::telemetry() const { return impl_->runner.telemetry().get(); }

}  // namespace attend
