#include "reducer/export/export_loop.h"

#include <gtest/gtest.h>

#include <map>

#include "base/hex.h"
#include "reducer/export/export_loop_testing.h"

namespace tributary {
namespace {

using store::FakeShard;
using store::NodeNo;
using store::ProcessNo;
using store::ThreadNo;

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

TEST_F(ExportLoopTest, GivesEachRequestTheConfiguredTime) {
  Restart({.cursor_name = "test", .metric_label = "otlp", .send_timeout_ns = 2 * kNsPerSecond});
  AddProcess();
  AddSymbols();
  AddSamples(1);
  loop_->RunOnce();
  EXPECT_EQ(sender_->timeouts, (std::vector<int64_t>{2 * kNsPerSecond}));
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

// The console and files continue a request that was cut short. Another request in between would be taken for it.
TEST_F(ExportLoopTest, RepeatsAFailedRequestBeforeThoseOfOtherShards) {
  AddProcess(0, "first");
  AddProcess(1, "second");
  AddSymbols();
  AddSamples(1, 1);
  sender_->script = {Fails(absl::StatusCode::kUnavailable, true)};
  loop_->RunOnce();
  ASSERT_TRUE(sender_->taken.empty());
  AddSamples(1, 0);
  clock_.Advance(ExportLoop::kRetryMaxNs);
  loop_->RunOnce();
  ASSERT_EQ(sender_->taken.size(), 2u);
  const auto container = [this](size_t i) {
    return sender_->taken[i].resource_profiles(0).resource().attributes(0).value().string_value();
  };
  EXPECT_EQ(container(0), "second");
  EXPECT_EQ(container(1), "first");

  AddSamples(1, 1);
  sender_->script = {Fails(absl::StatusCode::kUnavailable, true)};
  loop_->RunOnce();
  AddSamples(1, 0);
  EXPECT_TRUE(loop_->Flush(MonotonicNs{clock_.Monotonic().value + 10 * kNsPerSecond}));
  ASSERT_EQ(sender_->taken.size(), 4u);
  EXPECT_EQ(container(2), "second");
  EXPECT_EQ(container(3), "first");
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
