#include "base/glob.h"

#include <gtest/gtest.h>

#include <string>

namespace tributary {
namespace {

TEST(Glob, Matches) {
  struct Case {
    const char *pattern, *text;
    bool matches;
  };
  for (const Case& c : std::initializer_list<Case>{{"", "", true},
                                                   {"", "a", false},
                                                   {"a", "a", true},
                                                   {"a", "ab", false},
                                                   {"ab", "a", false},
                                                   {"*", "", true},
                                                   {"*", "anything", true},
                                                   {"web-*", "web-1", true},
                                                   {"web-*", "web-", true},
                                                   {"web-*", "db-1", false},
                                                   {"*-1", "web-1", true},
                                                   {"*-1", "web-1-2", false},
                                                   {"?", "a", true},
                                                   {"?", "", false},
                                                   {"w?b", "web", true},
                                                   {"**a**", "xay", true},
                                                   {"*a*b*c", "xaxbxc", true},
                                                   {"*a*b*c", "xaxcxb", false},
                                                   {"a*a", "a", false},
                                                   {"*.example", "n.example", true},
                                                   {"[a]", "a", false},
                                                   {"[a]", "[a]", true}}) {
    EXPECT_EQ(GlobMatches(c.pattern, c.text), c.matches) << c.pattern << " " << c.text;
  }
}

TEST(Glob, ManyStarsTakeNoMoreThanTheProductOfTheLengths) {
  std::string pattern;
  for (int i = 0; i < 200; ++i) pattern += "a*";
  EXPECT_FALSE(GlobMatches(pattern + "b", std::string(4096, 'a')));
}

}  // namespace
}  // namespace tributary
