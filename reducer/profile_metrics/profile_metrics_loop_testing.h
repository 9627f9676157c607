#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "reducer/profile_metrics/profile_metrics_loop.h"
#include "reducer/store/fake_store_testing.h"
#include "symbols/symbol_builder.h"

namespace tributary {

inline constexpr UnixNs kStart{1'700'000'040 * kNsPerSecond};  // a full minute
inline constexpr uint64_t kPeriod = 20'000'000;

// Records the times whose processes are read.
class RecordingReader : public store::MemoryReader {
 public:
  RecordingReader(store::MemoryShard shard, std::vector<store::TimeRange>* ranges)
      : MemoryReader(std::move(shard)), ranges_(ranges) {}

  absl::StatusOr<std::vector<store::ProcessRow>> Processes(store::TimeRange range,
                                                           const store::ProcessSet* only) override {
    ranges_->push_back(range);
    return MemoryReader::Processes(range, only);
  }
  absl::StatusOr<std::vector<store::ExecutableRow>> Executables() override {
    ADD_FAILURE() << "a shard may have very many executables";
    return MemoryReader::Executables();
  }

 private:
  std::vector<store::TimeRange>* ranges_;
};

class RecordingStore : public store::FakeStore {
 public:
  using FakeStore::FakeStore;
  absl::StatusOr<std::unique_ptr<store::StoreReader>> OpenReader(uint32_t shard) override {
    return std::make_unique<RecordingReader>(shards[shard], &process_ranges);
  }
  std::vector<store::TimeRange> process_ranges;
};

// A loop on a store in memory with two shards. Each has a stack with a native leaf, and one with a kernel leaf.
class ProfileMetricsLoopTest : public ::testing::Test {
 protected:
  ProfileMetricsLoopTest() {
    symbols_[id_] = BuildSymbolTable(
        id_, SymbolSource::kSymtab,
        {{.address = 0x1000, .size = 0x100, .name = "main"}, {.address = 0x1100, .size = 0x100, .name = "_Z4workv"}});
    for (size_t i = 0; i < 2; ++i) {
      store::FakeShard& shard = store_.shards[i];
      executable_ = shard.AddExecutable(id_, "/usr/lib/libwork.so.1");
      const store::NodeNo main = AddNode(i, store::NodeNo{0}, {.kind = FrameKind::kNative, .executable = executable_});
      leaf_ = AddNode(i, main, {.kind = FrameKind::kNative, .executable = executable_, .address = 0x1104});
      kernel_ = AddNode(i, leaf_, {.kind = FrameKind::kKernel, .address = 0x10});
    }
  }

  store::NodeNo AddNode(size_t shard, store::NodeNo parent, store::FrameRow row) {
    return store_.shards[shard].AddNode(store::FakeShard::DayOf(kStart), parent, row);
  }

  void Begin(const std::vector<std::string>& texts, ProfileMetricsLoop::Options options = {.hold_ns = 0}) {
    options.specs = ParseMetricSpecs(texts).value();
    loop_ = std::make_unique<ProfileMetricsLoop>(
        std::move(options), store_,
        [this](const ExecutableId& id) {
          ++lookups_;
          if (on_lookup_) on_lookup_();
          auto it = symbols_.find(id);
          return it == symbols_.end() ? nullptr : it->second;
        },
        clock_, metrics_);
  }

  store::ProcessNo AddProcess(const std::string& name, size_t shard = 0) {
    std::vector<store::ProcessRow>& processes = store_.shards[shard].processes;
    const store::ProcessNo no{static_cast<uint32_t>(processes.size() + 1)};
    processes.push_back({.no = no,
                         .node_id = "node-1",
                         .host_name = "host-1",
                         .pid = Pid{1000},
                         .comm = name,
                         .executable_path = "/usr/bin/" + name,
                         .attributes = "service.name=" + name + "-service"});
    return no;
  }
  void AddSamples(store::ProcessNo process, int count, store::NodeNo node, size_t shard = 0, int64_t after_ns = 0) {
    for (int i = 0; i < count; ++i) {
      store_.shards[shard].samples.push_back({.time = UnixNs{kStart.value + after_ns + i},
                                              .process = process,
                                              .thread = store::ThreadNo{1},
                                              .node = node,
                                              .value = kPeriod});
    }
  }

  std::string Text() const { return metrics_.PrometheusText(); }
  uint64_t Counted(const std::string& what, const std::string& metric) {
    return metrics_.AddCounter("tributary_profile_metrics_" + what, "", {{"metric", metric}}).value();
  }

  RecordingStore store_{2};
  std::map<ExecutableId, std::shared_ptr<const SymbolTable>> symbols_;
  FakeClock clock_{MonotonicNs{kNsPerSecond}, kStart};
  Metrics metrics_;
  const ExecutableId id_ = *ExecutableId::Make(ExecutableIdKind::kGnuBuildId, "\x01\x02\x03");
  store::ExecutableNo executable_;
  store::NodeNo leaf_, kernel_;
  int lookups_ = 0;
  std::function<void()> on_lookup_;
  std::unique_ptr<ProfileMetricsLoop> loop_;
};

}  // namespace tributary
