#include "base/trim.h"

#include <gtest/gtest.h>

namespace tributary {
namespace {

TEST(Trim, RemovesTheNamedBytesAtBothEnds) {
  struct Case {
    std::string_view text, blanks, both, end;
  };
  const Case cases[] = {
      {"", " ", "", ""},
      {"a", " ", "a", "a"},
      {" \t a b\t ", kHttpBlanks, "a b", " \t a b"},
      {" \t ", kHttpBlanks, "", ""},
      {"\na\r\n", kHttpBlanks, "\na\r\n", "\na\r\n"},  // a line break is not a blank in a header
      {"\v\fa \r\n", kAsciiBlanks, "a", "\v\fa"},
      {std::string_view("\0a\0", 3), kAsciiBlanks, std::string_view("\0a\0", 3), std::string_view("\0a\0", 3)},
      {std::string_view("0-3\n\0", 5), std::string_view("\n\0", 2), "0-3", "0-3"},
      {"\xc2\xa0x", kAsciiBlanks, "\xc2\xa0x", "\xc2\xa0x"},  // a no-break space in UTF-8
      {" a ", "", " a ", " a "},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(Trim(c.text, c.blanks), c.both) << c.text;
    EXPECT_EQ(TrimEnd(c.text, c.blanks), c.end) << c.text;
  }
}

}  // namespace
}  // namespace tributary
