#include "reducer/export/export_loop.h"

#include <gtest/gtest.h>

#include <deque>
#include <map>

#include "base/hex.h"
#include "reducer/metadata/resource_joiner.h"
#include "reducer/store/fake_store_testing.h"
#include "schemas/otlp/profiles_service.pb.h"
#include "symbols/symbol_builder.h"

namespace tributary {
namespace {

using store::FakeShard;
using store::NodeNo;
using store::ProcessNo;
using store::ThreadNo;

constexpr UnixNs kStart{1'700'000'000 * kNsPerSecond};
constexpr uint64_t kPeriod = 52'631'578;

// Stores the requests that it accepts. Answers from a script, then OK when the script is used up.
class FakeSender : public otlp::ProfilesSender {
 public:
  otlp::SendResult Send(const otlp::ProfilesRequest& request, int64_t timeout_ns) override {
    timeouts.push_back(timeout_ns);
    otlp::SendResult result;
    if (!script.empty()) {
      result = script.front();
      script.pop_front();
    }
    if (result.status.ok()) taken.push_back(request);
    return result;
  }
  void Cancel() override {}

  std::deque<otlp::SendResult> script;
  std::vector<otlp::ProfilesRequest> taken;
  std::vector<int64_t> timeouts;
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
    FakeShard& shard = store_.shards[shard_index];
    auto no = static_cast<uint32_t>(shard.processes.size() + 1);
    shard.processes.push_back({.no = ProcessNo{no},
                               .node_id = "node-1",
                               .host_name = "host",
                               .pid = Pid{static_cast<int32_t>(1000 + no)},
                               .comm = "work",
                               .executable_path = "/usr/bin/work",
                               .container_id = container});
    shard.threads.push_back({.no = ThreadNo{no}, .process = ProcessNo{no}, .tid = Tid{77}, .name = "worker"});
    store::ExecutableNo executable = shard.AddExecutable(id_, "/usr/bin/work");
    NodeNo main =
        shard.AddNode(FakeShard::DayOf(kStart), NodeNo{0},
                      {.kind = FrameKind::kNative, .is_caller = true, .executable = executable, .address = 0x1100});
    leaf_ =
        shard.AddNode(FakeShard::DayOf(kStart), main,
                      {.kind = FrameKind::kNative, .is_caller = false, .executable = executable, .address = 0x1100});
  }
  void AddSamples(int count, size_t shard = 0, uint64_t value = kPeriod) {
    for (int i = 0; i < count; ++i) {
      store_.shards[shard].samples.push_back({.time = UnixNs{kStart.value + samples_added_++ * kNsPerMs},
                                              .process = ProcessNo{1},
                                              .thread = ThreadNo{1},
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
    return {.status = Error(code, "x"), .may_retry = may_retry, .retry_after_ns = after};
  }
  int64_t Cursor(uint32_t shard = 0) { return store_.Cursor("test", shard); }

  store::FakeStore store_{2};
  std::map<ExecutableId, std::shared_ptr<const SymbolTable>> symbols_;
  FakeClock clock_;
  Metrics metrics_;
  const ExecutableId id_ = *ExecutableId::Make(ExecutableIdKind::kGnuBuildId, "\x01\x02\x03");
  NodeNo leaf_;
  int64_t samples_added_ = 0;
  FakeSender* sender_ = nullptr;
  std::unique_ptr<ExportLoop> loop_;
};

TEST_F(ExportLoopTest, SendsCommittedSamplesOnceAndSavesTheCursor) {
  AddProcess();
  AddSymbols();
  AddSamples(5);
  EXPECT_EQ(loop_->RunOnce(), ExportLoop::kPollNs);
  EXPECT_EQ(SamplesTaken(), 5u);
  EXPECT_EQ(Cursor(), 5);
  EXPECT_EQ(Counted("tributary_export_samples_total"), 5u);
  EXPECT_EQ(loop_->RunOnce(), ExportLoop::kPollNs);
  EXPECT_EQ(sender_->taken.size(), 1u);
  AddSamples(2);
  loop_->RunOnce();
  EXPECT_EQ(SamplesTaken(), 7u);

  // Another run continues where this one stopped.
  Restart({.cursor_name = "test", .metric_label = "otlp"});
  AddSamples(1);
  loop_->RunOnce();
  EXPECT_EQ(SamplesTaken(), 1u);
}

TEST_F(ExportLoopTest, NamesCallersByTheCallAndLeavesByTheAddress) {
  AddProcess();
  AddSymbols();
  AddSamples(1);
  loop_->RunOnce();
  EXPECT_EQ(FramesTaken(), (std::vector<std::string>{"work()", "main"}));
  const auto& d = sender_->taken[0].dictionary();
  EXPECT_EQ(d.location_table(1).address(), 0x1100u);
  EXPECT_EQ(d.location_table(2).address(), 0x10ffu);
  EXPECT_EQ(d.string_table(d.function_table(1).system_name_strindex()), "_Z4workv");
}

TEST_F(ExportLoopTest, SendsTheSourceOfASample) {
  AddProcess();
  AddSymbols();
  AddSamples(1);
  loop_->RunOnce();
  const auto& resource = sender_->taken[0].resource_profiles(0).resource();
  ASSERT_EQ(resource.attributes_size(), 3);
  EXPECT_EQ(resource.attributes(0).value().string_value(), "c1");
  EXPECT_EQ(resource.attributes(1).value().string_value(), "host");
  EXPECT_EQ(resource.attributes(2).value().string_value(), "node-1");
  EXPECT_EQ(sender_->taken[0].resource_profiles(0).scope_profiles(0).profiles(0).samples(0).attribute_indices_size(),
            5);
}

// The same with metadata, which a test reports.
class JoinedExportTest : public ExportLoopTest {
 protected:
  static constexpr char kContainer[] = "4c01db0b339c0d5a1fc8d5c8c4d4c4a8c2a4a3c9b7b6a5f4e3d2c1b0a9f8e7d6";

  void SetUp() override {
    Restart({.cursor_name = "test", .metric_label = "otlp", .joiner = &joiner_});
    AddSymbols();
    AddProcess(0, kContainer);
  }
  void ReportPod(const std::string& name, UnixNs from = {}) {
    metadata_.Take({true, "cluster/c"},
                   {.entities = {{.kind = EntityKind::kPod,
                                  .id = "u-1",
                                  .from = from,
                                  .attributes = {{"k8s.namespace.name", "shop"}, {"k8s.pod.name", name}}},
                                 {.kind = EntityKind::kContainer,
                                  .id = kContainer,
                                  .attributes = {{"k8s.container.name", "c"}, {"k8s.pod.uid", "u-1"}}}}});
  }
  std::string ExportedAttribute(int resource, std::string_view key) {
    for (const auto& attribute : sender_->taken.at(0).resource_profiles(resource).resource().attributes()) {
      if (attribute.key() == key) return attribute.value().string_value();
    }
    return "";
  }

  K8sNameRules rules_;
  AttributeNames names_;
  MetadataStore metadata_{MetadataStore::Options{}, rules_, names_, clock_, metrics_};
  ResourceJoiner joiner_{metadata_, rules_, names_, {{"env", "prod"}}, metrics_};
};

TEST_F(JoinedExportTest, ResourcesHaveTheKnownMetadata) {
  ReportPod("web-1");
  AddSamples(2);
  loop_->RunOnce();
  ASSERT_EQ(sender_->taken.size(), 1u);
  ASSERT_EQ(sender_->taken[0].resource_profiles_size(), 1);
  EXPECT_EQ(ExportedAttribute(0, "container.id"), kContainer);
  EXPECT_EQ(ExportedAttribute(0, "k8s.pod.name"), "web-1");
  EXPECT_EQ(ExportedAttribute(0, "service.instance.id"), "shop.web-1.c");
  EXPECT_EQ(ExportedAttribute(0, "host.name"), "host");
  EXPECT_EQ(ExportedAttribute(0, "env"), "prod");
}

TEST_F(JoinedExportTest, WaitsForThePodOnce) {
  metadata_.Take({true, "cluster/c"}, {.begins_snapshot = true, .ends_snapshot = true});
  AddSamples(1);
  loop_->RunOnce();
  EXPECT_EQ(SamplesTaken(), 0u);
  clock_.Advance(2 * kNsPerSecond);
  ReportPod("web-1");
  loop_->RunOnce();
  EXPECT_EQ(SamplesTaken(), 1u);
  EXPECT_EQ(ExportedAttribute(0, "k8s.pod.name"), "web-1");
}

// A watcher lists pods faster than the objects that they belong to.
TEST_F(JoinedExportTest, WaitsForTheEndOfASnapshot) {
  const MetadataSender cluster = {true, "cluster/c"};
  metadata_.Take(cluster, {.begins_snapshot = true});
  ReportPod("web-1");
  AddSamples(1);
  loop_->RunOnce();
  EXPECT_EQ(SamplesTaken(), 0u);
  metadata_.Take(cluster, {.entities = {{.kind = EntityKind::kCluster, .attributes = {{"k8s.cluster.uid", "c"}}}}});
  loop_->RunOnce();
  EXPECT_EQ(SamplesTaken(), 0u);
  metadata_.Take(cluster, {.ends_snapshot = true});
  loop_->RunOnce();
  EXPECT_EQ(SamplesTaken(), 1u);
  EXPECT_EQ(ExportedAttribute(0, "k8s.cluster.uid"), "c");
}

TEST_F(JoinedExportTest, StopsWaitingForASnapshotThatNeverEnds) {
  metadata_.Take({true, "cluster/c"}, {.begins_snapshot = true});
  ReportPod("web-1");
  AddSamples(1);
  loop_->RunOnce();
  EXPECT_EQ(SamplesTaken(), 0u);
  clock_.Advance(10 * kNsPerSecond);
  loop_->RunOnce();
  EXPECT_EQ(SamplesTaken(), 1u);
  AddSamples(1);  // does not wait again
  loop_->RunOnce();
  EXPECT_EQ(SamplesTaken(), 2u);
}

TEST_F(JoinedExportTest, StopsWaitingForAPodThatNeverArrives) {
  metadata_.Take({true, "cluster/c"}, {.begins_snapshot = true, .ends_snapshot = true});
  AddSamples(1);
  loop_->RunOnce();
  clock_.Advance(10 * kNsPerSecond);
  loop_->RunOnce();
  EXPECT_EQ(SamplesTaken(), 1u);
  EXPECT_EQ(ExportedAttribute(0, "container.id"), kContainer);
  AddSamples(1);  // does not wait again
  loop_->RunOnce();
  EXPECT_EQ(SamplesTaken(), 2u);
}

TEST_F(JoinedExportTest, DoesNotWaitWithoutAMetadataSource) {
  AddSamples(1);
  loop_->RunOnce();
  EXPECT_EQ(SamplesTaken(), 1u);
}

TEST_F(JoinedExportTest, AChangeMakesTwoResources) {
  clock_.Advance(kNsPerSecond);
  ReportPod("old", kStart);
  ReportPod("new", UnixNs{kStart.value + 2 * kNsPerMs});
  AddSamples(5);  // a millisecond apart
  loop_->RunOnce();
  ASSERT_EQ(sender_->taken[0].resource_profiles_size(), 2);
  EXPECT_EQ(ExportedAttribute(0, "k8s.pod.name"), "old");
  EXPECT_EQ(ExportedAttribute(1, "k8s.pod.name"), "new");
  const auto samples_of = [&](int i) {
    return sender_->taken[0].resource_profiles(i).scope_profiles(0).profiles(0).samples(0).timestamps_unix_nano_size();
  };
  EXPECT_EQ(samples_of(0), 2);
  EXPECT_EQ(samples_of(1), 3);
}

TEST_F(ExportLoopTest, SendsTheReasonOfAnIncompleteStack) {
  AddProcess();
  AddSymbols();
  AddSamples(2);
  store_.shards[0].samples.back().ending = Ending::kNoTable;
  loop_->RunOnce();
  const auto& request = sender_->taken[0];
  const auto& profile = request.resource_profiles(0).scope_profiles(0).profiles(0);
  ASSERT_EQ(profile.samples_size(), 2);
  EXPECT_EQ(profile.samples(0).attribute_indices_size(), 5);
  ASSERT_EQ(profile.samples(1).attribute_indices_size(), 6);
  const auto& attribute = request.dictionary().attribute_table(profile.samples(1).attribute_indices(5));
  EXPECT_EQ(request.dictionary().string_table(attribute.key_strindex()), "tributary.stack.ending");
  EXPECT_EQ(attribute.value().string_value(), "no_table");
}

TEST_F(ExportLoopTest, SendsOwnAttributesOfASample) {
  AddProcess();
  AddSymbols();
  AddSamples(4);
  FakeShard& shard = store_.shards[0];
  shard.texts = {"", "request=42", "request=42,span_id=00f067aa0ba902b7,trace_id=4bf92f3577b34da6a3ce929d0e0e4736",
                 "span_id=zz,trace_id=4bf92f3577b34da6a3ce929d0e0e4736"};
  for (uint32_t i = 0; i < 4; ++i) shard.samples[i].attributes = store::StringId{i};
  loop_->RunOnce();
  const auto& request = sender_->taken[0];
  const auto& d = request.dictionary();
  const auto& profile = request.resource_profiles(0).scope_profiles(0).profiles(0);
  ASSERT_EQ(profile.samples_size(), 4);
  auto own = [&](int sample) {
    std::string text;
    for (int i = 5; i < profile.samples(sample).attribute_indices_size(); ++i) {
      const auto& attribute = d.attribute_table(profile.samples(sample).attribute_indices(i));
      text += d.string_table(attribute.key_strindex()) + "=" + attribute.value().string_value() + " ";
    }
    return text;
  };
  EXPECT_EQ(own(0), "");
  EXPECT_EQ(own(1), "request=42 ");
  EXPECT_EQ(own(2), "request=42 ");
  EXPECT_EQ(own(3), "span_id=zz trace_id=4bf92f3577b34da6a3ce929d0e0e4736 ") << "no span: told as it came";
  EXPECT_EQ(profile.samples(1).link_index(), 0);
  EXPECT_EQ(profile.samples(3).link_index(), 0);
  const auto& link = d.link_table(profile.samples(2).link_index());
  EXPECT_EQ(FromHex("4bf92f3577b34da6a3ce929d0e0e4736"), link.trace_id());
  EXPECT_EQ(FromHex("00f067aa0ba902b7"), link.span_id());
}

// The protocol requires each key of a sample to occur once, in UTF-8.
TEST_F(ExportLoopTest, OwnAttributesKeepTheProtocolsRules) {
  AddProcess();
  AddSymbols();
  AddSamples(1);
  FakeShard& shard = store_.shards[0];
  shard.texts = {"",
                 "thread.name=mine,a%ff=1,a%fe=2,process.pid=3,empty=,"
                 "span_id=0000000000000000,trace_id=4bf92f3577b34da6a3ce929d0e0e4736"};
  shard.samples[0].attributes = store::StringId{1};
  loop_->RunOnce();
  const auto& request = sender_->taken[0];
  const auto& d = request.dictionary();
  const auto& sample = request.resource_profiles(0).scope_profiles(0).profiles(0).samples(0);
  std::map<std::string, int> keys;
  for (int index : sample.attribute_indices()) ++keys[d.string_table(d.attribute_table(index).key_strindex())];
  for (const auto& [key, times] : keys) EXPECT_EQ(times, 1) << key;
  EXPECT_EQ(keys.count("a\xEF\xBF\xBD"), 1u);
  EXPECT_EQ(keys.count("empty"), 0u);
  EXPECT_EQ(keys.count("span_id"), 1u) << "zeros are no span";
  EXPECT_EQ(sample.link_index(), 0);
}

// There are few samples, but their own attributes are large: memory is limited by bytes.
TEST_F(ExportLoopTest, SendsLargeOwnAttributesInSeveralScans) {
  constexpr size_t kSamples = 40;
  AddProcess();
  AddSymbols();
  AddSamples(kSamples);
  FakeShard& shard = store_.shards[0];
  for (uint32_t i = 0; i < kSamples; ++i) {
    shard.texts.push_back("k=" + std::string(2u << 20, static_cast<char>('a' + i % 26)) + std::to_string(i));
    shard.samples[i].attributes = store::StringId{static_cast<uint32_t>(shard.texts.size() - 1)};
  }
  for (int i = 0; i < 100 && Cursor() < static_cast<int64_t>(kSamples); ++i) loop_->RunOnce();
  EXPECT_EQ(SamplesTaken(), kSamples);
  EXPECT_GT(store_.readers_opened, 2);
}

TEST_F(ExportLoopTest, SendsEveryShard) {
  AddProcess(0);
  AddProcess(1);
  AddSymbols();
  AddSamples(3, 0);
  AddSamples(4, 1);
  loop_->RunOnce();
  EXPECT_EQ(SamplesTaken(), 7u);
  EXPECT_EQ(Cursor(0), 3);
  EXPECT_EQ(Cursor(1), 4);
}

TEST_F(ExportLoopTest, HoldsSamplesBackUntilTheirNamesCome) {
  AddProcess();
  AddSamples(1);
  loop_->RunOnce();
  EXPECT_TRUE(sender_->taken.empty());
  clock_.Advance(2 * kNsPerSecond);
  AddSymbols();
  loop_->RunOnce();
  EXPECT_EQ(FramesTaken(), (std::vector<std::string>{"work()", "main"}));
}

TEST_F(ExportLoopTest, SendsWithoutNamesAfterTenSecondsAndThenAtOnce) {
  AddProcess();
  AddSamples(1);
  loop_->RunOnce();
  clock_.Advance(ExportLoop::kNamesWaitNs - 1);
  loop_->RunOnce();
  EXPECT_TRUE(sender_->taken.empty());
  clock_.Advance(1);
  loop_->RunOnce();
  EXPECT_EQ(FramesTaken(), (std::vector<std::string>{"-", "-"}));
  // The wait for this executable is used up.
  AddSamples(1);
  loop_->RunOnce();
  EXPECT_EQ(SamplesTaken(), 2u);
}

TEST_F(ExportLoopTest, DoesNotHoldAFullScanBack) {
  Restart({.cursor_name = "test", .metric_label = "otlp", .scan_rows_max = 4});
  AddProcess();
  AddSamples(10);
  EXPECT_EQ(loop_->RunOnce(), 0);
  EXPECT_EQ(loop_->RunOnce(), 0);
  EXPECT_EQ(SamplesTaken(), 8u);
  EXPECT_EQ(loop_->RunOnce(), ExportLoop::kPollNs);  // the last two are held back
  EXPECT_EQ(SamplesTaken(), 8u);
}

TEST_F(ExportLoopTest, RetriesAFailedRequestNoSoonerThanAllowed) {
  AddProcess();
  AddSymbols();
  AddSamples(3);
  sender_->script = {Fails(absl::StatusCode::kUnavailable, true),
                     Fails(absl::StatusCode::kResourceExhausted, true, 7 * kNsPerSecond)};
  int64_t wait = loop_->RunOnce();
  EXPECT_GE(wait, ExportLoop::kRetryMinNs / 2);
  EXPECT_LE(wait, ExportLoop::kRetryMinNs);
  EXPECT_EQ(loop_->RunOnce(), wait);  // too soon: no attempt
  EXPECT_EQ(sender_->timeouts.size(), 1u);
  EXPECT_EQ(Cursor(), 0);
  clock_.Advance(wait);
  EXPECT_EQ(loop_->RunOnce(), 7 * kNsPerSecond);
  clock_.Advance(7 * kNsPerSecond);
  AddSamples(2);  // not mixed into the request that is retried
  loop_->RunOnce();
  EXPECT_EQ(SamplesTaken(), 3u);
  EXPECT_EQ(Cursor(), 3);
  EXPECT_EQ(Counted("tributary_export_failures_total"), 2u);
  loop_->RunOnce();
  EXPECT_EQ(SamplesTaken(), 5u);
}

TEST_F(ExportLoopTest, NeverRetriesAFinalRefusal) {
  AddProcess();
  AddSymbols();
  AddSamples(3);
  sender_->script = {Fails(absl::StatusCode::kInvalidArgument, false)};
  loop_->RunOnce();
  EXPECT_EQ(Cursor(), 3);
  EXPECT_EQ(Counted("tributary_export_refused_samples_total"), 3u);
  EXPECT_EQ(Counted("tributary_export_samples_total"), 0u);
  loop_->RunOnce();
  EXPECT_EQ(sender_->timeouts.size(), 1u);
}

TEST_F(ExportLoopTest, NeverRetriesAPartialSuccess) {
  AddProcess();
  AddSymbols();
  AddSamples(3);
  sender_->script = {{.rejected_profiles = 2, .message = "too old"}};
  loop_->RunOnce();
  EXPECT_EQ(Cursor(), 3);
  EXPECT_EQ(Counted("tributary_export_rejected_profiles_total"), 2u);
  loop_->RunOnce();
  EXPECT_EQ(sender_->timeouts.size(), 1u);
}

TEST_F(ExportLoopTest, SplitsALargeScanIntoRequests) {
  Restart({.cursor_name = "test", .metric_label = "otlp", .builder = {.bytes_soft = 4000}});
  AddProcess();
  AddSymbols();
  AddSamples(1000);
  sender_->script = {{}, Fails(absl::StatusCode::kUnavailable, true)};
  int64_t wait = loop_->RunOnce();
  EXPECT_EQ(Cursor(), static_cast<int64_t>(SamplesTaken())) << "the cursor is behind the first request";
  clock_.Advance(wait);
  loop_->RunOnce();
  EXPECT_GT(sender_->taken.size(), 2u);
  EXPECT_EQ(SamplesTaken(), 1000u);
  EXPECT_EQ(Cursor(), 1000);
}

TEST_F(ExportLoopTest, AnUnreadableShardDoesNotBlockTheOthers) {
  AddProcess(1);
  AddSymbols();
  AddSamples(2, 1);
  store_.shards[0].error = absl::InternalError("disk");
  EXPECT_EQ(loop_->RunOnce(), ExportLoop::kPollNs);
  EXPECT_EQ(SamplesTaken(), 2u);
  EXPECT_FALSE(loop_->Flush(MonotonicNs{INT64_MAX}));
}

TEST_F(ExportLoopTest, FlushSendsAllAtOnceWithoutNames) {
  Restart({.cursor_name = "test", .metric_label = "otlp", .scan_rows_max = 4});
  AddProcess();
  AddSamples(10);
  EXPECT_TRUE(loop_->Flush(MonotonicNs{clock_.Monotonic().value + 5 * kNsPerSecond}));
  EXPECT_EQ(SamplesTaken(), 10u);
  EXPECT_EQ(Cursor(), 10);
  EXPECT_EQ(sender_->timeouts.at(0), 5 * kNsPerSecond);
}

TEST_F(ExportLoopTest, FlushGivesUpAtItsDeadlineAndAtAFailure) {
  AddProcess();
  AddSamples(1);
  EXPECT_FALSE(loop_->Flush(clock_.Monotonic()));
  EXPECT_TRUE(sender_->timeouts.empty());
  sender_->script = {Fails(absl::StatusCode::kUnavailable, true)};
  EXPECT_FALSE(loop_->Flush(MonotonicNs{INT64_MAX}));
  EXPECT_EQ(sender_->timeouts.size(), 1u);
  EXPECT_EQ(Cursor(), 0);
}

TEST_F(ExportLoopTest, ACancelByTheReceiverIsAFailureButOurOwnIsNot) {
  AddProcess();
  AddSymbols();
  AddSamples(1);
  sender_->script = {Fails(absl::StatusCode::kCancelled, true)};
  EXPECT_GT(loop_->RunOnce(), 0);
  EXPECT_EQ(Counted("tributary_export_failures_total"), 1u);
  loop_->Cancel();
  sender_->script = {Fails(absl::StatusCode::kCancelled, true)};
  EXPECT_FALSE(loop_->Flush(MonotonicNs{INT64_MAX}));
  EXPECT_EQ(Counted("tributary_export_failures_total"), 1u);
  EXPECT_EQ(Cursor(), 0);
}

// The process is killed while the second request is in doubt: the receiver may have got it, but the answer was lost.
TEST_F(ExportLoopTest, RepeatsOnlyTheRequestInDoubtAfterAKill) {
  const ExportLoop::Options options{.cursor_name = "test", .metric_label = "otlp", .builder = {.bytes_soft = 4000}};
  Restart(options);
  AddProcess();
  AddSymbols();
  AddSamples(1000);
  sender_->script = {{}, {}, Fails(absl::StatusCode::kDeadlineExceeded, true)};
  loop_->RunOnce();
  ASSERT_EQ(sender_->taken.size(), 2u);
  const uint64_t sent = SamplesTaken();
  EXPECT_EQ(Cursor(), static_cast<int64_t>(sent));
  Restart(options);
  loop_->RunOnce();
  EXPECT_EQ(SamplesTaken(), 1000u - sent);
  EXPECT_EQ(Cursor(), 1000);
}

// Otherwise two requests would be sent again after a kill.
TEST_F(ExportLoopTest, SendsNoOtherRequestUntilTheCursorIsSaved) {
  Restart({.cursor_name = "test", .metric_label = "otlp", .builder = {.bytes_soft = 4000}});
  AddProcess();
  AddSymbols();
  AddSamples(1000);
  store_.cursor_error = Error(absl::StatusCode::kResourceExhausted, "disk full");
  for (int i = 0; i < 3; ++i) EXPECT_EQ(loop_->RunOnce(), ExportLoop::kPollNs);
  EXPECT_EQ(sender_->taken.size(), 1u);
  store_.cursor_error.reset();
  loop_->RunOnce();
  EXPECT_EQ(SamplesTaken(), 1000u) << "nothing is sent twice";
  EXPECT_EQ(Cursor(), 1000);
}

// A receiver that answers within a second is never interrupted, so nothing is sent again after a stop.
TEST_F(ExportLoopTest, BeginsNoRequestThatAStopWouldInterrupt) {
  AddProcess();
  AddSymbols();
  AddSamples(1);
  loop_->EndBy(MonotonicNs{clock_.Monotonic().value + ExportLoop::kAnswerNs - 1});
  loop_->RunOnce();
  EXPECT_TRUE(sender_->timeouts.empty());
  loop_->EndBy(MonotonicNs{clock_.Monotonic().value + ExportLoop::kAnswerNs});
  loop_->RunOnce();
  EXPECT_EQ(sender_->timeouts, (std::vector<int64_t>{ExportLoop::kAnswerNs}));
  EXPECT_EQ(Counted("tributary_export_failures_total"), 0u);
}

TEST_F(ExportLoopTest, CountsSamplesThatExpireWhileTheReceiverIsAway) {
  AddProcess();
  AddSymbols();
  AddSamples(1);
  loop_->RunOnce();
  AddSamples(2);
  sender_->script.assign(20, Fails(absl::StatusCode::kUnavailable, true));
  loop_->RunOnce();
  AddSamples(5);
  FakeShard& shard = store_.shards[0];
  for (size_t i = 3; i < 8; ++i) shard.samples[i].count = 10;
  shard.raw_expired_until = UnixNs{kStart.value + kNsPerMinute};
  samples_added_ += 60'000;
  AddSamples(4);
  for (int i = 0; i < 2; ++i) {
    clock_.Advance(ExportLoop::kRetryMaxNs);
    loop_->RunOnce();
    EXPECT_EQ(Counted("tributary_export_expired_chunks_total"), 5u) << "counted once, at once";
    EXPECT_EQ(Counted("tributary_export_expired_samples_total"), 50u);
  }
  sender_->script.clear();
  for (int i = 0; i < 3; ++i) {
    clock_.Advance(ExportLoop::kRetryMaxNs);
    loop_->RunOnce();
  }
  EXPECT_EQ(SamplesTaken(), 1u + 2 + 4) << "the samples that were read before are sent";
  EXPECT_EQ(Cursor(), 12);
  EXPECT_EQ(Counted("tributary_export_expired_samples_total"), 50u);
}

TEST_F(ExportLoopTest, CountsSamplesThatExpiredBeforeARestart) {
  AddProcess();
  AddSymbols();
  AddSamples(1);
  loop_->RunOnce();
  AddSamples(5);
  store_.shards[0].raw_expired_until = UnixNs{kStart.value + kNsPerMinute};
  Restart({.cursor_name = "test", .metric_label = "otlp"});
  for (int i = 0; i < 2; ++i) loop_->RunOnce();
  EXPECT_EQ(Counted("tributary_export_expired_samples_total"), 5u);
  EXPECT_EQ(Cursor(), 6);
  Restart({.cursor_name = "test", .metric_label = "otlp"});
  loop_->RunOnce();
  EXPECT_EQ(Counted("tributary_export_expired_samples_total"), 5u);
}

// The samples were never meant for this exporter.
TEST_F(ExportLoopTest, ANewExporterDoesNotCountWhatExpiredBefore) {
  AddProcess();
  AddSymbols();
  AddSamples(5);
  store_.shards[0].raw_expired_until = UnixNs{kStart.value + kNsPerMinute};
  samples_added_ += 60'000;
  AddSamples(1);
  loop_->RunOnce();
  EXPECT_EQ(SamplesTaken(), 1u);
  EXPECT_EQ(Counted("tributary_export_expired_chunks_total"), 0u);
}

// A damaged store, or a store that is being cleaned up, costs detail but does not stop the exporter.
TEST_F(ExportLoopTest, SurvivesDanglingReferences) {
  AddProcess();
  AddSymbols();
  FakeShard& shard = store_.shards[0];
  shard.samples.push_back(
      {.time = kStart, .process = ProcessNo{99}, .thread = ThreadNo{99}, .node = NodeNo{99}, .value = 5});
  shard.samples.push_back(
      {.time = UnixNs{-5}, .process = ProcessNo{1}, .thread = ThreadNo{1}, .node = leaf_, .value = 0});
  store::Trie& trie = shard.TrieOf(FakeShard::DayOf(kStart));
  trie.frames[leaf_.value] = 12345;
  trie.parents[leaf_.value - 1] = leaf_;  // a parent younger than its child
  AddSamples(1);
  loop_->RunOnce();
  EXPECT_EQ(SamplesTaken(), 3u);
}

}  // namespace
}  // namespace tributary
