#include "profile/kept_ids.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

namespace tributary {
namespace {

TEST(KeptIds, EmptyTableHasNoRuns) {
  EXPECT_EQ(KeptIds::FromMarks({}), KeptIds());
  EXPECT_EQ(KeptIds::FromMarks({false}), KeptIds());
  EXPECT_EQ(KeptIds().NewIds(), std::vector<uint32_t>{0});
}

TEST(KeptIds, RunsAlternateFromKept) {
  const KeptIds ids = KeptIds::FromMarks({false, false, false, true, true, true, false});
  EXPECT_EQ(ids.runs(), (std::vector<uint32_t>{0, 2, 3, 1}));
  EXPECT_EQ(ids.before(), 7u);
  EXPECT_EQ(ids.after(), 4u);
  EXPECT_EQ(ids.NewIds(), (std::vector<uint32_t>{0, 0, 0, 1, 2, 3, 0}));
}

TEST(KeptIds, RefusesEmptyRunsAndTooManyIds) {
  KeptIds ids;
  EXPECT_TRUE(ids.AddRun(0));
  EXPECT_FALSE(ids.AddRun(0));
  EXPECT_TRUE(ids.AddRun(UINT32_MAX - 1));
  EXPECT_FALSE(ids.AddRun(1));
  EXPECT_EQ(ids.before(), UINT32_MAX);
}

TEST(KeptIds, AppliesToWholeAndShorterTables) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 300; ++round) {
    std::vector<bool> marks(1 + random() % 40);
    for (size_t i = 1; i < marks.size(); ++i) marks[i] = random() % 3 != 0;
    const KeptIds all = KeptIds::FromMarks(marks);
    ASSERT_EQ(all.before(), marks.size());
    const auto count = static_cast<uint32_t>(1 + random() % marks.size());
    const KeptIds below = all.Below(count);
    ASSERT_EQ(below.before(), count);
    std::vector<std::string> table, expected;
    for (uint32_t i = 0; i < count; ++i) {
      table.push_back(std::to_string(i));
      if (i == 0 || marks[i]) expected.push_back(table.back());
    }
    std::vector<std::string> same = table;
    below.ApplyTo(table);
    all.ApplyTo(same);  // the runs are longer than the table
    EXPECT_EQ(table, expected);
    EXPECT_EQ(same, expected);
    EXPECT_EQ(below.after(), expected.size());
    const std::vector<uint32_t> ids = below.NewIds();
    for (uint32_t i = 1; i < count; ++i) {
      EXPECT_EQ(ids[i] != 0, marks[i]);
      if (ids[i] != 0) {
        EXPECT_EQ(expected[ids[i]], std::to_string(i));
      }
    }
  }
}

}  // namespace
}  // namespace tributary
