#include "kernel-collector/events/text_table.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>

namespace tributary {
namespace {

TEST(TextTable, StoresEqualTextsOnceUntilTheLastReference) {
  TextTable table;
  const TextId a = table.Take("/usr/bin/true");
  EXPECT_EQ(table.Take("/usr/bin/true"), a);
  EXPECT_EQ(table.Take(""), TextId{});
  EXPECT_EQ(table.Text(TextId{}), "");
  EXPECT_EQ(table.size(), 1u);
  table.Release(a);
  EXPECT_EQ(table.Text(a), "/usr/bin/true");
  table.Release(a);
  EXPECT_EQ(table.size(), 0u);
  EXPECT_EQ(table.bytes(), 0u);
}

TEST(TextTable, RefusesTextsAboveItsLimitAndCutsLongTexts) {
  TextTable table(6000);
  const TextId long_text = table.Take(std::string(10'000, 'x'));
  EXPECT_EQ(table.Text(long_text).size(), TextTable::kTextBytesMax);
  EXPECT_EQ(table.Take(std::string(2000, 'y')), TextId{});
  EXPECT_EQ(table.refused(), 1u);
  table.Release(long_text);
  EXPECT_NE(table.Take(std::string(2000, 'y')), TextId{});
}

TEST(TextTable, AgreesWithAMapOfCounts) {
  std::mt19937 random(3);
  TextTable table;
  std::map<std::string, int> references;
  for (int i = 0; i < 20'000; ++i) {
    const std::string text(random() % 40, static_cast<char>('a' + random() % 3));
    const TextId id = table.Take(text);
    ASSERT_EQ(table.Text(id), text);
    int& count = references[text];
    ++count;
    const int releases = static_cast<int>(random() % 3);
    for (int r = 0; r < releases && count > 0; ++r, --count) table.Release(id);
  }
  size_t kept = 0;
  for (const auto& [text, count] : references) kept += !text.empty() && count > 0;
  EXPECT_EQ(table.size(), kept);
  for (const auto& [text, count] : references) {
    const TextId id = table.Take(text);
    for (int i = 0; i <= count; ++i) table.Release(id);
  }
  EXPECT_EQ(table.bytes(), 0u);
}

}  // namespace
}  // namespace tributary
