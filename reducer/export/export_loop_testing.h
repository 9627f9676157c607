#pragma once

#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "reducer/export/export_loop.h"
#include "reducer/store/fake_store_testing.h"
#include "schemas/otlp/profiles_service.pb.h"
#include "symbols/symbol_builder.h"

// Test fixture: an ExportLoop with a store of two shards and a receiver with scripted answers.
namespace tributary {

inline constexpr UnixNs kStart{1'700'000'000 * kNsPerSecond};
inline constexpr uint64_t kPeriod = 52'631'578;

// Stores the requests that it accepts. Answers from a script, then OK when the script is used up.
class FakeSender : public otlp::ProfilesSender {
 public:
  otlp::SendResult Send(const otlp::ProfilesRequest& request, const otlp::RequestIdentity& identity,
                        int64_t timeout_ns) override {
    timeouts.push_back(timeout_ns);
    identities.push_back(identity);
    if (on_send) on_send();
    otlp::SendResult result;
    if (!script.empty()) {
      result = script.front();
      script.pop_front();
    }
    if (result.status.ok()) taken.push_back(request);
    return result;
  }
  void Cancel() override {}

  std::function<void()> on_send;
  std::deque<otlp::SendResult> script;
  std::vector<otlp::ProfilesRequest> taken;
  std::vector<int64_t> timeouts;
  std::vector<otlp::RequestIdentity> identities;  // of all attempts
};

class ExportLoopTest : public ::testing::Test {
 protected:
  ExportLoopTest() { Restart({.cursor_name = "test", .metric_label = "otlp"}); }

  void Restart(ExportLoop::Options options) {
    auto sender = std::make_unique<FakeSender>();
    sender_ = sender.get();
    loop_ = std::make_unique<ExportLoop>(
        std::move(options), store_,
        [this](const ExecutableId& id) {
          auto it = symbols_.find(id);
          return it == symbols_.end() ? nullptr : it->second;
        },
        std::move(sender), clock_, metrics_);
  }

  // A process with one thread. Its stacks are main → work in one executable.
  void AddProcess(size_t shard_index = 0, const std::string& container = "c1") {
    store::FakeShard& shard = store_.shards[shard_index];
    auto no = static_cast<uint32_t>(shard.processes.size() + 1);
    shard.processes.push_back({.no = store::ProcessNo{no},
                               .node_id = "node-1",
                               .host_name = "host",
                               .pid = Pid{static_cast<int32_t>(1000 + no)},
                               .comm = "work",
                               .executable_path = "/usr/bin/work",
                               .container_id = container});
    shard.threads.push_back(
        {.no = store::ThreadNo{no}, .process = store::ProcessNo{no}, .tid = Tid{77}, .name = "worker"});
    store::ExecutableNo executable = shard.AddExecutable(id_, "/usr/bin/work");
    store::NodeNo main =
        shard.AddNode(store::FakeShard::DayOf(kStart), store::NodeNo{0},
                      {.kind = FrameKind::kNative, .is_caller = true, .executable = executable, .address = 0x1100});
    leaf_ =
        shard.AddNode(store::FakeShard::DayOf(kStart), main,
                      {.kind = FrameKind::kNative, .is_caller = false, .executable = executable, .address = 0x1100});
  }
  void AddSamples(int count, size_t shard = 0, uint64_t value = kPeriod) {
    for (int i = 0; i < count; ++i) {
      store_.shards[shard].samples.push_back({.time = UnixNs{kStart.value + samples_added_++ * kNsPerMs},
                                              .process = store::ProcessNo{1},
                                              .thread = store::ThreadNo{1},
                                              .node = leaf_,
                                              .value = value});
    }
  }
  // [0x1000, 0x1100) is main, [0x1100, 0x1200) a C++ name. One address is in both: in main as a caller, in the other as
  // a leaf.
  void AddSymbols() {
    symbols_[id_] = BuildSymbolTable(
        id_, SymbolSource::kSymtab,
        {{.address = 0x1000, .size = 0x100, .name = "main"}, {.address = 0x1100, .size = 0x100, .name = "_Z4workv"}});
  }

  uint64_t SamplesTaken() const {
    uint64_t count = 0;
    for (const auto& request : sender_->taken) {
      for (const auto& resource : request.resource_profiles()) {
        for (const auto& profile : resource.scope_profiles(0).profiles()) {
          for (const auto& sample : profile.samples())
            count += static_cast<uint64_t>(sample.timestamps_unix_nano_size());
        }
      }
    }
    return count;
  }
  std::vector<std::string> FramesTaken() const {
    const auto& request = sender_->taken.at(0);
    const auto& d = request.dictionary();
    std::vector<std::string> names;
    const auto& sample = request.resource_profiles(0).scope_profiles(0).profiles(0).samples(0);
    for (int location : d.stack_table(sample.stack_index()).location_indices()) {
      const auto& lines = d.location_table(location).lines();
      names.push_back(lines.empty() ? "-"
                                    : d.string_table(d.function_table(lines[0].function_index()).name_strindex()));
    }
    return names;
  }
  uint64_t Counted(const std::string& name) { return metrics_.AddCounter(name, "", {{"exporter", "otlp"}}).value(); }
  static otlp::SendResult Fails(absl::StatusCode code, bool may_retry, std::optional<int64_t> after = {}) {
    return {{.status = Error(code, "x"), .may_retry = may_retry, .retry_after_ns = after}};
  }
  int64_t Cursor(uint32_t shard = 0) { return store_.Cursor("test", shard); }

  store::FakeStore store_{2};
  std::map<ExecutableId, std::shared_ptr<const SymbolTable>> symbols_;
  FakeClock clock_;
  Metrics metrics_;
  const ExecutableId id_ = *ExecutableId::Make(ExecutableIdKind::kGnuBuildId, "\x01\x02\x03");
  store::NodeNo leaf_;
  int64_t samples_added_ = 0;
  FakeSender* sender_ = nullptr;
  std::unique_ptr<ExportLoop> loop_;
};

}  // namespace tributary
