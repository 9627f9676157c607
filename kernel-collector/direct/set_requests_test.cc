#include "kernel-collector/direct/set_requests.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "kernel-collector/direct/direct_testing.h"
#include "kernel-collector/direct/name_tables.h"
#include "otlp/profiles_text.h"
#include "schemas/otlp/profiles_service.pb.h"

namespace tributary {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class SetRequestsTest : public testing::Test {
 protected:
  static Attributes Host(const Process&, const Dictionary&) { return {{"host.name", "h"}}; }
  void AddSet() { sets_.push_back(CopySamples(batches_.Take(), Host)); }
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
  std::vector<SampleSet> sets_;
};

TEST_F(SetRequestsTest, NamesFrames) {
  tables_.Add(TestId("prog"), TableFor(TestId("prog")));
  batches_.Add("prog", 0x2010);
  batches_.Add("prog", 0x2010);
  AddSet();
  SetRequests requests(sets_, Lookup(), {});
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
  AddSet();
  const std::string text = Text(SetRequests(sets_, Lookup(), {}).Next());
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
  sets_.push_back(CopySamples(batch, Host));
  const std::string text = Text(SetRequests(sets_, Lookup(), {}).Next());
  for (const char* part : {"checkout", "main.run", "no_table"}) EXPECT_THAT(text, HasSubstr(part));
}

TEST_F(SetRequestsTest, SendsFramesOfLanguages) {
  batches_.Add("prog", 0x2010);
  Batch batch = batches_.Take();
  Dictionary& d = batches_.dictionary();
  const ExecutableRef program = d.InternExecutable(TestId("prog"), "/bin/prog");
  const ExecutableRef source = d.InternExecutable(TestId("source"), "/srv/app.py");
  batch.samples[0].node = d.InternStack(std::vector<Frame>{
      {.kind = FrameKind::kInterpreter, .executable = program, .address = 0x77},
      {.kind = FrameKind::kPython, .executable = source, .position = 12, .name = d.InternString("App.run")},
      {.kind = FrameKind::kPython, .executable = source}});
  sets_.push_back(CopySamples(batch, Host));
  const SetRequests::Made made = SetRequests(sets_, Lookup(), {}).Next();
  const std::string text = otlp::FormatProfiles(*made.request, {});
  EXPECT_THAT(text, HasSubstr("Instrumentation: cpython, Function: App.run, File: /srv/app.py, Line: 12"));
  EXPECT_THAT(text, HasSubstr("Instrumentation: cpython, Function: [python], File: /srv/app.py, Line: 0"));
  EXPECT_THAT(text, HasSubstr("Instrumentation: native: Function: 0x0077, File: /bin/prog"));
  EXPECT_EQ(made.request->dictionary().mapping_table_size(), 2) << "a source file is no mapping";
  const std::string folded = Text(SetRequests(sets_, Lookup(), {.fold_interpreters = true}).Next());
  EXPECT_THAT(folded, HasSubstr("App.run"));
  EXPECT_THAT(folded, Not(HasSubstr("0x0077")));
}

TEST_F(SetRequestsTest, ManySamplesMakeSeveralRequests) {
  for (uint64_t i = 0; i < 500; ++i) batches_.Add("prog", 0x10'000 + i);
  AddSet();
  SetRequests requests(sets_, Lookup(), {.bytes_soft = 4'000, .bytes_hard = 8'000});
  uint64_t samples = 0, made_requests = 0;
  for (SetRequests::Made made = requests.Next(); made.request != nullptr; made = requests.Next()) {
    samples += made.samples.total();
    ++made_requests;
  }
  EXPECT_EQ(samples, 500u);
  EXPECT_GT(made_requests, 3u);
}

// The indices of a set mean other things in the next set: here the first stack has the same index in both.
TEST_F(SetRequestsTest, SeveralSetsShareTheirTables) {
  tables_.Add(TestId("prog"), TableFor(TestId("prog")));
  batches_.Add("prog", 0x2010, 1);
  AddSet();
  batches_ = TestBatches();
  batches_.Add("other", 0x77, 2);
  batches_.Add("prog", 0x2010, 3);
  AddSet();
  SetRequests requests(sets_, Lookup(), {});
  const SetRequests::Made made = requests.Next();
  ASSERT_NE(made.request, nullptr);
  EXPECT_EQ(made.samples.total(), 3u);
  EXPECT_EQ(requests.Next().request, nullptr);
  EXPECT_EQ(made.request->resource_profiles_size(), 1);
  EXPECT_EQ(made.request->dictionary().stack_table_size(), 3);  // with element 0
  EXPECT_EQ(made.request->dictionary().mapping_table_size(), 3);
  const std::string text = Text(made);
  for (const char* part : {"helper", "/bin/prog", "/bin/other", "77"}) EXPECT_THAT(text, HasSubstr(part));
}

// A request that is full in the middle of a set goes on there, and then with the next set.
TEST_F(SetRequestsTest, ManySamplesOfSeveralSetsMakeSeveralRequests) {
  for (uint64_t i = 0; i < 300; ++i) {
    batches_.Add("prog", 0x10'000 + i);
    if (i % 100 == 99) AddSet();
  }
  SetRequests requests(sets_, Lookup(), {.bytes_soft = 12'000, .bytes_hard = 20'000});
  std::vector<uint64_t> samples;
  for (SetRequests::Made made = requests.Next(); made.request != nullptr; made = requests.Next()) {
    samples.push_back(made.samples.total());
    EXPECT_EQ(made.request->dictionary().stack_table_size(), static_cast<int>(samples.back()) + 1);
  }
  EXPECT_EQ(std::accumulate(samples.begin(), samples.end(), uint64_t{0}), 300u);
  EXPECT_GT(samples.size(), 1u);
  EXPECT_NE(samples.front() % 100, 0u);
}

}  // namespace
}  // namespace tributary
