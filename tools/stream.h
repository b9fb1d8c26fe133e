// The loop of every command that reads texts: a batch in, its results out, flushed whenever the
// input has nothing more at hand.
#ifndef ATTEND_TOOLS_STREAM_H_
#define ATTEND_TOOLS_STREAM_H_

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "tools/console.h"
#include "tools/interrupt.h"

namespace attend::tools {

// The status of one item, with the place of the item in front of its own.
inline Status AtItem(const Status& status, const std::string& where) {
  const std::string& inner = status.where();
  return Status(status.code(), status.what(),
                inner.empty() || inner == "text" ? where : where + ", " + inner, status.hint());
}

// Computes and prints `items` by `process`, which prints all or, on an error, nothing. After an
// error the items are tried one by one, so that all results before the bad one are still printed.
template <typename Item>
Status ProcessAll(std::span<const Item> items,
                  const std::function<Status(std::span<const Item>)>& process) {
  Status status = process(items);
  if (status.ok()) return status;
  for (size_t i = 0; i < items.size(); ++i) {
    if (items.size() > 1) status = process(items.subspan(i, 1));
    if (!status.ok()) return AtItem(status, items[i].where);
  }
  return status;
}

// Runs `source` to its end. Returns the exit code.
template <typename Item, typename Source>
int Stream(Source* source, Console* console,
           const std::function<Status(std::span<const Item>)>& process) {
  std::vector<Item> items;
  size_t done = 0;
  const auto interrupted = [] {
    return Interrupted() ? Status(ErrorCode::kCancelled, "interrupted") : Status();
  };
  while (true) {
    Status status = interrupted();
    if (status.ok()) status = source->NextBatch(&items);
    // A signal during the last read or the last batch: the end of the input does not hide it.
    if (status.ok() && items.empty()) status = interrupted();
    if (!status.ok()) return console->Fail(status);
    if (items.empty()) return console->Finish();
    status = ProcessAll<Item>(items, process);
    if (!status.ok()) return console->Fail(status);
    done += items.size();
    if (!source->AtHand()) {
      status = console->out().Flush();
    } else {
      status = console->out().status();
    }
    if (!status.ok()) return console->Fail(status);
    if (source->streaming()) console->Progress(std::to_string(done) + " texts");
  }
}

}  // namespace attend::tools

#endif  // ATTEND_TOOLS_STREAM_H_
