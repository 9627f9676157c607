#include <fmt/format.h>
#include <gtest/gtest.h>

#include <set>

#include "otlp/profile_logs.h"
#include "reducer/export/export_loop_testing.h"
#include "schemas/otlp/logs_service.pb.h"

namespace tributary {
namespace {

// How an ExportLoop numbers what it sends, and how it repeats the last run's request.
class ExportIdentityTest : public ExportLoopTest {
 protected:
  ExportIdentityTest() { Begin(); }

  ExportLoop::Options SmallRequests() {
    return {.cursor_name = "test", .metric_label = "otlp", .sender = "reducer-1", .builder = {.bytes_soft = 2000}};
  }
  void Begin() {
    Restart(SmallRequests());
    AddProcess(0);
    AddProcess(1);
    AddSymbols();
  }
  static std::vector<std::string> IdsOf(const otlp::ProfilesRequest& request) {
    std::vector<std::string> ids;
    for (const auto& resource : request.resource_profiles()) {
      for (const auto& profile : resource.scope_profiles(0).profiles()) ids.push_back(profile.profile_id());
    }
    return ids;
  }
  uint64_t Repeated() { return Counted("tributary_export_repeated_samples_total"); }
};

TEST_F(ExportIdentityTest, NumbersFollowEachOtherInASession) {
  AddSamples(1000);
  loop_->RunOnce();
  AddSamples(10);
  loop_->RunOnce();
  ASSERT_GT(sender_->taken.size(), 2u);
  uint64_t next = 0;
  std::set<std::string> ids;
  for (size_t i = 0; i < sender_->taken.size(); ++i) {
    EXPECT_EQ(sender_->identities[i].sender, "reducer-1");
    EXPECT_EQ(sender_->identities[i].session, sender_->identities[0].session);
    EXPECT_EQ(sender_->identities[i].first, next);
    for (const auto& sample : sender_->taken[i].resource_profiles(0).scope_profiles(0).profiles(0).samples()) {
      next += static_cast<uint64_t>(sample.timestamps_unix_nano_size());
    }
    for (const std::string& id : IdsOf(sender_->taken[i])) {
      EXPECT_EQ(id.size(), 16u);
      EXPECT_TRUE(ids.insert(id).second) << "an id occurs twice";
    }
  }
  EXPECT_EQ(next, 1010u);
  EXPECT_EQ(Repeated(), 0u);
}

TEST_F(ExportIdentityTest, EachShardHasItsOwnSession) {
  AddSamples(1, 0);
  AddSamples(1, 1);
  loop_->RunOnce();
  ASSERT_EQ(sender_->identities.size(), 2u);
  EXPECT_NE(sender_->identities[0].session, sender_->identities[1].session);
  EXPECT_EQ(sender_->identities[1].first, 0u);
}

// The process is killed while a request is in doubt. Afterwards more samples arrive, and later also other names.
TEST_F(ExportIdentityTest, RepeatsTheLastRequestWithTheSameSamplesAndIds) {
  AddSamples(100);
  loop_->RunOnce();
  AddSamples(300);
  sender_->script = {{}, Fails(absl::StatusCode::kDeadlineExceeded, true)};
  const size_t before = sender_->taken.size();
  loop_->RunOnce();
  ASSERT_EQ(sender_->taken.size(), before + 1) << "the request that is lost is the next one";
  const otlp::RequestIdentity lost = sender_->identities.back();
  const store::ExportPosition saved = store_.positions().LoadPosition("test", 0).value().value();
  ASSERT_TRUE(saved.request);
  EXPECT_EQ(saved.request->first, lost.first);
  const uint64_t rows = saved.request->count;
  ASSERT_GT(rows, 0u);

  AddSamples(500);
  Restart(SmallRequests());
  loop_->RunOnce();
  ASSERT_GT(sender_->taken.size(), 1u);
  EXPECT_EQ(sender_->identities[0], lost);
  EXPECT_EQ(sender_->taken[0].resource_profiles(0).scope_profiles(0).profiles(0).samples(0).timestamps_unix_nano_size(),
            static_cast<int>(rows));
  EXPECT_EQ(IdsOf(sender_->taken[0]).at(0), otlp::ProfileId(lost, lost.first));
  EXPECT_NE(sender_->identities[1].session, lost.session) << "a run has a session of its own";
  EXPECT_EQ(sender_->identities[1].first, 0u);
  EXPECT_EQ(Repeated(), rows);
  EXPECT_EQ(SamplesTaken(), 300 - (saved.cursor.samples.value() - 100) + 500) << "no sample is left out";
  EXPECT_FALSE(store_.positions().LoadPosition("test", 0).value()->request) << "nothing is in doubt at the end";
}

TEST_F(ExportIdentityTest, CountsARequestWhoseAnswerWasLostAsRepeated) {
  AddSamples(3);
  otlp::SendResult lost = Fails(absl::StatusCode::kDeadlineExceeded, true);
  lost.in_doubt = true;
  // The second attempt does not reach the receiver.
  sender_->script = {lost, Fails(absl::StatusCode::kUnavailable, true), {}};
  for (int i = 0; i < 3; ++i) {
    loop_->RunOnce();
    clock_.Advance(ExportLoop::kRetryMaxNs);
  }
  EXPECT_EQ(SamplesTaken(), 3u);
  EXPECT_EQ(Repeated(), 3u);
  ASSERT_EQ(sender_->identities.size(), 3u);
  EXPECT_EQ(sender_->identities[2], sender_->identities[0]);
}

// The numbers of the old session would belong to other samples.
TEST_F(ExportIdentityTest, WhatIsLeftOfAnExpiredRequestGetsNewNumbers) {
  AddSamples(2);
  samples_added_ += 60'000;
  AddSamples(2);
  sender_->script = {Fails(absl::StatusCode::kUnavailable, true)};
  loop_->RunOnce();
  const otlp::RequestIdentity lost = sender_->identities.back();
  store_.shards[0].raw_expired_until = UnixNs{kStart.value + kNsPerMinute};
  Restart(SmallRequests());
  loop_->RunOnce();
  EXPECT_EQ(SamplesTaken(), 2u);
  ASSERT_EQ(sender_->identities.size(), 1u);
  EXPECT_NE(sender_->identities[0].session, lost.session);
  EXPECT_EQ(Repeated(), 2u) << "the receiver may have them";
  EXPECT_EQ(Counted("tributary_export_expired_samples_total"), 2u);
}

// Metadata that arrives after a kill may put the samples into another order. Then a number would mean another sample.
TEST_F(ExportIdentityTest, ARequestWithAnotherOrderGetsNewNumbers) {
  AddProcess(0, "c2");
  AddSamples(2);
  AddSamples(3);
  store_.shards[0].samples.back().process = store::ProcessNo{2};
  sender_->script = {Fails(absl::StatusCode::kUnavailable, true)};
  EXPECT_FALSE(loop_->Flush(MonotonicNs{INT64_MAX}));
  const otlp::RequestIdentity lost = sender_->identities.back();
  for (store::ProcessRow& process : store_.shards[0].processes) process.container_id = "c1";  // now one resource
  for (auto& sample : store_.shards[0].samples) sample.process = store::ProcessNo{1};
  Restart(SmallRequests());
  EXPECT_TRUE(loop_->Flush(MonotonicNs{INT64_MAX}));
  EXPECT_EQ(SamplesTaken(), 5u);
  EXPECT_NE(sender_->identities.at(0).session, lost.session);
  EXPECT_EQ(Repeated(), 5u);
}

// Shard 1 has a request in doubt. If shard 0 sent its new samples first, two requests could be in doubt.
TEST_F(ExportIdentityTest, BeginsWithTheShardWhoseRequestIsInDoubt) {
  symbols_.clear();
  AddSamples(2, 1);
  sender_->script = {Fails(absl::StatusCode::kDeadlineExceeded, true)};
  EXPECT_FALSE(loop_->Flush(MonotonicNs{INT64_MAX}));
  const otlp::RequestIdentity lost = sender_->identities.back();
  AddSamples(3, 0);
  Restart(SmallRequests());
  loop_->RunOnce();
  ASSERT_FALSE(sender_->identities.empty()) << "the request does not wait for names";
  EXPECT_EQ(sender_->identities[0], lost);
}

// The last run's request is of shard 0, which cannot be read at first. Meanwhile, a request of shard 1 fails.
TEST_F(ExportIdentityTest, RepeatsAFailedRequestBeforeThatOfAnUnreadableShard) {
  AddProcess(1);
  AddSamples(2, 0);
  sender_->script = {Fails(absl::StatusCode::kDeadlineExceeded, true)};
  EXPECT_FALSE(loop_->Flush(MonotonicNs{INT64_MAX}));
  const otlp::RequestIdentity last = sender_->identities.back();
  Restart(SmallRequests());
  AddSamples(3, 1);
  store_.shards[0].error = absl::InternalError("disk");
  sender_->script = {Fails(absl::StatusCode::kUnavailable, true)};
  EXPECT_FALSE(loop_->Flush(MonotonicNs{INT64_MAX}));
  ASSERT_EQ(sender_->identities.size(), 1u);
  store_.shards[0].error.reset();
  clock_.Advance(ExportLoop::kRetryMaxNs);
  EXPECT_TRUE(loop_->Flush(MonotonicNs{INT64_MAX}));
  ASSERT_EQ(sender_->identities.size(), 3u);
  EXPECT_NE(sender_->identities[0], last);
  EXPECT_EQ(sender_->identities[1], sender_->identities[0]);
  EXPECT_EQ(sender_->identities[2], last);
  EXPECT_EQ(SamplesTaken(), 5u);
}

TEST_F(ExportIdentityTest, TheSenderStaysTheSameIfTheHostIsRenamed) {
  AddSamples(2);
  sender_->script = {Fails(absl::StatusCode::kUnavailable, true)};
  loop_->RunOnce();
  ExportLoop::Options options = SmallRequests();
  options.sender = "reducer-2";
  Restart(options);
  loop_->RunOnce();
  EXPECT_EQ(sender_->identities.at(0).sender, "reducer-1");
  AddSamples(1);
  loop_->RunOnce();
  EXPECT_EQ(sender_->identities.at(1).sender, "reducer-2");
}

TEST_F(ExportIdentityTest, WaitsForTheIntervalUnlessMoreWaits) {
  ExportLoop::Options options = SmallRequests();
  options.interval_ns = kNsPerMinute;
  options.scan_rows_max = 10;
  Restart(options);
  AddSamples(15);
  EXPECT_EQ(loop_->RunOnce(), 0) << "a full scan";
  EXPECT_EQ(loop_->RunOnce(), kNsPerMinute);
  symbols_.clear();
  AddSamples(1);
  EXPECT_EQ(loop_->RunOnce(), ExportLoop::kPollNs) << "a sample waits for names";
  store_.shards[0].error = Error(absl::StatusCode::kUnavailable, "locked");
  EXPECT_EQ(loop_->RunOnce(), ExportLoop::kPollNs);
}

// After a kill, the user chooses an older generation, in which the request has more bytes. With the first limit, it
// does not fit any more.
TEST_F(ExportIdentityTest, AnOlderGenerationLosesAndSkipsNoSample) {
  for (const size_t bytes_hard : {2100, 40'000}) {
    ExportLoop::Options options = SmallRequests();
    options.cursor_name = fmt::format("hard {}", bytes_hard);
    options.builder.bytes_hard = bytes_hard;
    Restart(options);
    const uint64_t before = Repeated();
    if (store_.shards[0].samples.empty()) AddSamples(500);
    sender_->script = {Fails(absl::StatusCode::kDeadlineExceeded, true)};
    EXPECT_FALSE(loop_->Flush(MonotonicNs{INT64_MAX}));
    ASSERT_TRUE(sender_->taken.empty());
    const otlp::RequestIdentity lost = sender_->identities.back();
    const uint64_t rows = store_.positions().LoadPosition(options.cursor_name, 0).value()->request.value().count;
    ASSERT_GT(rows, 1u);
    ASSERT_LT(rows, 500u);

    options.builder.generation = otlp::Generation::k1_7;
    Restart(options);
    EXPECT_TRUE(loop_->Flush(MonotonicNs{INT64_MAX}));
    EXPECT_EQ(SamplesTaken(), 500u);
    const bool fits = bytes_hard > 2100;
    EXPECT_EQ(Repeated() - before, rows) << "the receiver may have them, and no others";
    EXPECT_EQ(sender_->identities.at(0) == lost, fits);
    EXPECT_NE(sender_->identities.at(1).session, lost.session);
    EXPECT_EQ(sender_->identities.at(1).first == 0, fits) << "numbers follow each other in the new session";
  }
}

// A name that arrives after a kill may be large. The repeated request must still fit.
TEST_F(ExportIdentityTest, DividesARequestThatBecameTooLarge) {
  ExportLoop::Options options = SmallRequests();
  options.builder = {.size_of = otlp::ProfilesBuilder::SizeOf::kSampleLogs, .bytes_soft = 20'000, .bytes_hard = 40'000};
  symbols_.clear();
  Restart(options);
  AddSamples(100);
  sender_->script = {Fails(absl::StatusCode::kUnavailable, true)};
  EXPECT_FALSE(loop_->Flush(MonotonicNs{INT64_MAX}));
  const uint64_t rows = store_.positions().LoadPosition("test", 0).value()->request.value().count;
  ASSERT_GT(rows, 1u);
  symbols_[id_] = BuildSymbolTable(id_, SymbolSource::kSymtab,
                                   {{.address = 0x1000, .size = 0x200, .name = std::string(10'000, 'n')}});
  Restart(options);
  loop_->RunOnce();
  EXPECT_EQ(SamplesTaken(), 100u);
  EXPECT_GT(sender_->taken.size(), 2u);
  EXPECT_EQ(Repeated(), rows);
  for (size_t i = 0; i < sender_->taken.size(); ++i) {
    const otlp::LogsText logs = otlp::MakeLogs(sender_->taken[i], sender_->identities[i], otlp::LogRecords::kSamples);
    EXPECT_LE(logs.request->ByteSizeLong(), options.builder.bytes_hard + 12'000) << "one row more";
  }
}

}  // namespace
}  // namespace tributary
