#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "reducer/store/store.h"

namespace tributary::store {

// A store in memory, for tests of what reads stores. A test fills the public members of its shards; readers see them as
// they are at each call. Small chunks on purpose: readers must not take one for the whole.
struct FakeShard {
  struct Sample {
    UnixNs time;
    ProcessNo process;
    ThreadNo thread;
    NodeNo node;
    uint64_t value = 0;
    uint32_t count = 1;
    TypeNo type{1};
    std::string node_id = "node-1";
    Ending ending = Ending::kComplete;
    StringId attributes;
  };

  std::vector<NodeStatus> nodes;
  std::vector<ProcessRow> processes;
  std::vector<ThreadRow> threads;
  std::vector<ExecutableRow> executables = {ExecutableRow{}};
  std::map<TypeNo, SampleTypeInfo> types = {{TypeNo{1}, {"cpu", "nanoseconds"}},
                                            {TypeNo{2}, {"off_cpu", "nanoseconds"}}};
  std::vector<std::string> texts = {""};  // index: StringId
  std::map<Day, Trie> tries;
  std::vector<Sample> samples;
  UnixNs closed_until{0};             // minutes before have sums
  UnixNs raw_expired_until{0};        // samples before are in sums only
  std::optional<absl::Status> error;  // of every call

  static Day DayOf(UnixNs time) { return Day{static_cast<int32_t>(time.value / kNsPerDay)}; }

  ExecutableNo AddExecutable(ExecutableId id, std::string path) {
    executables.push_back(ExecutableRow{id, std::move(path)});
    return ExecutableNo{static_cast<uint32_t>(executables.size() - 1)};
  }
  NodeNo AddNode(Day day, NodeNo parent, FrameRow frame) {
    Trie& trie = TrieOf(day);
    trie.parents.push_back(parent);
    trie.frames.push_back(static_cast<uint32_t>(trie.frame_rows.size()));
    trie.frame_rows.push_back(frame);
    return NodeNo{static_cast<uint32_t>(trie.parents.size() - 1)};
  }
  Trie& TrieOf(Day day) {
    Trie& trie = tries[day];
    if (trie.parents.empty()) {
      trie.parents.push_back(NodeNo{0});
      trie.frames.push_back(0);
      trie.frame_rows.emplace_back();
    }
    return trie;
  }
};

class FakeReader : public StoreReader {
 public:
  explicit FakeReader(FakeShard& shard) : shard_(shard) {}

  absl::StatusOr<std::vector<NodeStatus>> Nodes() override {
    RETURN_IF_ERROR(Check());
    return shard_.nodes;
  }
  absl::StatusOr<std::map<TypeNo, SampleTypeInfo>> SampleTypes() override {
    RETURN_IF_ERROR(Check());
    return shard_.types;
  }
  absl::StatusOr<std::vector<ProcessRow>> Processes(TimeRange range, const ProcessSet* only) override {
    RETURN_IF_ERROR(Check());
    std::vector<ProcessRow> rows;
    for (const ProcessRow& row : shard_.processes) {
      bool ran = std::any_of(shard_.samples.begin(), shard_.samples.end(), [&](const FakeShard::Sample& sample) {
        return sample.process == row.no && sample.time >= range.from && sample.time < range.to;
      });
      if (ran && (only == nullptr || only->contains(row.no))) rows.push_back(row);
    }
    return rows;
  }
  absl::Status ScanProcesses(TimeRange range, const ProcessVisitor& visit) override {
    ASSIGN_OR_RETURN(const std::vector<ProcessRow> rows, Processes(range, nullptr));
    for (const ProcessRow& row : rows) RETURN_IF_ERROR(visit(row));
    return absl::OkStatus();
  }
  absl::StatusOr<std::vector<ThreadRow>> Threads(TimeRange /*range*/, const ProcessSet& of) override {
    RETURN_IF_ERROR(Check());
    std::vector<ThreadRow> rows;
    for (const ThreadRow& row : shard_.threads) {
      if (of.contains(row.process)) rows.push_back(row);
    }
    return rows;
  }
  absl::StatusOr<std::vector<ExecutableRow>> Executables() override {
    RETURN_IF_ERROR(Check());
    return shard_.executables;
  }
  absl::StatusOr<std::shared_ptr<const Trie>> LoadTrie(Day day) override {
    RETURN_IF_ERROR(Check());
    return std::make_shared<const Trie>(shard_.TrieOf(day));
  }
  absl::StatusOr<std::string_view> Text(StringId id) override {
    RETURN_IF_ERROR(Check());
    return id.value < shard_.texts.size() ? std::string_view(shard_.texts[id.value]) : std::string_view();
  }

