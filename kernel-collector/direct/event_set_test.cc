#include "kernel-collector/direct/event_set.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernel-collector/direct/direct_testing.h"

namespace tributary {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// What a resource is made of.
Attributes PartsOf(const Process& process, const Dictionary& texts) {
  Attributes parts = DecodeAttributes(texts.string(process.attributes));
  SetAttribute(parts, "container", texts.string(process.container_id));
  SetAttribute(parts, "path", texts.string(process.executable_path));
  return parts;
}

TEST(EventSet, CopiesTextsAndTimes) {
  TestBatches batches;
  batches.container_id = "c1";
  batches.AddEvent(ProcessEventKind::kExit, "prog", 1500);
  EventSet set;
  {
    const Batch batch = batches.Take();
    set = CopyEvents(batch, PartsOf);
  }
  ASSERT_EQ(set.items.size(), 1u);
  const EventSet::Item& item = set.items[0];
  EXPECT_EQ(item.event.kind, ProcessEventKind::kExit);
  EXPECT_EQ(item.name, "prog");
  EXPECT_EQ(item.executable_path, "/bin/prog");
  EXPECT_EQ(item.time, UnixNs{1'700'000'000'000'001'500});
  EXPECT_THAT(set.resources, ElementsAre(Attributes{{"container", "c1"}, {"path", "/bin/prog"}}));
  EXPECT_GT(set.bytes, sizeof(EventSet::Item));
}

TEST(EventSet, HasEachResourceOnce) {
  TestBatches batches;
  for (const char* program : {"a", "b", "a", "a"}) batches.AddEvent(ProcessEventKind::kStart, program);
  int calls = 0;
  const EventSet set = CopyEvents(batches.Take(), [&calls](const Process& process, const Dictionary& texts) {
    ++calls;
    return PartsOf(process, texts);
  });
  EXPECT_EQ(calls, 2);
  EXPECT_EQ(set.resources.size(), 2u);
  std::vector<uint32_t> resources;
  for (const EventSet::Item& item : set.items) resources.push_back(item.resource);
  EXPECT_THAT(resources, ElementsAre(0, 1, 0, 0));
}

// Own attributes are those of the same program: the process may have run another one before.
TEST(EventSet, TakesTheOwnAttributesOfASampledProcess) {
  TestBatches batches;
  batches.own_attributes = "service.name=shop";
  batches.Add("prog", 0x2010);
  batches.AddEvent(ProcessEventKind::kExit, "prog");
  batches.AddEvent(ProcessEventKind::kExit, "other");
  const EventSet set = CopyEvents(batches.Take(), PartsOf);
  ASSERT_EQ(set.items.size(), 2u);
  EXPECT_EQ(FindAttribute(set.resources[set.items[0].resource], "service.name"), "shop");
  EXPECT_EQ(FindAttribute(set.resources[set.items[1].resource], "service.name"), "");
}

TEST(EventSet, TakesTheNewestOwnAttributes) {
  TestBatches batches;
  for (const char* attributes : {"service.name=old", "service.name=new"}) {
    batches.own_attributes = attributes;
    batches.Add("prog", 0x2010);
  }
  batches.AddEvent(ProcessEventKind::kExit, "prog");
  const EventSet set = CopyEvents(batches.Take(), PartsOf);
  EXPECT_EQ(FindAttribute(set.resources[set.items[0].resource], "service.name"), "new");
}

TEST(EventSet, IsEmptyWithoutEvents) {
  TestBatches batches;
  batches.Add("prog", 0x2010);
  const EventSet set = CopyEvents(batches.Take(), PartsOf);
  EXPECT_THAT(set.items, IsEmpty());
  EXPECT_EQ(set.bytes, 0u);
}

}  // namespace
}  // namespace tributary
