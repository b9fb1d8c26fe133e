// Generator: n -> unknown, text out of text.
#include <algorithm>
#include <optional>
#include <utility>

#include "attend/text.h"
#include "engine/decoder.h"
#include "engine/generate.h"
#include "engine/generate_settings.h"
#include "engine/model.h"
#include "engine/pipeline.h"
#include "engine/text/guard.h"

namespace attend {
namespace {

// The search's door to a model.
class DecodeDoor final : public NextLogits {
 public:
  // Runs are added to *telemetry, which must outlive it.
  DecodeDoor(DecodeSession session, CallTelemetry* telemetry)
      : session_(std::move(session)), telemetry_(telemetry) {}

  Result<std::span<const float>> Start(const DecodeStart& start) override {
    return Told(session_.Start(start));
  }
  Result<std::span<const float>> Step(std::span<const int32_t> rows,
                                      std::span<const int32_t> parents,
                                      std::span<const int32_t> ids) override {
    return Told(session_.Step(rows, parents, ids));
  }
  Status Release(std::span<const int32_t> rows) override { return session_.Release(rows); }

  const DecodeSession& session() const { return session_; }

 private:
  Result<std::span<const float>> Told(Result<std::span<const float>> logits) {
    if (logits.ok()) telemetry_->Add(session_.telemetry());
    return logits;
  }

  DecodeSession session_;
  CallTelemetry* telemetry_;
};

Status TooLong(const std::string& what, int64_t found, int64_t most, std::string where,
               std::string hint) {
  return Status(
      ErrorCode::kCapacity,
      what + " " + std::to_string(found) + " tokens; there is room for " + std::to_string(most),
      std::move(where), std::move(hint));
}

Status CheckOptions(const GeneratorOptions& options) {
  const std::pair<const char*, int32_t> numbers[] = {
      {"max_tokens", options.session.max_tokens},
      {"max_sequences", options.session.max_sequences},
      {"max_text_tokens", options.max_text_tokens},
      {"max_decoder_tokens", options.max_decoder_tokens}};
  for (const auto& [name, value] : numbers) {
    if (value >= 1) continue;
    return Status(ErrorCode::kInvalidArgument,
                  "found " + std::to_string(value) + "; expected at least 1", name);
  }
  return {};
}

// What memory is taken for.
struct Room {
  DecodeOptions decode;
  int32_t slots = 1;     // texts side by side
  int64_t max_text = 0;  // tokens of a text: the encoder's, or the prompt
};

// The last token of an output is never read again, so that positions reach one further.
Result<Room> PlanRoom(const Model& model, const SearchSettings& settings, bool has_encoder,
                      const GeneratorOptions& options) {
  const int64_t positions = model.info().max_length;  // 0: no end
  const int64_t shortest = settings.LongestOutput(/*prompt=*/1, positions) - 1;
  if (positions > 0 && shortest > positions) {
    return TooLong("the settings ask for outputs of", shortest + 1, positions + 1,
                   settings.max_new_tokens > 0 ? "max_new_tokens" : "max_length",
                   "the model's positions reach no further");
  }
  Room room;
  room.max_text = options.max_text_tokens;
  if (positions > 0) room.max_text = std::min(room.max_text, positions);
  const int64_t prompt = has_encoder ? options.max_decoder_tokens : room.max_text;
  int64_t length = settings.LongestOutput(prompt, positions) - 1;
  if (positions > 0) length = std::min(length, positions);
  length = std::max<int64_t>(length, 1);
  const SessionOptions& session = options.session;
  const int64_t tokens = std::max(length * settings.rows(), has_encoder ? room.max_text : 0);
  const auto slots = static_cast<int32_t>(
      std::clamp<int64_t>(session.max_tokens / tokens, 1, session.max_sequences));
  room.slots = slots;
  room.decode = {.num_threads = session.num_threads,
                 .max_rows = slots * settings.rows(),
                 .max_length = static_cast<int32_t>(length),
                 .max_sources = slots,
                 .max_source_tokens = static_cast<int32_t>(room.max_text),
                 .precision = session.precision,
                 .executor = session.executor,
                 .backend = session.backend,
                 .share = session.share,
                 .trace = session.trace,
                 .logger = session.logger,
                 .telemetry = session.telemetry};
  return room;
}

}  // namespace

struct ATTEND_LOCAL Generator::Impl {
  Impl(const Model& its_model, const GeneratorOptions& its_options)
      : model(its_model),
        options(its_options),
        has_encoder(IsEncoderDecoder(its_model.data().config)),
        telemetry(its_options.session.telemetry) {}

