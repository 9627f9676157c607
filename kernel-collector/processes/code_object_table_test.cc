#include "kernel-collector/processes/code_object_table.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "kernel-collector/processes/runtime_binary_testing.h"

namespace tributary {
namespace {

class CodeObjectTableTest : public testing::Test {
 protected:
  void Insert(CodeObjectTable& table, uint64_t address, const std::string& name, uint32_t check = 1) {
    table.Insert({address, check}, store->functions.Add(std::make_shared<FakeFunction>(name, "/a.py", 1)));
  }
  static std::string NameOf(CodeObjectTable& table, uint64_t address, uint32_t check = 1) {
    const PooledFunction* found = table.Find({address, check});
    return found == nullptr ? "" : found->function->name;
  }

  Metrics metrics;
  std::shared_ptr<CodeObjectStore> store = std::make_shared<CodeObjectStore>(metrics);
};

TEST_F(CodeObjectTableTest, FindsByAddressAndCheck) {
  CodeObjectTable table(store);
  Insert(table, 0x1000, "old", 1);
  Insert(table, 0x1000, "new", 2);
  EXPECT_EQ(NameOf(table, 0x1000, 1), "old");
  EXPECT_EQ(NameOf(table, 0x1000, 2), "new");
  EXPECT_EQ(NameOf(table, 0x1000, 3), "");
  EXPECT_EQ(NameOf(table, 0x1008, 1), "");
}

TEST_F(CodeObjectTableTest, AForkSeesTheParentsEntriesOfThatMoment) {
  auto parent = std::make_unique<CodeObjectTable>(store);
  Insert(*parent, 1, "shared");
  const std::shared_ptr<CodeObjectTable> child = parent->Fork();
  EXPECT_EQ(store->entries, 1u);  // stored once
  Insert(*parent, 2, "of the parent");
  Insert(*child, 3, "of the child");
  EXPECT_EQ(NameOf(*child, 1), "shared");
  EXPECT_EQ(NameOf(*child, 2), "");
  EXPECT_EQ(NameOf(*parent, 3), "");
  const std::shared_ptr<CodeObjectTable> grandchild = child->Fork();
  parent.reset();
  EXPECT_EQ(NameOf(*grandchild, 1), "shared");
  EXPECT_EQ(NameOf(*grandchild, 3), "of the child");
}

TEST_F(CodeObjectTableTest, ManyForksKeepFewLayersAndNoMemory) {
  auto master = std::make_unique<CodeObjectTable>(store);
  size_t layers_max = 0;
  for (uint64_t i = 0; i < 3000; ++i) {
    Insert(*master, i, fmt::format("f{}", i));
    const std::shared_ptr<CodeObjectTable> worker = master->Fork();
    layers_max = std::max(layers_max, worker->layers());
  }
  EXPECT_LE(layers_max, 12u);
  EXPECT_EQ(master->size(), 3000u);
  EXPECT_EQ(store->entries, 3000u);
  for (uint64_t i = 0; i < 3000; ++i) ASSERT_EQ(NameOf(*master, i), fmt::format("f{}", i));
  EXPECT_EQ(store->tables.size(), 1u);
  master.reset();
  EXPECT_EQ(store->entries, 0u);
  EXPECT_EQ(store->functions.size(), 0u);
  EXPECT_EQ(store->functions.bytes(), 0u);
}

TEST_F(CodeObjectTableTest, RemembersFailuresForASecond) {
  CodeObjectTable table(store);
  const CodeObject object{7, 1};
  EXPECT_FALSE(table.HasFailed(object, MonotonicNs{100}));
  table.Fail(object, MonotonicNs{100});
  EXPECT_TRUE(table.HasFailed(object, MonotonicNs{100 + kNsPerSecond - 1}));
  EXPECT_FALSE(table.HasFailed(object, MonotonicNs{100 + kNsPerSecond}));
  Insert(table, 7, "came later");
  EXPECT_FALSE(table.HasFailed(object, MonotonicNs{101}));
  for (uint64_t i = 0; i <= CodeObjectTable::kFailedMax; ++i) table.Fail({i, 9}, MonotonicNs{100});
  EXPECT_TRUE(table.HasFailed({CodeObjectTable::kFailedMax, 9}, MonotonicNs{101}));
  EXPECT_FALSE(table.HasFailed({0, 9}, MonotonicNs{101}));
  EXPECT_LE(store->entries, 1 + CodeObjectTable::kFailedMax);
}

TEST_F(CodeObjectTableTest, ExpiredFailuresTakeNoRoom) {
  CodeObjectTable table(store);
  for (uint64_t i = 0; i < CodeObjectTable::kFailedSweepAt; ++i) table.Fail({i, 9}, MonotonicNs{100});
  EXPECT_EQ(store->entries, CodeObjectTable::kFailedSweepAt);
  table.Fail({0, 10}, MonotonicNs{100 + kNsPerSecond});
  EXPECT_EQ(store->entries, 1u);
  table.Clear();
  EXPECT_EQ(store->entries, 0u);
}

TEST_F(CodeObjectTableTest, FunctionsAreLimitedByTheirBytes) {
  CodeObjectTable table(store);
  Insert(table, 1, "hot");
  const std::string name(10'000, 'n');
  for (uint64_t i = 0; i < 2000; ++i) {
    Insert(table, 0x1000 + i, name + std::to_string(i), 2);
    table.Trim();
    ASSERT_EQ(NameOf(table, 1), "hot") << i;
    ASSERT_LE(store->functions.bytes(), CodeObjectTable::kBytesMax * 8 / 5);
  }
}

// Forks move the entries out of the own layer.
TEST_F(CodeObjectTableTest, AForkingProcessStaysBelowTheLimits) {
  CodeObjectTable table(store);
  for (uint64_t i = 0; i < 4 * CodeObjectTable::kEntriesMax; ++i) {
    Insert(table, i, "made by eval");
    if (i % 64 != 0) continue;
    table.Fork();
    table.Trim();
    ASSERT_LE(table.size(), CodeObjectTable::kEntriesMax * 3 / 2 + 64) << i;
  }
}

TEST_F(CodeObjectTableTest, IsReadingOnce) {
  CodeObjectTable table(store);
  EXPECT_TRUE(table.StartReading({7, 1}));
  EXPECT_FALSE(table.StartReading({7, 1}));
  EXPECT_TRUE(table.StartReading({7, 2}));
  table.EndReading({7, 1});
  EXPECT_TRUE(table.StartReading({7, 1}));
}

TEST_F(CodeObjectTableTest, KeepsUsedEntriesAboveTheLimit) {
  CodeObjectTable table(store);
  Insert(table, 1, "hot");
  for (uint64_t i = 0; i < 4 * CodeObjectTable::kEntriesMax; ++i) {
    Insert(table, 0x1000 + i, "made by eval", 2);
    table.Trim();
    ASSERT_EQ(NameOf(table, 1), "hot") << i;
    ASSERT_LE(table.size(), CodeObjectTable::kEntriesMax * 2);
  }
  EXPECT_EQ(NameOf(table, 0x1000, 2), "");
  EXPECT_EQ(store->entries, table.size());
  table.Clear();
  EXPECT_EQ(store->entries, 0u);
}

}  // namespace
}  // namespace tributary
