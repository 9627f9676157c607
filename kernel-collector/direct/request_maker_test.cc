#include "kernel-collector/direct/request_maker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernel-collector/direct/direct_testing.h"
#include "otlp/json.h"
#include "schemas/otlp/logs_service.pb.h"

namespace tributary {
namespace {

using ::testing::HasSubstr;

class DirectRequestMakerTest : public testing::Test {
 protected:
  void Begin() {
    set_ =
        CopySamples(batches_.Take(), [](const Process&, const Dictionary&) { return Attributes{{"host.name", "h"}}; });
    maker_.Begin(set_, [](const ExecutableId&) { return nullptr; });
  }

  TestBatches batches_;
  DirectRequestMaker maker_{{.bytes_soft = 2'000}, {.sender = "n", .session = {1}}, {.sender = "n", .session = {2}}};
  SampleSet set_;
};

TEST_F(DirectRequestMakerTest, EventsFollowTheSamplesOfTheirSet) {
  batches_.AddEvent(ProcessEventKind::kStart, "prog");
  batches_.Add("prog", 0x2010);
  Begin();
  const DirectRequest samples = maker_.Next();
  ASSERT_NE(samples.samples, nullptr);
  EXPECT_EQ(samples.events, nullptr);
  EXPECT_EQ(samples.counts.total(), 1u);
  EXPECT_EQ(samples.identity, (otlp::RequestIdentity{.sender = "n", .session = {1}}));
  const DirectRequest events = maker_.Next();
  ASSERT_NE(events.events, nullptr);
  EXPECT_EQ(events.samples, nullptr);
  EXPECT_EQ(events.counts.total(), 0u);
  EXPECT_EQ(events.counts.events(), 1u);
  EXPECT_EQ(events.identity, (otlp::RequestIdentity{.sender = "n", .session = {2}}));
  const std::string text = otlp::ToJson(*events.events);
  for (const char* part : {"tributary.process.start", "host.name", "/bin/prog", "process.pid"}) {
    EXPECT_THAT(text, HasSubstr(part));
  }
  EXPECT_TRUE(maker_.Next().empty());
}

// Samples and events have numbers without gaps, each in a session of their own. A sum counts as all its events, but it
// has one number.
TEST_F(DirectRequestMakerTest, NumbersContinueFromRequestToRequest) {
  uint64_t events = 0, next_sample = 0, next_record = 0;
  int requests = 0;
  for (int set = 0; set < 2; ++set) {
    for (int i = 0; i < 20; ++i) batches_.Add("prog", 0x2010 + static_cast<uint64_t>(i), i);
    for (int i = 0; i < 20; ++i) batches_.AddEvent(ProcessEventKind::kSum, "prog", i, 3);
    Begin();
    for (DirectRequest request = maker_.Next(); !request.empty(); request = maker_.Next()) {
      ++requests;
      if (request.samples != nullptr) {
        EXPECT_EQ(request.identity.first, next_sample);
        next_sample += request.counts.total();
        continue;
      }
      EXPECT_EQ(request.identity.first, next_record);
      for (const auto& resource : request.events->resource_logs()) {
        next_record += static_cast<uint64_t>(resource.scope_logs(0).log_records_size());
      }
      events += request.counts.events();
    }
  }
  EXPECT_EQ(next_sample, 40u);
  EXPECT_EQ(next_record, 40u);
  EXPECT_EQ(events, 120u);
  EXPECT_GT(requests, 8);  // requests are limited
}

}  // namespace
}  // namespace tributary
