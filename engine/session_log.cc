#include "engine/session_log.h"

#include <algorithm>

#include "engine/graph.h"
#include "engine/model.h"
#include "engine/runner.h"
#include "kernels/isa.h"

namespace attend {
namespace {

void TellInstructionSet(Logger* logger) {
  if (!GemmFollowsIsa()) {
    Tell(logger, LogLevel::kWarning, LogCode::kOtherInstructionSet,
         std::string("the program has fixed an instruction set for oneDNN other than ") +
             IsaName(BoundIsa()) + ", before attend's first Session: bits may differ from those " +
             "of a program that has not");
  }
  std::string all;
  for (const std::string& name : AvailableIsas()) all += " " + name;
  Tell(logger, LogLevel::kInfo, LogCode::kInstructionSet,
       std::string("instruction set ") + IsaName(BoundIsa()) + "; this machine has" + all + "; " +
           LibraryVersions());
}

void TellPrecision(Logger* logger, const ModelConfig& config, Precision asked) {
  const Precision chosen = EffectivePrecision(asked, config);
  std::string text = std::string("linear layers in ") + Name(chosen);
  text += asked == Precision::kFile ? ", as the file says"
          : asked == config.precision
              ? ", as asked for and as the file says"
              : std::string(", as asked for; the file says ") + Name(config.precision);
  const auto exact = [&](const std::vector<std::string>& layers, Precision precision) {
    if (layers.empty() || chosen <= precision) return;
    text += ", " + std::to_string(layers.size()) + " of them in " + Name(precision);
  };
  exact(config.f32_layers, Precision::kF32);
  exact(config.bf16_layers, Precision::kBf16);
  Tell(logger, LogLevel::kInfo, LogCode::kPrecision, text);
}

void TellThreads(Logger* logger, const Workers& workers, int asked) {
  const ThreadAdvice advice = AdviseThreads();
  const int count = workers.count();
  const std::string threads = std::to_string(count) + (count == 1 ? " thread" : " threads");
  Tell(logger, LogLevel::kInfo, LogCode::kThreads,
       threads + " by " + workers.threads->name() +
           (asked == 0 ? ": " + advice.reason : ", as asked for; " + advice.reason));
  const int used = std::min(count, workers.threads->Available());
  if (used <= advice.num_threads) return;
  Tell(logger, LogLevel::kWarning, LogCode::kManyThreads,
       std::to_string(used) + " threads will wait for each other on " +
           std::to_string(advice.num_threads) + " CPUs: " + advice.reason);
}

}  // namespace

void TellSession(Logger* logger, const MadeSession& made, Workers* workers) {
  workers->logger = logger;
  if (!Wants(logger, LogLevel::kWarning)) return;
  TellInstructionSet(logger);
  TellPrecision(logger, made.model.config, made.precision);
  TellThreads(logger, *workers, made.num_threads);
  constexpr const char* kShares[] = {"as is predicted to be fastest", "by sequences", "by rows",
                                     "by columns"};
  Tell(logger, LogLevel::kInfo, LogCode::kMemory,
       std::to_string(made.memory_bytes) + " bytes for " + made.limits + ", and " +
           std::to_string(made.model.weights->packed_bytes()) +
           " of packed weights that the model shares; rows are shared " +
           kShares[static_cast<int>(workers->share)]);
  workers->Available();
}

void TellThreadsOfRun(Logger* logger, int available, int before, int count) {
  if (available < count) {
    TellFormatted(logger, LogLevel::kWarning, LogCode::kFewThreads,
                  "runs get %d of %d threads from now on", available, count);
  } else if (before != 0) {
    TellFormatted(logger, LogLevel::kInfo, LogCode::kFewThreads, "runs get all %d threads again",
                  count);
  }
}

}  // namespace attend
