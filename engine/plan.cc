#include "engine/plan.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>

#include "kernels/aligned.h"

namespace attend {
namespace {

// Places [offset, offset + size) that are free again once their last reader is through.
class Places {
 public:
  // `from`: when it is written; `until`: the last time that it is read.
  int64_t Take(int64_t size, int64_t from, int64_t until) {
    int64_t offset = 0;
    bool moved = true;
    while (moved) {
      moved = false;
      for (const Place& place : places_) {
        const bool together = place.from <= until && from <= place.until;
        if (together && offset < place.offset + place.size && place.offset < offset + size) {
          offset = place.offset + place.size;
          moved = true;
        }
      }
    }
    places_.push_back({offset, size, from, until});
    end_ = std::max(end_, offset + size);
    return offset;
  }
  int64_t end() const { return end_; }

 private:
  struct Place {
    int64_t offset, size, from, until;
  };
  std::vector<Place> places_;
  int64_t end_ = 0;
};

constexpr int64_t kForever = INT64_MAX / 2;

// When a value is computed and last read, by step and by segment.
struct Life {
  int64_t first_step = 0, last_step = 0, last_segment = 0;
};

void CutSegments(std::vector<Node>& nodes, Plan& plan) {
  for (size_t i = 0; i < nodes.size(); ++i) {
    const Node& node = nodes[i];
    const bool cut = plan.segments.empty() || node.reads_state || node.reads_sequence ||
                     node.domain != plan.segments.back().domain;
    if (cut) {
      plan.segments.push_back({.domain = node.domain,
                               .reads_state = node.reads_state,
                               .reads_sequence = node.reads_sequence});
    }
    plan.segments.back().steps.push_back(static_cast<int>(i));
    if (node.writes.id >= 0) {
      plan.values[node.writes.id].segment = static_cast<int>(plan.segments.size()) - 1;
    }
  }
}

std::vector<Life> FindLives(const std::vector<Node>& nodes, Plan& plan) {
  std::vector<Life> lives(plan.values.size());
  for (size_t s = 0; s < plan.segments.size(); ++s) {
    for (const int i : plan.segments[s].steps) {
      if (nodes[i].writes.id >= 0) {
        lives[nodes[i].writes.id] = {i, i, static_cast<int64_t>(s)};
      }
      for (const Value read : nodes[i].reads) {
        Life& life = lives[read.id];
        life.last_step = i;
        life.last_segment = static_cast<int64_t>(s);
        if (plan.values[read.id].segment != static_cast<int>(s) || nodes[i].reads_sequence) {
          plan.values[read.id].kept = true;
        }
      }
    }
  }
  for (const Value output : {plan.hidden, plan.pooled, plan.logits}) {
    if (output.id < 0) continue;
    plan.values[output.id].kept = true;
    lives[output.id].last_segment = kForever;
  }
  return lives;
}

// Tiles: under the shares by rows and sequences one thread owns a tile, and a place is free after
// its last reader. Under the share by columns others may still be reading: nothing is reused within
// a segment, and neighbouring segments use different halves.
void PlaceInTiles(const std::vector<Life>& lives, Plan& plan) {
  struct Ends {
    int64_t columns[2] = {0, 0};  // of values that every thread has for itself, and of shared ones
  };
  std::vector<Ends> ends(plan.segments.size());
  int64_t half[2] = {0, 0};
  Places rows;
  for (size_t v = 0; v < plan.values.size(); ++v) {
    ValueInfo& value = plan.values[v];
    value.row_tile = rows.Take(value.width, lives[v].first_step, lives[v].last_step);
    int64_t& end = ends[value.segment].columns[value.split];
    value.column_tile = end;
    end += value.width;
    half[value.split] = std::max(half[value.split], end);
  }
  for (ValueInfo& value : plan.values) {
    if (value.segment % 2 == 1) value.column_tile += half[value.split];
  }
  plan.row_tile_columns = rows.end();
  plan.own_column_tile_columns = 2 * half[0];
  plan.shared_column_tile_columns = 2 * half[1];
}

// A place in the arena serves one value after another, but only values of the same domain and
// width: under the share by sequences no thread waits for another, and one that is segments behind
// may only ever touch rows of its own.
void PlaceInArena(const std::vector<Life>& lives, int64_t max_tokens, int64_t max_sequences,
                  Plan& plan) {
  struct Slot {
    Domain domain;
    int64_t width, offset, busy_until;
  };
  std::vector<Slot> slots;
  for (size_t v = 0; v < plan.values.size(); ++v) {
    ValueInfo& value = plan.values[v];
    if (!value.kept) continue;
    // One more segment than it is read in: under the other shares a fast thread may be a segment
    // ahead of a slow one.
    const int64_t busy_until = lives[v].last_segment + 1;
    const auto slot = std::find_if(slots.begin(), slots.end(), [&](const Slot& s) {
      return s.domain == value.domain && s.width == value.width && s.busy_until < value.segment;
    });
    if (slot != slots.end()) {
      value.arena = slot->offset;
      slot->busy_until = busy_until;
      continue;
    }
    const int64_t rows = value.domain == Domain::kTokens ? max_tokens : max_sequences;
    value.arena = plan.arena_floats;
    slots.push_back({value.domain, value.width, value.arena, busy_until});
    plan.arena_floats += RoundUp(rows * value.width, int64_t{16});
  }
}

// Under the share by columns a step must wait if it reads what several threads have computed since
// the last wait. Attention needs nobody else's: a thread owns its heads from the projections on.
void PlaceColumnBarriers(const std::vector<Node>& nodes, Plan& plan) {
  plan.column_barrier.assign(nodes.size(), false);
  std::vector<bool> open(plan.values.size(), false);
  for (const Segment& segment : plan.segments) {
    // Everybody has waited already.
    if (segment.reads_sequence) std::fill(open.begin(), open.end(), false);
    for (const int i : segment.steps) {
      for (const Value read : nodes[i].reads) {
        if (open[read.id]) plan.column_barrier[i] = true;
      }
      if (plan.column_barrier[i]) std::fill(open.begin(), open.end(), false);
      const Value written = nodes[i].writes;
      // What is kept is stored by parts, whether or not every thread has computed all of it; within
      // its own segment it is read from the tile.
      if (written.id >= 0 && plan.values[written.id].split) open[written.id] = true;
    }
  }
}

// What a step reads and writes of a row: values, queries, keys and values of attention.
void CountColumns(const std::vector<Node>& nodes, Plan& plan) {
  for (const Node& node : nodes) {
    int64_t columns = 0;
    for (const Value read : node.reads) columns += plan.values[read.id].width;
    if (node.writes.id >= 0) {
      columns += plan.values[node.writes.id].width;
    } else if (!node.reads.empty()) {
      // A projection to queries, keys and values [N, K]: 2 N K FLOPs a row.
      const double k = static_cast<double>(plan.values[node.reads.front().id].width);
      columns += static_cast<int64_t>(node.step->cost().flops_per_row / (2 * k));
    }
    if (node.attends >= 0) columns += plan.states[node.attends].query_columns;
    plan.row_columns.push_back(columns);
  }
}

PlanCosts SumCosts(const Plan& plan) {
  PlanCosts costs;
  for (const Segment& segment : plan.segments) {
    if (segment.reads_state) ++costs.attentions;
    for (const int i : segment.steps) {
      const StepCost cost = plan.steps[i]->cost();
      costs.column_barriers += plan.column_barrier[i] ? 1 : 0;
      if (segment.domain == Domain::kSequences) {
        costs.sequence_flops += cost.flops_per_row / cost.flop_rate;
        costs.sequence_weight_bytes += cost.weight_bytes;
        continue;
      }
      costs.flops_per_row += cost.flops_per_row / cost.flop_rate;
      costs.flops_per_pair += cost.flops_per_pair;
      costs.weight_bytes += cost.weight_bytes;
      if (cost.weight_bytes == 0) costs.row_values += 1;
    }
  }
  return costs;
}

}  // namespace

Result<Plan> CompilePlan(Graph graph, int64_t max_tokens, int64_t max_sequences) {
  graph.weights().Trim();
  Plan plan;
  plan.values = std::move(graph.values());
  plan.kernels = graph.kernels();
  plan.hidden = graph.hidden;
  plan.pooled = graph.pooled;
  plan.logits = graph.logits;
  plan.states = graph.states();
  std::vector<Node> nodes = std::move(graph.nodes());
  CutSegments(nodes, plan);
  const std::vector<Life> lives = FindLives(nodes, plan);
  PlaceInTiles(lives, plan);
  PlaceInArena(lives, max_tokens, max_sequences, plan);
  PlaceColumnBarriers(nodes, plan);
  for (const std::shared_ptr<const LinearKernel>& kernel : plan.kernels) {
    plan.panel_columns = std::max(plan.panel_columns, kernel->panels().width);
    plan.prepared_columns = std::max(plan.prepared_columns, kernel->prepared_floats());
  }
  for (size_t s = 0; s < plan.segments.size(); ++s) {
    for (const int i : plan.segments[s].steps) {
      if (nodes[i].reads.empty()) continue;
      const ValueInfo& input = plan.values[nodes[i].reads.front().id];
      if (input.segment != static_cast<int>(s)) {
        plan.copy_columns = std::max(plan.copy_columns, input.width);
      }
    }
  }
  for (const Node& node : nodes) {
    if (node.attends < 0) continue;
    const StateInfo& state = plan.states[node.attends];
    ++plan.attentions[static_cast<int>(state.memory)];
    plan.query_floats = std::max(plan.query_floats, max_tokens * state.query_columns);
  }
  CountColumns(nodes, plan);
  plan.tables = std::move(graph.tables());
  for (Node& node : nodes) plan.steps.push_back(std::move(node.step));
  plan.costs = SumCosts(plan);
  return plan;
}

size_t Plan::table_bytes() const {
  size_t floats = 0;
  for (const auto& [name, table] : tables) floats += table.size();
  return floats * sizeof(float);
}

std::vector<std::string> Plan::SegmentNames() const {
  std::vector<std::string> names;
  int layer = 0;
  for (const Segment& segment : segments) {
    if (segment.reads_state) {
      names.push_back("layer " + std::to_string(++layer));
    } else {
      names.push_back(segment.domain == Domain::kSequences ? "pooling" : "input");
    }
  }
  return names;
}

std::string Plan::Describe() const {
  std::string text;
  char line[160];
  for (size_t s = 0; s < segments.size(); ++s) {
    const Segment& segment = segments[s];
    std::snprintf(line, sizeof(line), "segment %zu, %s by tile%s\n", s,
                  segment.domain == Domain::kTokens ? "tokens" : "sequences",
                  segment.reads_state      ? ", after everybody's keys and values"
                  : segment.reads_sequence ? ", after everybody's rows"
                                           : "");
    text += line;
    for (const int i : segment.steps) {
      const StepCost cost = steps[i]->cost();
      text += "  " + steps[i]->Describe();
      if (cost.flops_per_row > 0) {
        std::snprintf(line, sizeof(line), ", %.0f FLOP a row, %.0f bytes of weights",
                      cost.flops_per_row, cost.weight_bytes);
        text += line;
      }
      if (cost.flops_per_pair > 0) {
        std::snprintf(line, sizeof(line), ", %.0f FLOP a query and key", cost.flops_per_pair);
        text += line;
      }
      text += "\n";
    }
  }
  return text;
}

}  // namespace attend
