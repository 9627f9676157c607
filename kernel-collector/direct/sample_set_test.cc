#include "kernel-collector/direct/sample_set.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernel-collector/direct/direct_testing.h"

namespace tributary {
namespace {

using ::testing::ElementsAre;

Attributes CommOf(const Process& process, const Dictionary& dictionary) {
  return {{"comm", std::string(dictionary.string(process.comm))}};
}

// Returns the addresses of a sample's stack, leaf first.
std::vector<uint64_t> StackOf(const SampleSet& set, const Sample& sample) {
  std::vector<uint64_t> stack;
  for (NodeRef node = sample.node; node.value != 0; node = set.definitions.nodes[node.value].parent) {
    stack.push_back(set.definitions.frames[set.definitions.nodes[node.value].frame.value].address);
  }
  return stack;
}

TEST(SampleSet, HasOnlyTheDefinitionsThatItsSamplesUse) {
  TestBatches batches;
  batches.Add("other", 0x1500);
  batches.Take();
  batches.Add("prog", 0x1000);
  batches.Add("prog", 0x2000);
  const SampleSet set = CopySamples(batches.Take(), CommOf);
  ASSERT_EQ(set.samples.size(), 2u);
  EXPECT_THAT(StackOf(set, set.samples[0]), ElementsAre(0x1000, 0x1011));
  EXPECT_THAT(StackOf(set, set.samples[1]), ElementsAre(0x2000, 0x1011));
  EXPECT_EQ(set.definitions.nodes.size(), 4u);
  EXPECT_EQ(set.definitions.executables.size(), 2u);
  EXPECT_EQ(set.definitions.executables[1].id, TestId("prog"));
  EXPECT_EQ(set.definitions.processes.size(), 2u);
  EXPECT_EQ(set.definitions.threads.size(), 2u);
  EXPECT_THAT(set.resources, ElementsAre(Attributes{{"comm", "prog"}}));
  EXPECT_THAT(set.resource_of, ElementsAre(0, 0));
  EXPECT_GT(set.bytes, 2 * sizeof(Sample));
  EXPECT_EQ(set.TimeOf(set.samples[0]), UnixNs{1'700'000'000'000'001'000});
}

// What is learnt about a process after its samples belongs to these samples too.
TEST(SampleSet, UsesTheNewestDefinitionOfAProcess) {
  TestBatches batches;
  batches.Add("prog", 0x1000);
  batches.own_attributes = "service.name=shop";
  batches.Add("prog", 0x2000);
  const SampleSet set = CopySamples(batches.Take(), [](const Process& process, const Dictionary& dictionary) {
    return DecodeAttributes(dictionary.string(process.attributes));
  });
  EXPECT_EQ(set.definitions.processes.size(), 2u);
  EXPECT_THAT(set.resources, ElementsAre(Attributes{{"service.name", "shop"}}));
}

TEST(SampleSet, DoesNotChangeWithTheDictionary) {
  TestBatches batches;
  batches.Add("prog", 0x1000);
  const SampleSet set = CopySamples(batches.Take(), CommOf);
  for (uint64_t i = 0; i < 1000; ++i) batches.Add("more", 0x3000 + i);
  EXPECT_THAT(StackOf(set, set.samples[0]), ElementsAre(0x1000, 0x1011));
  EXPECT_EQ(set.definitions.strings[set.definitions.executables[1].path.value], "/bin/prog");
}

TEST(SampleSet, OfAnEmptyBatchIsEmpty) {
  TestBatches batches;
  const SampleSet set = CopySamples(batches.Take(), CommOf);
  EXPECT_TRUE(set.samples.empty());
  EXPECT_TRUE(set.resources.empty());
}

TEST(SampleSet, KnowsTheTypesOfSamples) {
  SampleSet set;
  set.types = {{static_cast<SampleType>(200), {"pages", "count"}}};
  EXPECT_EQ(set.TypeOf(static_cast<SampleType>(200)).name, "pages");
  EXPECT_EQ(set.TypeOf(static_cast<SampleType>(201)), kUndefinedType);
  EXPECT_EQ(set.TypeOf(SampleType::kCpu), InfoOf(*FindSampleType(SampleType::kCpu)));
}

}  // namespace
}  // namespace tributary
