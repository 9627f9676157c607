#include "reducer/export/file_name.h"

#include <gtest/gtest.h>

#include <cctype>
#include <map>
#include <random>

#include "base/percent.h"

namespace tributary {
namespace {

TEST(FileName, KeepsHarmlessNames) {
  for (const char* name : {"checkout", "kube-system.kube-apiserver_1", "others", "unknown_service", "0"}) {
    EXPECT_EQ(FileNameOf(name), name);
  }
  const std::string container(64, 'c');
  EXPECT_EQ(FileNameOf(container), container);
}

TEST(FileName, EscapesHostileNames) {
  EXPECT_EQ(FileNameOf(".."), "%2E.");
  EXPECT_EQ(FileNameOf("."), "%2E");
  EXPECT_EQ(FileNameOf("../../etc/passwd"), "%2E.%2F..%2Fetc%2Fpasswd");
  EXPECT_EQ(FileNameOf("/etc/passwd"), "%2Fetc%2Fpasswd");
  EXPECT_EQ(FileNameOf(".lock"), "%2Elock");
  EXPECT_EQ(FileNameOf("-rf"), "%2Drf");
  EXPECT_EQ(FileNameOf(std::string("a\0b", 3)), "a%00b");
  EXPECT_EQ(FileNameOf("a\nb\x1b[2J"), "a%0Ab%1B%5B2%4A");
  EXPECT_EQ(FileNameOf("100%25"), "100%2525");
  EXPECT_EQ(FileNameOf("naïve"), "na%C3%AFve");
  EXPECT_EQ(FileNameOf("Checkout"), "%43heckout");
}

TEST(FileName, NoNameLooksLikeASharedOne) {
  EXPECT_EQ(FileNameOf(""), kUnknownName);
  EXPECT_EQ(FileNameOf("unknown"), "%75nknown");
  EXPECT_EQ(FileNameOf("other"), "%6Fther");
}

TEST(FileName, LongNamesBecomeOther) {
  EXPECT_EQ(FileNameOf(std::string(kFileNameBytesMax, 'a')), std::string(kFileNameBytesMax, 'a'));
  EXPECT_EQ(FileNameOf(std::string(kFileNameBytesMax + 1, 'a')), kOtherName);
  EXPECT_EQ(FileNameOf(std::string(kFileNameBytesMax / 2, 'A')), kOtherName);
  EXPECT_EQ(FileNameOf(std::string(1 << 20, '/')), kOtherName);
}

// Also not in a file system that ignores case.
TEST(FileName, DifferentNamesHaveDifferentFiles) {
  std::mt19937 random(1);
  std::map<std::string, std::string> names;
  for (int i = 0; i < 20'000; ++i) {
    std::string name(1 + random() % 4, '\0');
    for (char& c : name) c = "aA%2e.-/\0\xff"[random() % 10];
    const std::string file = FileNameOf(name);
    EXPECT_EQ(PercentDecoded(file), name);
    std::string folded = file;
    for (char& c : folded) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    const auto [place, is_new] = names.emplace(folded, name);
    EXPECT_EQ(place->second, name) << file;
  }
}

TEST(FileName, NamesTypeAndUnit) {
  EXPECT_EQ(FileTypeOf("cpu", "nanoseconds"), "cpu.nanoseconds");
  EXPECT_EQ(FileTypeOf("alloc.space", ""), "alloc%2Espace.unknown");
  EXPECT_EQ(FileTypeOf("../x", "By/s"), "%2E%2E%2Fx.%42y%2Fs");
  const std::string a = FileTypeOf(std::string(1'000, 'a') + "1", "count");
  const std::string b = FileTypeOf(std::string(1'000, 'a') + "2", "count");
  EXPECT_NE(a, b);
  EXPECT_EQ(a.substr(0, 25), std::string(24, 'a') + "~");
  EXPECT_LE(FileTypeOf(std::string(1'000, '/'), std::string(1'000, '/')).size(), 83u);
}

TEST(FileName, FormatsAndParses) {
  const FileName name{.stem = "checkout.cpu.nanoseconds", .stamp_ms = 1'795'788'059'123, .is_part = false};
  EXPECT_EQ(FormatFileName(name, "folded"), "checkout.cpu.nanoseconds.20261127T140059123Z.folded");
  FileName part = name;
  part.is_part = true;
  EXPECT_EQ(FormatFileName(part, "folded"), "checkout.cpu.nanoseconds.20261127T140059123Z.folded.part");
  for (const FileName& of : {name, part}) {
    const std::optional<FileName> parsed = ParseFileName(FormatFileName(of, "folded"), "folded");
    ASSERT_TRUE(parsed);
    EXPECT_EQ(parsed->stem, of.stem);
    EXPECT_EQ(parsed->stamp_ms, of.stamp_ms);
    EXPECT_EQ(parsed->is_part, of.is_part);
  }
}

TEST(FileName, TheLongestNameFitsIntoADirectory) {
  const std::string stem =
      std::string(kFileNameBytesMax, 'a') + "." + FileTypeOf(std::string(99, 'b'), std::string(99, 'c'));
  EXPECT_LE(FormatFileName({.stem = stem, .stamp_ms = 0, .is_damaged = true}, "folded").size(), 255u);
}

TEST(FileName, ParsesNoOtherNames) {
  for (const char* text :
       {"", ".", "..", ".lock", "a.folded", "a.20261127T140059123Z.jsonl", ".20261127T140059123Z.folded",
        "a.20261127T140059123Z.folded.part.part", "a.20261327T140059123Z.folded", "a.20261127T146059123Z.folded",
        "a.2026112 T140059123Z.folded", "a.-0261127T140059123Z.folded", "a b.20261127T140059123Z.folded",
        "Z.20261127T140059123Z.folded", "a20261127T140059123Z.folded", "a.20261127T140059123Z.folded.gz"}) {
    EXPECT_FALSE(ParseFileName(text, "folded")) << text;
  }
}

}  // namespace
}  // namespace tributary
