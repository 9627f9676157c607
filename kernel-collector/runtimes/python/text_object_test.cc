#include "kernel-collector/runtimes/python/text_object.h"

#include <gtest/gtest.h>

#include "kernel-collector/runtimes/python/python_layout_testing.h"

namespace tributary {
namespace {

using namespace std::literals;

std::string Object(const PythonLayout& layout, uint64_t length, uint32_t state) {
  std::string object(layout.text_ascii, '\0');
  std::memcpy(object.data() + layout.text_length, &length, sizeof(length));
  std::memcpy(object.data() + layout.text_state, &state, sizeof(state));
  return object;
}

constexpr uint32_t kCompact = 8, kAscii = 16;  // above the width

TEST(PythonText, ParsesTheStateOfAllVersions) {
  struct Case {
    int minor;
    bool free_threaded;
    unsigned shift, ascii, compact;
  };
  for (const Case& c : {Case{6, false, 2, 48, 72}, Case{11, false, 2, 48, 72}, Case{12, false, 2, 40, 56},
                        Case{13, true, 2, 56, 72}, Case{14, false, 2, 40, 56}, Case{14, true, 8, 56, 72}}) {
    SCOPED_TRACE(c.minor);
    const PythonLayout layout = testing::LayoutOf(c.minor, c.free_threaded);
    auto ascii = ParsePythonText(layout, Object(layout, 5, (1 | kCompact | kAscii) << c.shift | 3));
    ASSERT_TRUE(ascii.ok());
    EXPECT_EQ(ascii->length, 5u);
    EXPECT_EQ(ascii->width, 1);
    EXPECT_EQ(ascii->data_offset, c.ascii);
    auto wide = ParsePythonText(layout, Object(layout, 5, (4 | kCompact) << c.shift));
    ASSERT_TRUE(wide.ok());
    EXPECT_EQ(wide->width, 4);
    EXPECT_EQ(wide->data_offset, c.compact);
    auto separate = ParsePythonText(layout, Object(layout, 5, 2 << c.shift));
    ASSERT_TRUE(separate.ok());
    EXPECT_FALSE(separate->compact);
    EXPECT_EQ(separate->data_offset, c.compact);
  }
}

TEST(PythonText, RefusesImpossibleObjects) {
  const PythonLayout layout = testing::LayoutOf(11);
  for (uint32_t width : {0u, 3u, 5u, 7u}) {
    EXPECT_FALSE(ParsePythonText(layout, Object(layout, 1, (width | kCompact) << 2)).ok()) << width;
  }
  EXPECT_FALSE(ParsePythonText(layout, Object(layout, 1, (2 | kCompact | kAscii) << 2)).ok());
  EXPECT_FALSE(ParsePythonText(layout, Object(layout, UINT64_MAX, (1 | kCompact) << 2)).ok());
  EXPECT_FALSE(ParsePythonText(layout, "short").ok());
}

TEST(PythonText, ConvertsEveryWidthToUtf8) {
  EXPECT_EQ(PythonTextToUtf8("plain", 1, 100), "plain");
  EXPECT_EQ(PythonTextToUtf8("gr\xf6\xdf"s, 1, 100), "größ");
  EXPECT_EQ(PythonTextToUtf8("\x36\x04\x60\x4f"s, 2, 100), "ж你");
  EXPECT_EQ(PythonTextToUtf8("\x01\x00\x02\x00"s, 4, 100), "\U00020001");
}

TEST(PythonText, ReplacesWhatIsNoPrintableText) {
  EXPECT_EQ(PythonTextToUtf8("a\nb\x7f\x85"s, 1, 100), "a\ufffdb\ufffd\ufffd");
  EXPECT_EQ(PythonTextToUtf8("\x00\xd8"s, 2, 100), "\ufffd");          // a lone surrogate
  EXPECT_EQ(PythonTextToUtf8("\xff\xff\xff\xff"s, 4, 100), "\ufffd");  // above the last code point
}

TEST(PythonText, CutsAtACharacter) {
  EXPECT_EQ(PythonTextToUtf8("abc", 1, 2), "ab");
  EXPECT_EQ(PythonTextToUtf8("\x36\x04\x36\x04"s, 2, 3), "ж");
}

}  // namespace
}  // namespace tributary