  absl::Status ScanSamples(TimeRange range, const std::function<absl::Status(const SampleColumns&)>& visit) override {
    RETURN_IF_ERROR(Check());
    for (const auto& [key, group] : Group(range, [this](UnixNs time) { return time >= shard_.raw_expired_until; })) {
      for (size_t begin = 0; begin < group.size(); begin += kChunkSamples) {
        SampleColumns columns{.node_id = key.node_id, .type = key.type, .day = FakeShard::DayOf(UnixNs{key.minute})};
        for (size_t i = begin; i < std::min(group.size(), begin + kChunkSamples); ++i) {
          columns.times.push_back(group[i].time);
          columns.processes.push_back(group[i].process);
          columns.threads.push_back(group[i].thread);
          columns.nodes.push_back(group[i].node);
          columns.values.push_back(group[i].value);
          columns.counts.push_back(group[i].count);
          columns.endings.push_back(group[i].ending);
          columns.cpus.push_back(0);
          columns.attributes.push_back(group[i].attributes);
        }
        RETURN_IF_ERROR(visit(columns));
      }
    }
    return absl::OkStatus();
  }

  absl::Status ScanSums(TimeRange range, const std::function<absl::Status(const SumColumns&)>& visit) override {
    RETURN_IF_ERROR(Check());
    auto has_sum = [&](UnixNs time) {
      int64_t minute = time.value / kNsPerMinute * kNsPerMinute;
      return minute + kNsPerMinute <= shard_.closed_until.value && minute >= range.from.value &&
             minute + kNsPerMinute <= range.to.value;
    };
    auto readable = [&](UnixNs time) { return has_sum(time) || time >= shard_.raw_expired_until; };
    for (const auto& [key, group] : Group(range, readable)) {
      std::map<std::pair<ProcessNo, NodeNo>, std::pair<uint64_t, uint64_t>> sums;
      for (const FakeShard::Sample& sample : group) {
        auto& [value, count] = sums[{sample.process, sample.node}];
        value += sample.value;
        count += sample.count;
      }
      SumColumns columns{.node_id = key.node_id,
                         .type = key.type,
                         .day = FakeShard::DayOf(UnixNs{key.minute}),
                         .minute = UnixNs{key.minute}};
      for (const auto& [row, sum] : sums) {
        columns.processes.push_back(row.first);
        columns.nodes.push_back(row.second);
        columns.values.push_back(sum.first);
        columns.counts.push_back(sum.second);
      }
      RETURN_IF_ERROR(visit(columns));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<int64_t> ScanCommitted(int64_t cursor, size_t,
                                        const std::function<absl::Status(const SampleColumns&)>&) override {
    return cursor;
  }

 private:
  static constexpr size_t kChunkSamples = 7;

  struct Key {
    int64_t minute = 0;
    TypeNo type{1};
    std::string node_id;
    friend auto operator<=>(const Key&, const Key&) = default;
  };

  absl::Status Check() const { return shard_.error.value_or(absl::OkStatus()); }

  template <typename Filter>
  std::map<Key, std::vector<FakeShard::Sample>> Group(TimeRange range, Filter filter) const {
    std::map<Key, std::vector<FakeShard::Sample>> groups;
    for (const FakeShard::Sample& sample : shard_.samples) {
      if (sample.time < range.from || sample.time >= range.to || !filter(sample.time)) continue;
      groups[Key{sample.time.value / kNsPerMinute * kNsPerMinute, sample.type, sample.node_id}].push_back(sample);
    }
    for (auto& [key, group] : groups) {
      std::stable_sort(group.begin(), group.end(),
                       [](const FakeShard::Sample& a, const FakeShard::Sample& b) { return a.time < b.time; });
    }
    return groups;
  }

  FakeShard& shard_;
};

class FakeStore : public Store {
 public:
  explicit FakeStore(size_t count = 1) : shards(count) {}

  uint32_t shard_count() const override { return static_cast<uint32_t>(shards.size()); }
  absl::StatusOr<std::unique_ptr<ShardWriter>> OpenWriter(uint32_t) override {
    return Error(absl::StatusCode::kUnimplemented, "the fake store is filled by its test");
  }
  absl::StatusOr<std::unique_ptr<StoreReader>> OpenReader(uint32_t shard) override {
    return std::make_unique<FakeReader>(shards[shard]);
  }
  CursorStore& cursors() override { return cursors_; }
  uint64_t disk_bytes() const override { return 4096; }

  std::vector<FakeShard> shards;

 private:
  class NoCursors : public CursorStore {
    absl::StatusOr<int64_t> LoadCursor(std::string_view, uint32_t) override { return 0; }
    absl::Status SaveCursor(std::string_view, uint32_t, int64_t) override { return absl::OkStatus(); }
  };
  NoCursors cursors_;
};

}  // namespace tributary::store