  // Reads what the model file has for text.
  Status ReadTokenizers();
  // Checks the settings, and takes memory for them if there is not enough.
  Status Use(const GenerationSettings& its_settings);
  // Encodes a text behind those that `list` has.
  Status Encode(std::string_view text, SequenceList* list, bool* truncated);
  // The tokens that an output begins with.
  Status MakePrompt(const GenerationInput& input, std::vector<int32_t>* prompt) const;
  Result<std::vector<Generation>> Run(std::span<const GenerationInput> inputs);
  Result<std::vector<Generation>> RunTexts(std::span<const std::string_view> texts);
  Status Deliver(const SearchSlot& found, Generation* generation) const;
  const Tokenizer* output_tokenizer() const {
    if (target_tokenizer.has_value()) return &*target_tokenizer;
    return tokenizer.has_value() ? &*tokenizer : nullptr;
  }

  Model model;
  GeneratorOptions options;
  bool has_encoder;
  CallTelemetry telemetry;
  GenerationSettings defaults;  // of the options, over those of the file
  int64_t max_text = 0;
  std::optional<Tokenizer> tokenizer, target_tokenizer;
  GenerationSettings settings;
  SearchSettings plain;
  std::unique_ptr<DecodeDoor> door;
  std::unique_ptr<Search> search;
  Encoding encoding;  // reused
};

Status Generator::Impl::ReadTokenizers() {
  for (const bool is_target : {false, true}) {
    Result<Tokenizer> read =
        is_target ? Tokenizer::TargetOfModel(model) : Tokenizer::FromModel(model);
    if (read.status().code() == ErrorCode::kNotFound) continue;
    if (!read.ok()) return read.status();
    const int32_t vocab_size = model.info().vocab_size;
    if (read->vocab_size() > vocab_size) {
      return Status(ErrorCode::kCorrupt,
                    "the tokenizer has " + std::to_string(read->vocab_size()) +
                        " tokens; expected at most the model's " + std::to_string(vocab_size),
                    is_target ? "target_tokenizer" : "tokenizer",
                    "the tokenizer is not this model's");
    }
    (is_target ? target_tokenizer : tokenizer) = *std::move(read);
  }
  return {};
}

Status Generator::Impl::Use(const GenerationSettings& its_settings) {
  const int64_t vocab_size = model.info().vocab_size;
  ATTEND_RETURN_IF_ERROR(CheckSettings(its_settings, vocab_size));
  SearchSettings its_plain = PlainSettings(its_settings);
  Result<Room> room = PlanRoom(model, its_plain, has_encoder, options);
  if (!room.ok()) return room.status();
  const SearchLimits limits{.vocab_size = vocab_size,
                            .slots = room->slots,
                            .rows = its_plain.rows(),
                            .candidates = its_plain.num_candidates(),
                            .max_length = int64_t{room->decode.max_length} + 1};
  GenerationSettings kept = its_settings;
  const bool fits = search != nullptr && limits.rows <= search->limits().rows &&
                    limits.candidates <= search->limits().candidates &&
                    limits.max_length <= search->limits().max_length;
  if (!fits) {
    Result<DecodeSession> session = DecodeSession::Create(model, room->decode);
    if (!session.ok()) return session.status();
    auto new_door = std::make_unique<DecodeDoor>(*std::move(session), &telemetry);
    search = std::make_unique<Search>(limits);
    door = std::move(new_door);
    max_text = room->max_text;
  }
  settings = std::move(kept);
  plain = std::move(its_plain);
  return {};
}

Status Generator::Impl::Encode(std::string_view text, SequenceList* list, bool* truncated) {
  const EncodeScope scope(options.session.trace, telemetry.encode_ns());
  EncodeOptions encode;
  encode.max_tokens = options.truncate ? static_cast<int32_t>(max_text) : 0;
  ATTEND_RETURN_IF_ERROR(tokenizer->EncodeInto(text, encode, &encoding));
  *truncated = encoding.truncated;
  list->Add(encoding.ids, encoding.type_ids);
  return {};
}

Status Generator::Impl::MakePrompt(const GenerationInput& input,
                                   std::vector<int32_t>* prompt) const {
  prompt->clear();
  if (!has_encoder) {
    if (!input.decoder_ids.empty()) {
      return Status(ErrorCode::kInvalidArgument,
                    "the model has no decoder behind an encoder: its prompt is what it reads",
                    "decoder_ids");
    }
    prompt->assign(input.ids.begin(), input.ids.end());
    if (prompt->empty() && plain.bos_token_id >= 0) prompt->push_back(plain.bos_token_id);
    if (!prompt->empty()) return {};
    return Status(ErrorCode::kInvalidArgument,
                  "the prompt has no tokens, and the model no bos_token_id to begin with", "text");
  }
  if (input.ids.empty()) {
    return Status(ErrorCode::kInvalidArgument, "the text has no tokens", "text");
  }
  if (plain.decoder_start_token_id < 0) {
    return Status(ErrorCode::kInvalidArgument,
                  "neither the model nor the settings say what an output begins with",
                  "decoder_start_token_id");
  }
  const bool has_start =
      !input.decoder_ids.empty() && input.decoder_ids[0] == plain.decoder_start_token_id;
  if (!has_start) prompt->push_back(plain.decoder_start_token_id);
  prompt->insert(prompt->end(), input.decoder_ids.begin(), input.decoder_ids.end());
  return {};
}

Status Generator::Impl::Deliver(const SearchSlot& found, Generation* generation) const {
  for (size_t i = 0; i < found.num_outputs(); ++i) {
    GeneratedText& output = generation->outputs.emplace_back();
    const std::span<const int32_t> ids = found.output(i);
    output.ids.assign(ids.begin(), ids.end());
    output.score = found.score(i);
    const Tokenizer* tokenizer_of_output = output_tokenizer();
    if (tokenizer_of_output == nullptr) continue;
    // A vocabulary may be padded beyond the tokenizer's entries; such ids have no text.
    std::vector<int32_t> known(ids.begin(), ids.end());
    std::erase_if(known, [&](int32_t id) { return id >= tokenizer_of_output->vocab_size(); });
    Result<std::string> text = tokenizer_of_output->Decode(known);
    if (!text.ok()) return text.status();
    output.text = *std::move(text);
  }
  return {};
}

Result<std::vector<Generation>> Generator::Impl::Run(std::span<const GenerationInput> inputs) {
  std::vector<Generation> generations(inputs.size());
  std::vector<std::vector<int32_t>> prompts(inputs.size());
  std::vector<SearchRequest> requests(inputs.size());
  const int64_t positions = model.info().max_length;
  const int64_t room = door->session().options().max_length;
  for (size_t i = 0; i < inputs.size(); ++i) {
    Status status = MakePrompt(inputs[i], &prompts[i]);
    const auto prompt = static_cast<int64_t>(prompts[i].size());
    const int64_t longest = plain.LongestOutput(prompt, positions);
    const auto tokens = static_cast<int64_t>(inputs[i].ids.size());
    if (!status.ok()) {
      // As it is.
    } else if (tokens > max_text) {
      status = TooLong("the text has", tokens, max_text, "text",
                       "shorten it, or allow it to be cut (--truncate)");
    } else if (longest <= prompt) {
      status = TooLong("the prompt has", prompt, longest - 1, "text",
                       "max_length counts the prompt; give max_new_tokens instead");
    } else if (longest - 1 > room) {
      status = TooLong("prompt and output may have", longest, room + 1, "text",
                       "shorten the text, or ask for fewer new tokens");
    }
    if (!status.ok()) return AtText(status, i, inputs.size());
    requests[i] = {.source = has_encoder ? inputs[i].ids : std::span<const int32_t>(),
                   .prompt = prompts[i],
                   .max_length = longest};
  }
  Status delivered;
  ATTEND_RETURN_IF_ERROR(
      search->Run(requests, plain, door.get(), [&](size_t i, const SearchSlot& found) {
        const Status status = Deliver(found, &generations[i]);
        if (!status.ok()) delivered = status;
      }));
  ATTEND_RETURN_IF_ERROR(delivered);
  return generations;
}

Result<std::vector<Generation>> Generator::Impl::RunTexts(std::span<const std::string_view> texts) {
  if (!tokenizer.has_value()) return RequireTokenizer(model, "a generator of text").status();
  SequenceList list;
  std::vector<uint8_t> truncated(texts.size());
  for (size_t i = 0; i < texts.size(); ++i) {
    bool is_truncated = false;
    Status status = Encode(texts[i], &list, &is_truncated);
    if (!status.ok()) return AtText(status, i, texts.size());
    truncated[i] = is_truncated ? 1 : 0;
  }
  std::vector<GenerationInput> inputs(texts.size());
  for (size_t i = 0; i < texts.size(); ++i) inputs[i].ids = list.ids(i, i + 1);
  Result<std::vector<Generation>> generations = Run(inputs);
  if (!generations.ok()) return generations;
  for (size_t i = 0; i < texts.size(); ++i) (*generations)[i].truncated = truncated[i] != 0;
  return generations;
}

Generator::Generator(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Generator::Generator(Generator&&) noexcept = default;
Generator& Generator::operator=(Generator&&) noexcept = default;
Generator::~Generator() = default;

Result<Generator> Generator::Load(const std::string& path, const GeneratorOptions& options) {
  return LoadPipeline<Generator>(path, options);
}

Result<Generator> Generator::Create(const Model& model, const GeneratorOptions& options) {
  return WithoutExceptions("Generator", [&]() -> Result<Generator> {
    ATTEND_RETURN_IF_ERROR(RequireTask(model, Task::kGenerate, "a generator"));
    ATTEND_RETURN_IF_ERROR(CheckOptions(options));
    Result<GenerationSettings> file = ReadGenerationKeys(model.data().file);
    if (!file.ok()) return file.status();
    auto impl = std::make_unique<Impl>(model, options);
    impl->defaults = Overlay(options.settings, Overlay(*file, DefaultSettings()));
    ATTEND_RETURN_IF_ERROR(impl->ReadTokenizers());
    ATTEND_RETURN_IF_ERROR(impl->Use(impl->defaults));
    return Generator(std::move(impl));
  });
}

Result<Generation> Generator::Generate(std::string_view text) {
  return OnlyAnswer(GenerateBatch(std::span(&text, 1)));
}

Result<std::vector<Generation>> Generator::GenerateBatch(std::span<const std::string_view> texts) {
  if (impl_ == nullptr) return MovedFrom("Generator");
  return WithoutExceptions("Generator", [&] {
    impl_->telemetry.Begin();
    return impl_->RunTexts(texts);
  });
}

Result<std::vector<Generation>> Generator::GenerateIds(std::span<const GenerationInput> inputs) {
  if (impl_ == nullptr) return MovedFrom("Generator");
  return WithoutExceptions("Generator", [&] {
    impl_->telemetry.Begin();
    return impl_->Run(inputs);
  });
}

Status Generator::Set(const GenerationSettings& settings) {
  if (impl_ == nullptr) return MovedFrom("Generator");
  return WithoutExceptions("Generator",
                           [&] { return impl_->Use(Overlay(settings, impl_->defaults)); });
}

const GenerationSettings& Generator::settings() const { return impl_->settings; }
const Model& Generator::model() const { return impl_->model; }
const Telemetry* Generator::telemetry() const { return impl_->telemetry.get(); }
size_t Generator::memory_bytes() const {
  return impl_->door->session().memory_bytes() + impl_->search->memory_bytes();
}

}  // namespace attend
