#include "engine/generate.h"

#include <algorithm>

namespace attend {

Search::Search(const SearchLimits& limits)
    : limits_(limits),
      processor_(limits.vocab_size),
      scratch_(limits.vocab_size, std::max<int64_t>(limits.candidates, limits.rows)) {
  const auto slots = static_cast<size_t>(limits.slots);
  const size_t rows = slots * static_cast<size_t>(limits.rows);
  slots_.reserve(slots);
  for (size_t i = 0; i < slots; ++i) slots_.emplace_back(limits.rows, limits.max_length);
  request_of_.resize(slots);
  is_busy_.resize(slots);
  alive_rows_.resize(rows);
  started_.reserve(slots);
  for (std::vector<int32_t>* list : {&rows_, &parents_, &ids_}) list->reserve(rows);
  source_offsets_.reserve(slots + 1);
  offsets_.reserve(slots + 1);
}

size_t Search::memory_bytes() const {
  size_t bytes = scratch_.scores.size() * (sizeof(double) + sizeof(int32_t) + sizeof(uint64_t)) +
                 scratch_.candidates.capacity() * sizeof(SearchCandidate) +
                 alive_rows_.size() * 4 * sizeof(int32_t);
  for (const SearchSlot& slot : slots_) bytes += slot.memory_bytes();
  return bytes;
}

Status Search::Run(std::span<const SearchRequest> requests, const SearchSettings& settings,
                   NextLogits* model, const Sink& sink) {
  next_request_ = 0;
  num_busy_ = 0;
  std::fill(is_busy_.begin(), is_busy_.end(), false);
  // A run that threw has left rows behind.
  Status status = ReleaseAll(model);
  while (status.ok() && (next_request_ < requests.size() || num_busy_ > 0)) {
    // A quarter of the slots at least starts together: one by one would cost a pass of the model
    // each.
    const size_t idle = slots_.size() - num_busy_;
    const bool is_time = num_busy_ == 0 || idle >= std::max<size_t>(1, slots_.size() / 4);
    if (next_request_ < requests.size() && is_time) {
      status = StartRequests(requests, settings, model, sink);
    } else {
      status = StepAll(model, sink);
    }
  }
  const Status released = ReleaseAll(model);
  return status.ok() ? released : status;
}

Status Search::StartRequests(std::span<const SearchRequest> requests,
                             const SearchSettings& settings, NextLogits* model, const Sink& sink) {
  for (std::vector<int32_t>* list : {&rows_, &ids_, &source_ids_, &source_offsets_, &offsets_}) {
    list->clear();
  }
  started_.clear();
  bool has_source = false;
  source_offsets_.push_back(0);
  offsets_.push_back(0);
  for (size_t slot = 0; slot < slots_.size() && next_request_ < requests.size(); ++slot) {
    if (is_busy_[slot]) continue;
    const SearchRequest& request = requests[next_request_];
    request_of_[slot] = next_request_++;
    slots_[slot].Begin(settings, request.prompt, request.max_length);
    started_.push_back(slot);
    rows_.push_back(FirstRow(slot));
    ids_.insert(ids_.end(), request.prompt.begin(), request.prompt.end());
    offsets_.push_back(static_cast<int32_t>(ids_.size()));
    has_source |= !request.source.empty();
    source_ids_.insert(source_ids_.end(), request.source.begin(), request.source.end());
    source_offsets_.push_back(static_cast<int32_t>(source_ids_.size()));
  }
  DecodeStart start{.rows = rows_, .ids = ids_, .offsets = offsets_};
  if (has_source) {
    start.source_ids = source_ids_;
    start.source_offsets = source_offsets_;
  }
  const Result<std::span<const float>> logits = model->Start(start);
  if (!logits.ok()) return logits.status();
  const auto width = static_cast<size_t>(limits_.vocab_size);
  for (size_t i = 0; i < started_.size(); ++i) {
    const size_t slot = started_[i];
    is_busy_[slot] = true;
    alive_rows_[static_cast<size_t>(FirstRow(slot))] = 1;
    ++num_busy_;
    slots_[slot].Advance(logits->subspan(i * width, width), &processor_, &scratch_);
  }
  return Collect(model, sink);
}

Status Search::StepAll(NextLogits* model, const Sink& sink) {
  for (std::vector<int32_t>* list : {&rows_, &parents_, &ids_}) list->clear();
  for (size_t slot = 0; slot < slots_.size(); ++slot) {
    if (!is_busy_[slot]) continue;
    const SearchSlot& its = slots_[slot];
    for (size_t i = 0; i < its.num_rows(); ++i) {
      rows_.push_back(FirstRow(slot) + its.row_names()[i]);
      parents_.push_back(FirstRow(slot) + its.parents()[i]);
      ids_.push_back(its.ids()[i]);
    }
  }
  const Result<std::span<const float>> logits = model->Step(rows_, parents_, ids_);
  if (!logits.ok()) return logits.status();
  std::fill(alive_rows_.begin(), alive_rows_.end(), 0);
  for (int32_t row : rows_) alive_rows_[static_cast<size_t>(row)] = 1;
  const auto width = static_cast<size_t>(limits_.vocab_size);
  size_t at = 0;
  for (size_t slot = 0; slot < slots_.size(); ++slot) {
    if (!is_busy_[slot]) continue;
    const size_t rows = slots_[slot].num_rows();
    slots_[slot].Advance(logits->subspan(at * width, rows * width), &processor_, &scratch_);
    at += rows;
  }
  return Collect(model, sink);
}

Status Search::Collect(NextLogits* model, const Sink& sink) {
  rows_.clear();
  for (size_t slot = 0; slot < slots_.size(); ++slot) {
    if (!is_busy_[slot] || !slots_[slot].done()) continue;
    sink(request_of_[slot], slots_[slot]);
    is_busy_[slot] = false;
    --num_busy_;
    for (int32_t row = FirstRow(slot); row < FirstRow(slot) + limits_.rows; ++row) {
      if (alive_rows_[static_cast<size_t>(row)] != 0) rows_.push_back(row);
    }
  }
  return ReleaseRows(model);
}

Status Search::ReleaseAll(NextLogits* model) {
  rows_.clear();
  for (size_t row = 0; row < alive_rows_.size(); ++row) {
    if (alive_rows_[row] != 0) rows_.push_back(static_cast<int32_t>(row));
  }
  return ReleaseRows(model);
}

Status Search::ReleaseRows(NextLogits* model) {
  for (const int32_t row : rows_) alive_rows_[static_cast<size_t>(row)] = 0;
  return rows_.empty() ? Status() : model->Release(rows_);
}

}  // namespace attend
