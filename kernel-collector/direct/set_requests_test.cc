#include "kernel-collector/direct/set_requests.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernel-collector/direct/direct_testing.h"
#include "kernel-collector/direct/name_tables.h"
#include "otlp/profiles_text.h"

namespace tributary {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class SetRequestsTest : public testing::Test {
 protected:
  static Attributes Host(const Process&, const Dictionary&) { return {{"host.name", "h"}}; }
  SymbolLookup Lookup() {
    return [this](const ExecutableId& id) { return tables_.Find(id); };
  }
  static std::string Text(const SetRequests::Made& made) {
    return otlp::FormatProfiles(*made.request, {.layout = otlp::TextLayout::kCollector});
  }

  FakeClock clock_;
  Metrics metrics_;
  NameTables tables_{1 << 20, clock_, metrics_};
  TestBatches batches_;
};

TEST_F(SetRequestsTest, NamesFrames) {
  tables_.Add(TestId("prog"), TableFor(TestId("prog")));
  batches_.Add("prog", 0x2010);
  batches_.Add("prog", 0x2010);
  const SampleSet set = CopySamples(batches_.Take(), Host);
  SetRequests requests(set, Lookup(), {});
  const SetRequests::Made made = requests.Next();
  ASSERT_NE(made.request, nullptr);
  EXPECT_EQ(made.samples.total(), 2u);
  const std::string text = Text(made);
  for (const char* part : {"helper", "main()", "host.name", "worker", "/bin/prog"}) {
    EXPECT_THAT(text, HasSubstr(part));
  }
  EXPECT_EQ(requests.Next().request, nullptr);
}

TEST_F(SetRequestsTest, WithoutATableFramesHaveAddresses) {
  batches_.Add("prog", 0x2010);
  const SampleSet set = CopySamples(batches_.Take(), Host);
  const std::string text = Text(SetRequests(set, Lookup(), {}).Next());
  EXPECT_THAT(text, HasSubstr("2010"));
  EXPECT_THAT(text, Not(HasSubstr("helper")));
}

// A sample's own attributes, and a name that was sent with its frame.
TEST_F(SetRequestsTest, SendsWhatSamplesCarry) {
  Batch batch;
  {
    batches_.Add("prog", 0x2010);
    batch = batches_.Take();
    Dictionary& d = batches_.dictionary();
    batch.samples[0].attributes = d.InternString("request=checkout");
    batch.samples[0].node =
        d.InternStack(std::vector<Frame>{{.kind = FrameKind::kGo, .position = 12, .name = d.InternString("main.run")}});
    batch.samples[0].ending = Ending::kNoTable;
  }
  const SampleSet set = CopySamples(batch, Host);
  const std::string text = Text(SetRequests(set, Lookup(), {}).Next());
  for (const char* part : {"checkout", "main.run", "no_table"}) EXPECT_THAT(text, HasSubstr(part));
}

TEST_F(SetRequestsTest, ManySamplesMakeSeveralRequests) {
  for (uint64_t i = 0; i < 500; ++i) batches_.Add("prog", 0x10'000 + i);
  const SampleSet set = CopySamples(batches_.Take(), Host);
  SetRequests requests(set, Lookup(), {.bytes_soft = 4'000, .bytes_hard = 8'000});
  uint64_t samples = 0, made_requests = 0;
  for (SetRequests::Made made = requests.Next(); made.request != nullptr; made = requests.Next()) {
    samples += made.samples.total();
    ++made_requests;
  }
  EXPECT_EQ(samples, 500u);
  EXPECT_GT(made_requests, 3u);
}

}  // namespace
}  // namespace tributary
