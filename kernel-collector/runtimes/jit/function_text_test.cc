#include "kernel-collector/runtimes/jit/function_text.h"

#include <gtest/gtest.h>

namespace tributary {
namespace {

TEST(FunctionText, SplitsKnownFormats) {
  const struct {
    std::string_view text, name, file;
    uint32_t line;
  } cases[] = {
      {"LazyCompile:~work /srv/app.js:12:3", "work", "/srv/app.js", 12},
      {"LazyCompile:*work app.js:12", "work", "app.js", 12},
      {"JS:^get size /srv/my files/app.js:7:1", "get size", "/srv/my files/app.js", 7},
      {"JS:+load node:internal/modules/cjs/loader:1234:10", "load", "node:internal/modules/cjs/loader", 1234},
      {"JS:~ /srv/app.js:1:1", "(anonymous)", "/srv/app.js", 1},
      {"Function:~f file:///x/y.mjs:3:4", "f", "file:///x/y.mjs", 3},
      {"Script:~ evalmachine.<anonymous>:1:1", "(anonymous)", "evalmachine.<anonymous>", 1},
      {"py::Class.method.<locals>.inner:/srv/a:b.py", "py::Class.method.<locals>.inner", "/srv/a:b.py", 0},
      {"JS:~nothing", "JS:~nothing", "", 0},
      {"JS:~x:1:2", "JS:~x:1:2", "", 0},
      {"JS:~f a.js:99999999999", "JS:~f a.js:99999999999", "", 0},
      {"Builtin:ArrayMap", "Builtin:ArrayMap", "", 0},
      {"RegExp:a b:1:2", "RegExp:a b:1:2", "", 0},
      {"py::", "py::", "", 0},
      {"void [System.Private.CoreLib] A::B(class C, int32)[Tier0]",
       "void [System.Private.CoreLib] A::B(class C, int32)[Tier0]", "", 0},
      {"TRACE_12::a.lua:34", "TRACE_12::a.lua:34", "", 0},
      {"", "", "", 0},
  };
  for (const auto& c : cases) {
    const FunctionText parts = SplitFunctionText(c.text);
    EXPECT_EQ(parts.name, c.name) << c.text;
    EXPECT_EQ(parts.file, c.file) << c.text;
    EXPECT_EQ(parts.line, c.line) << c.text;
  }
}

}  // namespace
}  // namespace tributary
