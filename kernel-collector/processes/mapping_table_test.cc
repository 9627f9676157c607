#include "kernel-collector/processes/mapping_table.h"

#include <gtest/gtest.h>

#include <string>

#include "kernel-collector/processes/fakes_testing.h"
#include "kernel-collector/processes/runtime_testing.h"

namespace tributary {
namespace {

Mapping At(uint64_t start, uint64_t end, uint64_t offset, CodeFilePtr executable, int64_t learned = 0) {
  return Mapping{start, end, offset, MonotonicNs{learned}, std::move(executable)};
}

std::string Show(const MappingTable& table) {
  std::string out;
  for (const Mapping& m : *table.snapshot()) {
    out += (m.executable ? m.executable->path : "anon") + ":" + std::to_string(m.start) + "-" + std::to_string(m.end) +
           "+" + std::to_string(m.file_offset) + " ";
  }
  return out;
}

class MappingTableTest : public testing::Test {
 protected:
  MappingTableTest() {
    a->path = "a";
    b->path = "b";
  }
  CodeFilePtr a = std::make_shared<CodeFile>(), b = std::make_shared<CodeFile>();
  MappingTable table;
};

TEST_F(MappingTableTest, FindsTheMappingThatCoversAnAddress) {
  table.Insert(At(300, 400, 0, b));
  table.Insert(At(100, 200, 0, a));
  EXPECT_EQ(table.Find(99), nullptr);
  EXPECT_EQ(table.Find(100)->executable, a);
  EXPECT_EQ(table.Find(199)->executable, a);
  EXPECT_EQ(table.Find(200), nullptr);
  EXPECT_EQ(table.Find(300)->executable, b);
  EXPECT_EQ(table.Find(400), nullptr);
}

TEST_F(MappingTableTest, MappingsOfTheSameCodeKeepTheirRuntime) {
  auto jit = std::make_shared<FakeRuntime>(), other = std::make_shared<FakeRuntime>();
  auto with = [](Mapping mapping, std::shared_ptr<const Runtime> runtime) {
    mapping.runtime = std::move(runtime);
    return mapping;
  };
  table.Insert(with(At(100, 200, 0, nullptr), jit));
  table.Insert(At(200, 300, 0, nullptr));  // more of the JIT's pages
  table.Insert(At(120, 140, 0, nullptr));  // their protection has changed
  table.Insert(with(At(300, 400, 0, nullptr), other));
  EXPECT_EQ(table.Find(130)->runtime, jit);
  EXPECT_EQ(table.Find(190)->runtime, jit);
  EXPECT_EQ(table.Find(250)->runtime, jit);
  EXPECT_EQ(table.Find(350)->runtime, other);
  table.Replace({At(100, 350, 0, nullptr), At(400, 500, 0, nullptr)}, MonotonicNs{1});
  EXPECT_EQ(table.Find(130)->runtime, jit);
  EXPECT_EQ(table.Find(450)->runtime, nullptr);
  table.Insert(At(100, 200, 0, a));
  EXPECT_EQ(table.Find(130)->runtime, nullptr);
  EXPECT_EQ(table.Find(250)->runtime, jit);
}

TEST_F(MappingTableTest, ReportsThatItReplacedOtherCode) {
  using Inserted = MappingTable::Inserted;
  EXPECT_EQ(table.Insert(At(100, 200, 1000, a)), Inserted::kAdded);
  EXPECT_EQ(table.Insert(At(120, 180, 1020, a)), Inserted::kAdded);  // mprotect reports a part again
  EXPECT_EQ(table.Insert(At(120, 180, 2000, a)), Inserted::kReplaced);
  EXPECT_EQ(table.Insert(At(150, 160, 2030, b)), Inserted::kReplaced);
  EXPECT_EQ(table.Insert(At(200, 300, 0, b)), Inserted::kAdded);
  EXPECT_EQ(table.Insert(At(300, 400, 0, nullptr)), Inserted::kAdded);
  EXPECT_EQ(table.Insert(At(350, 380, 77, nullptr)), Inserted::kAdded);  // a JIT's code has no file that could differ
}

TEST_F(MappingTableTest, AFileKnownTwiceIsOneFile) {
  auto again = std::make_shared<CodeFile>();
  again->path = "a";
  table.Insert(At(100, 200, 0, a));
  EXPECT_EQ(table.Insert(At(100, 200, 0, again)), MappingTable::Inserted::kAdded);
  EXPECT_TRUE(table.Replace({At(100, 200, 0, a)}, MonotonicNs{9}).empty());
  a->id = BuildId("one");
  again->id = BuildId("another");  // a new version at the old place
  EXPECT_EQ(table.Insert(At(100, 200, 0, again)), MappingTable::Inserted::kReplaced);
}

TEST_F(MappingTableTest, AScanReportsChangedMappings) {
  table.Insert(At(100, 200, 0, a));
  table.Insert(At(300, 400, 0, a));
  MappingTable::List changed =
      table.Replace({At(100, 200, 0, a), At(350, 450, 0, b), At(500, 600, 0, b)}, MonotonicNs{9});
  ASSERT_EQ(changed.size(), 1u);
  EXPECT_EQ(changed[0].start, 350u);
}

TEST_F(MappingTableTest, CutsOverlappedMappings) {
  table.Insert(At(100, 400, 1000, a));
  table.Insert(At(200, 300, 0, b));
  EXPECT_EQ(Show(table), "a:100-200+1000 b:200-300+0 a:300-400+1200 ");
  table.Insert(At(150, 350, 0, nullptr));
  EXPECT_EQ(Show(table), "a:100-150+1000 anon:150-350+0 a:350-400+1250 ");
  table.Insert(At(0, 1000, 0, b));
  EXPECT_EQ(Show(table), "b:0-1000+0 ");
  table.Insert(At(0, 1000, 64, a));
  EXPECT_EQ(Show(table), "a:0-1000+64 ");
}

TEST_F(MappingTableTest, JoinsAdjacentMappings) {
  table.Insert(At(100, 200, 0, nullptr));
  table.Insert(At(200, 300, 7, nullptr));
  table.Insert(At(300, 400, 100, a));
  table.Insert(At(400, 500, 200, a));
  table.Insert(At(500, 600, 999, a));
  EXPECT_EQ(Show(table), "anon:100-300+0 a:300-500+100 a:500-600+999 ");
}

TEST_F(MappingTableTest, ACopyDoesNotSeeChanges) {
  table.Insert(At(100, 200, 0, a));
  MappingTable child = table;
  auto snapshot = table.snapshot();
  child.Insert(At(100, 200, 0, b));
  table.Insert(At(300, 400, 0, b));
  EXPECT_EQ(Show(table), "a:100-200+0 b:300-400+0 ");
  EXPECT_EQ(Show(child), "b:100-200+0 ");
  EXPECT_EQ(snapshot->size(), 1u);
}

TEST_F(MappingTableTest, AScanKeepsNewerMappings) {
  table.Insert(At(100, 200, 0, a, 10));
  table.Insert(At(300, 400, 0, a, 30));
  table.Replace({At(100, 200, 0, b, 20), At(500, 600, 0, b, 20), At(350, 360, 0, b, 20)}, MonotonicNs{20});
  EXPECT_EQ(Show(table), "b:100-200+0 a:300-400+0 b:500-600+0 ");
}

TEST_F(MappingTableTest, IsCapped) {
  for (uint64_t i = 0; i < MappingTable::kMappingsMax; ++i) {
    ASSERT_EQ(table.Insert(At(i * 10, i * 10 + 5, 0, a)), MappingTable::Inserted::kAdded);
  }
  EXPECT_EQ(table.Insert(At(1'000'000, 1'000'001, 0, a)), MappingTable::Inserted::kRefused);
  EXPECT_EQ(table.Insert(At(0, 5, 0, b)), MappingTable::Inserted::kReplaced);
  EXPECT_EQ(table.size(), MappingTable::kMappingsMax);
}

TEST_F(MappingTableTest, IgnoresEmptyRanges) {
  EXPECT_EQ(table.Insert(At(5, 5, 0, a)), MappingTable::Inserted::kAdded);
  EXPECT_EQ(table.Insert(At(6, 5, 0, a)), MappingTable::Inserted::kAdded);
  EXPECT_EQ(table.size(), 0u);
}

}  // namespace
}  // namespace tributary
