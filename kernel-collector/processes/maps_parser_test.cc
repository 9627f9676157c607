#include "kernel-collector/processes/maps_parser.h"

#include <gtest/gtest.h>

#include <vector>

namespace tributary {
namespace {

TEST(MapsParser, ReadsEveryField) {
  auto entry = ParseMapsLine("559dbc646000-559dbc64b000 r-xp 00002000 fe:10 247026                     /usr/bin/cat");
  ASSERT_TRUE(entry.has_value());
  EXPECT_EQ(entry->start, 0x559dbc646000u);
  EXPECT_EQ(entry->end, 0x559dbc64b000u);
  EXPECT_EQ(entry->file_offset, 0x2000u);
  EXPECT_EQ(entry->device_major, 0xfeu);
  EXPECT_EQ(entry->device_minor, 0x10u);
  EXPECT_EQ(entry->inode, 247026u);
  EXPECT_TRUE(entry->executable);
  EXPECT_EQ(entry->path, "/usr/bin/cat");
}

TEST(MapsParser, ReadsPathsAsTheyAre) {
  struct Case {
    std::string line, path;
  };
  const std::string head = "1000-2000 r-xp 00000000 08:01 7 ";
  for (const Case& c : std::vector<Case>{{head + "/a b/c  d", "/a b/c  d"},
                                         {head + "   /two\\012lines", "/two\nlines"},
                                         {head + "/usr/lib/x.so (deleted)", "/usr/lib/x.so"},
                                         {head + "/odd (deleted) name", "/odd (deleted) name"},
                                         {head + "/\x1b[31m\xff", "/\x1b[31m\xff"},
                                         {head + "/back\\slash", "/back\\slash"},
                                         {"1000-2000 r-xp 00000000 00:00 0 [vdso]", "[vdso]"},
                                         {"1000-2000 rwxp 00000000 00:00 0 ", ""},
                                         {"1000-2000 rwxp 00000000 00:00 0", ""}}) {
    auto entry = ParseMapsLine(c.line);
    ASSERT_TRUE(entry.has_value()) << c.line;
    EXPECT_EQ(entry->path, c.path);
    EXPECT_TRUE(entry->executable);
  }
}

TEST(MapsParser, ReadsTheHighestAddresses) {
  auto entry = ParseMapsLine("ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0 [vsyscall]");
  ASSERT_TRUE(entry.has_value());
  EXPECT_EQ(entry->end, 0xffffffffff601000u);
}

TEST(MapsParser, RejectsLineWithoutInode) {
  EXPECT_FALSE(ParseMapsLine("1000-2000 r-xp 00000000 08:01 "));
  EXPECT_FALSE(ParseMapsLine("1000-2000 r-xp 00000000 08:01 /bin/x"));
}

TEST(MapsParser, RejectsMalformedLines) {
  for (const char* line :
       {"", " ", "1000", "1000-", "1000-2000", "1000-2000 ", "1000-2000 r-x", "1000-2000 r-xp", "1000-2000 r-xp 0",
        "1000-2000 r-xp 0 8", "1000-2000 r-xp 0 8:", "2000-1000 r-xp 0 8:1 7 /x", "1000-1000 r-xp 0 8:1 7 /x",
        "10000000000000000-20000000000000000 r-xp 0 8:1 7 /x", "-1000-2000 r-xp 0 8:1 7 /x",
        "1000-2000 r-xp 0 fffffffff:1 7 /x", "1000-2000 r-xp 0 8:1 99999999999999999999 /x", "1000-2000 r-xp 0 8:1 7/x",
        "1000 -2000 r-xp 0 8:1 7 /x"}) {
    EXPECT_FALSE(ParseMapsLine(line)) << line;
  }
}

TEST(MapsParser, CountsBadLinesAndContinues) {
  std::vector<std::string> paths;
  size_t bad = ParseMaps("1000-2000 r-xp 0 8:1 7 /a\nrubbish\n\n3000-4000 r--p 0 8:1 7 /b",
                         [&](MapsEntry entry) { paths.push_back(entry.path); });
  EXPECT_EQ(bad, 2u);
  EXPECT_EQ(paths, (std::vector<std::string>{"/a", "/b"}));
}

TEST(MapsParser, VisitsOnlyCode) {
  std::vector<std::string> paths;
  ParseCodeMaps(
      "1000-2000 r--p 0 8:1 7 /a\n2000-3000 r-xp 0 8:1 7 /b\n3000-4000 rwxs 0 8:1 7 /c\nrubbish\n"
      "\n1000-2000 r-\n1000-2000 r-x\n4000-5000 rw-p 0 0:0 0 x\n5000-6000 --xp 0 8:1 7 /d",
      [&](MapsEntry entry) {
        EXPECT_TRUE(entry.executable);
        paths.push_back(entry.path);
      });
  EXPECT_EQ(paths, (std::vector<std::string>{"/b", "/c", "/d"}));
}

}  // namespace
}  // namespace tributary
