#include "kernel-collector/direct/request_maker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "kernel-collector/direct/direct_testing.h"
#include "otlp/json.h"
#include "schemas/otlp/logs_service.pb.h"
#include "schemas/otlp/profiles_service.pb.h"

namespace tributary {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class DirectRequestMakerTest : public testing::Test {
 protected:
  // Adds what batches_ has to the next sets.
  void AddSet() {
    sets_.push_back(
        CopySamples(batches_.Take(), [](const Process&, const Dictionary&) { return Attributes{{"host.name", "h"}}; }));
  }
  void Begin() {
    maker_.Begin(sets_, [](const ExecutableId&) { return nullptr; });
  }

  TestBatches batches_;
  DirectRequestMaker maker_{{.bytes_soft = 2'000}, {.sender = "n", .session = {1}}, {.sender = "n", .session = {2}}};
  std::vector<SampleSet> sets_;
};

TEST_F(DirectRequestMakerTest, EventsFollowTheSamplesOfTheirSet) {
  batches_.AddEvent(ProcessEventKind::kStart, "prog");
  batches_.Add("prog", 0x2010);
  AddSet();
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
    sets_.clear();
    AddSet();
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

TEST_F(DirectRequestMakerTest, SendsSeveralSetsTogether) {
  for (int set = 0; set < 3; ++set) {
    if (set != 1) batches_.Add("prog", 0x2010, set);
    if (set != 2) batches_.AddEvent(ProcessEventKind::kExit, "prog", set);
    AddSet();
  }
  sets_.emplace_back();
  Begin();
  const DirectRequest samples = maker_.Next();
  ASSERT_NE(samples.samples, nullptr);
  EXPECT_EQ(samples.counts.total(), 2u);
  EXPECT_EQ(samples.samples->resource_profiles_size(), 1);
  const DirectRequest events = maker_.Next();
  ASSERT_NE(events.events, nullptr);
  EXPECT_EQ(events.counts.events(), 2u);
  EXPECT_TRUE(maker_.Next().empty());
}

TEST_F(DirectRequestMakerTest, OrdersTheTablesOfProfiles) {
  for (const uint64_t address : {0x2030, 0x2020, 0x2010}) batches_.Add("prog", address);
  AddSet();
  Begin();
  const DirectRequest request = maker_.Next();
  ASSERT_NE(request.samples, nullptr);
  std::vector<uint64_t> addresses;
  for (const auto& location : request.samples->dictionary().location_table()) addresses.push_back(location.address());
  EXPECT_THAT(addresses, ElementsAre(0, 0x1010, 0x2010, 0x2020, 0x2030));
}

}  // namespace
}  // namespace tributary
